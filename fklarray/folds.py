"""Reductions of the table over any axes: recorded, and fused with what is before and after them."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.creation import full
from fklarray.dtype_rows import DTYPES, NUMPY_DTYPES, computed_row
from fklarray.manipulation import reshape
from fklarray.record import record_reduction
from fklarray.reductions import (
    Axes,
    array_operand,
    converted,
    normal_axes,
    reduced_on_numpy,
    reduced_shape,
    refuse_nothing,
)
from fklarray_codegen.ops import REDUCTIONS, reduced_dtype
from fklarray_codegen.walk import Rows

__all__ = ["extreme", "reduced", "scanned"]


def reduced(name: str, x: Array, axis: Axes, keepdims: bool) -> Array:
    """Record a reduction of the table over axes, which fuses with what is before and after it.

    One axis is reduced after the other, the last one first and short ones at the end; those of a
    small array that are neighbours are one. So the order in which elements are combined depends on
    the shape alone.

    Parameters
    ----------
    name : str
        Of the reduction.
    x : Array
        Array of a data type that it accepts.
    axis, keepdims
        As they were given.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.
    """
    axes = normal_axes(axis, x.ndim)
    shape, order = _plan(x.shape, axes, operator.index(keepdims))
    if order is None:
        value = _NEUTRAL[name] if math.prod(shape) else 0
        dtype = reduced_dtype(REDUCTIONS[name], x._state[0].dtype)
        return full(shape, value, dtype=NUMPY_DTYPES[dtype], device=x.device)
    result = x
    for rows in order:
        result = record_reduction(REDUCTIONS[name], result, rows)
    if result is x:
        # Not `x` itself, which is changed in place with all that is the same object.
        result = Array(x.shape, x._state)
    return result if result.shape == shape else reshape(result, shape)


# What a reduction of nothing is; extremes of nothing are refused.
_NEUTRAL = {"all": True, "any": False, "prod": 1, "sum": 0}
# Axes of a small array are joined: a copy, where it takes one, costs less than another kernel.
_SMALL_ARRAY = 1 << 17
# Shorter axes are reduced last: a pass over rows of a few elements is slow.
_SHORT_AXIS = 32


@lru_cache(maxsize=4096)
def _plan(
    shape: tuple[int, ...], axes: tuple[int, ...], keepdims: int
) -> tuple[tuple[int, ...], tuple[Rows, ...] | None]:
    """Return the shape of a result, and the order of its axes; none if there are no elements."""
    order = _order(shape, axes) if math.prod(shape) else None
    return reduced_shape(shape, axes, bool(keepdims)), order


def _order(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Rows, ...]:
    """Return which axes to reduce, one after the other, given what is left by those before."""
    long = [axis for axis in sorted(axes, reverse=True) if shape[axis] >= _SHORT_AXIS]
    short = [axis for axis in sorted(axes, reverse=True) if 1 < shape[axis] < _SHORT_AXIS]
    is_small = math.prod(shape) <= _SMALL_ARRAY
    left = list(range(len(shape)))
    order: list[Rows] = []
    for axis in sorted(long + short, reverse=True) if is_small else long + short:
        place = left.index(axis)
        left.remove(axis)
        if is_small and order and order[-1].first == place + 1:
            order[-1] = Rows(place, order[-1].stop)
        else:
            order.append(Rows(place, place + 1))
    return tuple(order)


def scanned(name: str, x: Array, axis: int) -> Array:
    """Record a scan of the table along an axis that is counted from the front."""
    if not x.size:
        return Array(x.shape, x._state)
    return record_reduction(REDUCTIONS[name], x, Rows(axis, axis + 1))


def extreme(name: str, x: object, axis: Axes, keepdims: bool, *, called: str = "") -> Array:
    """Record a reduction that chooses among the elements: an extreme, or its place.

    Parameters
    ----------
    name : str
        Of the reduction.
    x : Array
        Array of any data type.
    axis, keepdims
        As they were given.
    called : str
        Name of the function that was called, if it is another.

    Raises
    ------
    TypeError
        If `x` is not an array.
    ValueError
        If there are no elements to choose from, or an axis is given twice.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    """
    array = array_operand(called or name, x)
    row = array._state[0].dtype
    axes = normal_axes(axis, array.ndim)
    if row.kind == "complex":
        return _on_numpy(name, array, axes, keepdims)
    refuse_nothing(called or name, array.shape, axes)
    if row.kind == "bool" and name in ("max", "min"):
        return reduced("any" if name == "max" else "all", array, axes, keepdims)
    if name.startswith("arg") and array.shape[axes[0]] == 1:
        shape = reduced_shape(array.shape, axes, keepdims)
        return full(shape, 0, dtype=np.int64, device=array.device)
    computed = DTYPES["uint8"] if row.kind == "bool" else computed_row(row)
    result = reduced(name, converted(array, computed), axes, keepdims)
    return result if name.startswith("arg") else converted(result, row)


def _on_numpy(name: str, array: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Choose among complex numbers, whose order only NumPy has."""
    choose = getattr(np, name)
    if not name.startswith("arg"):
        return reduced_on_numpy(name, choose, array, axes, keepdims, chooses=True)

    def find(values: np.ndarray[Any, Any], *, axis: tuple[int, ...], keepdims: bool) -> Any:
        return choose(values, axis=axis[0], keepdims=keepdims)

    return reduced_on_numpy(name, find, array, axes, keepdims, DTYPES["int64"], chooses=True)
