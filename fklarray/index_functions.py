"""Indexing functions of the standard: take and take_along_axis, recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.conversion import asarray
from fklarray.gathers import check_bounds, signed, taken
from fklarray.manipulation import broadcast_shapes, reshape
from fklarray.reductions import array_operand, deferred_on_numpy, normal_axis

__all__ = ["take", "take_along_axis"]


def _check_integers(function: str, indices: Array) -> None:
    if indices.dtype.kind not in "iu":
        raise IndexError(f"{function} needs integer indices, not {indices.dtype}")


def take(x: Array, indices: Array | int, /, *, axis: int | None = None) -> Array:
    """Select elements along an axis by their indices.

    Parameters
    ----------
    x : Array
        Array of any shape.
    indices : Array or int
        Integers, negative ones counted from the end. Their values are needed at once, to check
        them; `x` stays pending.
    axis : int, optional
        Axis; may be left out if there is only one.

    Returns
    -------
    Array
        The axis is replaced by the dimensions of `indices`.

    Raises
    ------
    IndexError
        If an index is out of bounds, or not an integer.
    ValueError
        If the axis is left out and there are several.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Indexing Functions", ``take``.
    """
    x = array_operand("take", x)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"take needs an axis for an array of shape {x.shape}")
        x, axis = reshape(x, (-1,)), 0
    along = normal_axis(axis, x.ndim)
    # NumPy takes Python integers too.
    if type(indices) is int:
        chosen = asarray(indices, device=x.device)
    else:
        chosen = array_operand("take", indices, x)
    _check_integers("take", chosen)
    check_bounds("take", chosen, x.shape[along], along)
    return taken(x, chosen, along)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Select elements by one index per lane along an axis.

    Parameters
    ----------
    x : Array
        Array of one or more dimensions.
    indices : Array
        Integers with as many dimensions, which broadcast with `x` but for the axis. Their values
        are needed at once, to check them; `x` stays pending.
    axis : int
        The axis.

    Raises
    ------
    IndexError
        If an index is out of bounds, or not an integer.
    ValueError
        If the numbers of dimensions differ or the shapes do not fit.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Indexing Functions", ``take_along_axis``.
    """
    x = array_operand("take_along_axis", x)
    along = normal_axis(axis, x.ndim)
    chosen = array_operand("take_along_axis", indices, x)
    _check_integers("take_along_axis", chosen)
    if chosen.ndim != x.ndim:
        raise ValueError(
            f"take_along_axis needs indices of {x.ndim} dimensions, not of shape {chosen.shape}"
        )
    check_bounds("take_along_axis", chosen, x.shape[along], along)
    outside = [(*one.shape[:along], 1, *one.shape[along + 1 :]) for one in (x, chosen)]
    common = broadcast_shapes(*outside)
    shape = (*common[:along], chosen.shape[along], *common[along + 1 :])

    def select(values: np.ndarray[Any, Any], where: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        lanes = (*common[:along], values.shape[along], *common[along + 1 :])
        return np.take_along_axis(
            np.broadcast_to(values, lanes), np.broadcast_to(signed(where), shape), along
        )

    return deferred_on_numpy(select, [x, chosen], x._state[0].dtype, shape, "take_along_axis")
