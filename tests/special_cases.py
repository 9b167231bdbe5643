"""The standard's special cases (2025.12, "Element-wise Functions") as data.

A line of a table is the operands' kinds and the result: ``0 -inf  -0`` says what (+0, -infinity)
gives. Kinds stand for the values in `KINDS`. A result is a value, an operand (``x1``, ``|x2|``), a
sign (``+``: not negative), or with ``±`` a value of either sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

# All of them float32 values.
HUGE, TINY = 2.0**100, 2.0**-100
POSITIVE = [TINY, 0.5, 1.0, 2.0, 2.5, 3.0, HUGE]
NEGATIVE = [-value for value in POSITIVE]
INF, NAN = math.inf, math.nan

KINDS: dict[str, list[float]] = {
    "nan": [NAN],
    "0": [0.0],
    "-0": [-0.0],
    "±0": [0.0, -0.0],
    "inf": [INF],
    "-inf": [-INF],
    "±inf": [INF, -INF],
    "1": [1.0],
    "-1": [-1.0],
    "±1": [1.0, -1.0],
    "positive": POSITIVE,
    "negative": NEGATIVE,
    "nonzero": POSITIVE + NEGATIVE,
    "finite": [0.0, -0.0, *POSITIVE, *NEGATIVE],
    "number": [0.0, -0.0, *POSITIVE, *NEGATIVE, INF, -INF],
    "any": [0.0, -0.0, *POSITIVE, *NEGATIVE, INF, -INF, NAN],
    "not0": [*POSITIVE, *NEGATIVE, INF, -INF, NAN],
    "not1": [0.0, -0.0, 0.5, 2.5, *NEGATIVE, INF, -INF, NAN],
    ">0": [*POSITIVE, INF],
    "<0": [*NEGATIVE, -INF],
    ">1": [1.5, 2.0, HUGE, INF],
    "<-1": [-1.5, -2.0, -HUGE, -INF],
    "<1": [0.5, 0.0, -0.0, -1.0, -3.0, -INF],
    "larger": [1.5, -1.5, 2.0, -HUGE],
    "smaller": [0.5, -0.5, TINY, -0.0, 0.0],
    "odd": [1.0, 3.0, 16777215.0],
    "-odd": [-1.0, -3.0, -16777215.0],
    "other": [2.0, 0.5, 2.5, HUGE, INF],
    "-other": [-2.0, -0.5, -2.5, -HUGE, -INF],
    "fraction": [0.5, -0.5, 2.5, -TINY],
    "half": [0.5, -2.5, 1.5],
    "whole": [1.0, -1.0, 2.0, 16777216.0, -HUGE, HUGE],
}

UNARY = {
    "abs": "nan nan; -0 0; 0 0; ±inf inf",
    "acos": "nan nan; >1 nan; <-1 nan; 1 0; -1 pi",
    "acosh": "nan nan; <1 nan; 1 0; inf inf",
    "asin": "nan nan; >1 nan; <-1 nan; ±0 x1",
    "asinh": "nan nan; ±0 x1; ±inf x1",
    "atan": "nan nan; ±0 x1; inf pi/2; -inf -pi/2",
    "atanh": "nan nan; >1 nan; <-1 nan; 1 inf; -1 -inf; ±0 x1",
    "ceil": "nan nan; whole x1; ±inf x1; ±0 x1",
    "cos": "nan nan; ±0 1; ±inf nan",
    "cosh": "nan nan; ±0 1; ±inf inf",
    "exp": "nan nan; ±0 1; inf inf; -inf 0",
    "expm1": "nan nan; ±0 x1; inf inf; -inf -1",
    "floor": "nan nan; whole x1; ±inf x1; ±0 x1",
    "log": "nan nan; <0 nan; ±0 -inf; 1 0; inf inf",
    "log10": "nan nan; <0 nan; ±0 -inf; 1 0; inf inf",
    "log1p": "nan nan; <-1 nan; -1 -inf; ±0 x1; inf inf",
    "log2": "nan nan; <0 nan; ±0 -inf; 1 0; inf inf",
    "negative": "nan nan; 0 -0; -0 0; inf -inf; -inf inf",
    "reciprocal": "nan nan; 0 inf; -0 -inf; inf 0; -inf -0",
    "round": "nan nan; whole x1; ±inf x1; ±0 x1; 1 1",
    "sign": "nan nan; <0 -1; ±0 0; >0 1",
    "sin": "nan nan; ±0 x1; ±inf nan",
    "sinh": "nan nan; ±0 x1; ±inf x1",
    "sqrt": "nan nan; <0 nan; ±0 x1; inf inf",
    "square": "nan nan; ±0 0; ±inf inf",
    "tan": "nan nan; ±0 x1; ±inf nan",
    "tanh": "nan nan; ±0 x1; inf 1; -inf -1",
    "trunc": "nan nan; whole x1; ±inf x1; ±0 x1",
    "isfinite": "nan 0; ±inf 0; finite 1",
    "isinf": "nan 0; ±inf 1; finite 0",
    "isnan": "nan 1; ±inf 0; finite 0",
    "signbit": "0 0; -0 1; inf 0; -inf 1; positive 0; negative 1; nan 0",
}

_DIVISION = """
    nan any nan; any nan nan; ±inf ±inf nan; ±0 ±0 nan; 0 >0 0; -0 >0 -0; 0 <0 -0; -0 <0 0;
    >0 0 inf; >0 -0 -inf; <0 0 -inf; <0 -0 inf; inf positive inf; inf negative -inf;
    -inf positive -inf; -inf negative inf; positive inf 0; positive -inf -0; negative inf -0;
    negative -inf 0; positive positive +; negative negative +; positive negative -;
    negative positive -
