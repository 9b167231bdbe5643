"""Stages, run in plain Python over NumPy's arrays, compute what the expression says."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fklarray as xp
from fklarray.fusion import Fused, fuse
from fklarray.placement import view_of
from fklarray.recording import Stream, combine_outputs
from fklarray_codegen import graph
from fklarray_codegen.dtypes import DTYPES
from fklarray_codegen.graph import STREAMS, apply, check_graph, reduce
from fklarray_codegen.layout import contiguous_strides
from fklarray_codegen.ops import OPS, REDUCTIONS, Reduction, reduced_dtype
from fklarray_codegen.staging import Plan, plan_stages
from fklarray_codegen.walk import Rows, walk

F64, BOOL = DTYPES["float64"], DTYPES["bool"]


def _fused(*arrays: xp.Array) -> Fused:
    states = tuple(array._state for array in arrays)
    state = states[0] if len(states) == 1 else combine_outputs(states)
    fused = fuse(*state, arrays[0].shape)
    assert fused is not None
    return fused


def _plan(fused: Fused, *, keeps: bool) -> Plan:
    pattern = fused.pattern
    rows = pattern.rows
    constant = {n for n, s in enumerate(pattern.strides) if not any(s[rows.first : rows.stop])}
    return plan_stages(pattern.root, frozenset(constant), keeps=keeps)


def _run(fused: Fused, plan: Plan) -> list[Any]:
    """Run the stages one after the other; values of rows keep the rows' axis, with one element."""
    axis = fused.pattern.rows.first
    memory: list[Any] = []
    for leaf, node, strides in zip(fused.leaves, plan.leaves, fused.pattern.strides, strict=True):
        if isinstance(leaf, Stream):
            value: Any = view_of(leaf.moved(leaf.value, strides), node.dtype, fused.pattern.shape)
        else:
            value = leaf.value
        memory.append(value)
    memory += [None] * (len(plan.row_values) + len(plan.element_results))
    for stage in plan.stages:
        registers: list[Any] = []
        for step in stage.steps:
            if step.leaf >= 0:
                value = memory[step.leaf]
                assert value is not None, "loaded before it is stored"
            else:
                operands = [registers[operand] for operand in step.operands]
                value = getattr(np, step.node.op.name)(*operands)  # type: ignore[union-attr]
            registers.append(value)
        for register, place in stage.keeps:
            memory[place] = np.broadcast_to(registers[register], fused.pattern.shape)
        for number, (register, place) in enumerate(stage.ends):
            value = registers[register]
            if stage.reductions:
                whole = np.broadcast_to(value, fused.pattern.shape)
                function = getattr(np, stage.reductions[number].name)
                value = function(whole, axis=axis, keepdims=True)
            memory[place] = value
    first = len(plan.leaves)
    return [
        memory[first + number + (0 if is_row else len(plan.row_values))]
        for is_row, number in plan.results
    ]


REDUCED = st.sampled_from(["sum", "max", "min"])
JOINED = st.sampled_from(["add", "subtract", "maximum"])


