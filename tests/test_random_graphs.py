"""Random expressions equal NumPy's results, operation by operation, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fklarray as xp
from accuracy import assert_same_bits
from fklarray_codegen.dtypes import DTYPES
from fklarray_codegen.graph import check_graph
from samples import random

# Only operations that are NumPy's bits on every data type they take here.
FLOAT = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "copysign"]
INTEGER = ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_xor"]
COMPARE = ["less", "greater_equal", "equal", "not_equal"]
UNARY = {
    "f": ["negative", "abs", "floor", "trunc", "sqrt", "sign", "round", "square"],
    "i": ["negative", "abs", "bitwise_invert", "sign", "square"],
    "b": ["logical_not"],
}
DTYPE_NAMES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
EXTENTS = st.integers(0, 5)


@dataclass
class Pair:
    """The same array twice: NumPy's values, and what this library recorded."""

    numpy: np.ndarray
    ours: xp.Array


@dataclass
class Program:
    """Draws an expression step by step and runs each step in both libraries."""

    draw: Any
    device: str
    shape: tuple[int, ...]
    pairs: list[Pair] = field(default_factory=list)

    def leaf(self) -> Pair:
        dtype = self.draw(st.sampled_from(DTYPE_NAMES))
        shape = tuple(1 if self.draw(st.integers(0, 3)) == 0 else n for n in self.shape)
        shape = shape[self.draw(st.integers(0, len(shape))) :]
        size = int(np.prod(shape))
        values = random(DTYPES[dtype], size, self.draw(st.integers(0, 50))).reshape(shape)
        return Pair(values, xp.asarray(values, device=self.device))

    def pick(self, kinds: str = "bif") -> Pair | None:
        fitting = [pair for pair in self.pairs if _kind(pair.numpy) in kinds]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def step(self) -> Pair | None:
        return getattr(self, "_" + self.draw(st.sampled_from(STEPS)))()

    def _unary(self) -> Pair | None:
        pair = self.pick()
        assert pair is not None
        name = self.draw(st.sampled_from(UNARY[_kind(pair.numpy)]))
        return Pair(_numpy(name, pair.numpy), getattr(xp, name)(pair.ours))

    def _binary(self) -> Pair | None:
        a = self.pick("if")
        b = self.pick("if")
        if a is None or b is None or np.result_type(a.numpy, b.numpy).kind not in "iuf":
            return None
        kind = _kind(np.empty(0, np.result_type(a.numpy, b.numpy)))
        name = self.draw(st.sampled_from((FLOAT if kind == "f" else INTEGER) + COMPARE))
        if np.result_type(a.numpy, b.numpy) != np.promote_types(a.numpy.dtype, b.numpy.dtype):
            return None
        return Pair(_numpy(name, a.numpy, b.numpy), getattr(xp, name)(a.ours, b.ours))

    def _scalar(self) -> Pair | None:
        pair = self.pick("if")
        if pair is None:
            return None
        kind = _kind(pair.numpy)
        value: Any = self.draw(st.integers(0, 100))
        if kind == "f" and self.draw(st.booleans()):
            value = self.draw(st.sampled_from([0.1, -2.5, 1e10, float("inf"), -0.0]))
        name = self.draw(st.sampled_from(["add", "subtract", "multiply", "minimum", "less"]))
        if self.draw(st.booleans()):
            return Pair(_numpy(name, pair.numpy, value), getattr(xp, name)(pair.ours, value))
        return Pair(_numpy(name, value, pair.numpy), getattr(xp, name)(value, pair.ours))

    def _cast(self) -> Pair | None:
        pair = self.pick()
        assert pair is not None
        wider = [n for n in DTYPE_NAMES if np.can_cast(pair.numpy.dtype, n)]
        target = self.draw(st.sampled_from([*wider, "bool"]))
        return Pair(pair.numpy.astype(target), xp.astype(pair.ours, target))

    def _where(self) -> Pair | None:
        mask, a, b = self.pick("b"), self.pick(), self.pick()
        if mask is None or a is None or b is None:
            return None
        return Pair(np.where(mask.numpy, a.numpy, b.numpy), xp.where(mask.ours, a.ours, b.ours))

    def _view(self) -> Pair | None:
        """Change the order of elements but not the shape, so that pairs keep fitting."""
        pair = self.pick()
        assert pair is not None
        a, x = pair.numpy, pair.ours
        kind = self.draw(st.integers(0, 3))
        if kind == 0 and a.ndim:
            axis = self.draw(st.integers(0, a.ndim - 1))
            return Pair(np.flip(a, axis), xp.flip(x, axis=axis))
        if kind == 1:
            return Pair(np.broadcast_to(a, self.shape), xp.broadcast_to(x, self.shape))
        if kind == 2 and a.ndim == 2 and a.shape[0] == a.shape[1]:
            return Pair(a.T, x.T)
        if a.ndim and a.shape[0]:
            return Pair(a[:1], x[:1])
        return Pair(a.reshape(a.shape[::-1]).reshape(a.shape), _twice_reshaped(x))


STEPS = ["unary", "unary", "binary", "binary", "binary", "scalar", "cast", "where", "view"]


