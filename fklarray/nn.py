"""Functions of neural networks: softmax, log_softmax, logsumexp; recorded. Named as in JAX."""

from __future__ import annotations

import builtins

from fklarray.array import Array
from fklarray.dtype_rows import DType, computed_row, floating_row
from fklarray.elementwise import add, divide, exp, isfinite, log, subtract
from fklarray.manipulation import squeeze
from fklarray.reductions import Axes, array_operand, converted, empty_extent, normal_axes
from fklarray.replay import replayed
from fklarray.searching import where
from fklarray.statistical import max, sum

__all__ = ["log_softmax", "logsumexp", "softmax"]


def _wide(function: str, x: Array) -> tuple[Array, DType]:
    """Return the array in the data type that is computed in, and that of the result."""
    x = array_operand(function, x)
    row = x._state[0].dtype
    if row.kind == "complex":
        raise TypeError(f"{function} needs real values, not {x.dtype}")
    row = floating_row(row)
    return converted(x, computed_row(row)), row


def _shifted(function: str, x: Array, axis: Axes) -> tuple[Array, DType]:
    """Return the distances to the greatest element, and the data type of the result."""
    wide, row = _wide(function, x)
    # Without elements there is no greatest.
    return subtract(wide, max(wide, axis=axis, keepdims=True)) if wide.size else wide, row


@replayed
def softmax(x: Array, /, *, axis: Axes = -1) -> Array:
    """Return exp(x) divided by its sum over axes, without undue overflow.

    Parameters
    ----------
    x : Array
        Array of a real data type; 16-bit floats are computed in float32.
    axis : int or tuple of int, optional
        Axes that sum to 1; None for all of them.

    Returns
    -------
    Array
        Of the shape of `x` and its data type if that is floating-point, else float64. NaN where
        the sum takes in a NaN or +inf, or nothing but -inf.

    Raises
    ------
    TypeError
        If `x` is complex.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    """
    shifted, row = _shifted("softmax", x, axis)
    exponential = exp(shifted)
    total = sum(exponential, axis=axis, keepdims=True)
    return converted(divide(exponential, total), row)


@replayed
def log_softmax(x: Array, /, *, axis: Axes = -1) -> Array:
    """Return the logarithm of `softmax`, precise where that is small. Otherwise as `softmax`."""
    shifted, row = _shifted("log_softmax", x, axis)
    total = log(sum(exp(shifted), axis=axis, keepdims=True))
    return converted(subtract(shifted, total), row)


@replayed
def logsumexp(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return the logarithm of the sum of exp(x) over axes, without undue overflow.

    Parameters
    ----------
    x : Array
        Array of a real data type; 16-bit floats are computed in float32.
    axis : int or tuple of int, optional
        Axes to sum over; all by default.
    keepdims : bool
        Whether the summed axes stay, with one element.

    Returns
    -------
    Array
        Of the data type of `x` if that is floating-point, else float64; -inf without elements.

    Raises
    ------
    TypeError
        If `x` is complex.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    """
    wide, row = _wide("logsumexp", x)
    axes = normal_axes(axis, wide.ndim)
    if empty_extent(wide.shape, axes):
        return converted(log(sum(wide, axis=axis, keepdims=keepdims)), row)
    greatest = max(wide, axis=axis, keepdims=True)
    # An infinite one would give NaN.
    greatest = where(isfinite(greatest), greatest, 0)
    total = log(sum(exp(subtract(wide, greatest)), axis=axis, keepdims=keepdims))
    shift = greatest if keepdims else squeeze(greatest, axes)
    return converted(add(total, shift), row)
