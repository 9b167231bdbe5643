"""Norms of vectors and matrices: recorded, but for those that need singular values."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fklarray.array import Array
from fklarray.creation import zeros
from fklarray.data_type_functions import astype
from fklarray.dtype_rows import DTYPES, NUMPY_DTYPES, computed_row, floating_row
from fklarray.elementwise import abs, add, imag, not_equal, pow, real, sqrt, square
from fklarray.linalg.decompositions import svdvals
from fklarray.manipulation import expand_dims
from fklarray.reductions import array_operand, empty_extent, normal_axes, reduced_shape
from fklarray.statistical import max, min, sum

__all__ = ["matrix_norm", "vector_norm"]


def _wide(function: str, x: Array) -> tuple[Array, np.dtype[np.generic]]:
    """Return an array in the data type that is computed in, and that of the norm."""
    x = array_operand(function, x)
    row = x._state[0].dtype
    if row.kind == "complex":
        return x, NUMPY_DTYPES[DTYPES[f"float{row.bits // 2}"]]
    row = floating_row(row)
    return astype(x, NUMPY_DTYPES[computed_row(row)], copy=False), NUMPY_DTYPES[row]


def vector_norm(
    x: Array,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: builtins.bool = False,
    ord: int | float = 2,
) -> Array:
    """Return norms of vectors.

    Parameters
    ----------
    x : Array
        Array of any shape.
    axis : int or tuple of int, optional
        Axes that make up a vector; all by default.
    keepdims : bool
        Whether these axes stay, with one element.
    ord : int or float
        Order ``p`` of the norm ``sum(abs(x)**p)**(1/p)``; infinity is the greatest modulus, minus
        infinity the least, 0 the number of elements that are not zero.

    Returns
    -------
    Array
        Real, in the precision of `x`; 16-bit floats are computed in float32 and rounded once.

    Raises
    ------
    ValueError
        If the order is not a number, an axis is given twice, or there is no least modulus.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    TypeError
        If `x` is not an array.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``vector_norm``.
    """
    _check_number(ord)
    x, dtype = _wide("vector_norm", x)
    axes = normal_axes(axis, x.ndim)
    if math.isinf(ord):
        norm = _extreme("vector_norm", abs(x), axes, keepdims, ord)
    elif ord == 0:
        norm = sum(not_equal(x, 0), axis=axes, keepdims=keepdims)
    elif ord == 1:
        norm = sum(abs(x), axis=axes, keepdims=keepdims)
    elif ord == 2:
        norm = sqrt(sum(_squared(x), axis=axes, keepdims=keepdims))
    else:
        norm = pow(sum(pow(abs(x), ord), axis=axes, keepdims=keepdims), 1 / ord)
    return astype(norm, dtype, copy=False)


def _check_number(ord: object) -> None:
    if not isinstance(ord, (int, float)):
        raise ValueError(f"vector_norm knows numbers as orders, not {ord!r}")


def _squared(x: Array) -> Array:
    if x._state[0].dtype.kind == "complex":
        return add(square(real(x)), square(imag(x)))
    return square(x)


def _extreme(
    function: str, x: Array, axes: Sequence[int], keepdims: builtins.bool, ord: float
) -> Array:
    """Return the greatest of moduli for a positive order (0 of none), the least for a negative."""
    if not empty_extent(x.shape, axes):
        return (max if ord > 0 else min)(x, axis=tuple(axes), keepdims=keepdims)
    if ord < 0:
        raise ValueError(f"{function} of order {ord} has no least value in shape {x.shape}")
    return zeros(reduced_shape(x.shape, axes, keepdims), dtype=x.dtype, device=x.device)


def matrix_norm(
    x: Array,
    /,
    *,
    keepdims: builtins.bool = False,
    ord: int | float | Literal["fro", "nuc"] | None = "fro",
) -> Array:
    """Return norms of matrices.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, N)``.
    keepdims : bool
        Whether the last two axes stay, with one element.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf} or None
        Frobenius norm (None as well), nuclear norm, greatest or least sum of moduli of a column,
        singular value, or sum of moduli of a row.

    Returns
    -------
    Array
        Real, in the precision of `x`; 16-bit floats are computed in float32 and rounded once.

    Raises
    ------
    ValueError
        If the order is unknown, or there is no least value.
    numpy.exceptions.AxisError
        If `x` has fewer than two dimensions.
    numpy.linalg.LinAlgError
        If singular values do not converge; these are computed at once.
    TypeError
        If `x` is not an array.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``matrix_norm``.
    """
    x, dtype = _wide("matrix_norm", x)
    normal_axes((-2, -1), x.ndim)
    norm = astype(_norm_of_order(x, ord), dtype, copy=False)
    return expand_dims(norm, axis=(-2, -1)) if keepdims else norm


def _norm_of_order(x: Array, ord: int | float | str | None) -> Array:
    if ord is None or ord == "fro":
        return sqrt(sum(_squared(x), axis=(-2, -1)))
    if ord == "nuc":
        return sum(svdvals(x), axis=-1)
    if ord not in (1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(f"matrix_norm does not know the order {ord!r}")
    order = float(ord)
    summed = -1 if math.isinf(order) else -2
    lengths = svdvals(x) if order in (2, -2) else sum(abs(x), axis=summed)
    return _extreme("matrix_norm", lengths, (lengths.ndim - 1,), False, order)
