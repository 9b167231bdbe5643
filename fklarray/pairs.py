"""Operands of functions of two arrays: data types, scalars and axes of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.dtype_rows import DType
from fklarray.elementwise import logical_and, multiply
from fklarray.manipulation import moveaxis
from fklarray.recording import common_dtype, scalar_state, weak_dtype
from fklarray.reductions import array_operand, normal_axis

__all__ = ["array_pair", "product", "promoted_pair", "vectors_last"]


def promoted_pair(function: str, x1: object, x2: object) -> tuple[Array, Array, DType]:
    """Return the operands as arrays, and the data type that they promote to.

    Raises
    ------
    TypeError
        If one is not an array.
    """
    first = array_operand(function, x1, x2 if isinstance(x2, Array) else None)
    second = array_operand(function, x2, first)
    return first, second, common_dtype([first._state[0].dtype, second._state[0].dtype])


def array_pair(function: str, x1: object, x2: object) -> tuple[Array, Array]:
    """Return the operands as arrays; a Python scalar takes the data type it has beside the other.

    Raises
    ------
    TypeError
        If neither is an array, or one is something else.
    OverflowError
        If a Python integer is out of the range of the other's data type.
    """
    if _is_scalar(x1):
        second = array_operand(function, x2)
        return _scalar(x1, second), second
    first = array_operand(function, x1, x2 if isinstance(x2, Array) else None)
    return first, _scalar(x2, first) if _is_scalar(x2) else array_operand(function, x2, first)


def _is_scalar(value: object) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, np.generic)


def _scalar(value: Any, other: Array) -> Array:
    return Array((), scalar_state(value, weak_dtype(other._state[0].dtype, value)))


def product(x1: Array, x2: Array) -> Array:
    """Return the elementwise product; of bool, whether both are true, as NumPy has it."""
    both_bool = x1._state[0].dtype.kind == x2._state[0].dtype.kind == "bool"
    return (logical_and if both_bool else multiply)(x1, x2)


def vectors_last(function: str, x1: Array, x2: Array, axis: int) -> tuple[Array, Array]:
    """Move the axis of vectors to the end of both arrays.

    Raises
    ------
    ValueError
        If the extents along the axis differ.
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    """
    first, second = (moveaxis(x, normal_axis(axis, x.ndim), -1) for x in (x1, x2))
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(
            f"{function} needs one extent along axis {axis}; got shapes {x1.shape} and {x2.shape}"
        )
    return first, second
