"""Creation functions of the standard."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fklarray.array import Array
from fklarray.conversion import asarray
from fklarray.device import Device, as_device
from fklarray.dtype_rows import NUMPY_DTYPES, DtypeLike, row_or_default, scalar_dtype
from fklarray.interchange import state_of_numpy
from fklarray.manipulation import broadcast_arrays, reshape
from fklarray.placement import placed
from fklarray.record import Number, record_where
from fklarray.recording import cast_state, constant_state, scalar_state
from fklarray.reductions import array_operand, normal_shape
from fklarray_codegen.dtypes import DTYPES, DType

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    result = normal_shape(shape)
    if any(extent < 0 for extent in result):
        raise ValueError(f"negative extents in shape {result}")
    return result


def full(
    shape: int | Sequence[int],
    fill_value: Number | Array,
    *,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return an array of one value; it takes no memory until it is needed.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the result.
    fill_value : scalar or Array without dimensions
        The value.
    dtype : dtype, optional
        Data type; by default the default one of the value's kind.
    device : Device or str, optional
        Device of the result; by default the value's, if that is an array.

    Raises
    ------
    ValueError
        If an extent is negative.
    TypeError
        If `fill_value` is not a number.
    OverflowError
        If an integer value is out of the data type's range.
    """
    place = as_device(device).name
    extents = _shape(shape)
    if isinstance(fill_value, (Array, np.ndarray, np.generic)):
        value = asarray(fill_value, device=device)
        if value.ndim:
            raise ValueError(f"fill_value must have no dimensions, not shape {value.shape}")
        row = row_or_default(dtype, value._state[0].dtype)
        return Array(extents, cast_state(value._state, row))
    given: Any = fill_value
    if not isinstance(given, (int, float, complex)):
        raise TypeError(f"fill_value must be a number, not {given!r}")
    row = row_or_default(dtype, scalar_dtype(fill_value))
    return Array(extents, constant_state(fill_value, row, place))


