"""Functions of numbers on bool: NumPy's results where it has one, its refusal elsewhere."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits
from fklarray_codegen.ops import OPS, Op

pytestmark = pytest.mark.usefixtures("device")

A = np.array([True, True, False, False] * 9)
B = np.array([True, False, True, False] * 9)
# NumPy rounds bool to float16, as it takes float16 for functions of floating-point numbers.
OTHERWISE = {"round"}
NUMERIC = [
    op for op in OPS.values() if not op.accepts.endswith("floating-point") and op.name != "where"
]


@pytest.mark.parametrize("mode", ["sync", "off"])
@pytest.mark.parametrize("op", [op for op in NUMERIC if op.name not in OTHERWISE], ids=str)
def test_functions_do_what_numpy_does(op: Op, mode: str) -> None:
    values = [A, B][: op.arity]
    arrays = [xp.asarray(value) for value in values]
    try:
        with np.errstate(all="ignore"):
            wanted = getattr(np, op.name)(*values)
    except TypeError:
        with pytest.raises(TypeError, match=op.name):
            getattr(xp, op.name)(*arrays)
        return
    with xp.config.override(compile=mode):
        assert_same_bits(np.asarray(getattr(xp, op.name)(*arrays)), wanted)


def test_rounding_keeps_bool() -> None:
    assert_same_bits(np.asarray(xp.round(xp.asarray(A))), A)


@pytest.mark.parametrize(
    "function",
    [
        operator.add, operator.mul, operator.floordiv, operator.mod, operator.pow, operator.lshift,
        operator.rshift, operator.and_, operator.or_, operator.xor, operator.truediv, operator.lt,
        operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    ],
)  # fmt: skip
def test_operators_do_what_numpy_does(function: Callable[[Any, Any], Any]) -> None:
    x = xp.asarray(A)
    for other in (B, True, False, np.True_, 2, 1.5):
        if function in (operator.and_, operator.or_, operator.xor) and isinstance(other, float):
            continue
        ours = xp.asarray(other) if isinstance(other, np.ndarray) else other
        if function in (operator.lshift, operator.rshift) and isinstance(other, float):
            with pytest.raises(TypeError, match="float64"):
                function(x, ours)
            continue
        # NumPy's operator makes int8 of a square, its function int64 as of other powers.
        numpys = np.power if function is operator.pow else function
        with np.errstate(all="ignore"):
            assert_same_bits(np.asarray(function(x, ours)), numpys(A, other))
            assert_same_bits(np.asarray(function(ours, x)), numpys(other, A))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x - x, "subtract"),
        (lambda x: x - True, "subtract"),
        (lambda x: True - x, "subtract"),
        (operator.neg, "negative"),
        (operator.pos, "positive"),
        (lambda x: x & 1.5, "bitwise_and"),
    ],
)
def test_operators_refuse_what_numpy_refuses(function: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(TypeError):
        function(A)
    with pytest.raises(TypeError, match=name):
        function(xp.asarray(A))


def test_in_place_operators() -> None:
    x, values = xp.asarray(A), A.copy()
    x += xp.asarray(B)
    values += B
    x *= True
    assert_same_bits(np.asarray(x), values)
    for change in (operator.ifloordiv, operator.imod, operator.ipow, operator.ilshift):
        with pytest.raises(TypeError):
            change(A.copy(), B)
        with pytest.raises(TypeError, match="int8"):
            change(x, xp.asarray(B))
    assert_same_bits(np.asarray(x), values)


def test_numbers_and_fused_expressions() -> None:
    x = xp.asarray(A)
    got = [x + x * xp.asarray(B), abs(x) + 1, (x + True) * 2.5]
    wanted = [A + A * B, abs(A) + 1, (A + True) * 2.5]
    for ours, theirs in zip(got, wanted, strict=True):
        assert_same_bits(np.asarray(ours), theirs)
