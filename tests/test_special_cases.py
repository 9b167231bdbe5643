"""The standard's special cases hold in kernels, wherever an element lies, and without them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fklarray as xp
from fklarray_codegen.dtypes import DTYPES
from samples import Values
from special_cases import BINARY, COMPLEX, TURNED, UNARY, Allowed, cases, complex_cases

pytestmark = pytest.mark.usefixtures("device")

MODES = ["sync", "off"]
REALS = ["float32", "float64"]


def _is_allowed(value: float, allowed: Allowed) -> bool:
    if isinstance(allowed, str):
        return not math.isnan(value) and (math.copysign(1, value) > 0) == (allowed == "+")
    return any(_is_same(value, wanted) for wanted in allowed)


def _is_same(value: float, wanted: float) -> bool:
    if math.isnan(wanted) or wanted == 0 or math.isinf(wanted):
        same_sign = math.copysign(1, value) == math.copysign(1, wanted)
        return math.isnan(value) if math.isnan(wanted) else value == wanted and same_sign
    return math.isclose(value, wanted, rel_tol=1e-6)


def _computed(name: str, *operands: Values) -> list[Values]:
    """Compute each element in the middle of a vector, at its end, and alone in a strided one."""
    size = operands[0].size
    # The operands twice in one vector, of a length that no register divides.
    places = [*range(size), *range(size)] + [0] * (1 - size % 2)
    arrays = [xp.asarray(value[places]) for value in operands]
    long = np.asarray(getattr(xp, name)(*arrays))
    short = [xp.asarray(np.repeat(value, 3).reshape(size, 3))[:, ::2] for value in operands]
    strided = np.asarray(getattr(xp, name)(*short))
    return [long[:size], long[size : 2 * size], strided[:, 0], strided[:, 1]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_real_numbers(name: str, dtype: str, mode: str) -> None:
    rows = list(cases(name))
    operands = [np.array(column, dtype) for column in zip(*(row[0] for row in rows), strict=True)]
    with xp.config.override(compile=mode):
        results = _computed(name, *operands)
    for result in results:
        wrong = [
            (*(float(value[i]) for value in operands), float(result[i]), allowed)
            for i, (_, allowed) in enumerate(rows)
            if not _is_allowed(float(result[i]), _rounded(allowed, dtype))
        ]
        assert not wrong


def _rounded(allowed: Allowed, dtype: str) -> Allowed:
    if isinstance(allowed, str):
        return allowed
    return tuple(float(np.dtype(dtype).type(value)) for value in allowed)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [*COMPLEX, *TURNED])
def test_complex_numbers(name: str, dtype: str, mode: str) -> None:
    rows = list(complex_cases(name))
    part = f"float{DTYPES[dtype].bits // 2}"
    operands = np.array([row[0] for row in rows], part).view(dtype)[:, 0]
    with xp.config.override(compile=mode):
        results = _computed(name, operands)
    for result in results:
        wrong = [
            (complex(operands[i]), complex(result[i]), parts)
            for i, (_, parts) in enumerate(rows)
            if not _is_allowed(float(result[i].real), parts[0])
            or not _is_allowed(float(result[i].imag), parts[1])
        ]
        assert not wrong
