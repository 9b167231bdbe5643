"""Creation functions of the standard that take values from elsewhere: asarray and from_dlpack."""

from __future__ import annotations

import builtins
import reprlib
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.device import Device, as_device
from fklarray.dtype_rows import (
    NUMPY_DTYPES,
    DtypeLike,
    dtype_row,
    row_or_default,
    scalar_dtype,
)
from fklarray.interchange import from_producer, state_of_numpy
from fklarray.pending import make_room
from fklarray.placement import placed
from fklarray.recording import cast_state, constant_state

__all__ = ["asarray", "from_dlpack"]


def asarray(
    obj: Any,
    /,
    *,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
    copy: builtins.bool | None = None,
) -> Array:
    """Convert to an array.

    Parameters
    ----------
    obj : Array, scalar, (nested) sequence, numpy.ndarray, or object with DLPack or buffer protocol
        Values.
    dtype : dtype, optional
        Data type; by default that of `obj`, or the default one of Python scalars.
    device : Device or str, optional
        Device of the result.
    copy : bool, optional
        True: always copy. False: share the memory or fail. None: copy what could be written to by
        others (a writable NumPy array), share otherwise.

    Returns
    -------
    Array
        An array of this library comes back as it is where no copy is needed or asked for.

    Raises
    ------
    ValueError
        If `copy` is False and a copy is needed, or the device is unknown.
    TypeError
        If the data type is not supported.
    OverflowError
        If a Python integer is out of the data type's range.
    """
    if isinstance(obj, Array):
        here = obj if device is None else _moved(obj, as_device(device), copy)
        return _from_array(here, dtype, copy if here is obj else None)
    place = as_device(device).name
    foreign: Any = obj
    if isinstance(obj, np.ndarray):
        # A subclass (a masked array, a matrix) must not slip its own rules in.
        plain: np.ndarray[Any, Any] = np.asarray(foreign)
        make_room(plain.nbytes)
        result = Array(plain.shape, state_of_numpy(plain, copy, place))
        return result if dtype is None else _from_array(result, dtype, copy and None)
    if type(obj) in (builtins.bool, int, float, complex):
        _no_sharing(copy, foreign)
        return Array((), constant_state(obj, row_or_default(dtype, scalar_dtype(obj)), place))
    if hasattr(obj, "__dlpack__") and not isinstance(obj, np.generic):
        array = from_dlpack(foreign, device=device, copy=copy)
        return array if dtype is None else _from_array(array, dtype, copy and None)
    _no_sharing(copy, foreign)
    return _from_values(foreign, dtype, place)


def _moved(array: Array, device: Device, copy: builtins.bool | None) -> Array:
    """Return an array on a device.

    Raises
    ------
    ValueError
        If it is on another one, and `copy` is False.
    """
    if array.device == device:
        return array
    if copy is False:
        raise ValueError(
            f"an array on {array.device} has no memory on {device}; copy=False forbids the copy"
        )
    return array.to_device(device)


def _no_sharing(copy: builtins.bool | None, obj: object) -> None:
    if copy is False:
        raise ValueError(f"{type(obj).__name__} has no memory to share; copy=False forbids a copy")


def _from_array(array: Array, dtype: DtypeLike | None, copy: builtins.bool | None) -> Array:
    row = row_or_default(dtype, array._state[0].dtype)
    if row is not array._state[0].dtype:
        if copy is False:
            raise ValueError(f"conversion of {array.dtype} to {row} needs a copy")
        return Array(array.shape, cast_state(array._state, row))
    return Array(array.shape, array._state) if copy else array


def _from_values(obj: Any, dtype: DtypeLike | None, place: str) -> Array:
    """Convert sequences, NumPy scalars and the buffer protocol."""
    obj = _unwrapped(obj)
    row = None if dtype is None else dtype_row(dtype)
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(obj, dtype=None if row is None else NUMPY_DTYPES[row])
    except OverflowError:
        raise OverflowError(f"{reprlib.repr(obj)} is out of bounds for {row}") from None
    row = row or dtype_row(values.dtype)
    return Array(values.shape, placed(values, row, values.shape, place))


def _unwrapped(values: Any) -> Any:
    """Replace arrays of this library in nested sequences by what NumPy understands."""
    if type(values) in (list, tuple):
        return [_unwrapped(value) for value in values]
    if isinstance(values, Array):
        return np.asarray(values)[()]
    return values


def from_dlpack(
    x: object,
    /,
    *,
    device: Device | str | None = None,
    copy: builtins.bool | None = None,
) -> Array:
    """Import an array from another library, sharing its memory.

    Parameters
    ----------
    x : object
        Has ``__dlpack__``; its memory is on the CPU or an NVIDIA device. What is still to be
        done there comes first, without waiting for it here.
    device : Device or str, optional
        Device of the result; that of `x` by default.
    copy : bool, optional
        True: always copy. False: share or fail. None: share where possible.

    Returns
    -------
    Array
        Shares the memory with `x`: writes there are seen here. Assignment to the result copies
        first.

    Raises
    ------
    BufferError
        If the tensor's device or data type is not supported.
    ValueError
        If `copy` is False and a copy is needed.
    TypeError
        If `x` has no ``__dlpack__``.

    Notes
    -----
    DLPack 1.x; read-only tensors are accepted.
    """
    wanted = None if device is None else as_device(device)
    state, shape = from_producer(x, copy=copy)
    array = Array(shape, state)
    return array if wanted is None else _moved(array, wanted, copy)