def zeros(
    shape: int | Sequence[int],
    *,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return an array of zeros (float64 by default)."""
    return full(shape, 0.0 if dtype is None else 0, dtype=dtype, device=device)


def ones(
    shape: int | Sequence[int],
    *,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return an array of ones (float64 by default)."""
    return full(shape, 1.0 if dtype is None else 1, dtype=dtype, device=device)


def empty(
    shape: int | Sequence[int],
    *,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return an array of any values: zeros, since an array without values costs nothing."""
    return zeros(shape, dtype=dtype, device=device)


def _like(
    function: str,
    x: Array,
    fill_value: Number | Array,
    dtype: DtypeLike | None,
    device: Device | str | None,
) -> Array:
    x = array_operand(function, x)
    row = x.dtype if dtype is None else dtype
    return full(x.shape, fill_value, dtype=row, device=x.device if device is None else device)


def full_like(
    x: Array,
    /,
    fill_value: Number | Array,
    *,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return an array of one value with the shape and data type of another."""
    return _like("full_like", x, fill_value, dtype, device)


def zeros_like(
    x: Array, /, *, dtype: DtypeLike | None = None, device: Device | str | None = None
) -> Array:
    """Return zeros with the shape and data type of another array."""
    return _like("zeros_like", x, 0, dtype, device)


def ones_like(
    x: Array, /, *, dtype: DtypeLike | None = None, device: Device | str | None = None
) -> Array:
    """Return ones with the shape and data type of another array."""
    return _like("ones_like", x, 1, dtype, device)


def empty_like(
    x: Array, /, *, dtype: DtypeLike | None = None, device: Device | str | None = None
) -> Array:
    """Return an array of any values with the shape and data type of another."""
    return _like("empty_like", x, 0, dtype, device)


def _of_numpy(values: np.ndarray[Any, Any], row: DType, place: str) -> Array:
    return Array(values.shape, placed(values, row, values.shape, place))


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float | None = 1,
    *,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return evenly spaced values of the half-open interval [start, stop).

    Parameters
    ----------
    start, stop : int or float
        The interval; with one argument it is [0, start).
    step : int or float
        Distance, not 0; None is 1, as in NumPy.
    dtype : dtype, optional
        Data type; by default int64 if all arguments are integers, float64 otherwise.
    device : Device or str, optional
        Device of the result.

    Raises
    ------
    ValueError
        If `step` is 0.
    TypeError
        If an argument is not a real number.
    OverflowError
        If an end is an integer beyond int64, and no data type is given.
    """
    place = as_device(device).name
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("arange needs a step other than 0")
    ends: tuple[Any, Any] = (0, start) if stop is None else (start, stop)
    if any(end is None for end in ends):
        raise TypeError("arange needs numbers, not None")
    integers = all(map(_is_integer, (*ends, step)))
    if integers and dtype is None:
        for end in ends:
            scalar_state(operator.index(end), DTYPES["int64"])  # NumPy would wrap around
    row = row_or_default(dtype, DTYPES["int64" if integers else "float64"])
    with np.errstate(all="ignore"):
        return _of_numpy(np.arange(*ends, step, dtype=NUMPY_DTYPES[row]), row, place)


def _is_integer(value: object) -> builtins.bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
    endpoint: builtins.bool = True,
) -> Array:
    """Return evenly spaced values from `start` to `stop`.

    Parameters
    ----------
    start, stop : scalar
        The interval.
    num : int
        Number of values, not negative.
    dtype : dtype, optional
        Data type; by default float64, or complex128 for complex arguments.
    device : Device or str, optional
        Device of the result.
    endpoint : bool
        Whether `stop` is among the values.

    Raises
    ------
    ValueError
        If `num` is negative.
    """
    place = as_device(device).name
    is_complex = np.iscomplexobj(start) or np.iscomplexobj(stop)
    row = row_or_default(dtype, DTYPES["complex128" if is_complex else "float64"])
    with np.errstate(all="ignore"):
        values = np.linspace(start, stop, num, endpoint=endpoint, dtype=NUMPY_DTYPES[row])
    return _of_numpy(values, row, place)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return a matrix with ones on diagonal `k` and zeros elsewhere (float64 by default)."""
    place = as_device(device).name
    row = row_or_default(dtype, DTYPES["float64"])
    return _of_numpy(np.eye(n_rows, n_cols, k, dtype=NUMPY_DTYPES[row]), row, place)


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """Return coordinate matrices of coordinate vectors.

    Parameters
    ----------
    *arrays : Array
        Vectors of one data type.
    indexing : {"xy", "ij"}
        Cartesian (the first two dimensions swapped) or matrix order.

    Raises
    ------
    ValueError
        If an array has more than one dimension, or `indexing` is something else.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', not {indexing!r}")
    vectors = [array_operand("meshgrid", array) for array in arrays]
    if any(array.ndim > 1 for array in vectors):
        raise ValueError(f"meshgrid needs vectors, not shapes {[a.shape for a in vectors]}")
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        axes[:2] = 1, 0
    spread = [
        reshape(array, tuple(-1 if axis == own else 1 for axis in range(len(vectors))))
        for array, own in zip(vectors, axes, strict=True)
    ]
    return broadcast_arrays(*spread)


def _triangle(x: Array, mask: np.ndarray[Any, Any]) -> Array:
    zero = Array((), scalar_state(0, x._state[0].dtype))
    return record_where(Array(mask.shape, state_of_numpy(mask, True, x.device.name)), x, zero)


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Return the lower triangles of a stack of matrices: elements above diagonal `k` are zero.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    """
    x = array_operand("tril", x)
    if x.ndim < 2:
        raise ValueError(f"tril needs matrices, not an array of shape {x.shape}")
    return _triangle(x, np.tri(x.shape[-2], x.shape[-1], k, dtype=np.bool))


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Return the upper triangles of a stack of matrices: elements below diagonal `k` are zero.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    """
    x = array_operand("triu", x)
    if x.ndim < 2:
        raise ValueError(f"triu needs matrices, not an array of shape {x.shape}")
    return _triangle(x, ~np.tri(x.shape[-2], x.shape[-1], k - 1, dtype=np.bool))
