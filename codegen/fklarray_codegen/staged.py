"""An expression with reductions as one C++ translation unit."""

from __future__ import annotations

from dataclasses import dataclass

from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.graph import Node
from fklarray_codegen.layout import Inner
from fklarray_codegen.staging import Plan, Stage
from fklarray_codegen.text import (
    Chain,
    Parameters,
    Source,
    headers,
    leaf_classes,
    leaf_sources,
    stream_format,
    stream_source,
    unit,
)
from fklarray_codegen.walk import Direction

__all__ = ["StagedProgram"]

_PATTERNS = {"rows": "RowsDPP", "columns": "ColumnsDPP"}


@dataclass(frozen=True, slots=True)
class StagedProgram:
    """Stages ready to be rendered, and how their streams move.

    Parameters of the kernel are, in this order: the index space (extents, then the length of the
    last row), one structure per leaf, one per value of rows, one per result of elements.

    Attributes
    ----------
    plan : Plan
        The stages.
    direction : {"rows", "columns"}
        What packs lie along.
    rank : int
        Number of dimensions of the index space.
    inner : tuple of {"unit", "broadcast", "strided"}
        Stride class of each stream among the leaves, of each value of rows, of each result.
    is_shared : bool
        Whether a device's blocks share the rows, which are few and long.
    """

    plan: Plan
    direction: Direction
    rank: int
    inner: tuple[Inner, ...]
    is_shared: bool = False

    @property
    def leaves(self) -> tuple[Node, ...]:
        """Leaf nodes by number."""
        return self.plan.leaves

    @property
    def operations(self) -> int:
        """Number of operations that one launch runs on each element."""
        return sum(
            sum(step.leaf < 0 for step in stage.steps) + len(stage.reductions)
            for stage in self.plan.stages
        )

    @property
    def passes(self) -> int:
        """How often each row is read."""
        return sum(stage.work != "row" for stage in self.plan.stages)

    @property
    def stored(self) -> tuple[DType, ...]:
        """Data types of what is stored: values of rows, then results of elements."""
        return self.plan.row_values + self.plan.element_results

    @property
    def signature(self) -> str:
        """Canonical text of everything that the translation unit depends on."""
        shared = "shared " if self.is_shared else ""
        return f"{shared}{self.direction} of rank {self.rank}\n{self.graph}"

    @property
    def graph(self) -> str:
        """The stages in words: registers, data types, operations, operands, stride classes."""
        names = self._names()
        lines: list[str] = []
        for stage in self.plan.stages:
            lines.append(f"stage: {stage.work}")
            for register, step in enumerate(stage.steps):
                op = step.node.op
                name = op if isinstance(op, str) else op.name
                operands = " ".join(f"r{operand}" for operand in step.operands)
                loaded = names[step.leaf] if step.leaf >= 0 else operands
                lines.append(f"r{register}: {step.node.dtype} = {name} {loaded}".rstrip())
            lines += [f"keep r{register} in {names[place]}" for register, place in stage.keeps]
            for number, (register, place) in enumerate(stage.ends):
                how = "scan" if stage.work == "scan" else "reduce"
                verb = f"{how} by {stage.reductions[number]}" if stage.reductions else "store"
                lines.append(f"{verb} r{register} in {names[place]}")
        return "\n".join(lines)

    def _classes(self) -> tuple[list[str], tuple[Inner, ...]]:
        """Return the stride classes of the leaves, and of what is stored."""
        split = len(self.inner) - len(self.stored)
        return leaf_classes(self.plan.leaves, self.inner[:split]), self.inner[split:]

    def _names(self) -> list[str]:
        leaves, stored = self._classes()
        names = [f"leaf {number} {kind}".rstrip() for number, kind in enumerate(leaves)]
        for number, (dtype, kind) in enumerate(zip(self.stored, stored, strict=True)):
            is_row = number < len(self.plan.row_values)
            names.append(f"{'row' if is_row else 'result'} {number} {dtype} {kind}")
        return names

    @property
    def parameter_formats(self) -> tuple[str, ...]:
        """Format of :mod:`struct` for each parameter structure, in order."""
        leaves, stored = self._classes()
        formats = [f"{self.rank + 1}q"]
        for node, kind in zip(self.plan.leaves, leaves, strict=True):
            formats.append(stream_format(self.rank, kind) if kind else node.dtype.format)
        return (*formats, *(stream_format(self.rank, kind) for kind in stored))

    def source(self) -> str:
        """Return the C++ translation unit."""
        leaves, stored = self._classes()
        parameters = Parameters(self.rank)
        sources = leaf_sources(parameters, self.plan.leaves, leaves)
        for number, (dtype, kind) in enumerate(zip(self.stored, stored, strict=True)):
            is_row = number < len(self.plan.row_values)
            name = f"v{number}" if is_row else f"y{number - len(self.plan.row_values)}"
            sources.append(parameters.add(stream_source(name, dtype, self.rank, kind), dtype))
        lines: list[str] = []
        for number, stage in enumerate(self.plan.stages):
            lines += [f"    // Stage {number + 1}", *self._stage(number, stage, sources)]
        steps = [step for stage in self.plan.stages for step in stage.steps]
        dtypes = list(dict.fromkeys(step.node.dtype for step in steps))
        # Places are counted in 32 bits at least.
        if any(op.result == "index" for stage in self.plan.stages for op in stage.reductions):
            dtypes = list(dict.fromkeys([*dtypes, DTYPES["int32"]]))
        names = ", ".join(f"stage{number}" for number in range(len(self.plan.stages)))
        pattern = ("Shared" if self.is_shared else "") + _PATTERNS[self.direction]
        return unit(
            headers(dtypes, {step.node.op for step in steps}, f"fklarray/{self.direction}.h"),
            dtypes,
            parameters,
            lines,
            f"fk::executeOperations<{pattern}<lanes>>(queue, space, {names});",
        )

    def _stage(self, number: int, stage: Stage, sources: list[Source]) -> list[str]:
        letter = chr(ord("a") + number)
        needed = [register for register, _ in (*stage.ends, *stage.keeps)]
        chain = Chain(letter, stage.steps, needed, self.rank)
        chain.add_steps(sources)
        for index, (register, place) in enumerate(stage.keeps):
            chain.add_write(f"{letter}k{index}", register, sources[place], is_last=False)
        steps = ", ".join(chain.arguments)
        chain.arguments.clear()
        for index, (register, place) in enumerate(stage.ends):
            name = f"{letter}w{index}"
            if stage.reductions:
                functor = stage.reductions[index].functor
                dtype = stage.steps[register].node.dtype
                kind = stage.work.capitalize()
                chain.add_fold(name, kind, functor, register, dtype, sources[place])
            else:
                rereads = any(step.leaf == place for step in stage.steps)
                chain.add_write(name, register, sources[place], is_last=True, rereads=rereads)
        ends = ", ".join(chain.arguments)
        work = f"Work::{stage.work}"
        return [
            *chain.operations,
            f"    const auto stage{number} = stage<{work}>(list({steps}), list({ends}));",
        ]
