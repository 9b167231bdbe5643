"""Statistical functions of the standard: reductions and cumulative sums, recorded."""

from __future__ import annotations

import builtins
import math
import operator

from fklarray.array import Array
from fklarray.creation import full
from fklarray.dtype_rows import (
    DTYPES,
    NUMPY_DTYPES,
    DType,
    DtypeLike,
    computed_row,
    floating_row,
)
from fklarray.elementwise import add, divide, imag, real, sqrt, square, subtract
from fklarray.folds import extreme, reduced, scanned
from fklarray.joining import concat
from fklarray.manipulation import reshape
from fklarray.reductions import (
    Axes,
    array_operand,
    converted,
    floating_operand,
    in_dtype,
    normal_axes,
    normal_axis,
    one_correction,
)
from fklarray.replay import replayed

__all__ = ["cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var"]


def _summed(function: str, x: Array, dtype: DtypeLike | None) -> tuple[Array, DType]:
    """Return an operand and the data type of its sums: by default, integers become 64 bits wide."""
    x = in_dtype(array_operand(function, x), dtype)
    row = x._state[0].dtype
    if dtype is not None or row.kind in ("real", "complex"):
        return x, row
    return x, DTYPES["uint64" if row.kind == "unsigned" else "int64"]


def _accumulate(name: str, x: Array, axis: Axes, dtype: DtypeLike | None, keepdims: bool) -> Array:
    x, row = _summed(name, x, dtype)
    # 16-bit floats are added in float32 and rounded once.
    return converted(reduced(name, converted(x, computed_row(row)), axis, keepdims), row)


@replayed
def sum(
    x: Array,
    /,
    *,
    axis: Axes = None,
    dtype: DtypeLike | None = None,
    keepdims: builtins.bool = False,
) -> Array:
    """Return the sum over axes.

    Parameters
    ----------
    x : Array
        Array of any data type; bool counts as 0 and 1.
    axis : int or tuple of int, optional
        Axes to sum over; all by default.
    dtype : dtype, optional
        Data type of the result, which the elements are converted to first. By default int64 or
        uint64 for integers, otherwise that of `x`; 16-bit floats are summed in float32.
    keepdims : bool
        Whether the summed axes stay, with one element.

    Returns
    -------
    Array
        Without elements to sum: 0.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.

    Notes
    -----
    Array API standard 2025.12, "Statistical Functions", ``sum``.
    """
    return _accumulate("sum", x, axis, dtype, keepdims)


@replayed
def prod(
    x: Array,
    /,
    *,
    axis: Axes = None,
    dtype: DtypeLike | None = None,
    keepdims: builtins.bool = False,
) -> Array:
    """Return the product over axes; 1 without elements. Parameters and errors as in `sum`."""
    return _accumulate("prod", x, axis, dtype, keepdims)


