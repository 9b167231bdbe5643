"""Linear algebra functions of the standard: products and transposes of matrices, recorded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.device import CPU
from fklarray.dtype_rows import NUMPY_DTYPES, DType, computed_row
from fklarray.elementwise import conj
from fklarray.manipulation import broadcast_shapes
from fklarray.on_cupy import is_of_cupy
from fklarray.pairs import product, promoted_pair, vectors_last
from fklarray.recording import cast_state
from fklarray.reductions import array_operand, converted, deferred_on_numpy, normal_axes
from fklarray.replay import replayed
from fklarray.statistical import sum

__all__ = ["bmm", "matmul", "matrix_transpose", "tensordot", "vecdot"]

_Values = np.ndarray[Any, Any]


def _product(
    called: str,
    function: Callable[[_Values, _Values], Any],
    x1: Array,
    x2: Array,
    dtype: DType,
    shape: tuple[int, ...],
) -> Array:
    """Record a product of NumPy's, which is computed in one data type."""
    # As everywhere, 16-bit floats are computed in float32 and rounded once.
    inside = computed_row(dtype)
    if CPU not in (x1.device, x2.device):
        # By kernels, which know all data types.
        operands = [converted(x1, inside), converted(x2, inside)]
        return converted(deferred_on_numpy(function, operands, inside, shape, called), dtype)
    known = NUMPY_DTYPES[inside]

    def product(first: _Values, second: _Values) -> Any:
        return function(first.astype(known, copy=False), second.astype(known, copy=False))

    return deferred_on_numpy(product, [x1, x2], dtype, shape, called)


def _for_blas(values: _Values) -> _Values:
    """Return values whose matrices are rows or columns of adjacent elements; others are copied.

    NumPy multiplies matrices of other strides by vectors in a loop that adds in another order.
    """
    steps = sorted(
        (stride, extent)
        for stride, extent in zip(values.strides[-2:], values.shape[-2:], strict=True)
        if extent > 1
    )
    nearest, *farther = steps or [(values.itemsize, 1)]
    lines = nearest[0] == values.itemsize
    if lines and all(stride >= values.itemsize * nearest[1] for stride, _ in farther):
        return values
    return np.ascontiguousarray(values)


def _matmul(a: _Values, b: _Values) -> Any:
    if is_of_cupy(a):
        return a @ b
    return np.matmul(_for_blas(a), _for_blas(b))


def _dense(values: _Values) -> _Values:
    # Which dimensions can be joined without a copy would depend on every stride.
    return values if is_of_cupy(values) or values.flags.forc else np.ascontiguousarray(values)


def matmul(x1: Array, x2: Array, /) -> Array:
    """Return the matrix product.

    Parameters
    ----------
    x1, x2 : Array
        Vectors, matrices ``(M, K)`` and ``(K, N)``, or stacks of matrices, whose other dimensions
        broadcast. A vector counts as a matrix of one row in `x1`, of one column in `x2`.

    Returns
    -------
    Array
        Of the data type that both promote to: integers wrap, bool is "any of both"; 16-bit floats
        are computed in float32 and rounded once. A vector's added dimension is left out.

    Raises
    ------
    ValueError
        If an operand is a scalar or has no dimensions, or the shapes do not fit.
    TypeError
        If an operand is not an array.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Functions", ``matmul``.

    Strides do not change the bits, but a plain transpose, or a matrix beside its own transpose, is
    multiplied in place: sums of floats are then made in another order than those of a copy.
    """
    for position, scalar in enumerate((x1, x2), 1):
        if isinstance(scalar, (int, float, complex)):
            raise ValueError(f"matmul needs arrays with dimensions; operand {position} is {scalar}")
    first, second, dtype = promoted_pair("matmul", x1, x2)
    shape = _matmul_shape(first.shape, second.shape)
    return _product("matmul", _matmul, first, second, dtype, shape)


