"""Searching functions of the standard that are reductions: argmax, argmin, count_nonzero."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.dtype_rows import DTYPES
from fklarray.reductions import Axes, reduced_on_numpy

__all__ = ["argmax", "argmin", "count_nonzero"]


def _position(
    name: str, search: Callable[..., Any], x: Array, axis: int | None, keepdims: builtins.bool
) -> Array:
    def find(values: np.ndarray[Any, Any], *, axis: tuple[int, ...], keepdims: Any) -> Any:
        # NumPy's searches take one axis, or None for all of them.
        return search(values, axis=axis[0] if len(axis) == 1 else None, keepdims=keepdims)

    axes = None if axis is None else (axis,)
    return reduced_on_numpy(name, find, x, axes, keepdims, DTYPES["int64"], chooses=True)


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
    return _position("argmax", np.argmax, x, axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Return the index of the least element, the first of several. Otherwise as `argmax`."""
    return _position("argmin", np.argmin, x, axis, keepdims)


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
    return reduced_on_numpy("count_nonzero", np.count_nonzero, x, axis, keepdims, DTYPES["int64"])
