"""Running NumPy's linear algebra (LAPACK) on stacks of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from fklarray.array import Array
from fklarray.data_type_functions import astype
from fklarray.delegation import on_numpy
from fklarray.reductions import array_operand

__all__ = ["floating", "matrices", "run", "square_matrices"]


def floating(function: str, x: object) -> Array:
    """Return an array in a data type that LAPACK computes in: integers become float64.

    Raises
    ------
    TypeError
        If it is not an array, or one of 16-bit floats, as of NumPy.
    """
    array = array_operand(function, x)
    row = array._state[0].dtype
    if not row.is_standard:
        raise TypeError(f"{function} computes in float32 or wider types, not in {array.dtype}")
    return array if row.kind in ("real", "complex") else astype(array, np.float64)


def matrices(function: str, x: object) -> Array:
    """Return an array of two or more dimensions, in a data type that LAPACK computes in.

    Raises
    ------
    TypeError
        As of `floating`.
    numpy.linalg.LinAlgError
        If it has fewer dimensions.
    """
    array = floating(function, x)
    if array.ndim < 2:
        raise LinAlgError(f"{function} needs matrices, not an array of shape {array.shape}")
    return array


def square_matrices(function: str, x: object) -> Array:
    """Return an array as `matrices` does, whose last two dimensions are equal.

    Raises
    ------
    TypeError
        As of `floating`.
    numpy.linalg.LinAlgError
        If it has another shape.
    """
    array = matrices(function, x)
    if array.shape[-1] != array.shape[-2]:
        raise LinAlgError(f"{function} needs square matrices, not shape {array.shape}")
    return array


def run(function: str, compute: Callable[..., Any], *arrays: Array, **keywords: Any) -> Any:
    """Run a function of NumPy now, by the name of ours.

    Raises
    ------
    numpy.linalg.LinAlgError
        If it does: what it says, with the function's name and the shapes.
    """
    try:
        return on_numpy(compute, *arrays, called=function, **keywords)
    except LinAlgError as error:
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise LinAlgError(f"{function} of shape {shapes}: {error}") from None
