"""The C++ text of translation units, in the form of the Fused Kernel Library.

It is what a C++ user of the library would write: cast and dereference each parameter, build the
read, the compute operations and the writes, and execute them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import CAST, Instruction, Node, Operation
from fklarray_codegen.layout import has_stride
from fklarray_codegen.ops import Op

__all__ = [
    "Chain",
    "Parameters",
    "Source",
    "allocate_slots",
    "headers",
    "leaf_classes",
    "leaf_sources",
    "scalar_source",
    "stream_format",
    "stream_source",
    "unit",
]


def allocate_slots(steps: Sequence[Instruction], results: Sequence[int]) -> list[int]:
    """Return the register slot of each step's value; slots are reused after their last reader."""
    last_use = {operand: i for i, step in enumerate(steps) for operand in step.operands}
    last_use.update(dict.fromkeys(results, len(steps)))
    slots: list[int] = []
    free: list[int] = []
    size = 0
    for register, step in enumerate(steps):
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


def stream_format(rank: int, inner: str) -> str:
    """Return the format of a stream's parameters: its address and strides."""
    return f"P{rank if has_stride(inner) else rank - 1}q"


def headers(dtypes: Sequence[DType], ops: set[Operation], *patterns: str) -> list[str]:
    """Return the lines that include what a unit over these data types and operations needs."""
    families = {op.family for op in ops if isinstance(op, Op)}
    if CAST in ops:
        families.add("cast")
    names = ["fused_kernel/fused_kernel.h"]
    if any(dtype.kind == "complex" for dtype in dtypes):
        names.append("fklarray/complex.h")
    if not all(dtype.is_standard for dtype in dtypes):
        names.append("fklarray/float16.h")
    names += ["fklarray/operations.h", "fklarray/entry.h"]
    names += [f"fklarray/functors/{family}.h" for family in sorted(families)]
    names += patterns
    return [f"#include <{name}>" for name in names]


@dataclass(frozen=True, slots=True)
class Source:
    """Something that a chain loads: a stream or a scalar among the kernel's parameters.

    Attributes
    ----------
    name : str
        Of the parameter.
    types : str
        What the Operation that loads it is instantiated with.
    is_scalar : bool
        Whether it is a number.
    """

    name: str
    types: str
    is_scalar: bool


def stream_source(name: str, dtype: DType, rank: int, inner: str) -> Source:
    """Return the source of a stream."""
    return Source(name, f"{dtype.cpp}, lanes, {rank}, Inner::{inner}", False)


def scalar_source(name: str, dtype: DType) -> Source:
    """Return the source of a number."""
    return Source(name, f"{dtype.cpp}, lanes", True)


