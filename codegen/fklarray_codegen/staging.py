"""Expressions with reductions as stages over the rows of one index space.

A value is one of three kinds: a constant, one value for each row, or one for each element. Each
reduction needs a pass over its row, and what is computed from its result has to wait for it. So the
steps of an expression become stages, in this order: what is known of the rows before the first
pass, the reductions of the first pass, what follows from them for the rows, the reductions of the
second pass, and so on; at last the results that have a value for each element. Scans take part in
passes as reductions do, but leave a value for each element. A stage computes anew what it needs of
each element, and reads the values of rows, and those of scans, from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import SCALARS, STREAMS, Instruction, Node, linearise
from fklarray_codegen.ops import Op, Reduction

__all__ = ["Plan", "Stage", "plan_stages"]

Work = Literal["fold", "scan", "row", "elements"]
_CONSTANT, _ROW, _ELEMENT = 0, 1, 2

# What takes so long that its values are kept for a later stage rather than computed anew.
_EXPENSIVE = {"exponential", "hyperbolic", "special", "trigonometric"}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    Attributes
    ----------
    work : {"fold", "scan", "row", "elements"}
        Whether its steps are run for each element, to be reduced or scanned; once for each row; or
        for each element, to be stored.
    steps : tuple of Instruction
        Registers in order; the first is loaded. What is loaded is numbered: leaves, then values of
        rows, then results of elements.
    ends : tuple of (int, int)
        Registers that are reduced or stored, and the number of where the result goes.
    reductions : tuple of Reduction
        One for each end of a stage of work ``"fold"`` or ``"scan"``.
    keeps : tuple of (int, int)
        Registers that are stored on the way, as ends are.
    """

    work: Work
    steps: tuple[Instruction, ...]
    ends: tuple[tuple[int, int], ...]
    reductions: tuple[Reduction, ...] = ()
    keeps: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The stages of an expression.

    Attributes
    ----------
    stages : tuple of Stage
        In the order in which they run.
    leaves : tuple of Node
        Leaf nodes by number.
    row_values : tuple of DType
        Values of rows that are stored: results of reductions, and what follows from them.
    row_nodes : tuple of (Node, tuple of int)
        What each is: a node, and the leaves of the expression that are its leaves.
    results : tuple of (bool, int)
        For each result of the expression whether it is a value of rows, and its number among those
        or among the results of elements.
    element_results : tuple of DType
        Data types of what is stored for each element: scans, and results.
    element_nodes : tuple of (Node, tuple of int)
        What each is, as of `row_nodes`.
    """

    stages: tuple[Stage, ...]
    leaves: tuple[Node, ...]
    row_values: tuple[DType, ...]
    row_nodes: tuple[tuple[Node, tuple[int, ...]], ...]
    results: tuple[tuple[bool, int], ...]
    element_results: tuple[DType, ...]
    element_nodes: tuple[tuple[Node, tuple[int, ...]], ...]


def plan_stages(root: Node, row_leaves: frozenset[int], *, keeps: bool) -> Plan:
    """Return the stages of an expression.

    Parameters
    ----------
    root : Node
        Expression with reductions, or an ``"outputs"`` node.
    row_leaves : frozenset of int
        Leaves that are the same all along a row.
    keeps : bool
        Whether a result of elements may hold values of an earlier stage until it is written.
    """
    return _Planner(root, row_leaves).plan(keeps)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A stage before its steps are known: what it stores, and what it computes for that."""

    work: Work
    ends: tuple[int, ...]
    wanted: tuple[int, ...]
    depth: int


