"""What reductions share: axes, shapes, data types, and running them on NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from fklarray.array import Array
from fklarray.conversion import asarray
from fklarray.delegation import Delegated
from fklarray.dtype_rows import NUMPY_DTYPES, DType, DtypeLike, computed_row, dtype_row
from fklarray.record import record_deferred
from fklarray.recording import cast_state
from fklarray_codegen.graph import HOST, common_place

__all__ = [
    "Axes",
    "Function",
    "array_operand",
    "converted",
    "deferred_on_numpy",
    "empty_extent",
    "floating_operand",
    "in_dtype",
    "normal_axes",
    "normal_axis",
    "normal_shape",
    "one_correction",
    "reduced_on_numpy",
    "reduced_shape",
    "refuse_nothing",
    "wide",
]

Axes: TypeAlias = int | tuple[int, ...] | None
# A function of NumPy of one array or of two.
Function: TypeAlias = Callable[[Any], Any] | Callable[[Any, Any], Any]
_Values = np.ndarray[Any, Any]


def array_operand(function: str, x: object, beside: Array | None = None) -> Array:
    """Return an operand as an array of this library; NumPy's are taken too, to where another is.

    Raises
    ------
    TypeError
        Naming the function and the argument's type.
    """
    if isinstance(x, Array):
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        return asarray(x, device=None if beside is None else beside.device)
    raise TypeError(f"{function} takes an array of fklarray, not {type(x).__name__}")


def in_dtype(x: Array, dtype: DtypeLike | None) -> Array:
    """Return an operand converted to a data type, if one is asked for.

    Raises
    ------
    TypeError
        If the data type is not supported, or a complex array would become a real one other than
        bool.
    """
    if dtype is None:
        return x
    own, row = x._state[0].dtype, dtype_row(dtype)
    if own.kind == "complex" and row.kind not in ("complex", "bool"):
        raise TypeError(f"cannot convert {own} to {row}; take the real part with real()")
    return Array(x.shape, cast_state(x._state, row))


def converted(x: Array, row: DType) -> Array:
    """Return an array in a data type; itself if it has that already."""
    state = x._state
    return x if state[0].dtype is row else Array(x._shape, cast_state(state, row))


def floating_operand(function: str, x: object, dtype: DtypeLike | None) -> Array:
    """Return the operand of a mean or a spread, converted to a data type if one is asked for.

    Raises
    ------
    TypeError
        As of `array_operand` and `in_dtype`, and if the data type is one of integers or bool,
        which a mean does not fit into.
    """
    array = array_operand(function, x)
    if dtype is not None and dtype_row(dtype).kind not in ("real", "complex"):
        raise TypeError(f"{function} gives floating-point values, not {dtype_row(dtype)}")
    return in_dtype(array, dtype)


def one_correction(function: str, correction: float, ddof: float | None) -> float:
    """Return what is subtracted from a variance's divisor, by either of its names.

    Raises
    ------
    ValueError
        If both names are used.
    TypeError
        If it is not a number.
    """
    if ddof is not None and correction:
        raise ValueError(f"{function} got both correction={correction} and ddof={ddof}")
    given = correction if ddof is None else ddof
    if not hasattr(given, "__float__"):
        raise TypeError(f"{function} needs a number for its correction, not {given!r}")
    return float(given)


def normal_axes(axis: Axes, ndim: int) -> tuple[int, ...]:
    """Return the axes counted from the front; all of them for None.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.
    TypeError
        If it is neither an integer nor a tuple of them.
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple):
        return (normal_axis(axis, ndim),)
    axes = tuple(normal_axis(one, ndim) for one in axis)
    if len(set(axes)) != len(axes):
        raise ValueError(f"axes {axis} of {ndim} dimensions have a repeated axis")
    return axes


def normal_axis(axis: int, ndim: int) -> int:
    """Return an axis counted from the front.

    Raises
    ------
    numpy.exceptions.AxisError
        If it is out of bounds.
    TypeError
        If it is not an integer.
    """
    if isinstance(axis, (bool, np.bool_)):
        raise TypeError(f"an axis is an integer, not {axis}")
    return normalize_axis_index(axis, ndim)


def normal_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return a shape as a tuple; one number is the shape of a vector.

    Raises
    ------
    TypeError
        If an extent is not an integer.
    """
    extents = shape if isinstance(shape, Sequence) else (shape,)
    if any(isinstance(extent, (bool, np.bool_)) for extent in extents):
        raise TypeError(f"extents are integers; got the shape {shape}")
    return tuple(map(operator.index, extents))


def reduced_shape(shape: tuple[int, ...], axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    """Return the shape after a reduction.

    Raises
    ------
    TypeError
        If `keepdims` is neither true nor false.
    """
    if operator.index(keepdims):
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def deferred_on_numpy(
    function: Function,
    operands: Sequence[Array],
    dtype: DType,
    shape: tuple[int, ...],
    called: str = "",
) -> Array:
    """Record a function of NumPy whose result's shape and data type are known.

    Parameters
    ----------
    function : callable
        Takes arrays of NumPy, which it must not write to, or of CuPy if `on_cupy` has a row for it.
    operands : sequence of Array
        Its arguments.
    dtype, shape
        Of its result.
    called : str
        The row's name.
    """
    shapes = [operand.shape for operand in operands]
    place = common_place([operand._state[0] for operand in operands]) or HOST
    compute = Delegated(function, called, dtype, shape, shapes, place)
    return record_deferred(compute, operands, dtype, shape)


def reduced_on_numpy(
    name: str,
    reduce: Callable[..., Any],
    x: object,
    axis: Axes,
    keepdims: bool,
    dtype: DType | None = None,
    *,
    chooses: bool = False,
) -> Array:
    """Record a reduction of NumPy's.

    Parameters
    ----------
    name : str
        Of the function that was called.
    reduce : callable
        Takes an array, ``axis`` (a tuple counted from the front) and ``keepdims``.
    x : object
        The operand.
    axis, keepdims
        As they were given.
    dtype : DType, optional
        Of the result; that of `x` by default.
    chooses : bool
        Whether the result is one of the elements, so that there must be one.

    Raises
    ------
    TypeError
        If `x` is not an array.
    ValueError
        If there are no elements to choose from, or an axis is given twice.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    """
    array = array_operand(name, x)
    axes = normal_axes(axis, array.ndim)
    if chooses:
        refuse_nothing(name, array.shape, axes)
    return deferred_on_numpy(
        lambda values: reduce(values, axis=axes, keepdims=keepdims),
        [array],
        dtype or array._state[0].dtype,
        reduced_shape(array.shape, axes, keepdims),
    )


def wide(function: Callable[[Any], Any], row: DType) -> Callable[[Any], Any]:
    """Return the function computing in float32 for 16-bit floats, rounded once at the end."""
    computed = computed_row(row)
    if computed is row:
        return function

    def widened(x: _Values) -> Any:
        result = np.asarray(function(x.astype(NUMPY_DTYPES[computed])))
        return result.astype(NUMPY_DTYPES[row])

    return widened


def empty_extent(shape: tuple[int, ...], axes: Sequence[int]) -> bool:
    """Return whether a result is, or would be if there were any, a reduction of no element."""
    return math.prod(shape[axis] for axis in axes) == 0


def refuse_nothing(function: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Check that a reduction which chooses one of its elements has any.

    Raises
    ------
    ValueError
        If there are no elements to choose from.
    """
    if empty_extent(shape, axes):
        raise ValueError(
            f"{function} over axes {axes} of shape {shape} has no elements to choose from"
        )
