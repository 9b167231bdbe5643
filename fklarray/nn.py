"""Functions of neural networks: softmax, log_softmax, logsumexp; recorded. Named as in JAX."""

from __future__ import annotations

import builtins

import numpy as np

from fklarray.array import Array
from fklarray.data_type_functions import astype
from fklarray.dtype_rows import DTYPES, NUMPY_DTYPES
from fklarray.elementwise import add, divide, exp, isfinite, log, subtract
from fklarray.reductions import Axes, array_operand, empty_extent, normal_axes
from fklarray.searching import where
from fklarray.statistical import max, sum

__all__ = ["log_softmax", "logsumexp", "softmax"]


def _wide(function: str, x: Array) -> tuple[Array, np.dtype[np.generic]]:
    """Return the array in the data type that is computed in, and that of the result."""
    x = array_operand(function, x)
    row = x._state[0].dtype
    if row.kind == "complex":
        raise TypeError(f"{function} needs real values, not {x.dtype}")
    if row.kind != "real":
        row = DTYPES["float64"]
    computed = DTYPES["float32"] if row.bits == 16 else row
    return astype(x, NUMPY_DTYPES[computed], copy=False), NUMPY_DTYPES[row]


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
    wide, dtype = _wide("softmax", x)
    if not wide.size:
        normal_axes(axis, wide.ndim)
        return astype(wide, dtype)
    exponential = exp(subtract(wide, max(wide, axis=axis, keepdims=True)))
    total = sum(exponential, axis=axis, keepdims=True)
    return astype(divide(exponential, total), dtype, copy=False)


def log_softmax(x: Array, /, *, axis: Axes = -1) -> Array:
    """Return the logarithm of `softmax`, precise where that is small. Otherwise as `softmax`."""
    wide, dtype = _wide("log_softmax", x)
    if not wide.size:
        normal_axes(axis, wide.ndim)
        return astype(wide, dtype)
    shifted = subtract(wide, max(wide, axis=axis, keepdims=True))
    total = log(sum(exp(shifted), axis=axis, keepdims=True))
    return astype(subtract(shifted, total), dtype, copy=False)


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
    wide, dtype = _wide("logsumexp", x)
    if empty_extent(wide.shape, normal_axes(axis, wide.ndim)):
        return astype(log(sum(wide, axis=axis, keepdims=keepdims)), dtype, copy=False)
    greatest = _greatest(wide, axis)
    total = log(sum(exp(subtract(wide, greatest)), axis=axis, keepdims=keepdims))
    shift = greatest if keepdims else _greatest(wide, axis, keepdims=False)
    return astype(add(total, shift), dtype, copy=False)


def _greatest(x: Array, axis: Axes, *, keepdims: builtins.bool = True) -> Array:
    """Return the greatest element, or 0 where that is infinite and would give NaN."""
    greatest = max(x, axis=axis, keepdims=keepdims)
    return where(isfinite(greatest), greatest, 0)
