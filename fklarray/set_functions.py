"""Set functions of the standard, run on NumPy: at once, but for `isin`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.creation import full
from fklarray.delegation import on_numpy, ordered
from fklarray.dtype_rows import DTYPES
from fklarray.pairs import array_pair
from fklarray.record import Number
from fklarray.reductions import array_operand, deferred_on_numpy
from fklarray.results import UniqueAllResult, UniqueCountsResult, UniqueInverseResult

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

_Values = np.ndarray[Any, Any]


# NumPy's own description of its results depends on the arguments.
_numpy_unique: Callable[..., Any] = np.unique


def _unique(function: str, x: Array, **wanted: builtins.bool) -> Any:
    """Return unique elements in order, NaN never being equal to anything."""

    def find(values: _Values) -> Any:
        found = _numpy_unique(ordered(values), equal_nan=False, **wanted)
        if not wanted:
            return found.astype(values.dtype, copy=False)
        parts = dict(zip(("values", *wanted), found, strict=True))
        parts["values"] = parts["values"].astype(values.dtype, copy=False)
        if "return_inverse" in parts:  # flat in older versions of CuPy
            parts["return_inverse"] = parts["return_inverse"].reshape(values.shape)
        return tuple(parts.values())

    return on_numpy(find, array_operand(function, x), called=function)


def unique_all(x: Array, /) -> UniqueAllResult:
    """Return the unique elements in order, with their first indices, the way back, and counts.

    Parameters
    ----------
    x : Array
        Array of any shape. -0.0 and 0.0 are one element, the one that comes first; every NaN is an
        element of its own.

    Returns
    -------
    UniqueAllResult
        ``values``, ``indices`` (into the flattened array), ``inverse_indices`` (of the array's
        shape, into ``values``) and ``counts``; indices and counts are int64.

    Raises
    ------
    TypeError
        If `x` is not an array.

    Notes
    -----
    Array API standard 2025.12, "Set Functions", ``unique_all``.
    """
    wanted = {"return_index": True, "return_inverse": True, "return_counts": True}
    return UniqueAllResult(*_unique("unique_all", x, **wanted))


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """Return the unique elements in order, and how often each occurs; see `unique_all`."""
    return UniqueCountsResult(*_unique("unique_counts", x, return_counts=True))


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """Return the unique elements in order, and the way back; see `unique_all`."""
    return UniqueInverseResult(*_unique("unique_inverse", x, return_inverse=True))


def unique_values(x: Array, /) -> Array:
    """Return the unique elements in order; see `unique_all`."""
    values: Array = _unique("unique_values", x)
    return values


def isin(x1: Array | Number, x2: Array | Number, /, *, invert: builtins.bool = False) -> Array:
    """Return for each element whether it is among those of another array.

    Parameters
    ----------
    x1 : Array or scalar
        Elements to look for.
    x2 : Array or scalar
        Elements to look among; at least one of the two is an array.
    invert : bool
        Whether to return the opposite.

    Returns
    -------
    Array
        Of bool and the shape of `x1`. Elements are compared as by `equal`: NaN is in nothing, and
        integers are compared exactly.

    Raises
    ------
    TypeError
        If neither is an array, or one is something else.

    Notes
    -----
    Array API standard 2025.12, "Set Functions", ``isin``.
    """
    try:
        first, second = array_pair("isin", x1, x2)
    except OverflowError:
        # A Python integer beyond the range of the array's data type is not in it.
        shape, array = (np.shape(x1), x1) if isinstance(x2, int) else ((), x2)
        return full(shape, builtins.bool(invert), device=array_operand("isin", array).device)
    return deferred_on_numpy(
        lambda values, among: _is_in(values, among) != builtins.bool(invert),
        [first, second],
        DTYPES["bool"],
        first.shape,
        "isin",
    )


def _is_in(values: _Values, among: _Values) -> Any:
    # No integer type holds both, and float64 merges neighbours.
    if {values.dtype.name, among.dtype.name} == {"int64", "uint64"}:
        if values.dtype.kind == "i":
            return (values >= 0) & np.isin(values.astype(np.uint64), among)
        return np.isin(values, among[among >= 0].astype(np.uint64))
    return np.isin(ordered(values), ordered(among))