def _matmul_shape(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    if not first or not second:
        raise ValueError(f"matmul needs arrays with dimensions; got shapes {first} and {second}")
    if first[-1] != second[-2:][0]:
        raise ValueError(f"matmul needs shapes (..., M, K) and (..., K, N), not {first} @ {second}")
    columns = second[-1:] if len(second) > 1 else ()
    return (*broadcast_shapes(first[:-2], second[:-2]), *first[-2:-1], *columns)


def bmm(x1: Array, x2: Array, /) -> Array:
    """Return the product of each matrix of a stack with the one at the same place of another.

    Parameters
    ----------
    x1, x2 : Array
        Of shapes ``(B, M, K)`` and ``(B, K, N)``. Unlike in `matmul` nothing is broadcast.

    Raises
    ------
    ValueError
        If the shapes are others.
    TypeError
        If an operand is not an array.
    """
    first, second, _ = promoted_pair("bmm", x1, x2)
    shapes = first.shape, second.shape
    if [len(shape) for shape in shapes] != [3, 3] or shapes[0][::2] != shapes[1][:2]:
        raise ValueError(f"bmm needs shapes (B, M, K) and (B, K, N), not {shapes[0]} @ {shapes[1]}")
    return matmul(first, second)


def matrix_transpose(x: Array, /) -> Array:
    """Return the transpose of each matrix in a stack of matrices.

    Raises
    ------
    ValueError
        If the array has fewer than two dimensions.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Functions", ``matrix_transpose``.
    """
    x = array_operand("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose needs shape (..., M, N), not {x.shape}")
    return x.mT


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[int | Sequence[int], int | Sequence[int]] = 2
) -> Array:
    """Return the contraction of two arrays over axes.

    Parameters
    ----------
    x1, x2 : Array
        Arrays whose contracted axes have the same extents in turn.
    axes : int or tuple of (sequence of int, sequence of int)
        The contracted axes of each; a number ``N`` means the last of `x1` and the first of `x2`.

    Returns
    -------
    Array
        Its dimensions are those of `x1`, then those of `x2` that were not contracted.

    Raises
    ------
    ValueError
        If extents or numbers of axes differ, an axis is given twice, or ``N`` is negative.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Functions", ``tensordot``.
    """
    first, second, dtype = promoted_pair("tensordot", x1, x2)
    if not isinstance(axes, Sequence):
        number = operator.index(axes)
        if number < 0:
            raise ValueError(f"tensordot needs a number of axes that is not negative, not {number}")
        axes = (range(-number, 0), range(number))
    ours, theirs = (
        normal_axes(tuple(one) if isinstance(one, Sequence) else one, x.ndim)
        for one, x in zip(axes, (first, second), strict=True)
    )
    if [first.shape[axis] for axis in ours] != [second.shape[axis] for axis in theirs]:
        raise ValueError(
            f"tensordot cannot contract axes {ours} of shape {first.shape} with axes {theirs} of "
            f"shape {second.shape}"
        )
    shape = tuple(
        extent
        for x, contracted in ((first, ours), (second, theirs))
        for axis, extent in enumerate(x.shape)
        if axis not in contracted
    )

    def contract(a: _Values, b: _Values) -> Any:
        return np.tensordot(_dense(a), _dense(b), (ours, theirs))

    return _product("tensordot", contract, first, second, dtype, shape)


@replayed
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the dot products of vectors: of the conjugate of `x1` with `x2`.

    Parameters
    ----------
    x1, x2 : Array
        Arrays of one extent along the axis; their other dimensions broadcast.
    axis : int
        Axis that the vectors lie along; a negative one is counted from the end in both.

    Raises
    ------
    ValueError
        If the extents along the axis differ, or the shapes do not fit.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Functions", ``vecdot``.
    """
    first, second, dtype = promoted_pair("vecdot", x1, x2)
    first, second = vectors_last("vecdot", first, second, axis)
    # As everywhere, 16-bit floats are computed in float32 and rounded once.
    inside = computed_row(dtype)
    first, second = (Array(x.shape, cast_state(x._state, inside)) for x in (first, second))
    if dtype.kind == "complex":
        first = conj(first)
    total = sum(product(first, second), axis=-1, dtype=NUMPY_DTYPES[inside])
    return Array(total.shape, cast_state(total._state, dtype))
