"""Reductions that are computed together with the expressions before and after them.

A reduction is recorded as a leaf whose memory is yet to be computed. Before a kernel reads such
leaves, `fuse` looks for those whose rows are rows of one index space, and puts the expressions that
they reduce in their places: `(x - mean) / std` becomes one expression over `x`, with reductions in
it, for which one kernel reads each row of `x` once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from fklarray.deferred import Deferred, DeferredStream, reading
from fklarray.recording import Leaf, State, Stream
from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import MAX_LEAVES, MAX_OPERATIONS, Node, linearise, reduce, rewrite
from fklarray_codegen.layout import contiguous_strides
from fklarray_codegen.ops import Reduction, reduced_dtype
from fklarray_codegen.walk import Rows

__all__ = [
    "MAX_PASSES",
    "Fused",
    "Pattern",
    "PendingReduction",
    "alone",
    "fuse",
    "outcome",
    "passes_of",
    "patterns",
    "reduced_alone",
    "reduction_state",
    "row_strides",
]

Shape: TypeAlias = tuple[int, ...]
Strides: TypeAlias = tuple[int, ...]
# An expression and, for each of its leaves, the number of a leaf of the whole, or the reduction
# that stands in its place and what is reduced.
_Structure: TypeAlias = tuple[Node, tuple[Any, ...]]

# A kernel passes over a row so often at most; a loop would make ever longer ones of its steps.
MAX_PASSES = 4
_MAX_REDUCTIONS = 12


class PendingReduction(Deferred):
    """The results of a reduction that is yet to be computed, in C order.

    One for each row, or one for each element for a scan.

    Attributes
    ----------
    reduction : Reduction
        Row of the table of reductions.
    shape : tuple of int
        Shape of what is reduced: the index space.
    rows : Rows
        Which of its axes are reduced.
    passes : int
        Longest chain of reductions that ends here.
    """

    __slots__ = ("passes", "reduction", "rows", "shape")

    def __init__(
        self,
        compute: Callable[[PendingReduction, State], State],
        reduction: Reduction,
        operand: State,
        shape: Shape,
        rows: Rows,
        nbytes: int,
    ) -> None:
        super().__init__(compute, (operand,), nbytes)
        self.reduction = reduction
        self.shape = shape
        self.rows = rows
        self.passes = 1 + (passes_of(operand) if self.depth > 1 else 0)

    def _run(self, compute: Callable[..., State], operands: Sequence[State]) -> State:
        return compute(self, *operands)

    @property
    def operand(self) -> State | None:
        """What is reduced; None once the results are there."""
        recipe = self._recipe
        return None if recipe is None else recipe[1][0]


def passes_of(state: State) -> int:
    """Return the length of the longest chain of reductions that a state reads."""
    return max(
        (
            leaf.buffer.passes
            for leaf in state[1]
            if isinstance(leaf, DeferredStream) and isinstance(leaf.buffer, PendingReduction)
        ),
        default=0,
    )


def reduction_state(
    compute: Callable[[PendingReduction, State], State],
    reduction: Reduction,
    operand: State,
    shape: Shape,
    rows: Rows,
) -> State:
    """Return the state of a reduction that is computed when it is needed.

    Parameters
    ----------
    compute : callable
        Computes it alone, from an operand without deferred leaves, into C-contiguous memory.
    reduction, operand, shape, rows
        As in `PendingReduction`.
    """
    dtype, kept, nbytes = outcome(reduction, operand[0].dtype, shape, rows)
    memory = PendingReduction(compute, reduction, operand, shape, rows, nbytes)
    return reading(memory, dtype, kept)


@lru_cache(maxsize=4096)
def outcome(reduction: Reduction, dtype: DType, shape: Shape, rows: Rows) -> tuple[Any, ...]:
    """Return data type, shape and bytes of a reduction's results."""
    kept = shape if reduction.scans else rows.kept(shape)
    result = reduced_dtype(reduction, dtype)
    return result, kept, math.prod(kept) * result.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """An expression over one index space in which reductions stand, whatever the arrays are.

    Attributes
    ----------
    root : Node
        The expression, or an ``"outputs"`` node.
    numbers : tuple of int
        Which of the leaves that were met each of its leaves is.
    strides : tuple of tuple of int
        Of each leaf in the index space.
    shape : tuple of int
        The index space.
    rows : Rows
        Its rows.
    pending : tuple of (int, Node, tuple of int)
        Which of the pending results that were met it computes, each with its node and the leaves
        of `root` that it reads.
    """

    root: Node
    numbers: tuple[int, ...]
    strides: tuple[Strides, ...]
    shape: Shape
    rows: Rows
    pending: tuple[tuple[int, Node, tuple[int, ...]], ...]


