"""Decompositions of matrices and their eigenvalues and singular values, run on NumPy at once."""

from __future__ import annotations

import builtins
from typing import Any, Literal

import numpy as np

from fklarray.array import Array
from fklarray.linalg.matrices import matrices, run, square_matrices
from fklarray.on_cupy import is_of_cupy
from fklarray.results import EighResult, EigResult, QRResult, SVDResult

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]

_Values = np.ndarray[Any, Any]


def cholesky(x: Array, /, *, upper: builtins.bool = False) -> Array:
    """Return the triangular factors of positive definite matrices.

    Parameters
    ----------
    x : Array
        Real symmetric or complex Hermitian matrices ``(..., M, M)``, of which one triangle is
        read.
    upper : bool
        Whether to return the upper factor ``U`` of ``U^H U`` instead of the lower ``L`` of
        ``L L^H``; that triangle of `x` is read.

    Returns
    -------
    Array
        Of the shape of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, or the shape is not that of square matrices.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``cholesky``.
    """
    x = square_matrices("cholesky", x)

    def decompose(values: _Values) -> _Values:
        if is_of_cupy(values) and upper:  # CuPy has the lower factor only
            return np.linalg.cholesky(values.swapaxes(-1, -2).conj()).swapaxes(-1, -2).conj()
        return np.linalg.cholesky(values, **({"upper": True} if upper else {}))

    factors: Array = run("cholesky", decompose, x)
    return factors


def eig(x: Array, /) -> EigResult:
    """Return the eigenvalues and eigenvectors of matrices.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, M)``.

    Returns
    -------
    EigResult
        ``eigenvalues`` ``(..., M)`` in no particular order and ``eigenvectors`` ``(..., M, M)``,
        the columns. Both are complex, also where every imaginary part is 0.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix holds NaN or infinities, the iteration does not converge, or the shape is not
        that of square matrices.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``eig``.
    """

    def decompose(values: _Values) -> tuple[_Values, ...]:
        return tuple(map(_as_complex, np.linalg.eig(values)))

    return EigResult(*run("eig", decompose, square_matrices("eig", x)))


def _as_complex(values: _Values) -> _Values:
    return values.astype(np.result_type(values, np.complex64), copy=False)


def eigvals(x: Array, /) -> Array:
    """Return the eigenvalues of matrices, as complex numbers; otherwise as `eig`."""

    def decompose(values: _Values) -> _Values:
        return _as_complex(np.linalg.eigvals(values))

    found: Array = run("eigvals", decompose, square_matrices("eigvals", x))
    return found


def eigh(x: Array, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    x : Array
        Real symmetric or complex Hermitian matrices ``(..., M, M)``; the lower triangle is read.

    Returns
    -------
    EighResult
        ``eigenvalues`` ``(..., M)``, real and ascending, and ``eigenvectors`` ``(..., M, M)``, the
        columns, of the data type of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the iteration does not converge, or the shape is not that of square matrices.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``eigh``.
    """
    return EighResult(*run("eigh", np.linalg.eigh, square_matrices("eigh", x)))


def eigvalsh(x: Array, /) -> Array:
    """Return the eigenvalues of Hermitian matrices, ascending; otherwise as `eigh`."""
    values: Array = run("eigvalsh", np.linalg.eigvalsh, square_matrices("eigvalsh", x))
    return values


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Decompose matrices into one with orthonormal columns and an upper triangular one.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, N)``.
    mode : {"reduced", "complete"}
        Whether ``Q`` has the leading ``K = min(M, N)`` columns or all ``M`` of them.

    Returns
    -------
    QRResult
        ``Q`` ``(..., M, K)`` and ``R`` ``(..., K, N)``, or ``(..., M, M)`` and ``(..., M, N)``.

    Raises
    ------
    ValueError
        If the mode is unknown.
    numpy.linalg.LinAlgError
        If `x` has fewer than two dimensions.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``qr``.
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr knows the modes 'reduced' and 'complete', not {mode!r}")
    return QRResult(*run("qr", np.linalg.qr, matrices("qr", x), mode=mode))


def svd(x: Array, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """Return the singular value decompositions of matrices.

    Parameters
    ----------
    x : Array
        Matrices ``(..., M, N)``; ``K = min(M, N)``.
    full_matrices : bool
        Whether ``U`` and ``Vh`` are square instead of having ``K`` columns and rows.

    Returns
    -------
    SVDResult
        ``U`` ``(..., M, M)`` or ``(..., M, K)``, ``S`` ``(..., K)``, real and descending, and
        ``Vh`` ``(..., N, N)`` or ``(..., K, N)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the iteration does not converge, or `x` has fewer than two dimensions.
    TypeError
        If `x` is not an array, or of 16-bit floats.

    Notes
    -----
    Array API standard 2025.12, "Linear Algebra Extension", ``svd``.
    """
    x = matrices("svd", x)
    return SVDResult(*run("svd", np.linalg.svd, x, full_matrices=full_matrices))


def svdvals(x: Array, /) -> Array:
    """Return the singular values of matrices, real and descending; otherwise as `svd`."""
    values: Array = run("svdvals", np.linalg.svd, matrices("svdvals", x), compute_uv=False)
    return values
