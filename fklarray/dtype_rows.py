"""Data types as the generator's rows and as NumPy's objects, and how users may name them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

from fklarray_codegen.dtypes import DTYPES, DType, named

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    DtypeLike: TypeAlias = DTypeLike
else:
    DtypeLike: TypeAlias = Any

__all__ = [
    "DTYPES",
    "NUMPY_DTYPES",
    "DType",
    "DtypeLike",
    "computed_row",
    "dtype_row",
    "floating_row",
    "row_or_default",
    "scalar_dtype",
]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NUMPY_DTYPES: dict[DType, np.dtype[Any]] = {
    dtype: _BFLOAT16 if name == "bfloat16" else np.dtype(name) for name, dtype in DTYPES.items()
}
_FROM_NUMPY: dict[np.dtype[Any], DType] = {numpy: dtype for dtype, numpy in NUMPY_DTYPES.items()}


@cache
def _row(numpy: np.dtype[Any]) -> DType:
    return _FROM_NUMPY.get(numpy) or named(str(numpy))


def dtype_row(dtype: DtypeLike | None) -> DType:
    """Return the generator's row of a data type, given in any way that NumPy understands.

    Raises
    ------
    TypeError
        If the data type is unknown or not supported.
    """
    # None is NumPy's way to say float64; here it is a forgotten argument.
    if dtype is None:
        raise TypeError("a data type is needed, not None")
    # NumPy would take the data type of an array that is not its own.
    if hasattr(dtype, "__dlpack__"):
        raise TypeError("a data type is needed, not an array")
    return _row(np.dtype(dtype))


def scalar_dtype(value: bool | complex) -> DType:
    """Return the default data type of a Python scalar."""
    if isinstance(value, bool):
        return DTYPES["bool"]
    if isinstance(value, int):
        return DTYPES["int64"]
    return DTYPES["float64" if isinstance(value, float) else "complex128"]


def floating_row(row: DType) -> DType:
    """Return the data type of a mean or a root: float64 for integers and bool."""
    return row if row.kind in ("real", "complex") else DTYPES["float64"]


def computed_row(row: DType) -> DType:
    """Return the data type to compute in: float32 for 16-bit floats, which are rounded once."""
    return row if row.is_standard else DTYPES["float32"]


def row_or_default(dtype: DtypeLike | None, default: DType) -> DType:
    """Return the row of a data type that may be left out."""
    return default if dtype is None else dtype_row(dtype)