class Fused(NamedTuple):
    """A pattern with the leaves and the pending results that it was found for.

    Attributes
    ----------
    pattern : Pattern
        The same object for all that differ in their arrays alone.
    leaves : tuple of Leaf
        The leaves of its root; some may be deferred for other reasons.
    memories : tuple of PendingReduction
        The pending results that it computes.
    """

    pattern: Pattern
    leaves: tuple[Leaf, ...]
    memories: tuple[PendingReduction, ...]


_MAX_PATTERNS = 4096
patterns: dict[Any, Pattern | None] = {}


def fuse(node: Node, leaves: tuple[Leaf, ...], shape: Shape) -> Fused | None:
    """Return an expression with the reductions it reads in their places; None if there are none."""
    met = _Met({}, {}, [shape])
    met.describe(node, leaves)
    key = tuple(met.parts)
    try:
        pattern = patterns[key]
    except KeyError:
        pattern = _find(node, leaves, shape, met)
        if len(patterns) >= _MAX_PATTERNS:
            patterns.clear()
        patterns[key] = pattern
    if pattern is None:
        return None
    known, memories = tuple(met.leaves), tuple(met.memories)
    return Fused(
        pattern,
        tuple([known[number] for number in pattern.numbers]),
        tuple([memories[number] for number, _, _ in pattern.pending]),
    )


def reduced_alone(reduction: Reduction, operand: State, shape: Shape, rows: Rows) -> Fused:
    """Return a reduction of an operand without deferred leaves as an expression of its own."""
    node, leaves = operand
    strides = tuple([leaf.strides for leaf in leaves])
    return Fused(alone(reduction, node, strides, shape, rows), leaves, ())


@lru_cache(maxsize=_MAX_PATTERNS)
def alone(
    reduction: Reduction, node: Node, strides: tuple[Strides, ...], shape: Shape, rows: Rows
) -> Pattern:
    """Return a reduction as a pattern of its own, given the strides of what it reads."""
    aligned = tuple(_aligned(one, len(shape)) for one in strides)
    return Pattern(reduce(reduction, node), tuple(range(len(strides))), aligned, shape, rows, ())


class _Met(NamedTuple):
    """Numbers of the leaves and pending results of an expression, as they are met.

    Its parts are all that a pattern depends on: of the arrays it is which of them are the same.
    """

    leaves: dict[Leaf, int]
    memories: dict[PendingReduction, int]
    parts: list[Any]

    def describe(self, node: Node, leaves: tuple[Leaf, ...]) -> None:
        """Add the parts of an expression; a node tells how many follow it."""
        self.parts.append(node)
        for leaf in leaves:
            number = self.leaves.get(leaf)
            self.parts.append(number)
            if number is not None:
                continue
            self.leaves[leaf] = len(self.leaves)
            self.parts.append(leaf.strides)
            memory = _pending_of(leaf) if leaf.deferred else None
            operand = memory.operand if memory is not None else None
            if memory is None or operand is None:
                continue
            self.parts.append(self.memories.get(memory, memory.reduction))
            if memory not in self.memories:
                self.memories[memory] = len(self.memories)
                self.parts.extend((memory.shape, memory.rows))
                self.describe(*operand)


def _find(node: Node, leaves: tuple[Leaf, ...], shape: Shape, met: _Met) -> Pattern | None:
    fitting = [
        memory for leaf in leaves if (memory := _pending_of(leaf)) and _fits(leaf, shape, memory)
    ]
    if not fitting:
        return None
    largest = max(fitting, key=lambda memory: math.prod(memory.shape))
    return _Collector(largest.shape, largest.rows, met).collect(node, leaves, shape)


def _pending_of(leaf: Leaf) -> PendingReduction | None:
    """Return the reduction whose results a leaf reads from the first one on, if it is pending."""
    if not leaf.deferred or leaf.value != 0:
        return None
    memory = leaf.buffer if isinstance(leaf, Stream) else None
    if isinstance(memory, PendingReduction) and memory.operand is not None:
        return memory
    return None


def _aligned(strides: Strides, ndim: int) -> Strides:
    return (0,) * (ndim - len(strides)) + strides


