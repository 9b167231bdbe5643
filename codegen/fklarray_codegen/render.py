"""A laid out expression as one C++ translation unit in the form of the Fused Kernel Library.

The text is what a C++ user of the library would write: cast and dereference each parameter, build
the read, the compute operations and the writes, and execute them. Types are in the text; values,
extents, strides and addresses are parameters, whose order `Program` describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import CAST, Instruction, Node, linearise
from fklarray_codegen.layout import Inner
from fklarray_codegen.ops import Op

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
    inner : tuple of {"unit", "broadcast", "strided"}
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
        inner = self._leaf_classes()
        for register, step in enumerate(self.steps):
            name = step.node.op if isinstance(step.node.op, str) else step.node.op.name
            if step.leaf >= 0:
                operands = f"leaf {step.leaf} {inner[step.leaf]}".rstrip()
            else:
                operands = " ".join(f"r{operand}" for operand in step.operands)
            lines.append(f"r{register}: {step.node.dtype} = {name} {operands}")
        outputs = self.inner[len(self.inner) - len(self.results) :]
        lines += [f"store r{r} {kind}" for r, kind in zip(self.results, outputs, strict=True)]
        return "\n".join(lines)

    @property
    def parameter_formats(self) -> tuple[str, ...]:
        """Format of :mod:`struct` for each parameter structure, in order."""
        formats = [f"{self.rank + 1}q"]
        inner = self._leaf_classes()
        for leaf, node in enumerate(self.leaves):
            formats.append(
                _stream_format(self.rank, inner[leaf]) if node.op == "stream" else node.dtype.format
            )
        outputs = self.inner[len(self.inner) - len(self.results) :]
        return (*formats, *(_stream_format(self.rank, kind) for kind in outputs))

    def _leaf_classes(self) -> list[str]:
        classes = iter(self.inner)
        return [next(classes) if node.op == "stream" else "" for node in self.leaves]

    def source(self) -> str:
        """Return the C++ translation unit."""
        return _Text(self).render()


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


def allocate_slots(program: Program) -> list[int]:
    """Return the register slot of each step's value; slots are reused after their last reader."""
    last_use = {operand: i for i, step in enumerate(program.steps) for operand in step.operands}
    last_use.update(dict.fromkeys(program.results, len(program.steps)))
    slots: list[int] = []
    free: list[int] = []
    size = 0
    for register, step in enumerate(program.steps):
        free += [
            slots[operand]
            for operand in dict.fromkeys(step.operands)
            if last_use[operand] == register
        ]
        if free:
            slots.append(min(free))
            free.remove(min(free))
        else:
            slots.append(size)
            size += 1
    return slots


def _stream_format(rank: int, inner: str) -> str:
    return f"P{rank if inner == 'strided' else rank - 1}q"


class _Text:
    """Writes one translation unit."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inner = iter(program.inner)
        self.slots = allocate_slots(program)
        self.parameters: list[str] = []
        self.operations: list[str] = []
        self.arguments: list[str] = []

    def render(self) -> str:
        rank = self.program.rank
        self._parameter("space", f"Space<{rank}>")
        names: list[str] = []
        types: list[str] = []
        for leaf, node in enumerate(self.program.leaves):
            if node.op == "stream":
                names.append(f"x{leaf}")
                types.append(f"{node.dtype.cpp}, lanes, {rank}, Inner::{next(self.inner)}")
                self._parameter(f"x{leaf}", f"Strided<{types[-1].replace(' lanes,', '')}>")
            else:
                names.append(f"s{leaf}")
                types.append(f"{node.dtype.cpp}, lanes")
                self._parameter(f"s{leaf}", node.dtype.parameter)
        for register, step in enumerate(self.program.steps):
            if step.leaf >= 0:
                self._load(register, step, names[step.leaf], types[step.leaf])
            else:
                self._apply(register, step)
        for output, register in enumerate(self.program.results):
            self._write(output, register)
        return self._join()

    def _parameter(self, name: str, cpp: str) -> None:
        index = len(self.parameters)
        self.parameters.append(
            f"    const auto {name} = *reinterpret_cast<const {cpp}*>(params[{index}]);"
        )

    def _operation(self, name: str, cpp: str, build: str) -> None:
        self.operations += [
            f"    using {name.upper()} = {cpp};",
            f"    const auto {name} = {name.upper()}::build({build});",
        ]
        self.arguments.append(name)

    def _load(self, register: int, step: Instruction, name: str, types: str) -> None:
        scalar = step.node.op == "scalar"
        if register == 0:
            read = (
                f"ScalarRead<{types}, {self.program.rank}>" if scalar else f"StridedRead<{types}>"
            )
            self._operation("r0", read, f"{{{name}, space}}")
            return
        kind = "LoadScalar" if scalar else "LoadStrided"
        self._operation(
            f"r{register}",
            f"{kind}<R{register - 1}::OutputType, {self.slots[register]}, {types}>",
            name if scalar else f"{{{name}, space}}",
        )

    def _apply(self, register: int, step: Instruction) -> None:
        functor = step.node.op.functor if isinstance(step.node.op, Op) else ""
        if step.node.op == CAST:
            functor = f"Cast<{step.node.dtype.cpp}>"
        slots = ", ".join(str(self.slots[operand]) for operand in (register, *step.operands))
        self._operation(
            f"r{register}", f"Apply<{functor}, R{register - 1}::OutputType, {slots}>", ""
        )

    def _write(self, output: int, register: int) -> None:
        dtype = self.program.steps[register].node.dtype
        tail = f"{dtype.cpp}, {self.program.rank}, Inner::{next(self.inner)}"
        self._parameter(f"y{output}", f"Strided<{tail}>")
        registers = f"R{len(self.program.steps) - 1}::OutputType"
        self._operation(
            f"w{output}",
            f"StridedWrite<{registers}, {self.slots[register]}, {tail}>",
            f"{{y{output}, space}}",
        )
        if output + 1 < len(self.program.results):
            self.operations[-1] = (
                f"    const fk::MidWrite<W{output}> w{output}{{{{{{y{output}, space}}}}}};"
            )

    def _includes(self) -> list[str]:
        ops = {step.node.op for step in self.program.steps}
        families = {op.family for op in ops if isinstance(op, Op)}
        if CAST in ops:
            families.add("cast")
        headers = ["fused_kernel/fused_kernel.h"]
        if any(dtype.kind == "complex" for dtype in self._dtypes()):
            headers.append("fklarray/complex.h")
        if not all(dtype.is_standard for dtype in self._dtypes()):
            headers.append("fklarray/float16.h")
        headers += ["fklarray/operations.h", "fklarray/entry.h"]
        headers += [f"fklarray/functors/{family}.h" for family in sorted(families)]
        return [f"#include <{header}>" for header in headers]

    def _dtypes(self) -> list[DType]:
        return list(dict.fromkeys(step.node.dtype for step in self.program.steps))

    def _join(self) -> str:
        lanes = ", ".join(dtype.cpp for dtype in self._dtypes())
        arguments = ", ".join(self.arguments)
        read, compute = self.operations[:2], self.operations[2:]
        return "\n".join(
            [
                *self._includes(),
                "",
                "FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {",
                "    using namespace fklarray;",
                f"    constexpr int lanes = pack_lanes<{lanes}>();",
                "    // 1. Parameters",
                *self.parameters,
                "    // 2. Read",
                *read,
                "    // 3. Compute, 4. Write",
                *compute,
                "    auto queue = open_stream(stream);",
                f"    fk::executeOperations<fk::TransformDPP<>>(queue, {arguments});",
                "    return close_stream(queue);",
                "}",
                "",
            ]
        )
