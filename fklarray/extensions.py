"""Functions of NumPy that the standard does not have: bincount, diag, logspace, transpose."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np

from fklarray.array import Array
from fklarray.creation import linspace
from fklarray.data_type_functions import astype
from fklarray.delegation import on_numpy
from fklarray.device import Device
from fklarray.dtype_rows import DtypeLike
from fklarray.elementwise import pow
from fklarray.manipulation import permute_dims
from fklarray.reductions import array_operand, deferred_on_numpy

__all__ = ["bincount", "diag", "logspace", "transpose"]


def transpose(x: Array, /, axes: Sequence[int] | None = None) -> Array:
    """Reorder the dimensions; reverse them by default. Errors as of `permute_dims`."""
    x = array_operand("transpose", x)
    return permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


def bincount(x: Array, /, weights: Array | None = None, minlength: int = 0) -> Array:
    """Count how often each integer occurs.

    Parameters
    ----------
    x : Array
        Vector of integers that are not negative.
    weights : Array, optional
        Vector of the same length: what each occurrence adds, instead of 1.
    minlength : int
        Least number of elements of the result.

    Returns
    -------
    Array
        Of int64, or float64 with weights. Runs at once, since its length depends on the values.

    Raises
    ------
    ValueError
        If a value is negative, or a shape is not that of a vector.
    TypeError
        If `x` does not hold integers.
    """
    values = array_operand("bincount", x)
    counted = [values] if weights is None else [values, array_operand("bincount", weights)]
    # NumPy refuses what it could not count safely.
    is_simple = weights is None and np.can_cast(values.dtype, np.intp)
    counts: Array = on_numpy(
        np.bincount, *counted, called="bincount" if is_simple else "", minlength=minlength
    )
    return counts


def diag(x: Array, /, k: int = 0) -> Array:
    """Return a matrix with a vector on diagonal `k` and zeros elsewhere, or a matrix's diagonal.

    Raises
    ------
    ValueError
        If `x` is neither a vector nor a matrix.
    """
    x = array_operand("diag", x)
    if x.ndim not in (1, 2):
        raise ValueError(f"diag needs a vector or a matrix, not an array of shape {x.shape}")
    shape = np.diag(np.broadcast_to(np.False_, x.shape), k).shape
    return deferred_on_numpy(
        lambda values: np.diag(values, k), [x], x._state[0].dtype, shape, "diag"
    )


def logspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    *,
    endpoint: builtins.bool = True,
    base: float = 10.0,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return values from ``base**start`` to ``base**stop`` whose logarithms are evenly spaced.

    Parameters
    ----------
    start, stop : float
        Exponents.
    num : int
        Number of values, not negative.
    endpoint : bool
        Whether ``base**stop`` is among the values.
    base : float
        Base of the exponents.
    dtype : dtype, optional
        Data type; float64 by default.
    device : Device or str, optional
        Device of the result.

    Raises
    ------
    ValueError
        If `num` is negative.
    """
    values = pow(base, linspace(start, stop, num, endpoint=endpoint, device=device))
    return values if dtype is None else astype(values, dtype, copy=False)