@lru_cache(maxsize=8192)
def _in_space(strides: Strides, context: Shape, space: Shape, rows: Rows) -> Strides | None:
    """Return the strides that something in a smaller shape has in the index space."""
    aligned = _aligned(strides, len(context))
    if context == space:
        return aligned
    width = rows.stop - rows.first
    if context == rows.kept(space):
        return aligned[: rows.first] + (0,) * width + aligned[rows.first :]
    kept_dimensions = space[: rows.first] + (1,) * width + space[rows.stop :]
    return aligned if context == kept_dimensions else None


@lru_cache(maxsize=4096)
def row_strides(space: Shape, rows: Rows) -> Strides:
    """Return the strides of values of rows, in C order, in the index space."""
    kept = contiguous_strides(rows.kept(space))
    return kept[: rows.first] + (0,) * (rows.stop - rows.first) + kept[rows.first :]


def _fits(leaf: Leaf, context: Shape, memory: PendingReduction) -> bool:
    """Return whether each row of a shape, or each element, reads its own value."""
    space, rows = memory.shape, memory.rows
    own = contiguous_strides(space) if memory.reduction.scans else row_strides(space, rows)
    return _in_space(leaf.strides, context, space, rows) == own


class _Collector:
    """Collects the leaves of a whole, and its structure."""

    def __init__(self, space: Shape, rows: Rows, met: _Met) -> None:
        self.space = space
        self.rows = rows
        self.met = met
        # Which leaf, with which strides, each leaf of the whole is.
        self.numbers: dict[tuple[int, Strides], int] = {}
        self.pending: dict[PendingReduction, Any] = {}

    def collect(self, node: Node, leaves: tuple[Leaf, ...], shape: Shape) -> Pattern | None:
        structure = self._structure(node, leaves, shape)
        if structure is None or len(self.pending) > _MAX_REDUCTIONS:
            return None
        nodes: dict[Any, _Built] = {}
        root, numbers = _build(structure, nodes)
        if root.operations > MAX_OPERATIONS + len(self.pending) or len(numbers) > MAX_LEAVES:
            return None
        place = {number: index for index, number in enumerate(numbers)}
        collected = list(self.numbers)
        return Pattern(
            root,
            tuple(collected[number][0] for number in numbers),
            tuple(collected[number][1] for number in numbers),
            self.space,
            self.rows,
            tuple(
                (
                    self.met.memories[memory],
                    nodes[entry][0],
                    tuple(place[number] for number in nodes[entry][1]),
                )
                for memory, entry in self.pending.items()
            ),
        )

    def _structure(self, node: Node, leaves: tuple[Leaf, ...], context: Shape) -> _Structure | None:
        entries: list[Any] = []
        for leaf in leaves:
            entry = self._reduced(leaf, context)
            if entry is None:
                strides = _in_space(leaf.strides, context, self.space, self.rows)
                if strides is None:
                    return None
                entry = self._number(leaf, strides)
            entries.append(entry)
        return node, tuple(entries)

    def _reduced(self, leaf: Leaf, context: Shape) -> Any:
        memory = _pending_of(leaf)
        if memory is None or (memory.shape, memory.rows) != (self.space, self.rows):
            return None
        operand = memory.operand
        if operand is None or not _fits(leaf, context, memory):
            return None
        entry = self.pending.get(memory)
        if entry is None:
            structure = self._structure(*operand, self.space)
            if structure is not None:
                entry = self.pending[memory] = (memory.reduction, structure)
        return entry

    def _number(self, leaf: Leaf, strides: Strides) -> int:
        return self.numbers.setdefault((self.met.leaves[leaf], strides), len(self.numbers))


_Built: TypeAlias = tuple[Node, tuple[int, ...]]


def _build(structure: _Structure, reductions: dict[Any, _Built]) -> _Built:
    node, entries = structure
    values: list[_Built] = []
    for step in linearise(node):
        if step.leaf >= 0:
            entry = entries[step.leaf]
            if isinstance(entry, int):
                values.append((step.node, (entry,)))
                continue
            if entry not in reductions:
                reduction, reduced = entry
                operand, numbers = _build(reduced, reductions)
                reductions[entry] = (reduce(reduction, operand), numbers)
            values.append(reductions[entry])
            continue
        operands = [values[operand] for operand in step.operands]
        numbers = tuple(dict.fromkeys(n for _, numbers in operands for n in numbers))
        place = {number: index for index, number in enumerate(numbers)}
        slots = tuple(tuple(place[n] for n in numbers) for _, numbers in operands)
        inputs = tuple(operand for operand, _ in operands)
        values.append((rewrite(step.node, inputs, slots), numbers))
    return values[-1]
