"""Data type functions of the standard."""

from __future__ import annotations

import builtins
from typing import Any, cast

import ml_dtypes
import numpy as np

from fklarray.array import Array
from fklarray.device import Device
from fklarray.dtype_rows import NUMPY_DTYPES, DtypeLike, dtype_row, scalar_dtype
from fklarray.record import Number, within_limits
from fklarray.recording import common_dtype, weak_dtype
from fklarray.reductions import array_operand, in_dtype
from fklarray.replay import replayed
from fklarray_codegen import dtypes

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]


@replayed
def astype(
    x: Array,
    dtype: DtypeLike,
    /,
    *,
    copy: builtins.bool = True,
    device: Device | str | None = None,
) -> Array:
    """Convert the elements to another data type.

    Parameters
    ----------
    x : Array
        Array of any data type.
    dtype : dtype
        Data type of the result. Out-of-range values have no defined result.
    copy : bool
        False returns `x` itself when it has the data type already.
    device : Device or str, optional
        Device of the result.

    Raises
    ------
    TypeError
        If the data type is not supported, or a complex array is converted to a real type other
        than bool.
    """
    x = array_operand("astype", x)
    if device is not None:
        x = x.to_device(device)
    row = dtype_row(dtype)
    if not copy and x._state[0].dtype is row:
        return x
    return within_limits(lambda: in_dtype(x, dtype), [x])


def can_cast(from_: DtypeLike | Array, to: DtypeLike, /) -> builtins.bool:
    """Return whether all values of a data type are values of another."""
    source = dtype_row(_numpy(from_))
    return dtypes.can_cast(source, dtype_row(to))


class _FloatLimits:
    """NumPy's (or ml_dtypes') `finfo`, whose limits are Python floats as the standard wants."""

    __slots__ = ("_limits",)

    def __init__(self, limits: np.finfo[Any] | ml_dtypes.finfo) -> None:
        self._limits = limits

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value: Any = getattr(self._limits, name)
        return float(value) if isinstance(value, _SCALAR) else value

    def __dir__(self) -> list[str]:
        return dir(self._limits)

    def __repr__(self) -> str:
        return repr(self._limits)


def finfo(type: DtypeLike | Array, /) -> _FloatLimits:
    """Return the limits of a floating-point data type (``bits, eps, max, min, ...``).

    Returns
    -------
    object
        Has NumPy's attributes; the limits are Python floats.

    Raises
    ------
    ValueError
        If the data type is not a floating-point one.
    """
    dtype = _numpy(type)
    limits: Any = ml_dtypes.finfo if dtype == ml_dtypes.bfloat16 else np.finfo
    return _FloatLimits(limits(dtype))


def iinfo(type: DtypeLike | Array, /) -> np.iinfo[Any]:
    """Return the limits of an integer data type (``bits, max, min``)."""
    return np.iinfo(_numpy(type))


def _numpy(type: DtypeLike | Array | np.ndarray[Any, Any]) -> np.dtype[Any]:
    return type.dtype if isinstance(type, (Array, np.ndarray)) else NUMPY_DTYPES[dtype_row(type)]


def isdtype(dtype: DtypeLike, kind: DtypeLike | str | tuple[DtypeLike | str, ...]) -> builtins.bool:
    """Return whether a data type is of a kind, is another data type, or is any of several.

    Parameters
    ----------
    dtype : dtype
        Data type to look at.
    kind : str, dtype, or tuple of them
        Kinds are ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"`` and ``"numeric"``.

    Raises
    ------
    TypeError
        If `dtype` is no data type, or `kind` is none and no string.
    ValueError
        If a string is no kind.
    """
    row = dtype if isinstance(dtype, np.dtype) else NUMPY_DTYPES[dtype_row(dtype)]
    kinds = kind if isinstance(kind, tuple) else (kind,)
    matches = [_is_of_kind(row, one) for one in kinds]
    return any(matches)


def _is_of_kind(dtype: np.dtype[Any], kind: DtypeLike | str) -> builtins.bool:
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype knows the kinds {', '.join(_KINDS)}, not {kind!r}")
        return dtype_row(dtype).kind in _KINDS[kind]
    if not isinstance(kind, np.dtype) and not (
        isinstance(kind, builtins.type) and issubclass(cast("Any", kind), _SCALAR)
    ):
        raise TypeError(f"isdtype takes data types and the names of kinds, not {kind!r}")
    return dtype == np.dtype(kind)


def result_type(*arrays_and_dtypes: Array | Number | DtypeLike) -> np.dtype[Any]:
    """Return the data type that arrays, data types and Python scalars promote to.

    Raises
    ------
    ValueError
        If there is no argument.
    TypeError
        If an argument is none of these.
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type needs at least one array or data type")
    typed: list[dtypes.DType] = []
    scalars: list[Number] = []
    for argument in arrays_and_dtypes:
        if isinstance(argument, (Array, np.ndarray, np.generic)):
            typed.append(dtype_row(cast("Any", argument).dtype))
        elif isinstance(argument, (builtins.bool, int, float, complex)):
            scalars.append(argument)
        else:
            typed.append(dtype_row(argument))
    if not typed:
        return NUMPY_DTYPES[common_dtype([scalar_dtype(scalar) for scalar in scalars])]
    result = common_dtype(typed)
    for scalar in scalars:
        result = weak_dtype(result, scalar)
    return NUMPY_DTYPES[result]


_SCALAR: Any = np.generic
_INTEGERS = {"signed", "unsigned"}
_KINDS: dict[str, set[str]] = {
    "bool": {"bool"},
    "signed integer": {"signed"},
    "unsigned integer": {"unsigned"},
    "integral": _INTEGERS,
    "real floating": {"real"},
    "complex floating": {"complex"},
    "numeric": _INTEGERS | {"real", "complex"},
}