"""
BINARY = {
    "add": """
        nan any nan; any nan nan; inf -inf nan; -inf inf nan; inf inf inf; -inf -inf -inf;
        inf finite inf; -inf finite -inf; finite inf inf; finite -inf -inf; -0 -0 -0; -0 0 0;
        0 -0 0; 0 0 0; ±0 nonzero x2; nonzero ±0 x1; 1 -1 0; -1 1 0
    """,
    "subtract": """
        nan any nan; any nan nan; inf inf nan; -inf -inf nan; inf finite inf; finite inf -inf;
        -0 0 -0; 0 0 0; -0 -0 0; 0 -0 0; 1 1 0; -1 -1 0
    """,
    "multiply": """
        nan any nan; any nan nan; ±inf ±0 nan; ±0 ±inf nan; inf inf inf; inf -inf -inf;
        -inf inf -inf; -inf -inf inf; inf positive inf; inf negative -inf; -inf positive -inf;
        -inf negative inf; positive inf inf; positive -inf -inf; negative inf -inf;
        negative -inf inf; positive positive +; negative negative +; positive negative -;
        negative positive -; 0 negative -0; -0 negative 0; -0 positive -0; 0 -0 -0
    """,
    "divide": _DIVISION,
    "floor_divide": _DIVISION,
    "remainder": """
        nan any nan; any nan nan; ±inf ±inf nan; ±0 ±0 nan; ±0 >0 0; ±0 <0 -0; >0 ±0 nan; <0 ±0 nan;
        ±inf nonzero nan; positive inf x1; positive -inf x2; negative inf x2; negative -inf x1
    """,
    "atan2": """
        nan any nan; any nan nan; >0 ±0 pi/2; 0 >0 0; 0 0 0; 0 -0 pi; 0 <0 pi; -0 >0 -0; -0 0 -0;
        -0 -0 -pi; -0 <0 -pi; <0 ±0 -pi/2; positive inf 0; positive -inf pi; negative inf -0;
        negative -inf -pi; inf finite pi/2; -inf finite -pi/2; inf inf pi/4; inf -inf 3pi/4;
        -inf inf -pi/4; -inf -inf -3pi/4
    """,
    "copysign": "any <0 -|x1|; any -0 -|x1|; any 0 |x1|; any >0 |x1|; number nan |x1|",
    "hypot": """
        ±inf any inf; any ±inf inf; ±0 any |x2|; any ±0 |x1|; finite nan nan; nan nan nan;
        nan finite nan
    """,
    "logaddexp": """
        nan any nan; any nan nan; inf number inf; number inf inf; -inf nonzero x2; nonzero -inf x1;
        -inf -inf -inf
    """,
    "maximum": "nan any nan; any nan nan; inf number inf; number -inf x1; -1 ±0 x2",
    "minimum": "nan any nan; any nan nan; -inf number -inf; number inf x1; 1 ±0 x2",
    "nextafter": """
        nan any nan; any nan nan; -0 0 0; 0 -0 -0; inf inf inf; -inf -inf -inf; 1 1 1
    """,
    "pow": """
        not1 nan nan; any ±0 1; nan not0 nan; larger inf inf; larger -inf 0; ±1 ±inf 1;
        1 number 1; smaller inf 0; smaller -inf inf; inf >0 inf; inf <0 0; -inf odd -inf;
        -inf other inf; -inf -odd -0; -inf -other 0; 0 >0 0; 0 <0 inf; -0 odd -0; -0 other 0;
        -0 -odd -inf; -0 -other inf; negative fraction nan; 1 nan 1
    """,
}

# Parts of the operand, then of the result. ``cis`` stands for cos(b) or sin(b), b being the
# imaginary part. What is there for b >= 0 holds for the conjugate.
COMPLEX = {
    "acos": """
        ±0 0 pi/2 -0; ±0 nan pi/2 nan; finite inf pi/2 -inf; nonzero nan nan nan;
        -inf positive pi -inf; inf positive 0 -inf; -inf inf 3pi/4 -inf; inf inf pi/4 -inf;
        ±inf nan nan ±inf; nan finite nan nan; nan inf nan -inf; nan nan nan nan
    """,
    "acosh": """
        ±0 0 0 pi/2; finite inf inf pi/2; nonzero nan nan nan; 0 nan nan ±pi/2;
        -inf positive inf pi; inf positive inf 0; -inf inf inf 3pi/4; inf inf inf pi/4;
        ±inf nan inf nan; nan finite nan nan; nan inf inf nan; nan nan nan nan
    """,
    "asinh": """
        0 0 0 0; positive inf inf pi/2; finite nan nan nan; inf positive inf 0; inf inf inf pi/4;
        inf nan inf nan; nan 0 nan 0; nan nonzero nan nan; nan inf ±inf nan; nan nan nan nan
    """,
    "atanh": """
        0 0 0 0; 0 nan 0 nan; 1 0 inf 0; positive inf 0 pi/2; nonzero nan nan nan;
        inf positive 0 pi/2; inf inf 0 pi/2; inf nan 0 nan; nan finite nan nan; nan inf ±0 pi/2;
        nan nan nan nan
    """,
    "cosh": """
        0 0 1 0; 0 inf nan ±0; 0 nan nan ±0; nonzero inf nan nan; nonzero nan nan nan; inf 0 inf 0;
        inf nonzero inf*cis inf*cis; inf inf ±inf nan; inf nan inf nan; nan ±0 nan ±0;
        nan nonzero nan nan; nan nan nan nan
    """,
    "exp": """
        ±0 0 1 0; finite inf nan nan; finite nan nan nan; inf 0 inf 0; -inf finite 0*cis 0*cis;
        inf nonzero inf*cis inf*cis; -inf inf ±0 ±0; inf inf ±inf nan; -inf nan ±0 ±0;
        inf nan ±inf nan; nan 0 nan 0; nan not0 nan nan; nan nan nan nan
    """,
    "expm1": """
        ±0 0 0 0; finite inf nan nan; finite nan nan nan; inf 0 inf 0; -inf finite -1 0*cis;
        inf nonzero inf*cis inf*cis; -inf inf -1 ±0; inf inf ±inf nan; -inf nan -1 ±0;
        inf nan ±inf nan; nan 0 nan 0; nan not0 nan nan; nan nan nan nan
    """,
    "log": """
        -0 0 -inf pi; 0 0 -inf 0; finite inf inf pi/2; finite nan nan nan; -inf positive inf pi;
        inf positive inf 0; -inf inf inf 3pi/4; inf inf inf pi/4; ±inf nan inf nan;
        nan finite nan nan; nan inf inf nan; nan nan nan nan
    """,
    "log1p": """
        -1 0 -inf 0; finite inf inf pi/2; finite nan nan nan; -inf positive inf pi;
        inf positive inf 0; -inf inf inf 3pi/4; inf inf inf pi/4; ±inf nan inf nan;
        nan finite nan nan; nan inf inf nan; nan nan nan nan
    """,
    "sign": """
        ±0 ±0 0 0; nan any nan nan; any nan nan nan; inf finite 1 0; -inf finite -1 0;
        finite inf 0 1; finite -inf 0 -1; ±inf ±inf nan nan
    """,
    "sinh": """
        0 0 0 0; 0 inf ±0 nan; 0 nan ±0 nan; positive inf nan nan; positive nan nan nan;
        inf 0 inf 0; inf positive inf*cis inf*cis; inf inf ±inf nan; inf nan ±inf nan;
        nan 0 nan 0; nan nonzero nan nan; nan nan nan nan
    """,
    "sqrt": """
        ±0 0 0 0; any inf inf inf; finite nan nan nan; -inf positive 0 inf; inf positive inf 0;
        -inf nan nan ±inf; inf nan inf nan; nan finite nan nan; nan nan nan nan
    """,
    "tanh": """
        0 0 0 0; nonzero inf nan nan; 0 inf 0 nan; nonzero nan nan nan; 0 nan 0 nan;
        inf positive 1 0; inf inf 1 ±0; inf nan 1 ±0; nan 0 nan 0; nan nonzero nan nan;
        nan nan nan nan
    """,
}
ODD = {"asinh", "atanh", "sinh", "tanh"}
EVEN = {"cosh"}
# f(z) = -1j * g(1j * z), or g(1j * z).
TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh", "cos": "cosh"}

_CONSTANTS = {"nan": NAN, "inf": INF, "0": 0.0, "1": 1.0, "pi": math.pi, "3pi/4": 0.75 * math.pi}
_CONSTANTS |= {"pi/2": math.pi / 2, "pi/4": math.pi / 4}
_CONSTANTS |= {f"-{name}": -value for name, value in _CONSTANTS.items()}

Allowed = tuple[float, ...] | str  # values, or a sign


def _constant(text: str) -> Allowed:
    if text in ("+", "-"):
        return text
    if text.startswith("±"):
        return (_CONSTANTS[text[1:]], -_CONSTANTS[text[1:]])
    return (_CONSTANTS[text],)


def _result(text: str, operands: tuple[float, ...]) -> Allowed:
    if "x" not in text:
        return _constant(text)
    value = operands[int(text.strip("-|x")) - 1]
    value = abs(value) if "|" in text else value
    return (-value if text.startswith("-") else value,)


def cases(name: str) -> Iterator[tuple[tuple[float, ...], Allowed]]:
    """List operands and allowed results of a function of real numbers."""
    for line in (UNARY | BINARY)[name].split(";"):
        *kinds, result = line.split()
        for operands in product(*(KINDS[kind] for kind in kinds)):
            yield operands, _result(result, operands)


Parts = tuple[Allowed, Allowed]


def _part(text: str, trigonometric: float) -> Allowed:
    if text.endswith("*cis"):
        return (math.copysign(_CONSTANTS[text[:-4]], trigonometric),)
    return _constant(text)


def _flipped(part: Allowed) -> Allowed:
    return tuple(-value for value in part)  # type: ignore[operator]


def complex_cases(name: str) -> Iterator[tuple[tuple[float, float], Parts]]:
    """List operands' parts, and allowed parts of the result, of a function of complex numbers."""
    if name in TURNED:
        for (a, b), (real, imag) in complex_cases(TURNED[name]):
            yield (b, -a), (real, imag) if name == "cos" else (imag, _flipped(real))
        return
    for line in COMPLEX[name].split(";"):
        *kinds, real, imag = line.split()
        for a, b in product(*(KINDS[kind] for kind in kinds)):
            cosine, sine = (math.cos(b), math.sin(b)) if math.isfinite(b) else (1.0, 1.0)
            parts = _part(real, cosine), _part(imag, sine)
            if name == "sign":
                yield (a, b), parts
            elif math.copysign(1, b) > 0:
                yield from _symmetric(name, (a, b), parts)


def _symmetric(
    name: str, operand: tuple[float, float], parts: Parts
) -> Iterator[tuple[tuple[float, float], Parts]]:
    a, b = operand
    real, imag = parts
    yield (a, b), (real, imag)
    yield (a, -b), (real, _flipped(imag))
    if name in ODD:
        yield (-a, -b), (_flipped(real), _flipped(imag))
        yield (-a, b), (_flipped(real), imag)
    elif name in EVEN:
        yield (-a, -b), (real, imag)
        yield (-a, b), (real, _flipped(imag))
