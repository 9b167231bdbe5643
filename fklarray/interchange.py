"""Memory in and out: NumPy arrays, DLPack, the buffer protocol."""

from __future__ import annotations

import math
import sys
from typing import Any, cast

import numpy as np

from fklarray.dtype_rows import DTYPES, DType, dtype_row
from fklarray.placement import number_of, placed, values_of, view_of
from fklarray.recording import (
    HOST,
    Leaf,
    Memory,
    State,
    Stream,
    stream_of,
    stream_state,
    view_state,
)
from fklarray_runtime import (
    LEGACY_STREAM,
    Buffer,
    DeviceBuffer,
    allocate,
    current_stream,
    device_count,
    export_capsule,
    import_capsule,
    request,
    use_on,
)

__all__ = [
    "DLPACK_CPU",
    "check_stream",
    "dlpack_device",
    "export_dlpack",
    "from_producer",
    "hand_over",
    "is_private",
    "repeated_row",
    "state_of_numpy",
]

DLPACK_CPU = (1, 0)
_DLPACK_CUDA = 2

_BY_DLPACK = {(dtype.dlpack_code, dtype.bits): dtype for dtype in DTYPES.values()}


class _Holder:
    __slots__ = ("state",)

    def __init__(self, state: State) -> None:
        self.state = state


def _references(state: State) -> tuple[int, int, int, int]:
    leaves = state[1]
    stream = leaves[0]
    count = sys.getrefcount
    return count(state), count(leaves), count(stream), count(stream.buffer)  # type: ignore[union-attr]


def is_private(state: State) -> bool:
    """Return whether nothing but the one array that the caller took it from refers to a state.

    The caller holds the state in one local variable. What nobody else refers to can be written in
    place. Reference counts differ between versions of Python, so they are compared with those of
    a state that is known to have one holder.
    """
    found, least = _references(state), _LEAST
    # Written out, since it is on the way of every export.
    return (
        found[0] <= least[0]
        and found[1] <= least[1]
        and found[2] <= least[2]
        and found[3] <= least[3]
    )


def _references_of_one(holder: _Holder) -> tuple[int, int, int, int]:
    state = holder.state
    return _as_is_private(state)


def _as_is_private(state: State) -> tuple[int, int, int, int]:
    return _references(state)


def _least_references() -> tuple[int, int, int, int]:
    # A debugger's look at local variables would add to the counts.
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return _references_of_one(_Holder(stream_state(allocate(8), DTYPES["float64"], (1,))))
    finally:
        sys.settrace(tracer)


_LEAST = _least_references()


def state_of_numpy(array: np.ndarray[Any, Any], copy: bool | None, place: str = HOST) -> State:
    """Return the state of a NumPy array.

    Memory that somebody could write to is copied unless `copy` is False, so that a later write
    cannot change what was recorded; other memory is shared.

    Raises
    ------
    TypeError
        If the data type is not supported.
    ValueError
        If `copy` is False and the memory cannot be shared.
    """
    dtype = dtype_row(array.dtype.newbyteorder("="))
    if place != HOST:
        if copy is False:
            raise ValueError(f"a NumPy array has no memory on {place}; copy=False forbids the copy")
        return placed(array, dtype, array.shape, place)
    shareable = (
        array.dtype.isnative
        and array.flags.aligned
        and all(stride % dtype.itemsize == 0 for stride in array.strides)
    )
    if copy is False and not shareable:
        raise ValueError(
            f"an array of dtype {array.dtype.str} and strides {array.strides} with unaligned or "
            "swapped elements cannot be shared; copy=False forbids the copy"
        )
    if shareable and array.size and (copy is False or (copy is None and _is_constant(array))):
        return _adopt(array, dtype)
    return placed(array, dtype, array.shape, HOST)