class _Planner:
    def __init__(self, root: Node, row_leaves: frozenset[int]) -> None:
        self.root = root
        self.steps = linearise(root)
        self.results: tuple[int, ...] = (len(self.steps) - 1,)
        if root.op == "outputs":
            self.results = self.steps.pop().operands
        self.kinds: list[int] = []
        self.depths: list[int] = []
        for step in self.steps:
            self._classify(step, row_leaves)
        self.rows = self._stored_rows()
        self.scans = [step for step in range(len(self.steps)) if self._is_scan(step)]
        results = [step for step in self.results if self.kinds[step] != _ROW]
        element_results = list(dict.fromkeys([*self.scans, *results]))
        first = len(root.leaves)
        self.places = {step: first + number for number, step in enumerate(self.rows)}
        first += len(self.rows)
        self.targets = {step: first + number for number, step in enumerate(element_results)}

    def _classify(self, step: Instruction, row_leaves: frozenset[int]) -> None:
        kind = max((self.kinds[operand] for operand in step.operands), default=_CONSTANT)
        depth = max((self.depths[operand] for operand in step.operands), default=0)
        if isinstance(step.node.op, Reduction):
            kind, depth = _ELEMENT if step.node.op.scans else _ROW, depth + 1
        elif step.node.op == "stream":
            kind = _ROW if step.leaf in row_leaves else _ELEMENT
        self.kinds.append(kind)
        self.depths.append(depth)

    def _is_reduction(self, step: int) -> bool:
        op = self.steps[step].node.op
        return isinstance(op, Reduction) and not op.scans

    def _is_scan(self, step: int) -> bool:
        op = self.steps[step].node.op
        return isinstance(op, Reduction) and bool(op.scans)

    def _stored_rows(self) -> list[int]:
        """Return the values of rows that a later stage, or the user, reads from memory."""
        stored = {step for step in range(len(self.steps)) if self._is_reduction(step)}
        stored |= {step for step in self.results if self.kinds[step] == _ROW}
        for number, step in enumerate(self.steps):
            here = self.kinds[number] == _ROW and not self._is_reduction(number)
            for operand in step.operands:
                if self.kinds[operand] != _ROW or self.steps[operand].leaf >= 0:
                    continue
                if not here or self.depths[operand] != self.depths[number]:
                    stored.add(operand)
        return sorted(stored)

    def plan(self, keeps: bool) -> Plan:
        drafts = self._drafts()
        keeps = keeps and len(self.targets) == 1 and not self.scans
        kept = self._costliest(drafts) if keeps else None
        stages: list[Stage] = []
        is_stored = False
        for draft in drafts:
            stages.append(self._stage(draft, kept, is_stored))
            is_stored = is_stored or bool(stages[-1].keeps)
        first = len(self.root.leaves)
        targets = list(self.targets)
        return Plan(
            tuple(stages),
            self.root.leaves,
            tuple(self.steps[step].node.dtype for step in self.rows),
            tuple((self.steps[step].node, self._leaves_of(step)) for step in self.rows),
            tuple(
                (True, self.places[result] - first)
                if self.kinds[result] == _ROW
                else (False, targets.index(result))
                for result in self.results
            ),
            tuple(self.steps[step].node.dtype for step in targets),
            tuple((self.steps[step].node, self._leaves_of(step)) for step in targets),
        )

    def _drafts(self) -> list[_Draft]:
        drafts: list[_Draft] = []
        for depth in range(max(self.depths) + 1):
            here = [s for s in self.rows if self.depths[s] == depth and not self._is_reduction(s)]
            drafts.append(_Draft("row", tuple(here), tuple(here), depth))
            folds = [s for s in self.rows if self.depths[s] == depth + 1 and self._is_reduction(s)]
            drafts.append(_Draft("fold", tuple(folds), self._reduced(folds), depth))
            scans = [s for s in self.scans if self.depths[s] == depth + 1]
            drafts.append(_Draft("scan", tuple(scans), self._reduced(scans), depth))
        targets = tuple(step for step in self.targets if step not in self.scans)
        drafts.append(_Draft("elements", targets, targets, len(self.steps)))
        return [draft for draft in drafts if draft.ends]

    def _reduced(self, reductions: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.steps[step].operands[0] for step in reductions)

    def _leaves_of(self, step: int) -> tuple[int, ...]:
        """Return the leaves of the whole that are the leaves of a step's node."""
        instruction = self.steps[step]
        if instruction.leaf >= 0:
            return (instruction.leaf,)
        numbers: dict[int, int] = {}
        for operand, slot in zip(instruction.operands, instruction.node.slots, strict=True):
            numbers.update(zip(slot, self._leaves_of(operand), strict=True))
        return tuple(numbers[index] for index in range(len(numbers)))

    def _stage(self, draft: _Draft, kept: int | None, is_stored: bool) -> Stage:
        loads = self._loads(draft, kept if is_stored else None)
        # A chain begins with a Read: of an array, if there is one.
        loaded = [(step, place) for step, place in loads.items() if place is not None]
        arrays = [step for step, place in loaded if self._is_array(step, place)]
        first = min(arrays or [step for step, _ in loaded])
        order = [first, *sorted(loads.keys() - {first})]
        register = {step: number for number, step in enumerate(order)}
        places = self.targets if draft.work in ("elements", "scan") else self.places
        folds = [self.steps[end].node.op for end in draft.ends]
        stores = draft.work == "fold" and not is_stored and kept in register
        return Stage(
            draft.work,
            tuple(self._instruction(step, loads[step], register) for step in order),
            tuple((register[w], places[e]) for w, e in zip(draft.wanted, draft.ends, strict=True)),
            tuple(
                op for op in folds if draft.work in ("fold", "scan") and isinstance(op, Reduction)
            ),
            tuple((register[kept], place) for place in self.targets.values() if kept and stores),
        )

    def _is_array(self, step: int, place: int) -> bool:
        return place >= len(self.root.leaves) or self.steps[step].node.op == "stream"

    def _instruction(self, step: int, place: int | None, register: dict[int, int]) -> Instruction:
        instruction = self.steps[step]
        if place is None:
            operands = tuple(register[operand] for operand in instruction.operands)
            return Instruction(instruction.node, -1, operands)
        leaves = SCALARS if instruction.node.op == "scalar" else STREAMS
        return Instruction(leaves[instruction.node.dtype], place, ())

    def _loads(self, draft: _Draft, kept: int | None) -> dict[int, int | None]:
        """Return the steps of a stage: for what it loads the number, None for what it computes."""
        loads: dict[int, int | None] = {}
        pending = list(draft.wanted)
        while pending:
            step = pending.pop()
            if step in loads:
                continue
            instruction = self.steps[step]
            is_here = draft.work == "row" and self.depths[step] == draft.depth
            if instruction.leaf >= 0:
                loads[step] = instruction.leaf
            elif step == kept:
                (loads[step],) = self.targets.values()
            elif self._is_scan(step):
                loads[step] = self.targets[step]
            elif self.kinds[step] == _ROW and (self._is_reduction(step) or not is_here):
                loads[step] = self.places[step]
            else:
                loads[step] = None
                pending.extend(instruction.operands)
        return loads

    def _costliest(self, drafts: Sequence[_Draft]) -> int | None:
        """Return the step that takes longest of those that two stages would compute.

        Its values are kept where the result of the same data type is going to be.
        """
        (target,) = self.targets
        loads = [self._loads(draft, None) for draft in drafts if draft.work != "row"]
        twice = {
            step
            for step, place in loads[-1].items()
            if place is None and any(fold.get(step, 0) is None for fold in loads[:-1])
        }
        dtype = self.steps[target].node.dtype
        costs = [
            (self._cost(step), step)
            for step in twice
            if self.kinds[step] == _ELEMENT and self.steps[step].node.dtype is dtype
        ]
        cost, step = max(costs, default=(0, 0))
        return step if cost and step != target else None

    def _cost(self, step: int) -> int:
        pending, seen = [step], set[int]()
        while pending:
            one = pending.pop()
            if one not in seen and self.kinds[one] == _ELEMENT:
                seen.add(one)
                pending.extend(self.steps[one].operands)
        ops = [self.steps[one].node.op for one in seen]
        return sum(isinstance(op, Op) and op.family in _EXPENSIVE for op in ops)
