"""Values to compute on: per data type, the ones where mistakes hide and random ones."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.ops import ACCEPTED, OPS, Op

Values = np.ndarray[Any, np.dtype[Any]]

# Divisors, exponents and shifts of all sizes come before what random bits give.
_SMALL_INTEGERS = (0, 1, 2, 3, 5, 7, 8, 15, 31, 33, 63, 64, 65, 100, 127)


def accepted(op: Op) -> list[DType]:
    """List the standard's data types that a function of the standard takes as they are.

    Numbers of 16 bits and special functions have tests of their own.
    """
    if op.family == "special":
        return []
    return [row for row in DTYPES.values() if row.is_standard and row in ACCEPTED[op.accepts]]


def operations(row: DType, arity: int) -> list[Op]:
    """List the operations of one number of operands that take a data type as it is."""
    return [op for op in OPS.values() if op.arity == arity and row in accepted(op)]


@cache
def special(row: DType) -> Values:
    """Return a data type's extremes, zeros, neighbours of powers of two, and ties."""
    dtype = np.dtype(row.name)
    if row.kind == "bool":
        return np.array([False, True])
    if row.kind in ("signed", "unsigned"):
        info = np.iinfo(dtype)
        around = [0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1, 1 << row.bits - 2]
        if row.kind == "signed":
            around += [-1, -2, -3, -8]
        return np.array(around, dtype)
    if row.kind == "complex":
        parts = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 1e-3]
        return np.array([complex(re, im) for re, im in product(parts, parts)], dtype)
    info = ml_dtypes.finfo(dtype)
    whole = 2.0 ** (info.nmant + 1)
    positive = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, np.pi, 10.0, 100.25, 1e-5, 1e10]
    limits = map(float, (info.smallest_subnormal, info.tiny, info.eps, info.epsneg, info.max))
    subnormal, tiny, eps, epsneg, largest = limits
    positive += [subnormal, 37 * subnormal, tiny, eps, 1 - epsneg, 1 + eps, largest]
    positive += [whole - 1, whole + 2, whole / 2 - 0.5]
    positive += [np.inf]
    with np.errstate(over="ignore"):
        return np.array([*positive, *(-value for value in positive), np.nan]).astype(dtype)


def random(row: DType, size: int, seed: int) -> Values:
    """Return random values: of everyday size, and of any size."""
    draw = np.random.default_rng([seed, row.bits, size])
    dtype = np.dtype(row.name)
    if row.kind == "bool":
        return draw.integers(0, 2, size).astype(dtype)
    if row.kind in ("signed", "unsigned"):
        info = np.iinfo(dtype)
        anything = draw.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
        small = draw.choice(np.array(_SMALL_INTEGERS), size).astype(dtype)
        return np.where(draw.integers(0, 2, size) == 0, anything, small)
    if row.kind == "complex":
        real = random(DTYPES[f"float{row.bits // 2}"], size, seed)
        imag = random(DTYPES[f"float{row.bits // 2}"], size, seed + 1000)
        return (real + 1j * imag).astype(dtype)
    everyday = draw.uniform(-4, 4, size)
    wide = draw.choice([-1.0, 1.0], size) * np.exp2(draw.uniform(-40, 40, size))
    with np.errstate(over="ignore"):
        return np.where(draw.integers(0, 3, size) == 0, wide, everyday).astype(dtype)


@cache
def operands(row: DType, arity: int) -> tuple[Values, ...]:
    """Return operands of all special values, each with each, and many random ones."""
    values = special(row)
    every = list(product(values, repeat=arity))
    return tuple(
        np.concatenate(
            [
                np.array([each[place] for each in every], values.dtype),
                random(row, 1500, 11 + place),
            ]
        )
        for place in range(arity)
    )
