"""A laid out expression as one C++ translation unit in the form of the Fused Kernel Library.

Types are in the text; values, extents, strides and addresses are parameters, whose order `Program`
describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fklarray_codegen.graph import Instruction, Node, linearise
from fklarray_codegen.layout import Inner, is_tiled
from fklarray_codegen.text import (
    Chain,
    Parameters,
    headers,
    leaf_classes,
    leaf_sources,
    stream_format,
    stream_source,
    unit,
)

__all__ = ["Program", "compose"]


@dataclass(frozen=True, slots=True)
class Program:
    """An expression ready to be rendered: its steps, and how its streams move.

    Parameters of the kernel are, in this order: the index space (extents, then the length of the
    last row), one structure per leaf in the order of leaf numbers (a stream's address and strides,
    or a scalar's value), one structure per output (address and strides).

    Attributes
    ----------
    steps : tuple of Instruction
        Registers in order; the first is a stream if there is one.
    leaves : tuple of Node
        Leaf nodes by number.
    results : tuple of int
        Registers that are stored, one per output.
    rank : int
        Number of dimensions of the index space.
    inner : tuple of {"unit", "broadcast", "strided", "across", "interleaved"}
        Stride class of each stream in the order of leaf numbers, then of each output.
    """

    steps: tuple[Instruction, ...]
    leaves: tuple[Node, ...]
    results: tuple[int, ...]
    rank: int
    inner: tuple[Inner, ...]

    @property
    def operations(self) -> int:
        """Number of operations that one launch runs on each element."""
        return sum(step.leaf < 0 for step in self.steps)

    @property
    def signature(self) -> str:
        """Canonical text of everything that the translation unit depends on."""
        return f"rank {self.rank}\n{self.graph}"

    @property
    def graph(self) -> str:
        """The steps in words: registers, data types, operations, operands, stride classes."""
        lines: list[str] = []
        inner = leaf_classes(self.leaves, self.inner)
        for register, step in enumerate(self.steps):
            name = step.node.op if isinstance(step.node.op, str) else step.node.op.name
            if step.leaf >= 0:
                operands = f"leaf {step.leaf} {inner[step.leaf]}".rstrip()
            else:
                operands = " ".join(f"r{operand}" for operand in step.operands)
            lines.append(f"r{register}: {step.node.dtype} = {name} {operands}")
        outputs = self._output_classes()
        lines += [f"store r{r} {kind}" for r, kind in zip(self.results, outputs, strict=True)]
        return "\n".join(lines)

    @property
    def parameter_formats(self) -> tuple[str, ...]:
        """Format of :mod:`struct` for each parameter structure, in order."""
        formats = [f"{self.rank + 1}q"]
        for node, inner in zip(self.leaves, leaf_classes(self.leaves, self.inner), strict=True):
            formats.append(stream_format(self.rank, inner) if inner else node.dtype.format)
        return (*formats, *(stream_format(self.rank, kind) for kind in self._output_classes()))

    def _output_classes(self) -> tuple[Inner, ...]:
        return self.inner[len(self.inner) - len(self.results) :]

    def source(self) -> str:
        """Return the C++ translation unit."""
        parameters = Parameters(self.rank)
        sources = leaf_sources(parameters, self.leaves, leaf_classes(self.leaves, self.inner))
        chain = Chain("r", self.steps, self.results, self.rank)
        chain.add_steps(sources)
        for output, (register, inner) in enumerate(
            zip(self.results, self._output_classes(), strict=True)
        ):
            dtype = self.steps[register].node.dtype
            target = stream_source(f"y{output}", dtype, self.rank, inner)
            chain.add_write(
                f"w{output}",
                register,
                parameters.add(target, dtype),
                is_last=output + 1 == len(self.results),
            )
        dtypes = list(dict.fromkeys(step.node.dtype for step in self.steps))
        pattern, pattern_headers = "fk::TransformDPP<>", list[str]()
        if is_tiled(self.inner):
            pattern, pattern_headers = "TiledDPP<lanes>", ["fklarray/tiles.h"]
        return unit(
            headers(dtypes, {step.node.op for step in self.steps}, *pattern_headers),
            dtypes,
            parameters,
            [
                "    // 2. Read",
                *chain.operations[:2],
                "    // 3. Compute, 4. Write",
                *chain.operations[2:],
            ],
            f"fk::executeOperations<{pattern}>(queue, {', '.join(chain.arguments)});",
            "interleaved_lanes" if "interleaved" in self.inner else "pack_lanes",
        )


def compose(root: Node, rank: int, inner: Sequence[Inner]) -> Program:
    """Linearise an expression for streams of given stride classes.

    Parameters
    ----------
    root : Node
        Expression, or an ``"outputs"`` node.
    rank, inner
        As in `Program`.
    """
    steps = linearise(root)
    results: tuple[int, ...] = (len(steps) - 1,)
    if root.op == "outputs":
        results = steps.pop().operands
    first = next((i for i, step in enumerate(steps) if step.node.op == "stream"), 0)
    order = [first, *(i for i in range(len(steps)) if i != first)]
    place = {old: new for new, old in enumerate(order)}
    moved = tuple(
        Instruction(step.node, step.leaf, tuple(place[operand] for operand in step.operands))
        for step in (steps[old] for old in order)
    )
    return Program(moved, root.leaves, tuple(place[r] for r in results), rank, tuple(inner))
