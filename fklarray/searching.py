"""Searching functions of the standard that are elementwise."""

from __future__ import annotations

from fklarray.array import Array
from fklarray.record import Operand, record_where

__all__ = ["where"]


def where(condition: Array, x1: Operand, x2: Operand, /) -> Array:
    """Select elements of one array where a condition holds, of another elsewhere.

    Parameters
    ----------
    condition : Array
        Array of bool.
    x1, x2 : Array or scalar
        Broadcast with the condition.

    Returns
    -------
    Array
        Of the broadcast shape and the common data type of `x1` and `x2`.

    Raises
    ------
    TypeError
        If the condition is not an array.
    ValueError
        If the shapes cannot be broadcast together.

    Notes
    -----
    Array API standard 2025.12, "Searching Functions", ``where``.
    """
    return record_where(condition, x1, x2)
