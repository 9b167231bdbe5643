"""Reductions that leave NaN out, and the median: NumPy's, beyond the standard; all recorded."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.creation import full
from fklarray.dtype_rows import NUMPY_DTYPES, DtypeLike, computed_row, floating_row
from fklarray.elementwise import (
    conj,
    divide,
    greater,
    isnan,
    logical_not,
    multiply,
    sqrt,
    square,
    subtract,
)
from fklarray.elementwise import real as real_part
from fklarray.folds import extreme
from fklarray.reductions import (
    Axes,
    array_operand,
    converted,
    deferred_on_numpy,
    floating_operand,
    normal_axes,
    one_correction,
    reduced_on_numpy,
    reduced_shape,
    wide,
)
from fklarray.replay import replayed
from fklarray.searching import where
from fklarray.statistical import cumulative_sum, sum
from fklarray.utility import all

__all__ = [
    "median",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanstd",
    "nansum",
    "nanvar",
]


def _floating(x: Array) -> builtins.bool:
    return x._state[0].dtype.kind in ("real", "complex")


def _without_nan(function: str, x: Array) -> Array:
    """Return the elements with 0 in place of NaN."""
    x = array_operand(function, x)
    return where(isnan(x), 0, x) if _floating(x) else x


@replayed
def nansum(
    x: Array,
    /,
    *,
    axis: Axes = None,
    dtype: DtypeLike | None = None,
    keepdims: builtins.bool = False,
) -> Array:
    """Return the sum of the elements that are not NaN. Parameters and errors as in `sum`."""
    return sum(_without_nan("nansum", x), axis=axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: Array, /, *, axis: int | None = None, dtype: DtypeLike | None = None) -> Array:
    """Return the sums up to each element, NaN counting as 0; of the flattened array by default."""
    from fklarray.manipulation import reshape

    values = _without_nan("nancumsum", x)
    if axis is None:
        values, axis = reshape(values, (-1,)), 0
    return cumulative_sum(values, axis=axis, dtype=dtype)


def _wide(x: Array) -> Array:
    """Return an operand in the data type that its means are computed in."""
    return converted(x, computed_row(floating_row(x._state[0].dtype)))


def _rounded(result: Array, x: Array) -> Array:
    """Return a result in the data type that a mean, or a spread if it is real, of `x` has."""
    from fklarray.data_type_functions import astype

    if not _floating(x):
        return result
    is_spread = x.dtype.kind == "c" and result.dtype.kind != "c"
    return astype(result, x.dtype.type(0).real.dtype if is_spread else x.dtype, copy=False)


def _count(x: Array, axis: Axes, keepdims: builtins.bool) -> Array:
    return sum(logical_not(isnan(x)), axis=axis, dtype=np.float64, keepdims=keepdims)


def _mean(x: Array, axis: Axes, keepdims: builtins.bool) -> Array:
    total = nansum(x, axis=axis, keepdims=keepdims)
    return _rounded(divide(total, _count(x, axis, keepdims)), x)


@replayed
def nanmean(
    x: Array,
    /,
    *,
    axis: Axes = None,
    keepdims: builtins.bool = False,
    dtype: DtypeLike | None = None,
) -> Array:
    """Return the mean of the elements that are not NaN; NaN where there is none.

    Parameters and errors as in `mean`.
    """
    x = floating_operand("nanmean", x, dtype)
    return _rounded(_mean(_wide(x), axis, keepdims), x)


def _variance(x: Array, axis: Axes, correction: float, keepdims: builtins.bool) -> Array:
    centred = subtract(x, _mean(x, axis, True))
    squares = (
        real_part(multiply(centred, conj(centred))) if x.dtype.kind == "c" else square(centred)
    )
    divisor = subtract(_count(x, axis, keepdims), correction)
    # What is not a number only by centring stays so.
    total = sum(where(isnan(x), 0, squares), axis=axis, keepdims=keepdims)
    return _rounded(divide(total, where(greater(divisor, 0), divisor, np.nan)), squares)


@replayed
def nanvar(
    x: Array,
    /,
    *,
    axis: Axes = None,
    correction: float = 0.0,
    keepdims: builtins.bool = False,
    dtype: DtypeLike | None = None,
    ddof: float | None = None,
) -> Array:
    """Return the variance of the elements that are not NaN.

    Parameters
    ----------
    x : Array
        Array of any data type.
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    correction : int or float
        Subtracted from the number of elements in the divisor.
    keepdims : bool
        Whether the reduced axes stay, with one element.
    dtype : dtype, optional
        Data type to convert `x` to first.
    ddof : int or float, optional
        NumPy's older name of `correction`.

    Returns
    -------
    Array
        NaN where the divisor is not positive.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or both `correction` and `ddof` are given.
    """
    x = floating_operand("nanvar", x, dtype)
    correction = one_correction("nanvar", correction, ddof)
    return _rounded(_variance(_wide(x), axis, correction, keepdims), x)


@replayed
def nanstd(
    x: Array,
    /,
    *,
    axis: Axes = None,
    correction: float = 0.0,
    keepdims: builtins.bool = False,
    dtype: DtypeLike | None = None,
    ddof: float | None = None,
) -> Array:
    """Return the standard deviation of the elements that are not NaN: the root of `nanvar`."""
    x = floating_operand("nanstd", x, dtype)
    correction = one_correction("nanstd", correction, ddof)
    return _rounded(sqrt(_variance(_wide(x), axis, correction, keepdims)), x)


def _extreme_but_nan(
    name: str, worst: float, x: Array, axis: Axes, keepdims: builtins.bool
) -> Array:
    x = array_operand(f"nan{name}", x)
    if x.dtype.kind == "c":
        # NumPy's order of complex numbers; its fmax ignores NaN unless there is nothing else.
        choose = {"max": np.fmax, "min": np.fmin}[name].reduce
        return reduced_on_numpy(f"nan{name}", choose, x, axis, keepdims, chooses=True)
    if not _floating(x):
        return extreme(name, x, axis, keepdims, called=f"nan{name}")
    unknown = isnan(x)
    known = where(unknown, worst, x)
    greatest = extreme(name, known, axis, keepdims, called=f"nan{name}")
    return where(all(unknown, axis=axis, keepdims=keepdims), np.nan, greatest)


@replayed
def nanmax(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return the greatest element that is not NaN; NaN where there is none. Otherwise as `max`."""
    return _extreme_but_nan("max", -np.inf, x, axis, keepdims)


@replayed
def nanmin(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return the least element that is not NaN; NaN where there is none. Otherwise as `max`."""
    return _extreme_but_nan("min", np.inf, x, axis, keepdims)


def median(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return the middle element, or the mean of the two middle ones; NaN where there is a NaN.

    Parameters
    ----------
    x : Array
        Array of any data type.
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    keepdims : bool
        Whether the reduced axes stay, with one element.

    Returns
    -------
    Array
        Of the data type of `x` if that is floating-point, else float64.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.
    """
    x = array_operand("median", x)
    row = x._state[0].dtype
    axes = normal_axes(axis, x.ndim)
    result = floating_row(row)
    shape = reduced_shape(x.shape, axes, keepdims)
    if not x.size:
        return full(shape, np.nan, dtype=NUMPY_DTYPES[result], device=x.device)

    def middle(values: np.ndarray[Any, Any]) -> Any:
        return np.median(values, axis=axes, keepdims=keepdims)

    return deferred_on_numpy(wide(middle, row), [x], result, shape)
