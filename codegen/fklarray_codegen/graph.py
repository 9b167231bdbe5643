"""Recorded expressions as immutable, hash-consed nodes.

A node is the *structure* of an expression: which operations, on which data types, in which order.
It does not know arrays, values or shapes. What it computes on are its *leaves*, numbered from 0:
streams (arrays) and scalars. The owner of an expression keeps the node beside a tuple of leaf
objects of its own; ``inputs[k]``'s leaf ``i`` is the node's leaf ``slots[k][i]``. So ``a * a`` has
one leaf and ``a * b`` has two, whatever the arrays are, and equal structures are the same object.

A leaf that is, or stands for, an array has a *place*: the name of the device that it is on. It is
part of the structure, so that whatever is found by structure is found for its device; the code of a
kernel does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.ops import (
    ACCEPTED,
    OPS,
    REDUCTIONS,
    Op,
    Reduction,
    reduced_dtype,
    result_dtype,
)

__all__ = [
    "CAST",
    "HOST",
    "MAX_LEAVES",
    "MAX_OPERATIONS",
    "SCALARS",
    "STREAMS",
    "Instruction",
    "Node",
    "Operation",
    "apply",
    "cast",
    "check_graph",
    "common_place",
    "leaf_node",
    "linearise",
    "outputs",
    "reduce",
    "rewrite",
]

# Longest expression that is worth compiling as one kernel: compile time grows with the number of
# registers, and loops without a flush point are cut at this length.
MAX_OPERATIONS = 64
MAX_LEAVES = 64

CAST = "cast"
HOST = "cpu"
_STREAM = "stream"
_SCALAR = "scalar"
_OUTPUTS = "outputs"

# Structures are small, but a program may make any number of them.
_INTERNED_LIMIT = 1 << 16


# A row of the op tables, or what is not in them: a leaf, a conversion, several results.
Operation: TypeAlias = Op | Reduction | str


class Node:
    """Structure of one expression. Made by `apply`, `cast` and `outputs` only.

    Attributes
    ----------
    op : Op, Reduction or str
        A row of the op tables, or ``"stream"``, ``"scalar"``, ``"cast"``, ``"outputs"``.
    dtype : DType
        Data type of the result (of the first result for ``"outputs"``).
    inputs : tuple of Node
        Operands.
    slots : tuple of tuple of int
        For each operand, which leaf of this node each of its leaves is.
    leaves : tuple of Node
        The leaf nodes, in the order of their numbers.
    streams : int
        How many of them are streams.
    operations : int
        Number of operations that a kernel for this node runs (shared ones once), or an upper
        bound of it that does not exceed `MAX_OPERATIONS`.
    place : str
        Name of the device that all its arrays are on; empty for an expression of numbers alone.

    Raises
    ------
    ValueError
        If its arrays are on different devices.
    """

    __slots__ = ("dtype", "inputs", "leaves", "op", "operations", "place", "slots", "streams")

    op: Operation
    dtype: DType
    inputs: tuple[Node, ...]
    slots: tuple[tuple[int, ...], ...]
    leaves: tuple[Node, ...]
    streams: int
    operations: int
    place: str

    def __init__(
        self,
        op: Operation,
        dtype: DType,
        inputs: tuple[Node, ...] = (),
        slots: tuple[tuple[int, ...], ...] = (),
        place: str = "",
    ) -> None:
        self.op = op
        self.dtype = dtype
        self.inputs = inputs
        self.slots = slots
        self.place = place or common_place(inputs)
        self.leaves = _leaves(inputs, slots) or (self,)
        self.streams = sum(leaf.op == _STREAM for leaf in self.leaves)
        bound = (op not in (_STREAM, _SCALAR, _OUTPUTS)) + sum(node.operations for node in inputs)
        self.operations = bound
        # Only past the limit is it worth telling how much of the bound is shared.
        if bound > MAX_OPERATIONS:
            self.operations = sum(
                1 for step in linearise(self) if step.node.op not in (_STREAM, _SCALAR)
            )

    def __repr__(self) -> str:
        return f"<Node {self.op}: {self.dtype}, {self.operations} operations>"


class Instruction:
    """One step of a linearised expression: the value of register number ``index``.

    Attributes
    ----------
    node : Node
        What is computed; a leaf node is loaded.
    leaf : int
        Number of the leaf to load, -1 for an operation.
    operands : tuple of int
        Registers that the operation reads.
    """

    __slots__ = ("leaf", "node", "operands")

    def __init__(self, node: Node, leaf: int, operands: tuple[int, ...]) -> None:
        self.node = node
        self.leaf = leaf
        self.operands = operands


def _leaves(inputs: tuple[Node, ...], slots: tuple[tuple[int, ...], ...]) -> tuple[Node, ...]:
    leaves: dict[int, Node] = {}
    for node, slot in zip(inputs, slots, strict=True):
        leaves.update(zip(slot, node.leaves, strict=True))
    return tuple(leaves[index] for index in range(len(leaves)))


def common_place(inputs: Sequence[Node]) -> str:
    """Return the device that the arrays of several expressions are on; empty without arrays.

    Raises
    ------
    ValueError
        If there are several.
    """
    place = ""
    for node in inputs:
        if node.place and node.place != place:
            if place:
                raise ValueError(
                    f"arrays of one operation are on different devices: {place} and {node.place}; "
                    "to_device moves them"
                )
            place = node.place
    return place


@cache
def _leaf_nodes(op: str, place: str) -> dict[DType, Node]:
    return {dtype: Node(op, dtype, place=place) for dtype in DTYPES.values()}


def leaf_node(op: str, dtype: DType, place: str) -> Node:
    """Return the node of a ``"stream"``, or of a ``"scalar"`` that stands for an array."""
    return _leaf_nodes(op, place)[dtype]


# Arrays of the host, and numbers that are on no device.
STREAMS = _leaf_nodes(_STREAM, HOST)
SCALARS = _leaf_nodes(_SCALAR, "")

_Key = tuple[Operation, DType, tuple[Node, ...], tuple[tuple[int, ...], ...]]
_interned: dict[_Key, Node] = {}


def _intern(
    op: Operation,
    dtype: DType,
    inputs: tuple[Node, ...],
    slots: tuple[tuple[int, ...], ...],
) -> Node:
    key = (op, dtype, inputs, slots)
    node = _interned.get(key)
    if node is None:
        # Forgetting costs a repeated render later; correctness never rests on being interned.
        if len(_interned) >= _INTERNED_LIMIT:
            _interned.clear()
        node = _interned.setdefault(key, Node(op, dtype, inputs, slots))
    return node


def apply(op: Op, inputs: tuple[Node, ...], slots: tuple[tuple[int, ...], ...]) -> Node:
    """Return the node of an elementwise operation on operands of one data type.

    Parameters
    ----------
    op : Op
        Row of the op table; its operands' data types must be equal (`where` takes a bool first).
    inputs : tuple of Node
        Operands.
    slots : tuple of tuple of int
        Leaf numbers of each operand in the result.
    """
    return _intern(op, result_dtype(op, inputs[-1].dtype), inputs, slots)


def cast(node: Node, dtype: DType) -> Node:
    """Return the node that converts a result to another data type."""
    if node.dtype is dtype:
        return node
    return _intern(CAST, dtype, (node,), (tuple(range(len(node.leaves))),))


def reduce(reduction: Reduction, node: Node) -> Node:
    """Return the node of a reduction: one value for each row of the index space, or a scan.

    It may be an operand like any other; what is not a scan has the same value all along the row.
    """
    dtype = reduced_dtype(reduction, node.dtype)
    return _intern(reduction, dtype, (node,), (tuple(range(len(node.leaves))),))


def rewrite(node: Node, inputs: tuple[Node, ...], slots: tuple[tuple[int, ...], ...]) -> Node:
    """Return the node that does the same on other operands of the same data types."""
    return _intern(node.op, node.dtype, inputs, slots)


def outputs(nodes: tuple[Node, ...], slots: tuple[tuple[int, ...], ...]) -> Node:
    """Return the node of a kernel with several results over one index space."""
    return _intern(_OUTPUTS, nodes[0].dtype, nodes, slots)


def linearise(root: Node) -> list[Instruction]:
    """Return the steps of an expression in an order in which operands come first.

    Every distinct value is computed once: two values are the same when they have the same
    structure on the same leaves. The results of an ``"outputs"`` node are its instruction's
    operands, which stands last.

    Parameters
    ----------
    root : Node
        Expression of any depth; the traversal is iterative and linear in the distinct values.
    """
    registers: dict[tuple[Node, tuple[int, ...]], int] = {}
    steps: list[Instruction] = []
    everything = tuple(range(len(root.leaves)))
    pending: list[tuple[Node, tuple[int, ...]]] = [(root, everything)]
    while pending:
        node, leaves = value = pending[-1]
        if value in registers:
            pending.pop()
            continue
        operands = [
            (source, tuple(leaves[index] for index in slot))
            for source, slot in zip(node.inputs, node.slots, strict=True)
        ]
        missing = [operand for operand in operands if operand not in registers]
        if missing:
            # The largest operand first: fewer values wait for it, so fewer registers are live.
            missing.reverse()
            missing.sort(key=_size)
            pending.extend(missing)
            continue
        pending.pop()
        registers[value] = len(steps)
        steps.append(
            Instruction(
                node,
                -1 if node.inputs else leaves[0],
                tuple(registers[operand] for operand in operands),
            )
        )
    return steps


def _size(value: tuple[Node, tuple[int, ...]]) -> int:
    return value[0].operations


def check_graph(root: Node) -> None:
    """Check that an expression is legal; tests run it on everything they record.

    Raises
    ------
    ValueError
        Naming the first illegal node.
    """
    for step in linearise(root):
        node = step.node
        if problem := _problem(node):
            raise ValueError(f"illegal node {node!r}: {problem}")


def _problem(node: Node) -> str:
    if any(
        len(slot) != len(source.leaves) or not all(0 <= index < len(node.leaves) for index in slot)
        for source, slot in zip(node.inputs, node.slots, strict=True)
    ):
        return f"slots {node.slots} do not fit the operands' leaves"
    if isinstance(node.op, Op):
        return _operand_problem(node.op, [source.dtype for source in node.inputs], node.dtype)
    if isinstance(node.op, Reduction):
        return _reduction_problem(node.op, node.inputs, node.dtype)
    if node.op in (_STREAM, _SCALAR):
        return "a leaf has no operands" if node.inputs else ""
    if node.op == CAST:
        return "" if len(node.inputs) == 1 else "a cast has one operand"
    return "" if node.op == _OUTPUTS else "unknown operation"


def _reduction_problem(reduction: Reduction, inputs: Sequence[Node], result: DType) -> str:
    if REDUCTIONS.get(reduction.name) is not reduction:
        return "not a row of the table of reductions"
    if len(inputs) != 1:
        return f"{len(inputs)} operands instead of 1"
    if inputs[0].dtype not in ACCEPTED[reduction.accepts]:
        return f"elements of type {inputs[0].dtype}"
    return "" if result is reduced_dtype(reduction, inputs[0].dtype) else f"result of type {result}"


def _operand_problem(op: Op, dtypes: Sequence[DType], result: DType) -> str:
    if OPS.get(op.name) is not op:
        return "not a row of the op table"
    if len(dtypes) != op.arity:
        return f"{len(dtypes)} operands instead of {op.arity}"
    if op.name == "where":
        if dtypes[0].kind != "bool":
            return f"condition of type {dtypes[0]}"
        dtypes = dtypes[1:]
    if any(dtype is not dtypes[0] for dtype in dtypes):
        return f"operands of types {list(dtypes)}"
    if result is not result_dtype(op, dtypes[0]):
        return f"result of type {result}"
    return ""
