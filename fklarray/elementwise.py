"""Elementwise functions of the standard, one line per row of the op table."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fklarray.array import Array
from fklarray.operators import Shortcuts
from fklarray.record import Number, Operand, promoted, record
from fklarray.reductions import array_operand
from fklarray.replay import replayed
from fklarray_codegen.ops import OPS

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]


class _Unary(Protocol):
    def __call__(self, x: Array, /) -> Array: ...


class _Binary(Protocol):
    def __call__(self, x1: Operand, x2: Operand, /) -> Array: ...


def _unary(name: str) -> _Unary:
    shortcuts = Shortcuts(OPS[name])
    record_unary = shortcuts.in_front("unary", shortcuts.unary)

    def function(x: Array, /) -> Array:
        return record_unary(x)

    _document(function, name, "x : Array\n    ")
    return function


def _binary(name: str) -> _Binary:
    op = OPS[name]
    shortcuts = Shortcuts(op)
    binary = shortcuts.in_front("binary", shortcuts.binary)
    reflected = shortcuts.in_front("reflected", shortcuts.reflected)

    def function(x1: Operand, x2: Operand, /) -> Array:
        if isinstance(x1, Array):
            return binary(x1, x2)
        return reflected(x2, x1) if isinstance(x2, Array) else record(op, x1, x2)

    _document(function, name, "x1, x2 : Array or scalar\n    ")
    return function


def _document(function: object, name: str, parameters: str) -> None:
    op = OPS[name]
    result = {"same": "their common data type", "bool": "bool", "real": "the real data type"}
    source = f'Array API standard 2025.12, "Element-wise Functions", ``{name}``'
    if op.family == "special":
        source = f"``scipy.special.{name}``"
    function.__name__ = function.__qualname__ = name  # type: ignore[attr-defined]
    function.__doc__ = (
        f"{op.doc}\n\nParameters\n----------\n{parameters}"
        f"Operands of {op.accepts} data types.\n\n"
        f"Returns\n-------\nArray\n    Of the broadcast shape and {result[op.result]}.\n\n"
        "Raises\n------\nTypeError\n    If a data type is not accepted.\n"
        "ValueError\n    If the shapes cannot be broadcast together.\n\n"
        "Notes\n-----\n"
        f"Error bound: {op.max_ulp} ulp for real operands (0 is NumPy's bits).\n"
        f"{source}.\n"
    )


abs = _unary("abs")
acos = _unary("acos")
acosh = _unary("acosh")
add = _binary("add")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atan2 = _binary("atan2")
atanh = _unary("atanh")
bitwise_and = _binary("bitwise_and")
bitwise_invert = _unary("bitwise_invert")
bitwise_left_shift = _binary("bitwise_left_shift")
bitwise_or = _binary("bitwise_or")
bitwise_right_shift = _binary("bitwise_right_shift")
bitwise_xor = _binary("bitwise_xor")
ceil = _unary("ceil")
conj = _unary("conj")
copysign = _binary("copysign")
cos = _unary("cos")
cosh = _unary("cosh")
divide = _binary("divide")
equal = _binary("equal")
exp = _unary("exp")
expm1 = _unary("expm1")
floor = _unary("floor")
floor_divide = _binary("floor_divide")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
hypot = _binary("hypot")
imag = _unary("imag")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
less = _binary("less")
less_equal = _binary("less_equal")
log = _unary("log")
log1p = _unary("log1p")
log2 = _unary("log2")
log10 = _unary("log10")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_not = _unary("logical_not")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
multiply = _binary("multiply")
negative = _unary("negative")
nextafter = _binary("nextafter")
not_equal = _binary("not_equal")
positive = _unary("positive")
pow = _binary("pow")
real = _unary("real")
reciprocal = _unary("reciprocal")
remainder = _binary("remainder")
round = _unary("round")
sign = _unary("sign")
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
square = _unary("square")
subtract = _binary("subtract")
tan = _unary("tan")
tanh = _unary("tanh")
trunc = _unary("trunc")


def _bound(value: Operand) -> Array | Number:
    if isinstance(value, np.generic) or not isinstance(value, (int, float, complex)):
        return array_operand("clip", value)
    return value


@replayed
def clip(x: Array, /, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Limit elements to an interval.

    Parameters
    ----------
    x : Array
        Array of a real numeric data type.
    min, max : Array or scalar, optional
        Bounds, broadcast with `x`; None does not bound. Where ``min > max``, `max` wins.

    Returns
    -------
    Array
        Of the broadcast shape and the data type of `x`; NaN where `x` or a bound is NaN.

    Raises
    ------
    TypeError
        If `x` is not an array of real numbers, or the bounds promote it to another data type.
    ValueError
        If the shapes cannot be broadcast together.
    OverflowError
        If a Python integer is out of the range of an integer data type.

    Notes
    -----
    Array API standard 2025.12, "Element-wise Functions", ``clip``.
    """
    x = array_operand("clip", x)
    row = x._state[0].dtype
    if row.kind in ("bool", "complex"):
        raise TypeError(f"clip accepts real numeric data types, not {row}")
    result = positive(x)
    for bound, limit in ((min, maximum), (max, minimum)):
        if bound is None:
            continue
        other = _bound(bound)
        common = promoted("clip", [x, other])
        if common is not row:
            raise TypeError(f"clip keeps the data type {row}; the bounds promote to {common}")
        result = limit(result, other)
    return result
