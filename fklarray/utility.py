"""Utility functions of the standard: all, any and diff, recorded."""

from __future__ import annotations

import builtins
import operator

from fklarray.array import Array
from fklarray.dtype_rows import DTYPES
from fklarray.elementwise import not_equal, subtract
from fklarray.folds import reduced
from fklarray.joining import concat
from fklarray.manipulation import broadcast_to
from fklarray.reductions import Axes, array_operand, converted, normal_axis
from fklarray.replay import replayed

__all__ = ["all", "any", "diff"]


def _truth(name: str, x: Array, axis: Axes, keepdims: builtins.bool) -> Array:
    return reduced(name, converted(array_operand(name, x), DTYPES["bool"]), axis, keepdims)


@replayed
def all(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return whether all elements are true (not zero; NaN is true); true without elements.

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
        Of bool.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.

    Notes
    -----
    Array API standard 2025.12, "Utility Functions", ``all``.
    """
    return _truth("all", x, axis, keepdims)


@replayed
def any(x: Array, /, *, axis: Axes = None, keepdims: builtins.bool = False) -> Array:
    """Return whether any element is true; false without elements. Otherwise as `all`."""
    return _truth("any", x, axis, keepdims)


def diff(
    x: Array,
    /,
    n: int = 1,
    axis: int = -1,
    *,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Return the differences of neighbouring elements.

    Parameters
    ----------
    x : Array
        Array of one or more dimensions; of bool, neighbours are tested for inequality.
    n : int
        How often differences are taken. NumPy, and its users, give it by position too.
    axis : int
        Axis to go along.
    prepend, append : Array, optional
        Values before and after those of `x`; of the shape of `x` but for the axis, or without
        dimensions.

    Returns
    -------
    Array
        With `n` elements less along the axis, none at least.

    Raises
    ------
    ValueError
        If `x` has no dimensions, `n` is negative, or shapes do not fit.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Utility Functions", ``diff``.
    """
    x = array_operand("diff", x)
    if operator.index(n) < 0:
        raise ValueError(f"diff needs an order that is not negative, not {n}")
    if not x.ndim:
        raise ValueError("diff needs an array with dimensions")
    along = normal_axis(axis, x.ndim)
    if n == 0:
        return x
    edge = (*x.shape[:along], 1, *x.shape[along + 1 :])
    parts = [x]
    for position, values in ((0, prepend), (2, append)):
        if values is not None:
            part = array_operand("diff", values)
            parts.insert(position, broadcast_to(part, edge) if not part.ndim else part)
    x = concat(parts, axis=along) if len(parts) > 1 else x
    before = (slice(None),) * along
    for _ in range(n):
        step = not_equal if x.dtype.kind == "b" else subtract
        x = step(x[(*before, slice(1, None))], x[(*before, slice(0, -1))])
    return x
