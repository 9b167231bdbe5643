"""What is computed: every case once as array code, and once as numexpr text."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = tuple[npt.NDArray[Any], ...]

ELEMENTS = (1_000, 10_000, 100_000, 16_000_000)


@dataclass(frozen=True)
class Case:
    """One computation.

    Attributes
    ----------
    name : str
        Identifier in the results.
    formula : str
        What is computed, for the reader.
    inputs : callable
        Makes the inputs for a number of elements from a random generator.
    compute : callable
        The computation in a namespace (``exp``, ``where``, ``astype``, ...) on arrays of it.
    numexpr : str
        The same for numexpr, on the inputs named ``a``, ``b``, ``c``, ``d``. A number with a point
        is a float32, as in `compute`. Empty for what numexpr cannot say.
    exact : bool
        Whether fklarray must equal NumPy bit by bit.
    """

    name: str
    formula: str
    inputs: Callable[[int, np.random.Generator], Arrays]
    compute: Callable[..., Any]
    numexpr: str
    exact: bool = True


def _floats(rng: np.random.Generator, *shape: int) -> npt.NDArray[Any]:
    return rng.random(shape, dtype=np.float32) * np.float32(4) - np.float32(2)


def _square(elements: int) -> tuple[int, int]:
    rows = max(row for row in range(1, math.isqrt(elements) + 1) if elements % row == 0)
    return rows, elements // rows


def _one(elements: int, rng: np.random.Generator) -> Arrays:
    return (_floats(rng, elements),)


def _two(elements: int, rng: np.random.Generator) -> Arrays:
    return _floats(rng, elements), _floats(rng, elements)


def _matrices_and_row(elements: int, rng: np.random.Generator) -> Arrays:
    rows, columns = _square(elements)
    return _floats(rng, rows, columns), _floats(rng, columns), _floats(rng, rows, columns)


def _four_dtypes(elements: int, rng: np.random.Generator) -> Arrays:
    return (
        rng.integers(0, 256, elements, dtype=np.uint8),
        rng.integers(-1000, 1000, elements, dtype=np.int32),
        _floats(rng, elements),
        rng.random(elements) < 0.5,
    )


def _image(elements: int, rng: np.random.Generator) -> Arrays:
    # Proportions of about 3 to 4 and a whole number of pixels, so slightly fewer elements.
    height = math.isqrt(elements // 4)
    width = elements // (3 * height)
    return (
        rng.integers(0, 256, (height, width, 3), dtype=np.uint8),
        np.array([0.02, 0.03, 0.025], np.float32),
        np.array([0.95, 0.90, 0.92], np.float32),
    )


def _six_ops(m: Any, x: Any) -> Any:
    return ((x * 1.5 + 2.5 - 1.5) * 2.5 + 1.5) / 2.5


def _exp_sin(m: Any, x: Any) -> Any:
    return m.exp(m.sin(x))


def _row(m: Any, a: Any, b: Any, c: Any) -> Any:
    return a * b + m.exp(2.0 * c)


def _where(m: Any, x: Any, y: Any) -> Any:
    return m.where(x > y, x, 2.0 * y)


def _mixed(m: Any, u: Any, i: Any, f: Any, chosen: Any) -> Any:
    return m.where(chosen, m.astype(u, m.float32) * 0.5 + f, m.astype(i, m.float32) - f)


def _filmic(m: Any, image: Any, black: Any, span: Any) -> Any:
    v = (m.astype(image, m.float32) / 255.0 - black) / span
    v = v * 1.6
    v = (v * (v * 2.51 + 0.03)) / (v * (v * 2.43 + 0.59) + 0.14)
    return m.astype(m.clip(v, 0.0, 1.0) * 255.0 + 0.5, m.uint8)


def _sum(m: Any, x: Any) -> Any:
    return m.sum(x)


def _sum_columns(m: Any, x: Any) -> Any:
    return m.sum(x, axis=0)


def _sum_exp(m: Any, x: Any) -> Any:
    return m.sum(m.exp(x), axis=1)


def _normalise(m: Any, x: Any) -> Any:
    mean = m.mean(x, axis=1, keepdims=True)
    return (x - mean) / (m.std(x, axis=1, keepdims=True) + 1e-5)


def _softmax(m: Any, x: Any) -> Any:
    if m is not np:
        return m.softmax(x)
    exponential = np.exp(x - np.max(x, axis=1, keepdims=True))
    return exponential / np.sum(exponential, axis=1, keepdims=True)


def _matrix(elements: int, rng: np.random.Generator) -> Arrays:
    return (_floats(rng, *_square(elements)),)


_V = "((a / 255.0 - b) / c * 1.6)"
_TONE = f"(({_V} * ({_V} * 2.51 + 0.03)) / ({_V} * ({_V} * 2.43 + 0.59) + 0.14))"

CASES = (
    Case(
        "six_ops",
        "((x*1.5+2.5-1.5)*2.5+1.5)/2.5, float32",
        _one,
        _six_ops,
        "((a*1.5+2.5-1.5)*2.5+1.5)/2.5",
    ),
    Case("exp_sin", "exp(sin(x)), float32", _one, _exp_sin, "exp(sin(a))", exact=False),
    Case(
        "row",
        "a*b + exp(2c), float32, b a row of the matrices a and c",
        _matrices_and_row,
        _row,
        "a*b + exp(2.0*c)",
        exact=False,
    ),
    Case("where", "where(x > y, x, 2y), float32", _two, _where, "where(a > b, a, 2.0*b)"),
    Case(
        "mixed",
        "where(b, float32(u)*0.5 + f, float32(i) - f), u uint8, i int32, f float32, b bool",
        _four_dtypes,
        _mixed,
        "where(d, a*0.5 + c, b - c)",
    ),
    Case(
        "image",
        "uint8 HWC image: to float32, normalise each channel, exposure, filmic curve, clip, "
        "to uint8",
        _image,
        _filmic,
        f"where({_TONE} < 0.0, 0.0, where({_TONE} > 1.0, 1.0, {_TONE})) * 255.0 + 0.5",
    ),
    Case("sum", "sum(x), float32", _one, _sum, "sum(a)", exact=False),
    Case("columns", "sum(x, axis=0), float32", _matrix, _sum_columns, "sum(a, axis=0)", False),
    Case(
        "sum_exp", "sum(exp(x), axis=1), float32", _matrix, _sum_exp, "sum(exp(a), axis=1)", False
    ),
    Case(
        "normalise",
        "(x - mean) / (std + 1e-5) along rows, float32",
        _matrix,
        _normalise,
        "",
        exact=False,
    ),
    Case("softmax", "softmax along rows, float32", _matrix, _softmax, "", exact=False),
)


def differs(case: Case, library: str, result: npt.NDArray[Any], expected: npt.NDArray[Any]) -> str:
    """Compare a library's result with NumPy's.

    Returns
    -------
    str
        What is wrong with it, or nothing. Libraries may round differently in the last places
        (uint8: by one step); fklarray may not where the case is exact.
    """
    if result.dtype != expected.dtype or result.shape != expected.shape:
        return f"{result.dtype}{result.shape} instead of {expected.dtype}{expected.shape}"
    wrong = result != expected
    if not wrong.any():
        return ""
    if case.exact and library == "fklarray":
        return f"{np.count_nonzero(wrong)} elements are not bit-equal"
    largest = float(np.abs(result.astype(np.float64) - expected.astype(np.float64)).max())
    if result.dtype == np.uint8:
        return "" if largest <= 1 else f"differs by up to {largest}"
    # Sums of many numbers: NumPy's own error along columns grows with their length.
    scale = 1e-5 * max(1.0, float(np.abs(expected).max(initial=0)))
    close = np.allclose(result, expected, rtol=1e-5, atol=scale)
    return "" if close else f"differs by up to {largest}"
