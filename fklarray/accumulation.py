"""Sums and products of NumPy arrays, in an order that depends on the shape alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["accumulated"]

_Values = np.ndarray[Any, np.dtype[Any]]


def accumulated(
    ufunc: np.ufunc, values: _Values, axes: Sequence[int], dtype: np.dtype[Any]
) -> _Values:
    """Return the sums or products over axes, in an order that depends on the shape alone.

    Parameters
    ----------
    ufunc : numpy.ufunc
        `numpy.add` or `numpy.multiply`.
    values : numpy.ndarray
        Converted to the data type first.
    axes : sequence of int
        Counted from the front; they are left out of the result's shape.
    dtype : numpy.dtype
        Data type to compute in.

    Notes
    -----
    NumPy follows the strides, and adds pairwise along the last dimension only. Here every other
    one is folded in half until one element is left, whose error grows with the logarithm of the
    extent, too.
    """
    values = np.asarray(values, dtype, order="C")
    kept = values.ndim
    while kept - 1 in axes:
        kept -= 1
    if kept < values.ndim:
        lanes = values.reshape(*values.shape[:kept], math.prod(values.shape[kept:]))
        values = np.asarray(ufunc.reduce(lanes, axis=-1, dtype=dtype))
    for axis in sorted((axis for axis in axes if axis < kept), reverse=True):
        values = _folded(ufunc, values, axis)
    return values


def _folded(ufunc: np.ufunc, values: _Values, axis: int) -> _Values:
    extent = values.shape[axis]
    before = (slice(None),) * axis
    if not extent:
        shape = (*values.shape[:axis], *values.shape[axis + 1 :])
        return np.full(shape, ufunc.identity, values.dtype)
    folded = values
    while extent > 1:
        half = extent // 2
        rest = extent - half
        result = folded[(*before, slice(0, rest))]
        result = result.copy() if folded is values else result
        lower, upper = result[(*before, slice(0, half))], folded[(*before, slice(rest, extent))]
        ufunc(lower, upper, out=lower)
        folded, extent = result, rest
    first: _Values = folded[(*before, 0)]  # type: ignore[arg-type]
    return first
