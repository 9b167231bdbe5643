"""Data types and data type functions of the standard. A data type is NumPy's `numpy.dtype`."""

from __future__ import annotations

import builtins
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fklarray_codegen.dtypes import DTYPES, DType, named

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    DtypeLike: TypeAlias = DTypeLike
else:
    DtypeLike: TypeAlias = Any

__all__ = [
    "bool",
    "complex64",
    "complex128",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool = np.dtype(np.bool)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)

NUMPY_DTYPES: dict[DType, np.dtype[Any]] = {dtype: np.dtype(name) for name, dtype in DTYPES.items()}
_FROM_NUMPY: dict[np.dtype[Any], DType] = {numpy: dtype for dtype, numpy in NUMPY_DTYPES.items()}


@cache
def _row(numpy: np.dtype[Any]) -> DType:
    return _FROM_NUMPY.get(numpy) or named(str(numpy))


def dtype_row(dtype: DtypeLike) -> DType:
    """Return the generator's row of a data type, given in any way that NumPy understands.

    Raises
    ------
    TypeError
        If the data type is unknown or not supported.
    """
    return _row(np.dtype(dtype))


def scalar_dtype(value: builtins.bool | complex) -> DType:
    """Return the default data type of a Python scalar."""
    if isinstance(value, builtins.bool):
        return DTYPES["bool"]
    if isinstance(value, int):
        return DTYPES["int64"]
    return DTYPES["float64" if isinstance(value, float) else "complex128"]