@replayed
def max(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return the greatest element over axes; NaN where there is one.

    Parameters
    ----------
    x : Array
        Array of any data type; complex values are ordered by real, then imaginary part.
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    keepdims : bool
        Whether the reduced axes stay, with one element.

    Returns
    -------
    Array
        Of the data type of `x`.

    Raises
    ------
    ValueError
        If there are no elements to choose from, or an axis is given twice.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Statistical Functions", ``max``.
    """
    return extreme("max", x, axis, keepdims)


@replayed
def min(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return the least element over axes; NaN where there is one. Otherwise as `max`."""
    return extreme("min", x, axis, keepdims)


def _mean(x: Array, axis: Axes, keepdims: builtins.bool) -> Array:
    """Return the mean of an array of a data type that is computed in."""
    count = math.prod(x.shape[axis] for axis in normal_axes(axis, x.ndim))
    return divide(reduced("sum", x, axis, keepdims), count)


@replayed
def mean(
    x: Array,
    /,
    *,
    axis: Axes = None,
    keepdims: builtins.bool = False,
    dtype: DtypeLike | None = None,
) -> Array:
    """Return the arithmetic mean over axes.

    Parameters
    ----------
    x : Array
        Array of any data type.
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    keepdims : bool
        Whether the reduced axes stay, with one element.
    dtype : dtype, optional
        Data type to convert `x` to first (NumPy's keyword, beyond the standard).

    Returns
    -------
    Array
        Of the data type of `x` if that is floating-point, else float64; NaN without elements.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.

    Notes
    -----
    Array API standard 2025.12, "Statistical Functions", ``mean``.
    """
    x = floating_operand("mean", x, dtype)
    row = floating_row(x._state[0].dtype)
    return converted(_mean(converted(x, computed_row(row)), axis, keepdims), row)


def _spread(
    name: str,
    x: Array,
    axis: Axes,
    correction: float,
    keepdims: builtins.bool,
    dtype: DtypeLike | None,
) -> Array:
    x = floating_operand(name, x, dtype)
    row = floating_row(x._state[0].dtype)
    wide = converted(x, computed_row(row))
    if row.kind == "complex":
        row = DTYPES[f"float{row.bits // 2}"]
    centred = subtract(wide, _mean(wide, axis, True))
    if wide.dtype.kind == "c":
        squares = add(square(real(centred)), square(imag(centred)))
    else:
        squares = square(centred)
    count = math.prod(x.shape[axis] for axis in normal_axes(axis, x.ndim))
    # As in NumPy, a divisor below 0 counts as 0.
    variance = divide(reduced("sum", squares, axis, keepdims), builtins.max(count - correction, 0))
    result = variance if name == "var" else sqrt(variance)
    return converted(result, row)


@replayed
def var(
    x: Array,
    /,
    *,
    axis: Axes = None,
    correction: float = 0.0,
    keepdims: builtins.bool = False,
    dtype: DtypeLike | None = None,
    ddof: float | None = None,
) -> Array:
    """Return the variance over axes.

    Parameters
    ----------
    x : Array
        Array of any data type.
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    correction : int or float
        Subtracted from the number of elements in the divisor: 1 is the unbiased estimate.
    keepdims : bool
        Whether the reduced axes stay, with one element.
    dtype : dtype, optional
        Data type to convert `x` to first (NumPy's keyword, beyond the standard).
    ddof : int or float, optional
        NumPy's name of `correction`.

    Returns
    -------
    Array
        Of the (real) data type of `x` if that is floating-point, else float64; divided by 0 where
        the divisor is not positive.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or both `correction` and `ddof` are given.

    Notes
    -----
    Array API standard 2025.12, "Statistical Functions", ``var``.
    """
    return _spread("var", x, axis, one_correction("var", correction, ddof), keepdims, dtype)


@replayed
def std(
    x: Array,
    /,
    *,
    axis: Axes = None,
    correction: float = 0.0,
    keepdims: builtins.bool = False,
    dtype: DtypeLike | None = None,
    ddof: float | None = None,
) -> Array:
    """Return the standard deviation over axes: the square root of `var`, which see."""
    return _spread("std", x, axis, one_correction("std", correction, ddof), keepdims, dtype)


def _cumulate(
    name: str, x: Array, axis: int | None, dtype: DtypeLike | None, include_initial: builtins.bool
) -> Array:
    x, row = _summed(name, x, dtype)
    if axis is None and x.ndim > 1:
        raise ValueError(f"{name} needs an axis for an array of shape {x.shape}")
    values = reshape(x, (1,)) if x.ndim == 0 else x
    along = normal_axis(0 if axis is None else axis, values.ndim)
    # As in sums, 16-bit floats are rounded once.
    result = converted(scanned(name, converted(values, computed_row(row)), along), row)
    if not operator.index(include_initial):
        return result
    shape = (*values.shape[:along], 1, *values.shape[along + 1 :])
    neutral = 0 if name == "cumulative_sum" else 1
    initial = full(shape, neutral, dtype=NUMPY_DTYPES[row], device=x.device)
    return concat([initial, result], axis=along)


@replayed
def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DtypeLike | None = None,
    include_initial: builtins.bool = False,
) -> Array:
    """Return the sums of the elements up to each one.

    Parameters
    ----------
    x : Array
        Array of any data type; without dimensions it counts as one element.
    axis : int, optional
        Axis to go along; may be left out if there is only one.
    dtype : dtype, optional
        As in `sum`.
    include_initial : bool
        Whether the result begins with 0, and has one element more.

    Raises
    ------
    ValueError
        If the axis is left out and there are several.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Statistical Functions", ``cumulative_sum``.
    """
    return _cumulate("cumulative_sum", x, axis, dtype, include_initial)


@replayed
def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DtypeLike | None = None,
    include_initial: builtins.bool = False,
) -> Array:
    """Return the products of the elements up to each one; otherwise as `cumulative_sum`."""
    return _cumulate("cumulative_prod", x, axis, dtype, include_initial)
