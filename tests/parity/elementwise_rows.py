"""Rows of the elementwise functions: the op table's operations, and clip."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from accuracy import wanted, wide
from fklarray import elementwise
from fklarray_codegen.ops import OPS, Op
from parity.expectations import ByOpTable, Within
from parity.operands import (
    BOOL,
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    NARROW,
    NUMERIC,
    REAL,
    Call,
    Values,
    broadcastable,
    call,
    inputs,
)
from parity.rows import Row, promoted

# The standard's categories: operands of other data types are refused or converted.
_CATEGORIES: dict[str, tuple[str, ...]] = {
    "any": EVERY,
    "numeric": NUMERIC,
    "real numeric": REAL,
    "integer": INTEGERS,
    "integer or boolean": BOOL + INTEGERS,
    "boolean": BOOL,
    "floating-point": FLOATS + COMPLEX,
    "real floating-point": FLOATS,
    "complex floating-point": COMPLEX,
}

SCALARS = st.one_of(
    st.booleans(),
    st.sampled_from([0, 1, 2, 3, -1, 7, 100, 200, -129, 300, 1 << 31, 1 << 63, -(1 << 63)]),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, -2.5, 0.1, 1e300, np.inf, -np.inf, np.nan, 5e-324]),
    st.sampled_from([1j, 0.5 - 2j, complex(0, np.inf)]),
)


def _converted(op: Op, operands: tuple[Any, ...]) -> tuple[Values, ...]:
    """Return operands in the data type that an operation computes in.

    NumPy has results for more data types than the standard: the order of complex numbers is
    refused here. Integers become float64, not the smallest float that NumPy finds, where the
    standard is for floating-point numbers only.
    """
    common = promoted(*operands)
    accepted = _CATEGORIES[op.accepts]
    if common.name not in accepted:
        if op.accepts == "boolean":
            common = np.dtype(bool)
        elif op.accepts.endswith("floating-point") and common.name not in COMPLEX + FLOATS:
            if op.accepts.startswith("complex"):
                raise TypeError(common)
            common = np.dtype("float64")
        else:
            raise TypeError(common)
    converted = [_as(operand, common) for operand in operands]
    return tuple(np.broadcast_arrays(*converted))


def _as(operand: Any, dtype: np.dtype[Any]) -> Values:
    if isinstance(operand, int) and not isinstance(operand, bool) and dtype.kind in "iu":
        return np.asarray(operand, dtype)  # raises OverflowError out of range
    with np.errstate(all="ignore"):
        return np.asarray(operand).astype(dtype)


def elementwise_reference(op: Op) -> Any:
    """Return the reference of an operation of the op table."""

    def reference(*operands: Any) -> Any:
        if op.family == "comparison" and _out_of_range(operands):
            # NumPy compares with Python integers of any size.
            return np.asarray(getattr(np, op.name)(*operands))
        if _is_bool_for_numbers(op, operands):
            # Rounded, NumPy's bool is float16.
            function = np.trunc if op.name == "round" else getattr(np, op.name)
            return np.asarray(function(*(_as(operand, np.dtype(bool)) for operand in operands)))
        values = _converted(op, operands)
        dtype = values[0].dtype
        if dtype.name in NARROW:
            return _narrow(op, values, dtype)
        if op.max_ulp == 0 and (dtype.kind != "c" or op.complex_ulp == 0):
            return wanted(op, *values)
        if dtype.kind in "biu":
            return wanted(op, *values)
        exact = wide(op, *values)
        if op.name == "expm1" and dtype.kind == "c":
            # exp(-inf) is 0 whatever the angle; NumPy has NaN for an infinite one.
            exact[np.isneginf(values[0].real)] = -1
        return ByOpTable(op, values, exact)

    return reference


def _is_bool_for_numbers(op: Op, operands: tuple[Any, ...]) -> bool:
    is_for_numbers = op.accepts in ("numeric", "real numeric", "integer")
    return is_for_numbers and promoted(*operands).name == "bool"


def _out_of_range(operands: tuple[Any, ...]) -> bool:
    (array, *_) = [value for value in operands if isinstance(value, np.ndarray)]
    mixed = {value.dtype.kind for value in operands if isinstance(value, np.ndarray)} == {"i", "u"}
    if array.dtype.kind not in "iu":
        return False
    info = np.iinfo(array.dtype)
    return mixed or any(
        type(value) is int and not info.min <= value <= info.max for value in operands
    )


def _narrow(op: Op, values: tuple[Values, ...], dtype: np.dtype[Any]) -> Any:
    """Compute as 16-bit floats do: in float32, rounded once."""
    if op.name == "nextafter":
        return np.nextafter(*values)
    exact = wanted(op, *(value.astype(np.float32) for value in values))
    if op.max_ulp == 0:
        return exact.astype(dtype) if exact.dtype.kind == "f" else exact
    return Within(exact, dtype, 0)


def operands_of(op: Op) -> st.SearchStrategy[Call]:
    """Draw operands that an operation takes, and some that it does not."""
    accepted = _CATEGORIES[op.accepts]
    if op.arity == 1:
        # Most calls with what is accepted, some with what is not.
        return call(st.one_of(inputs(accepted), inputs(accepted), inputs(EVERY)))
    return st.one_of(_of_one_dtype(accepted), _of_one_dtype(accepted), _mixed(), with_scalar())


@st.composite
def _of_one_dtype(draw: st.DrawFn, accepted: tuple[str, ...]) -> Call:
    dtype = draw(st.sampled_from(accepted))
    shapes = draw(broadcastable(2))
    return Call.of(*(draw(inputs((dtype,), st.just(shape))) for shape in shapes))


@st.composite
def _mixed(draw: st.DrawFn) -> Call:
    shapes = draw(broadcastable(2))
    return Call.of(*(draw(inputs(EVERY, st.just(shape))) for shape in shapes))


@st.composite
def with_scalar(draw: st.DrawFn) -> Call:
    """Draw an array and a Python scalar, in any order."""
    array, scalar = draw(inputs(EVERY)), draw(SCALARS)
    return Call.of(array, scalar) if draw(st.booleans()) else Call.of(scalar, array)


# ----------------------------------------------------------------------------- clip and where


def _clip(x: Values, min: Any = None, max: Any = None) -> Values:
    if x.dtype.name not in REAL:
        raise TypeError(x.dtype)
    low, high = (None if limit is None else _as(limit, x.dtype) for limit in (min, max))
    x = x if low is None else np.maximum(x, low)
    return x.copy() if high is None else np.minimum(x, high)


@st.composite
def _clip_calls(draw: st.DrawFn) -> Call:
    dtype = draw(st.sampled_from(REAL))
    shapes = draw(broadcastable(3))
    x = draw(inputs((dtype,), st.just(shapes[0])))
    numbers = st.sampled_from([0, 1, 3, 100] + ([0.5, -1.5, np.inf] if dtype in FLOATS else []))
    limits = [
        draw(st.one_of(st.none(), numbers, inputs((dtype,), st.just(shape))))
        for shape in shapes[1:]
    ]
    return Call.of(x, *limits) if draw(st.booleans()) else Call.of(x, min=limits[0], max=limits[1])


def _where(condition: Values, x1: Any, x2: Any) -> Values:
    if not any(isinstance(value, np.ndarray) for value in (x1, x2)):
        dtype = np.result_type(x1, x2)
    else:
        dtype = promoted(x1, x2)
    return np.where(condition.astype(bool), _as(x1, dtype), _as(x2, dtype))


@st.composite
def _where_calls(draw: st.DrawFn) -> Call:
    shapes = draw(broadcastable(3))
    condition = draw(inputs(BOOL, st.just(shapes[0])))
    values = [
        draw(st.one_of(inputs(EVERY, st.just(s)), inputs(EVERY, st.just(s)), SCALARS))
        for s in shapes[1:]
    ]
    return Call.of(condition, *values)


_STANDARD = [OPS[name] for name in elementwise.__all__ if name in OPS]

ROWS = [
    *(Row(op.name, operands_of(op), elementwise_reference(op)) for op in _STANDARD),
    Row("clip", _clip_calls(), _clip),
    Row("where", _where_calls(), _where),
]
