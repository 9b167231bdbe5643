"""Sorting functions of the standard, recorded and run on NumPy or CuPy."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.delegation import ordered
from fklarray.dtype_rows import DTYPES
from fklarray.on_cupy import is_of_cupy
from fklarray.reductions import array_operand, deferred_on_numpy, normal_axis

__all__ = ["argsort", "sort"]

_Values = np.ndarray[Any, Any]


def sort(
    x: Array,
    /,
    *,
    axis: int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
) -> Array:
    """Return the elements in order along an axis.

    Parameters
    ----------
    x : Array
        Array of any data type; complex values are ordered by real, then imaginary part.
    axis : int
        Axis to sort along.
    descending : bool
        Whether the greatest element comes first. NaN counts as greater than any number.
    stable : bool
        Whether elements that compare as equal (-0.0 and 0.0) keep their order.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Sorting Functions", ``sort``.
    """
    x = array_operand("sort", x)
    along = normal_axis(axis, x.ndim)

    def in_order(values: _Values) -> _Values:
        # Reversed before and after, so that equal elements keep their order.
        values = np.flip(values, along) if descending else values
        result = _along(np.sort, values, along, stable)
        return np.flip(result, along) if descending else result

    return deferred_on_numpy(in_order, [x], x._state[0].dtype, x.shape, "sort")


def _along(
    sort: Callable[..., _Values], values: _Values, axis: int, stable: builtins.bool
) -> _Values:
    kind = "stable" if stable else None
    if is_of_cupy(values) and values.ndim == 1:
        # By bits, CuPy's sort of a vector puts a NaN of negative sign first; that of rows does not.
        row: _Values = sort(values[None], axis=1, kind=kind)[0]
        return row
    return sort(ordered(values), axis=axis, kind=kind)


def argsort(
    x: Array,
    /,
    *,
    axis: int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
) -> Array:
    """Return the indices that put the elements in order along an axis; see `sort`.

    Returns
    -------
    Array
        Of int64.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Sorting Functions", ``argsort``.
    """
    x = array_operand("argsort", x)
    along = normal_axis(axis, x.ndim)
    last = x.shape[along] - 1

    def in_order(values: _Values) -> _Values:
        values = np.flip(values, along) if descending else values
        result = _along(np.argsort, values, along, stable)
        return last - np.flip(result, along) if descending else result

    return deferred_on_numpy(in_order, [x], DTYPES["int64"], x.shape, "argsort")