def _twice_reshaped(x: xp.Array) -> xp.Array:
    return xp.reshape(xp.reshape(x, x.shape[::-1]), x.shape)


def _kind(array: np.ndarray) -> str:
    return {"u": "i"}.get(array.dtype.kind, array.dtype.kind)


def _numpy(name: str, *values: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = np.asarray(getattr(np, name)(*values))
        if result.dtype == np.float16 and name in ("maximum", "minimum"):
            # Of equal zeros NumPy's loops for float16 alone take the first.
            single = [np.asarray(value, np.float16).astype(np.float32) for value in values]
            return np.asarray(getattr(np, name)(*single)).astype(np.float16)
        return result


def _run(data: Any, device: str, shape: tuple[int, ...], steps: int) -> Program:
    program = Program(data.draw, device, shape)
    for _ in range(3):
        program.pairs.append(program.leaf())
    for _ in range(steps):
        pair = program.step()
        if pair is not None:
            check_graph(pair.ours._state[0])
            assert pair.ours.shape == pair.numpy.shape
            assert pair.ours.dtype == pair.numpy.dtype
            program.pairs.append(pair)
    return program


@settings(max_examples=250)
@given(data=st.data(), shape=st.lists(EXTENTS, max_size=3), steps=st.integers(1, 12))
def test_operation_by_operation(device: str, data, shape: list[int], steps: int) -> None:
    with xp.config.override(compile="off"):
        program = _run(data, device, tuple(shape), steps)
        for pair in reversed(program.pairs):
            assert_same_bits(np.asarray(pair.ours), pair.numpy)


@settings(max_examples=30)
@given(data=st.data(), shape=st.lists(EXTENTS, min_size=1, max_size=3), steps=st.integers(6, 12))
def test_compiled(device: str, data, shape: list[int], steps: int) -> None:
    """Only the last result is asked for: the longest chain, in one kernel."""
    program = _run(data, device, tuple(shape), steps)
    last = program.pairs[-1]
    assert_same_bits(np.asarray(last.ours), last.numpy)


@settings(max_examples=8)
@given(data=st.data(), steps=st.integers(4, 10))
def test_materialized_together(device: str, data, steps: int) -> None:
    program = _run(data, device, (3, 4), steps)
    again = [xp.positive(p.ours) if p.numpy.dtype.kind != "b" else ~~p.ours for p in program.pairs]
    xp.materialize(*(pair.ours for pair in program.pairs))
    for pair, separate in zip(program.pairs, again, strict=True):
        assert_same_bits(np.asarray(pair.ours), pair.numpy)
        del separate


# ------------------------------------------------------- one structure, any shapes and strides


@st.composite
def _views(draw: Any, shape: tuple[int, ...]) -> Any:
    """Draw how an operand of a shape lies in memory: broadcast, strided, reversed, permuted."""
    kinds = [draw(st.sampled_from(["all", "one", "step", "back"])) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    memory = [{"one": 1, "step": 3 * n, "all": n, "back": n}[k] for k, n in zip(kinds, shape)]  # noqa: B905
    steps = [{"one": 1, "step": 3, "all": 1, "back": -1}[k] for k in kinds]

    def view(array: Any, n: Any) -> Any:
        back = [0] * len(shape)
        for place, axis in enumerate(order):
            back[axis] = place
        array = n.permute_dims(array, tuple(back))
        return array[tuple(slice(None, None, step) for step in steps)]

    return tuple(memory[axis] for axis in order), view


@settings(max_examples=250)
@given(data=st.data())
def test_one_structure_on_any_strides(device: str, data) -> None:
    extents = st.sampled_from([0, 1, 2, 3, 7, 8, 9, 20, 33, 70])
    shape = tuple(data.draw(st.lists(extents, max_size=3)))
    plain, arrays = [], []
    for seed in range(2):
        memory, view = data.draw(_views(shape))
        values = random(DTYPES["float64"], int(np.prod(memory)), seed).reshape(memory)
        plain.append(view(values, np))
        arrays.append(view(xp.asarray(values, device=device), xp))
    (a, b), (x, y) = plain, arrays
    assert_same_bits(
        np.asarray(xp.where(x > y, x / 3, y) * 2 - x), np.where(a > b, a / 3, b) * 2 - a
    )


@pytest.mark.parametrize("mode", ["sync", "off"])
@settings(max_examples=25)
@example(shape=[])
@example(shape=[0, 4])
@example(shape=[1, 1])
@given(shape=st.lists(EXTENTS, max_size=4))
def test_both_ways_to_evaluate_agree(device: str, mode: str, shape: list[int]) -> None:
    values = random(DTYPES["int32"], int(np.prod(shape)), 3).reshape(shape)
    x = xp.asarray(values, device=device)
    with xp.config.override(compile=mode), np.errstate(all="ignore"):
        got = xp.astype((x * x - 7) // 3, xp.float32) / xp.astype(x, xp.float32)
        wanted = ((values * values - 7) // 3).astype("f4") / values.astype("f4")
        assert_same_bits(np.asarray(got), np.asarray(wanted))
