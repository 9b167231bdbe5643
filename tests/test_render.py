"""The emitted text, signatures, and the graphs they come from."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import fklarray as xp
from fklarray_codegen import graph
from fklarray_codegen.dtypes import DTYPES
from fklarray_codegen.graph import (
    CAST,
    MAX_OPERATIONS,
    SCALARS,
    STREAMS,
    Node,
    apply,
    cast,
    check_graph,
    linearise,
    outputs,
)
from fklarray_codegen.ops import OPS
from fklarray_codegen.render import Program, compose
from fklarray_codegen.text import allocate_slots
from golden_graphs import ALL, FOLDER, GRAPHS, source

F32, F64, BOOL, INT = (DTYPES[name] for name in ("float32", "float64", "bool", "int32"))


# -------------------------------------------------------------------------------- golden texts


@pytest.mark.parametrize("name", ALL)
def test_golden_source(name: str, update_golden: bool) -> None:
    path = FOLDER / f"{name}.cpp"
    if update_golden:
        path.write_text(source(name), "utf-8")
    assert source(name) == path.read_text("utf-8"), "see the difference; then --update-golden"


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.cpp" for name in ALL}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_text_has_the_four_steps_in_order(name: str) -> None:
    text = source(name)
    entry = text.index("int fkl_entry(const void** params, void* stream)")
    places = [text.index(step) for step in ("// 1.", "// 2.", "// 3.", "fk::executeOperations<")]
    assert [entry, *places] == sorted([entry, *places])
    assert text.count("reinterpret_cast<const ") == text.count("params[")
    assert "fk::TransformDPP" in text
    assert text.index("#include <fused_kernel/fused_kernel.h>") < entry


# ---------------------------------------------------------------------------------- signatures


def _x(*shape: int, dtype: str = "float64") -> xp.Array:
    return xp.asarray(np.ones(shape, dtype))


def test_values_shapes_and_offsets_are_not_in_the_signature() -> None:
    a, b = _x(40, 50), _x(70, 90)
    pairs = [
        (a * 2.0, b * -0.5),
        (a + 1, a + 10**6),
        (a[1:, :40] * 2, b[:20, 3:] * 2),
        (a[0] - a[1], b[6] - b[3]),
        (a * float("nan"), a * 0.0),
        (a[:, ::2] / 3, b[:, ::-3] / 3),
        (xp.broadcast_to(a[:, :1], (40, 50)) - a, b[:, 5:6] - b),
    ]
    for first, second in pairs:
        assert xp.explain(first).signature == xp.explain(second).signature
        assert xp.explain(first).source == xp.explain(second).source


def test_everything_else_is_in_the_signature() -> None:
    a, b, f, row = _x(40, 90), _x(40, 90), _x(40, 90, dtype="float32"), _x(90)
    i = _x(40, 90, dtype="int64")
    t = a * 2
    different = [
        (a * a,), (a * b,), (a + b,), (b - a * 1,), (a * 2,), (2 * a,), (f * 2,), (i * 2,),
        (a * row,), (row * a,), (a[:, ::-1] * b,), (a * b[:, ::-1],), (a[:, :1] * b,),
        (xp.astype(a, xp.float32),), (xp.astype(a, xp.int32),), (f + b,), (a / 2,), (2 / a,),
        (t + t,), (t + a * 3,), (t, t + 1), (t + 1, t), (t + 1,), (xp.where(a > b, a, b),),
        (xp.where(a > b, b, a),), (xp.where(b > a, a, b),), (-a,), (abs(a),), (a.T * b.T,),
        (xp.reshape(a[::2, :80] * 1, (20, 80)),), (a[::2, :80, None] * row[:3],),
    ]  # fmt: skip
    seen: dict[str, list[int]] = {}
    for index, arrays in enumerate(different):
        seen.setdefault(xp.explain(*arrays).signature, []).append(index)
    # But a row is walked as a matrix is; the larger or the smaller of two, in either order.
    same = [group for group in seen.values() if len(group) > 1]
    assert same == [[1, 8, 9], [4, 29], [24, 25]]


def test_equal_sources_have_equal_signatures_and_the_reverse() -> None:
    a, f = _x(40, 90), _x(40, 90, dtype="float32")
    arrays = [a * 2, a * 3, 2 * a, f * 2, a[:, ::-1] * 2, a[:, ::3] * 2, a + 2, a * a, a[0] * 2]
    for x in arrays:
        for y in arrays:
            one, two = xp.explain(x), xp.explain(y)
            assert (one.source == two.source) == (one.signature == two.signature)


def test_explain_prints_well() -> None:
    a = _x(4, 5)
    explanation = xp.explain(a * 2 + 1, a * 2)
    text = str(explanation)
    assert "2 outputs" in text
    assert all(f"  {line}".rstrip() in text for line in explanation.graph.splitlines())
    with pytest.raises(ValueError, match="at least one"):
        xp.explain()
    with pytest.raises(ValueError, match=r"\(4, 5\).*\(5,\)|\(5,\).*\(4, 5\)"):
        xp.explain(a, a[0])


# ------------------------------------------------------------------------------------ programs


def _chain(length: int) -> Node:
    node = STREAMS[F32]
    for _ in range(length):
        node = apply(
            OPS["add"], (node, SCALARS[F32]), (tuple(range(len(node.leaves))), (len(node.leaves),))
        )
    return node


def test_slots_are_reused_after_their_last_reader() -> None:
    for length in (1, 5, 40):
        program = compose(_chain(length), 2, ["unit", "unit"])
        assert max(allocate_slots(program.steps, program.results)) == 1


@pytest.mark.parametrize("name", GRAPHS)
def test_slots_never_overwrite_what_is_still_read(name: str) -> None:
    arrays = GRAPHS[name]()
    from fklarray.recording import combine_outputs
    from fklarray.staged_plans import program_of

    states = tuple(array._state for array in arrays)
    state = states[0] if len(states) == 1 else combine_outputs(states)
    program = program_of(*state, arrays[0].shape)
    slots = allocate_slots(program.steps, program.results)
    holds: dict[int, int] = {}
    for register, step in enumerate(program.steps):
        assert [holds[slots[operand]] for operand in step.operands] == list(step.operands)
        holds[slots[register]] = register
    assert [holds[slots[result]] for result in program.results] == list(program.results)


def test_the_first_register_is_a_stream() -> None:
    scalar_first = apply(OPS["subtract"], (SCALARS[F64], STREAMS[F64]), ((0,), (1,)))
    program = compose(scalar_first, 2, ["unit", "unit"])
    assert [step.node.op for step in program.steps][:2] == ["stream", "scalar"]
    assert [step.leaf for step in program.steps] == [1, 0, -1]
    assert program.steps[2].operands == (1, 0)


def test_parameter_formats_fit_the_structures() -> None:
    node = apply(OPS["add"], (STREAMS[F32], SCALARS[F32]), ((0,), (1,)))
    for inner, longs in (("unit", 1), ("broadcast", 1), ("strided", 2)):
        program = compose(node, 2, [inner, "unit"])
        assert program.parameter_formats == ("3q", f"P{longs}q", "f", "P1q")
        assert [struct.calcsize(f"@{text}") for text in program.parameter_formats] == [
            24, 8 + 8 * longs, 4, 16,
        ]  # fmt: skip
    assert compose(STREAMS[F64], 1, ["unit", "unit"]).parameter_formats == ("2q", "P0q", "P0q")


# -------------------------------------------------------------------------------------- graphs


def test_equal_structures_are_one_object() -> None:
    x, y = _x(3), _x(5, 2)
    assert (x * 2 + x)._state[0] is (y * 3 + y)._state[0]
    assert (x * 2 + x)._state[0] is not (y * 3 + _x(5, 2))._state[0]
    assert cast(STREAMS[F64], F64) is STREAMS[F64]


def test_linearise_visits_each_value_once() -> None:
    node = STREAMS[F64]
    for _ in range(300):
        node = apply(OPS["add"], (node, node), ((0,), (0,)))
    steps = linearise(node)
    assert len(steps) == 301
    assert [step.operands for step in steps[1:]] == [(k, k) for k in range(300)]
    assert node.operations > MAX_OPERATIONS
    check_graph(node)


def test_linearise_tells_equal_structures_on_different_leaves_apart() -> None:
    square = apply(OPS["square"], (STREAMS[F64],), ((0,),))
    both = apply(OPS["add"], (square, square), ((0,), (1,)))
    twice = apply(OPS["add"], (square, square), ((0,), (0,)))
    assert len(linearise(both)) == 5
    assert len(linearise(twice)) == 3
    assert [step.leaf for step in linearise(both)] == [0, -1, 1, -1, -1]


def test_a_deep_chain_does_not_recurse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_OPERATIONS", 1 << 20)
    node = STREAMS[F32]
    for _ in range(20_000):
        node = apply(OPS["square"], (node,), ((0,),))
    assert len(linearise(node)) == node.operations + 1 == 20_001
    check_graph(node)


def test_outputs_come_last() -> None:
    square = apply(OPS["square"], (STREAMS[F64],), ((0,),))
    node = outputs((square, STREAMS[F64], square), ((0,), (0,), (1,)))
    program = compose(node, 1, ["unit"] * 5)
    assert program.results == (1, 0, 3)
    assert program.operations == 2
    check_graph(node)


ADD = OPS["add"]
TWO = ((0,), (1,))
ILLEGAL = [
    (Node(ADD, F32, (STREAMS[F32], STREAMS[F64]), TWO), "types"),
    (Node(ADD, F64, (STREAMS[F32], STREAMS[F32]), TWO), "result"),
    (Node(ADD, F32, (STREAMS[F32],), ((0,),)), "1 operands"),
    (Node(OPS["less"], F32, (STREAMS[F32], STREAMS[F32]), TWO), "result"),
    (Node(OPS["where"], F32, (STREAMS[F32],) * 3, ((0,), (1,), (2,))), "condition"),
    (
        Node(OPS["where"], F32, (STREAMS[BOOL], STREAMS[F32], STREAMS[INT]), ((0,), (1,), (2,))),
        "ty",
    ),
    (Node(CAST, F32, (STREAMS[F32], STREAMS[F32]), TWO), "cast"),
    (Node("sum", F32, (STREAMS[F32],), ((0,),)), "unknown"),
    (Node(OPS["abs"], F64, (STREAMS[DTYPES["complex64"]],), ((0,),)), "result"),
]


@pytest.mark.parametrize(("node", "text"), ILLEGAL)
def test_illegal_nodes_are_named(node: Node, text: str) -> None:
    with pytest.raises(ValueError, match=f"illegal node.*{text}"):
        check_graph(node)
    with pytest.raises(ValueError, match="illegal node"):
        check_graph(Node(CAST, INT, (node,), (tuple(range(len(node.leaves))),)))


def test_slots_that_do_not_fit_are_illegal() -> None:
    node = Node(ADD, F32, (STREAMS[F32], STREAMS[F32]), TWO)
    node.slots = ((0,), (7,))
    program = Program((), node.leaves, (), 1, ())
    assert program.operations == 0
    with pytest.raises((ValueError, IndexError)):
        check_graph(node)
