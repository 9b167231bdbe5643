"""Searching functions of the standard: where is recorded, nonzero and searchsorted run on NumPy."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from fklarray.array import Array
from fklarray.creation import full
from fklarray.delegation import on_numpy, ordered
from fklarray.dtype_rows import DTYPES
from fklarray.index_functions import take
from fklarray.pairs import array_pair
from fklarray.record import Operand, record_where
from fklarray.reductions import array_operand, deferred_on_numpy
from fklarray.replay import replayed

__all__ = ["nonzero", "searchsorted", "where"]

_Values = np.ndarray[Any, Any]


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return the indices of the elements that are not zero, in C order.

    Parameters
    ----------
    x : Array
        Array of one or more dimensions.

    Returns
    -------
    tuple of Array
        One vector of int64 per dimension. They are computed at once, since their length depends on
        the values.

    Raises
    ------
    ValueError
        If the array has no dimensions.
    TypeError
        If `x` is not an array.

    Notes
    -----
    Array API standard 2025.12, "Searching Functions", ``nonzero``.
    """
    x = array_operand("nonzero", x)
    if x.ndim == 0:
        raise ValueError("nonzero needs an array with dimensions, not of shape ()")
    found: tuple[Array, ...] = on_numpy(np.nonzero, x, called="nonzero")
    return found


def searchsorted(
    x1: Array,
    x2: Array | int | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """Return the indices in a sorted vector before which elements would be put to keep the order.

    Parameters
    ----------
    x1 : Array
        Vector in ascending order, NaN last.
    x2 : Array or scalar
        Elements to place.
    side : {"left", "right"}
        Whether an element goes before or after those that are equal to it.
    sorter : Array, optional
        Vector of integers that puts `x1` in ascending order, as by `argsort`.

    Returns
    -------
    Array
        Of int64 and the shape of `x2`; integers are compared exactly.

    Raises
    ------
    ValueError
        If `x1` is not a vector, `side` is unknown, or `sorter` has another shape or indices out of
        bounds.
    TypeError
        If an operand is not an array, or `sorter` does not hold integers.

    Notes
    -----
    Array API standard 2025.12, "Searching Functions", ``searchsorted``.
    """
    line = array_operand("searchsorted", x1)
    if line.ndim != 1:
        raise ValueError(f"searchsorted needs a vector to search in, not shape {line.shape}")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted knows the sides 'left' and 'right', not {side!r}")
    if sorter is not None:
        line = _sorted(line, array_operand("searchsorted", sorter))
    try:
        line, elements = array_pair("searchsorted", line, x2)
    except OverflowError:
        # A Python integer beyond the range of the vector's data type is before or after all of it.
        assert isinstance(x2, int)
        return full((), 0 if x2 < 0 else line.size, dtype=np.int64, device=line.device)
    return deferred_on_numpy(
        lambda a, v: _places(a, v, side),
        [line, elements],
        DTYPES["int64"],
        elements.shape,
        "searchsorted",
    )


def _sorted(x: Array, sorter: Array) -> Array:
    if sorter.dtype.kind not in "iu":
        raise TypeError(f"searchsorted needs a sorter of integers, not {sorter.dtype}")
    if sorter.shape != x.shape:
        raise ValueError(f"searchsorted got a sorter of {sorter.shape} for a vector of {x.shape}")
    try:
        return take(x, sorter)
    except IndexError as error:
        raise ValueError(f"searchsorted got a sorter that is out of bounds: {error}") from None


def _places(line: _Values, elements: _Values, side: Literal["left", "right"]) -> Any:
    # No integer type holds both, and float64 merges neighbours.
    if {line.dtype.name, elements.dtype.name} != {"int64", "uint64"}:
        return np.searchsorted(ordered(line), ordered(elements), side)
    found = np.searchsorted(line, elements.astype(line.dtype), side)
    if line.dtype.kind == "u":
        return np.where(elements < 0, 0, found)
    return np.where(elements > np.iinfo(np.int64).max, line.size, found)


@overload
def where(condition: Array, x1: Operand, x2: Operand, /) -> Array: ...


@overload
def where(condition: Array, /) -> tuple[Array, ...]: ...


@replayed
def where(
    condition: Array, x1: Operand | None = None, x2: Operand | None = None, /
) -> Array | tuple[Array, ...]:
    """Select elements of one array where a condition holds, of another elsewhere.

    Parameters
    ----------
    condition : Array
        Array of bool.
    x1, x2 : Array or scalar
        Broadcast with the condition. Without both, the result is that of `nonzero`, as in NumPy.

    Returns
    -------
    Array
        Of the broadcast shape and the common data type of `x1` and `x2`.

    Raises
    ------
    TypeError
        If the condition is not an array.
    ValueError
        If the shapes cannot be broadcast together, or only one of `x1` and `x2` is given.

    Notes
    -----
    Array API standard 2025.12, "Searching Functions", ``where``.
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError("where needs both x1 and x2, or neither")
    return record_where(condition, x1, x2)
