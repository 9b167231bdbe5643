"""Memory of the device that an expression is on, and the way of values between devices.

The place of an expression (`Node.place`) and of a block is a device's name. The host sees a
device's memory through copies only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from fklarray.dtype_rows import NUMPY_DTYPES, DType
from fklarray.recording import HOST, Leaf, State, Stream, stream_of, stream_state
from fklarray_runtime import (
    Buffer,
    DeviceBuffer,
    Kernel,
    allocate,
    allocate_on,
    copy_from_device,
    copy_to_device,
    copy_within,
    current_stream,
    launch_on,
)

__all__ = [
    "Values",
    "allocate_at",
    "empty_state",
    "launch_at",
    "moved",
    "number_of",
    "placed",
    "steps_of",
    "values_of",
    "view_of",
    "write_values",
]

Values = np.ndarray[Any, np.dtype[Any]]


@cache
def number_of(place: str) -> int:
    """Return the number of the device ``"cuda:N"``."""
    return int(place.removeprefix("cuda:"))


def allocate_at(place: str, nbytes: int) -> Buffer:
    """Allocate uninitialised memory; that of a device in the order of its current stream.

    Raises
    ------
    MemoryError
        If it is not to be had.
    """
    if place == HOST:
        return allocate(nbytes)
    device = number_of(place)
    return allocate_on(device, nbytes, current_stream(device))


def empty_state(dtype: DType, shape: tuple[int, ...], place: str) -> State:
    """Return a new array whose elements are yet to be written; raises as `allocate_at` does."""
    return stream_state(allocate_at(place, math.prod(shape) * dtype.itemsize), dtype, shape)


def launch_at(
    place: str, kernel: Kernel, values: Sequence[Any], streams: Sequence[Leaf | Stream]
) -> None:
    """Run a kernel; on a device it is queued on the current stream.

    Parameters
    ----------
    place : str
        What it was compiled for.
    kernel, values
        As in `fklarray_runtime.Kernel.launch`.
    streams : sequence
        What it reads and writes; numbers among them are passed over.
    """
    if place == HOST:
        kernel.launch(values)
        return
    device = number_of(place)
    buffers: list[Any] = [stream.buffer for stream in streams if isinstance(stream, Stream)]
    blocks: list[int] = [buffer.block for buffer in buffers]
    launch_on(kernel, kernel.pack(values), device, current_stream(device), blocks)


def view_of(stream: Stream, dtype: DType, shape: tuple[int, ...]) -> Values:
    """Return a NumPy array over a stream's memory on the host; it keeps the memory alive.

    Parameters
    ----------
    stream : Stream
        May have fewer dimensions than `shape`: it is broadcast.
    dtype : DType
        Data type of its elements.
    shape : tuple of int
        Shape of the view.
    """
    offset = stream.value - stream.buffer.address
    return np.ndarray(
        shape, NUMPY_DTYPES[dtype], stream.buffer.view(), offset, steps_of(stream, dtype, shape)
    )


def steps_of(stream: Stream, dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a stream's strides in bytes, for all dimensions that it is broadcast to."""
    strides = (0,) * (len(shape) - len(stream.strides)) + stream.strides
    return tuple(stride * dtype.itemsize for stride in strides)


def values_of(stream: Stream, dtype: DType, shape: tuple[int, ...]) -> Values:
    """Return a stream's values as a NumPy array: a view on the host, or a read-only copy."""
    if math.prod(shape) == 0:
        return np.empty(shape, NUMPY_DTYPES[dtype])
    if stream.buffer.place == HOST:
        return view_of(stream, dtype, shape)
    copy, start = _downloaded(stream, dtype, shape)
    steps = steps_of(stream, dtype, shape)
    values: Values = np.ndarray(shape, NUMPY_DTYPES[dtype], copy.data, start, steps)
    values.flags.writeable = False
    return values


def _downloaded(stream: Stream, dtype: DType, shape: tuple[int, ...]) -> tuple[Values, int]:
    """Return the bytes that a stream reaches, and where its first element is among them."""
    steps = steps_of(stream, dtype, shape)
    reach = [(extent - 1) * step for extent, step in zip(shape, steps, strict=True)]
    below = -sum(one for one in reach if one < 0)
    above = sum(one for one in reach if one > 0) + dtype.itemsize
    copy: Values = np.empty(below + above, np.uint8)
    memory = stream.buffer
    assert isinstance(memory, DeviceBuffer)
    copy_from_device(memory, stream.value - below, copy, current_stream(memory.device))
    return copy, below


def write_values(target: Stream, dtype: DType, shape: tuple[int, ...], values: Values) -> None:
    """Write values, converted and broadcast, to an array in memory."""
    if math.prod(shape) == 0:
        return
    if target.buffer.place == HOST:
        np.copyto(view_of(target, dtype, shape), values, casting="unsafe")
        return
    # What lies between the elements goes there and back.
    copy, start = _downloaded(target, dtype, shape)
    steps = steps_of(target, dtype, shape)
    view: Values = np.ndarray(shape, NUMPY_DTYPES[dtype], copy.data, start, steps)
    np.copyto(view, values, casting="unsafe")
    memory = target.buffer
    assert isinstance(memory, DeviceBuffer)
    _upload(memory, target.value - start, copy)


def _upload(memory: DeviceBuffer, address: int, source: Values) -> None:
    copy_to_device(memory, address, source, current_stream(memory.device))


def placed(values: Values, dtype: DType, shape: tuple[int, ...], place: str) -> State:
    """Return new memory with values, converted and broadcast."""
    state = empty_state(dtype, shape, place)
    if place == HOST:
        write_values(stream_of(state), dtype, shape, values)
    elif math.prod(shape):
        memory = stream_of(state).buffer
        assert isinstance(memory, DeviceBuffer)
        whole: Values = np.empty(shape, NUMPY_DTYPES[dtype])
        np.copyto(whole, values, casting="unsafe")
        _upload(memory, memory.address, whole.reshape(-1).view(np.uint8))
    return state


def moved(state: State, shape: tuple[int, ...], place: str) -> State:
    """Copy an array that fills its memory in C order to another device."""
    source, dtype = stream_of(state), state[0].dtype
    if HOST in (place, source.buffer.place):
        return placed(values_of(source, dtype, shape), dtype, shape, place)
    state = empty_state(dtype, shape, place)
    target, memory = stream_of(state).buffer, source.buffer
    assert isinstance(target, DeviceBuffer)
    assert isinstance(memory, DeviceBuffer)
    copy_within(target, memory, current_stream(target.device))
    return state
