"""Dask arrays of fklarray chunks: importing this module tells Dask how to handle them.

Registered are the names that equal arrays get (tokens), how chunks are joined, divided, indexed
and contracted, and how much memory they take. Nothing is exported: Dask finds what is registered
by the chunks' type, in every process that imports this module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from fklarray.array import Array, materialize
from fklarray.conversion import asarray
from fklarray.data_type_functions import astype
from fklarray.dtype_rows import DtypeLike
from fklarray.elementwise import divide
from fklarray.index_functions import take
from fklarray.joining import concat
from fklarray.linear_algebra import tensordot

try:
    # Dask's registries have no types.
    _dispatch: Any = import_module("dask.array.dispatch")
    _normalize_token: Any = import_module("dask.tokenize").normalize_token
    _sizeof: Any = import_module("dask.sizeof").sizeof
except ImportError as error:
    raise ImportError(
        f"fklarray.dask needs Dask with its arrays: pip install 'dask[array]' ({error})"
    ) from error

__all__: list[str] = []


def _token(array: Array) -> object:
    """Return what equal arrays, and only they, have in common; computes what is pending."""
    return "fklarray.Array", _normalize_token(np.asarray(array))


def _bytes(array: Array) -> int:
    """Return the memory that an array takes, and no more: it is computed now.

    The distributed scheduler asks for the size of every result that it keeps. A pending one would
    keep what it is computed from as well: the sum of a chunk, the whole chunk.
    """
    materialize(array)
    return array.nbytes


def _joined(arrays: list[Array], axis: int = 0) -> Array:
    return concat(arrays, axis=axis)


def _divided(x1: Array, x2: Array, dtype: DtypeLike | None = None) -> Array:
    quotient = divide(x1, x2)
    return quotient if dtype is None else astype(quotient, dtype, copy=False)


def _taken(x: Array, indices: object, axis: int) -> Array:
    return take(x, asarray(indices, device=x.device), axis=axis)


_normalize_token.register(Array, _token)
_sizeof.register(Array, _bytes)
_dispatch.concatenate_lookup.register(Array, _joined)
_dispatch.divide_lookup.register(Array, _divided)
_dispatch.take_lookup.register(Array, _taken)
_dispatch.tensordot_lookup.register(Array, tensordot)