class Chain:
    """Writes the Operations of one chain; each value lies in a register of its own or a reused one.

    Parameters
    ----------
    prefix : str
        A small letter, which the names of the chain's operations begin with.
    steps : sequence of Instruction
        The first one is a load.
    results : sequence of int
        Steps whose values are needed at the end.
    rank : int
        Number of dimensions of the index space.
    """

    def __init__(
        self, prefix: str, steps: Sequence[Instruction], results: Sequence[int], rank: int
    ) -> None:
        self.prefix = prefix
        self.steps = steps
        self.rank = rank
        self.slots = allocate_slots(steps, results)
        self.operations: list[str] = []
        self.arguments: list[str] = []

    @property
    def registers(self) -> str:
        """Type of the registers at the end of the chain."""
        return f"{self.prefix.upper()}{len(self.steps) - 1}::OutputType"

    def add_steps(self, sources: Sequence[Source]) -> None:
        """Write the loads and operations; loads are from the numbered sources."""
        for register, step in enumerate(self.steps):
            if step.leaf >= 0:
                self._load(register, sources[step.leaf])
            else:
                self._apply(register, step)

    def add_write(
        self, name: str, register: int, target: Source, *, is_last: bool, rereads: bool = False
    ) -> None:
        """Write the store of a register; as a MidWrite if the chain goes on."""
        kind = "StridedUpdate" if rereads else "StridedWrite"
        tail = target.types.replace(" lanes,", "")
        alias = (
            f"    using {name.upper()} = {kind}<{self.registers}, {self.slots[register]}, {tail}>;"
        )
        build = f"    const auto {name} = {name.upper()}::build({{{target.name}, space}});"
        if not is_last:
            build = (
                f"    const fk::MidWrite<{name.upper()}> {name}{{{{{{{target.name}, space}}}}}};"
            )
        self.operations += [alias, build]
        self.arguments.append(name)

    def add_fold(
        self, name: str, kind: str, functor: str, register: int, dtype: DType, target: Source
    ) -> None:
        """Write the reduction of a register over each row; its kind is ``Fold`` or ``Scan``."""
        inner = target.types.rsplit(", ", 1)[1]
        types = f"{functor}, {self.slots[register]}, {dtype.cpp}, {self.rank}, {inner}"
        self.operations.append(f"    const {kind}<{types}> {name}{{{{{target.name}, space}}}};")
        self.arguments.append(name)

    def _operation(self, name: str, cpp: str, build: str) -> None:
        self.operations += [
            f"    using {name.upper()} = {cpp};",
            f"    const auto {name} = {name.upper()}::build({build});",
        ]
        self.arguments.append(name)

    def _before(self, register: int) -> str:
        return f"{self.prefix.upper()}{register - 1}::OutputType"

    def _load(self, register: int, source: Source) -> None:
        build = source.name if source.is_scalar else f"{{{source.name}, space}}"
        name = f"{self.prefix}{register}"
        if register == 0:
            read = f"StridedRead<{source.types}>"
            if source.is_scalar:
                read, build = (
                    f"ScalarRead<{source.types}, {self.rank}>",
                    f"{{{source.name}, space}}",
                )
            self._operation(name, read, build)
            return
        kind = "LoadScalar" if source.is_scalar else "LoadStrided"
        slot = self.slots[register]
        self._operation(name, f"{kind}<{self._before(register)}, {slot}, {source.types}>", build)

    def _apply(self, register: int, step: Instruction) -> None:
        functor = step.node.op.functor if isinstance(step.node.op, Op) else ""
        if step.node.op == CAST:
            functor = f"Cast<{step.node.dtype.cpp}>"
        slots = ", ".join(str(self.slots[operand]) for operand in (register, *step.operands))
        self._operation(
            f"{self.prefix}{register}", f"Apply<{functor}, {self._before(register)}, {slots}>", ""
        )


class Parameters:
    """Writes the lines that take a unit's parameters from its entry's first argument."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.lines: list[str] = []
        self._add("space", f"Space<{rank}>")

    def add(self, source: Source, dtype: DType) -> Source:
        """Write one parameter; return its source."""
        cpp = dtype.parameter if source.is_scalar else f"Strided<{source.types}>"
        self._add(source.name, cpp.replace(" lanes,", ""))
        return source

    def _add(self, name: str, cpp: str) -> None:
        index = len(self.lines)
        self.lines.append(
            f"    const auto {name} = *reinterpret_cast<const {cpp}*>(params[{index}]);"
        )


def leaf_sources(
    parameters: Parameters, leaves: Sequence[Node], classes: Sequence[str]
) -> list[Source]:
    """Write the parameters of all leaves; the stride classes of scalars are empty."""
    sources: list[Source] = []
    for number, (node, inner) in enumerate(zip(leaves, classes, strict=True)):
        source = (
            stream_source(f"x{number}", node.dtype, parameters.rank, inner)
            if inner
            else scalar_source(f"s{number}", node.dtype)
        )
        sources.append(parameters.add(source, node.dtype))
    return sources


def leaf_classes(leaves: Sequence[Node], inner: Sequence[str]) -> list[str]:
    """Return the stride class of each leaf, empty for scalars."""
    classes = iter(inner)
    return [next(classes) if node.op == "stream" else "" for node in leaves]


def unit(
    includes: Sequence[str],
    dtypes: Sequence[DType],
    parameters: Parameters,
    operations: Sequence[str],
    execute: str,
    pack: str = "pack_lanes",
) -> str:
    """Return a translation unit, whose packs are as wide as a function of all data types says."""
    lanes = ", ".join(dtype.cpp for dtype in dtypes)
    return "\n".join(
        [
            *includes,
            "",
            "FKLARRAY_ENTRY int fkl_entry(const void** params, void* stream) {",
            "    using namespace fklarray;",
            f"    constexpr int lanes = {pack}<{lanes}>();",
            "    // 1. Parameters",
            *parameters.lines,
            *operations,
            "    auto queue = open_stream(stream);",
            f"    {execute}",
            "    return close_stream(queue);",
            "}",
            "",
        ]
    )
