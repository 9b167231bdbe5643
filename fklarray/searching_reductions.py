"""Searching functions of the standard that are reductions: argmax, argmin, count_nonzero."""

from __future__ import annotations

import builtins

import numpy as np

from fklarray.array import Array
from fklarray.elementwise import not_equal
from fklarray.folds import extreme
from fklarray.manipulation import reshape
from fklarray.reductions import Axes, array_operand, normal_axis, reduced_shape
from fklarray.replay import replayed
from fklarray.statistical import sum

__all__ = ["argmax", "argmin", "count_nonzero"]


def _position(name: str, x: Array, axis: int | None, keepdims: builtins.bool) -> Array:
    x = array_operand(name, x)
    if axis is not None:
        return extreme(name, x, normal_axis(axis, x.ndim), keepdims)
    shape = reduced_shape(x.shape, tuple(range(x.ndim)), keepdims)
    return reshape(extreme(name, reshape(x, (-1,)), 0, False), shape)


@replayed
def argmax(x: Array, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Return the index of the greatest element: the first one, or the first NaN.

    Parameters
    ----------
    x : Array
        Array of any data type.
    axis : int, optional
        Axis to search along; by default the index is one into the flattened array.
    keepdims : bool
        Whether the searched axes stay, with one element.

    Returns
    -------
    Array
        Of int64.

    Raises
    ------
    ValueError
        If there are no elements to choose from.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Searching Functions", ``argmax``.
    """
    return _position("argmax", x, axis, keepdims)


@replayed
def argmin(x: Array, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Return the index of the least element, the first of several. Otherwise as `argmax`."""
    return _position("argmin", x, axis, keepdims)


@replayed
def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return the number of elements that are not zero (NaN is not).

    Parameters
    ----------
    x : Array
        Array of any data type.
    axis : int or tuple of int, optional
        Axes to count over; all by default.
    keepdims : bool
        Whether the counted axes stay, with one element.

    Returns
    -------
    Array
        Of int64.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.

    Notes
    -----
    Array API standard 2025.12, "Searching Functions", ``count_nonzero``.
    """
    nonzero = not_equal(array_operand("count_nonzero", x), 0)
    return sum(nonzero, axis=axis, keepdims=keepdims, dtype=np.int64)
