"""Products of vectors and diagonals of matrices, recorded."""

from __future__ import annotations

import operator

from fklarray import views
from fklarray.array import Array
from fklarray.dtype_rows import DtypeLike
from fklarray.joining import stack
from fklarray.manipulation import moveaxis
from fklarray.pairs import product, promoted_pair, vectors_last
from fklarray.recording import constant_state
from fklarray.reductions import array_operand
from fklarray.statistical import sum

__all__ = ["cross", "diagonal", "outer", "trace"]


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of three elements.

    Parameters
    ----------
    x1, x2 : Array
        Arrays with three elements along the axis; their other dimensions broadcast.
    axis : int
        Axis that the vectors lie along; a negative one is counted from the end in both.

    Returns
    -------
    Array
        Of the data type that both promote to.

    Raises
    ------
    ValueError
        If there are not three elements along the axis, or the shapes do not fit.
    TypeError
        If an operand is not an array, or both are of bool.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``cross``.
    """
    first, second, dtype = promoted_pair("cross", x1, x2)
    if dtype.kind == "bool":
        raise TypeError("cross needs numeric data types, not bool")
    a, b = vectors_last("cross", first, second, axis)
    if a.shape[-1] != 3:
        raise ValueError(
            f"cross needs three elements along axis {axis}; got shapes {first.shape} and "
            f"{second.shape}"
        )
    components: list[Array] = [
        a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return moveaxis(stack(components, axis=-1), -1, axis)


def outer(x1: Array, x2: Array, /) -> Array:
    """Return the products of each element of one vector with each of another.

    Parameters
    ----------
    x1, x2 : Array
        Vectors of ``N`` and ``M`` elements.

    Returns
    -------
    Array
        Of shape ``(N, M)`` and the data type that both promote to.

    Raises
    ------
    ValueError
        If an operand is not a vector.
    TypeError
        If an operand is not an array.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``outer``.
    """
    first, second, _ = promoted_pair("outer", x1, x2)
    if first.ndim != 1 or second.ndim != 1:
        raise ValueError(f"outer needs vectors, not shapes {first.shape} and {second.shape}")
    return product(first[:, None], second)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices, as a view of what is recorded.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, N)``.
    offset : int
        Which diagonal: 0 is the main one, positive ones are above it, negative ones below.

    Returns
    -------
    Array
        Of shape ``(..., K)``; a diagonal outside of the matrix has no elements.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` is not an array, or `offset` not an integer.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``diagonal``.
    """
    return _diagonal("diagonal", x, offset)


def _diagonal(function: str, x: Array, offset: int) -> Array:
    x = array_operand(function, x)
    if x.ndim < 2:
        raise ValueError(f"{function} needs matrices, not an array of shape {x.shape}")
    *stack, rows, columns = x.shape
    above = operator.index(offset)
    row, column = max(0, -above), max(0, above)
    extent = max(0, min(rows - row, columns - column))
    shape = (*stack, extent)
    if 0 in shape:
        return Array(shape, constant_state(0, x._state[0].dtype, x.device.name))
    return Array(shape, views.diagonal(x._state, x.ndim, (row, column), extent))


def trace(x: Array, /, *, offset: int = 0, dtype: DtypeLike | None = None) -> Array:
    """Return the sums of the diagonals of matrices.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, N)``.
    offset : int
        Which diagonal, as in `diagonal`.
    dtype : dtype, optional
        Data type of the result, as in `fklarray.sum`: 64 bits for integers by default.

    Returns
    -------
    Array
        Of shape ``(...)``.

    Raises
    ------
    ValueError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` is not an array, or `offset` not an integer.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``trace``.
    """
    return sum(_diagonal("trace", x, offset), axis=-1, dtype=dtype)
