"""One row of the parity tests: how a public function is called, and what NumPy makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from hypothesis import strategies as st

import fklarray as xp
from parity.operands import Call, Values


@dataclass(frozen=True, eq=False)
class Row:
    """A public function, its calls, and its reference.

    Attributes
    ----------
    name : str
        Name in the namespace: ``"sum"``, ``"linalg.qr"``.
    calls : strategy of Call
        Draws arguments.
    reference : callable
        Takes them with arrays of NumPy. Returns what the result should be: an array for the same
        bits, or an `Expected`; or raises what NumPy raises. Where this library departs from NumPy
        on purpose (docs/numpy-differences.md), the reference says how.
    run : callable, optional
        Makes the call where it is not one of the function: of an operator, of a method.
    """

    name: str
    calls: st.SearchStrategy[Call]
    reference: Callable[..., Any]
    run: Callable[..., Any] | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function under test."""
        if self.run is not None:
            return self.run
        function: Callable[..., Any] = reduce(getattr, self.name.split("."), xp)
        return function

    def __repr__(self) -> str:
        return self.name

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(self.name)


def promoted(*operands: Any) -> np.dtype[Any]:
    """Return the data type of NumPy's result of arrays, data types and Python scalars."""
    arrays = [value.dtype if isinstance(value, np.ndarray) else value for value in operands]
    dtypes = [value for value in arrays if isinstance(value, np.dtype)]
    # NumPy has no rule for bfloat16, ml_dtypes' functions have.
    common = reduce(lambda a, b: np.add(np.ones(1, a), np.ones(1, b)).dtype, dtypes)
    scalars = [value for value in arrays if not isinstance(value, np.dtype)]
    if not scalars:
        return common
    if common.name == "bfloat16":
        common, narrow = np.dtype("float16"), common
        weak = np.result_type(common, *scalars)
        return narrow if weak == common else weak
    return np.result_type(common, *scalars)


def normal_axis(axis: Any, ndim: int) -> Any:
    """Return axes counted from the front: for an array without axes, NumPy lets 0 and -1 pass."""
    if isinstance(axis, tuple):
        return np.lib.array_utils.normalize_axis_tuple(axis, ndim)
    return axis if axis is None else np.lib.array_utils.normalize_axis_index(axis, ndim)


def widest(values: Values) -> Values:
    """Return floating-point values in the widest type of their kind."""
    return values.astype(np.clongdouble if values.dtype.kind == "c" else np.longdouble)


def roundoff(dtype: Any) -> float:
    """Return the unit roundoff of a floating-point data type: half a unit in the last place."""
    from parity.operands import limits

    name = np.dtype(dtype).name
    name = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    return float(limits(name).eps) / 2
