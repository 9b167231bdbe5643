"""Searching functions of the standard that are reductions: argmax, argmin, count_nonzero."""

from __future__ import annotations

import builtins

import numpy as np

from fklarray.array import Array
from fklarray.dtype_rows import DTYPES
from fklarray.reductions import (
    Axes,
    array_operand,
    deferred_on_numpy,
    empty_extent,
    normal_axes,
    reduced_shape,
)

__all__ = ["argmax", "argmin", "count_nonzero"]


def _position(name: str, x: Array, axis: int | None, keepdims: builtins.bool) -> Array:
    x = array_operand(name, x)
    axes = normal_axes(None if axis is None else (axis,), x.ndim)
    if empty_extent(x.shape, axes):
        raise ValueError(
            f"{name} over axes {axes} of shape {x.shape} has no elements to choose from"
        )
    search = np.argmax if name == "argmax" else np.argmin
    return deferred_on_numpy(
        lambda values: search(values, axis=axis, keepdims=keepdims),
        [x],
        DTYPES["int64"],
        reduced_shape(x.shape, axes, keepdims),
    )


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


def argmin(x: Array, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Return the index of the least element, the first of several. Otherwise as `argmax`."""
    return _position("argmin", x, axis, keepdims)


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
    x = array_operand("count_nonzero", x)
    axes = normal_axes(axis, x.ndim)
    return deferred_on_numpy(
        lambda values: np.count_nonzero(values, axis=axes, keepdims=keepdims),
        [x],
        DTYPES["int64"],
        reduced_shape(x.shape, axes, keepdims),
    )
