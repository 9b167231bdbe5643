"""Linear algebra, an extension of the standard ("Linear Algebra Extension")."""

from numpy.linalg import LinAlgError as LinAlgError

from fklarray.linalg.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from fklarray.linalg.norms import matrix_norm, vector_norm
from fklarray.linalg.solving import (
    det,
    inv,
    matrix_power,
    matrix_rank,
    pinv,
    slogdet,
    solve,
)
from fklarray.linalg.vectors import cross, diagonal, outer, trace
from fklarray.linear_algebra import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "LinAlgError",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
