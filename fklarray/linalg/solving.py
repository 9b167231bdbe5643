"""Inverses, determinants, ranks and powers of matrices, run on NumPy at once."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.data_type_functions import astype
from fklarray.device import CPU
from fklarray.dtype_rows import NUMPY_DTYPES
from fklarray.elementwise import greater, multiply
from fklarray.linalg.decompositions import svdvals
from fklarray.linalg.matrices import floating, matrices, run, square_matrices
from fklarray.manipulation import broadcast_shapes, broadcast_to, expand_dims, squeeze
from fklarray.pairs import promoted_pair
from fklarray.reductions import array_operand
from fklarray.results import SlogdetResult
from fklarray.searching_reductions import count_nonzero
from fklarray.statistical import max

__all__ = ["det", "inv", "matrix_power", "matrix_rank", "pinv", "slogdet", "solve"]


def det(x: Array, /) -> Array:
    """Return the determinants of matrices.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, M)``.

    Returns
    -------
    Array
        Of shape ``(...)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the shape is not that of square matrices.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``det``.
    """
    determinants: Array = run("det", np.linalg.det, square_matrices("det", x))
    return determinants


def slogdet(x: Array, /) -> SlogdetResult:
    """Return the sign of each matrix's determinant, and the logarithm of its modulus.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, M)``.

    Returns
    -------
    SlogdetResult
        ``sign`` (a complex number of modulus 1 for complex matrices) and ``logabsdet`` (real), of
        shape ``(...)``; 0 and minus infinity for a singular matrix.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the shape is not that of square matrices.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``slogdet``.
    """
    return SlogdetResult(*run("slogdet", np.linalg.slogdet, square_matrices("slogdet", x)))


def inv(x: Array, /) -> Array:
    """Return the inverses of matrices.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, M)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular, or the shape is not that of square matrices.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``inv``.
    """
    inverses: Array = run("inv", np.linalg.inv, square_matrices("inv", x))
    return inverses


def solve(x1: Array, x2: Array, /) -> Array:
    """Return the solutions ``X`` of ``x1 @ X == x2``.

    Parameters
    ----------
    x1 : Array
        Matrices ``(..., M, M)``.
    x2 : Array
        One vector ``(M,)``, or matrices ``(..., M, K)`` whose columns are right-hand sides.

    Returns
    -------
    Array
        Of shape ``(..., M)`` or ``(..., M, K)``, and the data type that both promote to.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular, or the shape of `x1` is not that of square matrices.
    ValueError
        If the shapes do not fit.
    TypeError
        If an operand is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``solve``.
    """
    *pair, dtype = promoted_pair("solve", x1, x2)
    first, second = (floating("solve", astype(x, NUMPY_DTYPES[dtype], copy=False)) for x in pair)
    first = square_matrices("solve", first)
    if second.shape[-2:][:1] != first.shape[-1:]:
        raise ValueError(
            f"solve needs shapes (..., M, M) and (M,) or (..., M, K), not {first.shape} and "
            f"{second.shape}"
        )
    stacks = broadcast_shapes(first.shape[:-2], second.shape[:-2])
    is_vector = second.ndim == 1
    if first.device != CPU and builtins.max(first.ndim, second.ndim) > 2:  # CuPy does not broadcast
        second = expand_dims(second, axis=1) if is_vector else second
        first, second = (broadcast_to(x, (*stacks, *x.shape[-2:])) for x in (first, second))
    solutions: Array = run("solve", np.linalg.solve, first, second)
    return squeeze(solutions, -1) if is_vector and second.ndim > 1 else solutions


def matrix_power(x: Array, n: int, /) -> Array:
    """Return matrices multiplied with themselves.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, M)``; integers (which wrap) and bool stay so, unless `n` is negative.
    n : int
        Exponent: 0 gives the identity, a negative one powers of the inverse.

    Raises
    ------
    numpy.linalg.LinAlgError
        If `n` is negative and a matrix singular, or the shape is not that of square matrices.
    TypeError
        If `x` is not an array, or of 16-bit floats, or `n` is not an integer.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``matrix_power``.
    """
    exponent = operator.index(n)
    checked = square_matrices("matrix_power", x)
    whole = array_operand("matrix_power", x)
    powers: Array = run(
        "matrix_power",
        np.linalg.matrix_power,
        checked if exponent < 0 else whole,
        n=exponent,
    )
    return powers


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Return the Moore-Penrose pseudo-inverses of matrices.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, N)``.
    rtol : float or Array, optional
        Singular values up to this times the largest one count as zero; an array broadcasts with
        ``(...)``. By default ``max(M, N)`` times the data type's spacing at 1.

    Returns
    -------
    Array
        Of shape ``(..., N, M)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the iteration does not converge, or `x` has fewer than two dimensions.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``pinv``.
    """
    x = matrices("pinv", x)
    inverses: Array = _within("pinv", np.linalg.pinv, x, _tolerance(x, rtol))
    return inverses


def _tolerance(x: Array, rtol: float | Array | None) -> float | Array:
    return builtins.max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if rtol is None else rtol


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Return the ranks of matrices: the number of singular values that do not count as zero.

    Parameters and errors are those of `pinv`.

    Returns
    -------
    Array
        Of int64 and shape ``(...)``.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``matrix_rank``.
    """
    x = matrices("matrix_rank", x)
    tolerance = _tolerance(x, rtol)
    if x.device != CPU and x.size:
        return _rank(x, tolerance)
    ranks: Array = _within("matrix_rank", _rank_within, x, tolerance)
    return ranks


def _within(function: str, compute: Callable[..., Any], x: Array, rtol: float | Array) -> Any:
    if isinstance(rtol, Array):
        return run(function, compute, x, rtol)

    def with_number(values: Any) -> Any:
        return compute(values, rtol)

    return run(function, with_number, x)


def _rank_within(values: Any, tolerance: Any) -> Any:
    return np.linalg.matrix_rank(values, rtol=tolerance)


def _rank(x: Array, tolerance: float | Array) -> Array:
    """Count singular values where they are, as NumPy does."""
    lengths = astype(svdvals(x), np.float64, copy=False)
    if isinstance(tolerance, Array):
        tolerance = expand_dims(tolerance, axis=-1)
    least = multiply(max(lengths, axis=-1, keepdims=True), tolerance)
    return count_nonzero(greater(lengths, least), axis=-1)