@st.composite
def _programs(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Draw a program: each step reduces an earlier value, or joins two of them."""
    count = draw(st.integers(1, 8))
    return [
        (draw(st.one_of(REDUCED, JOINED, st.just("exp"))), draw(st.integers(0, i + 1)),
         draw(st.integers(0, i + 1)))
        for i in range(count)
    ]  # fmt: skip


def _values(program: list[tuple[str, int, int]], m: Any, x: Any, y: Any) -> list[Any]:
    values = [x, y]
    for name, first, second in program:
        if name == "exp":
            values.append(m.exp(m.minimum(values[first], 1.0)))
        elif name in ("sum", "max", "min"):
            values.append(getattr(m, name)(values[first], axis=1, keepdims=True))
        else:
            values.append(getattr(m, name)(values[first], values[second]))
    return values


@given(program=_programs(), keeps=st.booleans())
def test_stages_compute_what_the_expression_says(
    program: list[tuple[str, int, int]], keeps: bool
) -> None:
    n, k = np.linspace(-1, 1, 12).reshape(3, 4), np.linspace(0.5, 2, 4)
    x, y = xp.asarray(n), xp.asarray(k)
    y = xp.broadcast_to(y, (3, 4))
    result = _values(program, xp, x, y)[-1] + xp.sum(x, axis=1, keepdims=True)
    wanted = _values(program, np, n, np.broadcast_to(k, (3, 4)))[-1] + n.sum(1, keepdims=True)
    fused = fuse(*result._state, result.shape)
    if fused is None:
        return  # values of rows that are reduced once more, or more passes than one kernel takes
    check_graph(fused.pattern.root)
    (found,) = _run(fused, _plan(fused, keeps=keeps))
    np.testing.assert_allclose(np.broadcast_to(found, wanted.shape), wanted, rtol=1e-12)


def test_what_takes_long_is_computed_once_and_kept() -> None:
    fused = _fused(xp.nn.softmax(xp.asarray(np.ones((3, 4))), axis=1))
    without, kept = (_plan(fused, keeps=keeps) for keeps in (False, True))
    exponentials = [
        sum(step.leaf < 0 and step.node.op is OPS["exp"] for step in stage.steps)
        for plan in (without, kept)
        for stage in plan.stages
    ]
    assert exponentials == [0, 1, 1, 0, 1, 0]
    assert [bool(stage.keeps) for stage in kept.stages] == [False, True, False]


def test_what_follows_for_the_rows_is_computed_once_per_row() -> None:
    x = xp.asarray(np.ones((3, 4)))
    plan = _plan(_fused(x / xp.sqrt(xp.sum(x, axis=1, keepdims=True))), keeps=True)
    assert [stage.work for stage in plan.stages] == ["fold", "row", "elements"]
    assert [len(stage.steps) for stage in plan.stages] == [1, 2, 3]


def test_reductions_of_one_pass_share_it() -> None:
    x = xp.asarray(np.ones((3, 4)))
    plan = _plan(_fused(xp.max(x, axis=1) - xp.min(x, axis=1)), keeps=False)
    assert [stage.work for stage in plan.stages] == ["fold", "row"]
    assert [op.name for op in plan.stages[0].reductions] == ["max", "min"]


@pytest.mark.parametrize("count", [1, 5, 40])
def test_reductions_of_other_rows_do_not_fuse(count: int) -> None:
    x = xp.asarray(np.ones((count, 7)))
    both = xp.sum(x, axis=0, keepdims=True) + xp.sum(x, axis=1, keepdims=True)
    fused = fuse(*both._state, both.shape)
    assert fused is None or len(fused.memories) == 1
    assert np.all(np.asarray(both) == count + 7)


def test_graphs_of_reductions_are_checked() -> None:
    reduction = REDUCTIONS["any"]
    with pytest.raises(ValueError, match="elements of type float64"):
        check_graph(reduce(reduction, STREAMS[F64]))
    with pytest.raises(ValueError, match="not a row"):
        check_graph(reduce(Reduction("any", "boolean", "same"), STREAMS[BOOL]))
    node = apply(OPS["exp"], (reduce(REDUCTIONS["sum"], STREAMS[F64]),), ((0,),))
    check_graph(node)
    assert node.operations == 2
    assert reduced_dtype(REDUCTIONS["argmax"], F64) is DTYPES["int64"]
    wrong = graph.Node(REDUCTIONS["argmax"], F64, (STREAMS[F64],), ((0,),))
    with pytest.raises(ValueError, match="result of type float64"):
        check_graph(wrong)


SHAPES = [(3, 4), (2, 3, 4), (2, 1, 3, 4), (40, 70), (70, 40), (3, 40, 2), (1, 5), (5, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_walks_visit_every_element_of_its_row(shape: tuple[int, ...], order: str) -> None:
    for first, stop in itertools.combinations(range(len(shape) + 1), 2):
        rows = Rows(first, stop)
        strides = contiguous_strides(shape)
        if order == "F":
            strides = contiguous_strides(shape[::-1])[::-1]
        elif order == "strided":
            strides = tuple(3 * stride for stride in strides)
        kept = contiguous_strides(rows.kept(shape))
        own = kept[:first] + (0,) * (stop - first) + kept[first:]
        found = walk(shape, rows, [strides, own])
        if found is None:
            assert order == "F"
            assert stop - first > 1
            continue
        wanted = sorted(
            (
                sum(i * s for i, s in zip(place, strides, strict=True)),
                sum(i * s for i, s in zip(place, own, strict=True)),
            )
            for place in np.ndindex(*shape)
        )
        visited = sorted(
            (
                sum(i * s for i, s in zip(place, found.strides[0], strict=True)),
                sum(i * s for i, s in zip(place, found.strides[1], strict=True)),
            )
            for place in np.ndindex(*found.shape)
        )
        assert visited == wanted
        row = -1 if found.direction == "rows" else -2
        assert found.strides[1][row] == 0
        assert found.shape[row] == rows.length(shape)


def test_walks_choose_what_lies_together_in_memory() -> None:
    several = [(200, 1), (1, 0), (1, 0), (1, 0)]
    for shape, streams, direction in (
        ((100, 200), [(200, 1), (1, 0)], "rows"),
        ((100, 200), several, "rows"),
        ((100, 200), [(1, 100), (1, 0)], "columns"),
        ((1000, 5), [(5, 1), (1, 0)], "columns"),
        ((4, 5), [(5, 1), (1, 0)], "rows"),
    ):
        found = walk(shape, Rows(1, 2), streams)
        assert found is not None
        assert found.direction == direction


@pytest.mark.parametrize(
    ("shape", "rows", "is_narrow"),
    [
        ((255, 1 << 16), Rows(1, 2), True),
        ((256, 1 << 16), Rows(1, 2), False),
        ((255, (1 << 16) - 1), Rows(1, 2), False),
        ((5, 7, 1 << 20), Rows(0, 3), True),
        ((1024, 1024), Rows(0, 1), True),
        ((1023, 2048), Rows(0, 1), False),
        ((1024, 1 << 17), Rows(0, 1), False),
        ((64, 1024, 1 << 10), Rows(1, 2), True),
        ((128, 1024, 1 << 10), Rows(1, 2), False),
    ],
)
def test_few_long_rows_and_columns_are_narrow(
    shape: tuple[int, ...], rows: Rows, is_narrow: bool
) -> None:
    kept = contiguous_strides(rows.kept(shape))
    own = kept[: rows.first] + (0,) * (rows.stop - rows.first) + kept[rows.first :]
    found = walk(shape, rows, [contiguous_strides(shape), own])
    assert found is not None
    assert found.is_narrow == is_narrow