def _is_constant(array: np.ndarray[Any, Any]) -> bool:
    """Return whether nobody can write to an array's memory: no array down to its owner can."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = cast("Any", base.base)
    return base is None or isinstance(base, bytes)


def _adopt(array: np.ndarray[Any, Any], dtype: DType) -> State:
    # NumPy's DLPack knows the data types of NumPy only: bits of the same size go through.
    if not dtype.is_standard:
        array = array.view(np.uint16)
    return view_state(stream_of(from_producer(array, copy=None)[0]), dtype)


def repeated_row(leaf: Leaf, dtype: DType, period: tuple[int, int], row: int) -> Stream:
    """Return a contiguous row in which a short stream's elements repeat."""
    assert isinstance(leaf, Stream)
    buffer = allocate(row * dtype.itemsize)
    repeated = Stream(buffer, buffer.address, (1,))
    once = view_of(Stream(leaf.buffer, leaf.value, period[1:]), dtype, period[:1])
    view_of(repeated, dtype, (row,)).reshape(-1, period[0])[...] = once
    return repeated


def from_producer(producer: object, *, copy: bool | None) -> tuple[State, tuple[int, ...]]:
    """Take a tensor over from another library through DLPack.

    Parameters
    ----------
    producer : object
        Has ``__dlpack__``.
    copy : bool or None
        True: always copy. None: share where possible. False: share, or fail.

    Returns
    -------
    State, tuple of int
        And the shape.

    Raises
    ------
    BufferError
        If the tensor's device or data type is not supported.
    ValueError
        If `copy` is False and sharing is impossible.
    """
    queue = _queue_for(producer)
    imported = import_capsule(request(producer, copy=copy, stream=queue), queue or LEGACY_STREAM)
    dtype = _BY_DLPACK.get((imported.code, imported.bits))
    if dtype is None:
        raise BufferError(
            f"DLPack type code {imported.code} with {imported.bits} bits is not supported"
        )
    shape = imported.shape
    strides = tuple(
        stride if extent > 1 else 0 for stride, extent in zip(imported.strides, shape, strict=True)
    )
    stream = Stream(imported.buffer, imported.address, strides)
    component = dtype.itemsize // (2 if dtype.kind == "complex" else 1)
    misaligned = imported.address % component != 0
    if misaligned and copy is False:
        raise ValueError(
            f"the memory at {imported.address:#x} is not aligned for {dtype}; "
            "copy=False forbids the copy"
        )
    if copy or misaligned or math.prod(shape) == 0:
        place = stream.buffer.place
        return placed(values_of(stream, dtype, shape), dtype, shape, place), shape
    return view_state(stream, dtype), shape


def _queue_for(producer: object) -> int | None:
    """Return the stream that a CUDA tensor is wanted on; None for other producers."""
    about = getattr(producer, "__dlpack_device__", None)
    kind, number = about() if about is not None else DLPACK_CPU
    is_here = kind == _DLPACK_CUDA and 0 <= number < device_count()
    return current_stream(number) if is_here else None


def dlpack_device(place: str) -> tuple[int, int]:
    """Return DLPack's type and number of a device."""
    return DLPACK_CPU if place == HOST else (_DLPACK_CUDA, number_of(place))


def check_stream(place: str, stream: int | None) -> None:
    """Refuse what is no stream of a device.

    Raises
    ------
    BufferError
        Naming it.
    """
    if place == HOST and stream not in (None, -1):
        raise BufferError(f"an array on the CPU has no stream, but stream={stream!r} was given")
    if place != HOST and (stream == 0 or (stream is not None and stream < -1)):
        raise BufferError(f"stream={stream!r} is ambiguous or no stream; 1 is the default one")


def hand_over(stream: Stream, consumer: int | None) -> None:
    """Let a consumer's stream come after what is queued for an array on a device."""
    memory = stream.buffer
    if isinstance(memory, DeviceBuffer) and consumer != -1:
        use_on(memory, LEGACY_STREAM if consumer is None else consumer)


def export_dlpack(
    buffer: Memory,
    dtype: DType,
    shape: tuple[int, ...],
    *,
    versioned: bool,
    readonly: bool,
    copied: bool,
) -> object:
    """Return a DLPack capsule of a C-contiguous array that fills a buffer from its start."""
    assert isinstance(buffer, Buffer)
    return export_capsule(
        buffer,
        address=buffer.address,
        shape=shape,
        code=dtype.dlpack_code,
        bits=dtype.bits,
        versioned=versioned,
        readonly=readonly,
        copied=copied,
    )
