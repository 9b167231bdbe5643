"""Named tuples that functions of the standard return."""

from __future__ import annotations

from typing import NamedTuple

from fklarray.array import Array

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "UniqueAllResult",
    "UniqueCountsResult",
    "UniqueInverseResult",
]


class UniqueAllResult(NamedTuple):
    """Unique elements, the first index and the number of each, and the way back."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """Unique elements, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """Unique elements, and for each element of the array the index of its like."""

    values: Array
    inverse_indices: Array


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns, both complex."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Real eigenvalues in ascending order, and orthonormal eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A matrix with orthonormal columns and an upper triangular one, whose product is given."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """Sign (or complex number of modulus 1) and logarithm of the modulus of a determinant."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right ones as rows."""

    U: Array
    S: Array
    Vh: Array
