"""Plans of launches: what a kernel needs besides the leaves' values, found again by structure.

A plan is looked up by structure, shape and strides, its kernel by its signature (`kernels`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fklarray import background
from fklarray.config import config
from fklarray.core import prepare_launch
from fklarray.fusion import Pattern
from fklarray.kernels import Kernel, Unit, architecture_of, build, kernel_cache
from fklarray.placement import launch_at, number_of
from fklarray.recording import Stream
from fklarray_codegen import INCLUDE
from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import HOST, Node, leaf_node
from fklarray_codegen.layout import (
    DEVICE_ROW,
    ROW,
    Layout,
    Period,
    contiguous_strides,
    has_stride,
    layout,
)
from fklarray_codegen.render import Program, compose
from fklarray_codegen.staged import StagedProgram
from fklarray_codegen.walk import Walk

__all__ = [
    "Draft",
    "Key",
    "Plan",
    "Results",
    "draft_of",
    "fused_launch_of",
    "include_folders",
    "launch_of",
    "launch_plan",
    "lay_out",
    "new_plan",
    "plans",
    "result_dtypes",
]

_MAX_PLANS = 4096

Key = tuple[Any, ...]
# Data type and shape of an array that a kernel writes.
Target = tuple[DType, tuple[int, ...]]


@dataclass(slots=True)
class Plan:
    """What one launch needs besides the leaves' values."""

    kernel: Kernel
    place: str
    values: list[complex]  # all parameters; those of leaves and outputs are filled in
    positions: tuple[int, ...]  # of each leaf's value, then of each output's address
    complex_leaves: tuple[int, ...]
    periodic: tuple[tuple[int, DType, Period], ...]  # leaves that repeat within a row
    row: int
    operations: int
    is_special: bool  # has complex scalars or repeating leaves
    results: Results | None  # of a kernel with reductions
    launch: object = None  # for the core: the same for a contiguous result


@dataclass(frozen=True, slots=True)
class Results:
    """What a kernel with reductions stores.

    Attributes
    ----------
    targets : tuple of (DType, tuple of int)
        Data type and shape of each array that it writes: values of rows first.
    results : tuple of int
        Which of them each result of the expression is.
    pending : tuple of int
        Which of them each pending result of its pattern is.
    """

    targets: tuple[Target, ...]
    results: tuple[int, ...]
    pending: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """What can be said of a launch before its kernel is there."""

    unit: Unit
    program: Program | StagedProgram
    laid_out: Layout | Walk
    results: Results | None


plans: dict[Key, Plan] = {}
_waiting: dict[Key, Draft] = {}


def result_dtypes(node: Node) -> list[DType]:
    """Return the data types of an expression's results."""
    return [source.dtype for source in node.inputs] if node.op == "outputs" else [node.dtype]


def new_plan(
    plan_key: Key,
    draft: Callable[[], Draft | None],
    elements: int,
    lacking: Callable[[], Sequence[Unit]] | None = None,
) -> Plan | None:
    """Make a plan; None where its kernel is not there yet, or never will be.

    Parameters
    ----------
    plan_key : tuple
        Where it is found again.
    draft : callable
        Returns what can be said of the launch before; None if it cannot be one.
    elements : int
        Size of the index space.
    lacking : callable, optional
        Returns the units without which the launch cannot run operation by operation. A launch that
        never does so waits for its kernel.
    """
    waiting_key = (*plan_key, config.cache_dir, config.fkl_include)
    waiting = _waiting.get(waiting_key) or draft()
    if waiting is None:
        return None
    if config.compile == "background" and lacking is not None:
        kernel = background.find(waiting.unit, waiting.program.operations, elements, lacking)
    else:
        kernel = build(waiting.unit)
    if kernel is None:
        _remember(_waiting, waiting_key, waiting)
        return None
    _waiting.pop(waiting_key, None)
    plan = _make_plan(kernel, waiting)
    _remember(plans, plan_key, plan)
    return plan


def lay_out(
    node: Node,
    strides: Sequence[tuple[int, ...]],
    shape: tuple[int, ...],
    target: tuple[int, ...],
    place: str,
) -> Draft:
    """Lay out the kernel of an elementwise expression, given the strides of what it stores."""
    row = ROW if place == HOST else DEVICE_ROW
    laid_out = layout(shape, strides, [target] * len(result_dtypes(node)), row)
    program = compose(node, laid_out.rank, laid_out.inner)
    return draft_of(program, laid_out, place)


def draft_of(
    program: Program | StagedProgram,
    laid_out: Layout | Walk,
    place: str,
    results: Results | None = None,
) -> Draft:
    """Return the draft of a program, whose unit is built and kept as the settings say."""
    signature = f"{architecture_of(place)} {config.fkl_include or ''}\n{program.signature}"
    unit = Unit(signature, place, program, include_folders(), kernel_cache())
    return Draft(unit, program, laid_out, results)


_T = TypeVar("_T")


def _remember(known: dict[Key, _T], place: Key, value: _T) -> None:
    if len(known) >= _MAX_PLANS:
        known.clear()
    known[place] = value


def _make_plan(kernel: Kernel, waiting: Draft) -> Plan:
    program, laid_out = waiting.program, waiting.laid_out
    values: list[complex] = [*laid_out.shape, laid_out.last]
    moves = iter(zip(laid_out.strides, laid_out.inner, laid_out.periods, strict=True))
    positions: list[int] = []
    periodic: list[tuple[int, DType, Period]] = []
    for index, node in enumerate(program.leaves):
        positions.append(len(values))
        if node.op == "scalar":
            values += [0] * len(node.dtype.format)
            continue
        strides, inner, period = next(moves)
        values += [0, *(strides if has_stride(inner) else strides[:-1])]
        if period[0]:
            periodic.append((index, node.dtype, period))
    for strides, inner, _ in moves:
        positions.append(len(values))
        values += [0, *(strides if has_stride(inner) else strides[:-1])]
    complex_leaves = tuple(
        index
        for index, node in enumerate(program.leaves)
        if node.op == "scalar" and node.dtype.kind == "complex"
    )
    return Plan(
        kernel,
        waiting.unit.place,
        values,
        tuple(positions),
        complex_leaves,
        tuple(periodic),
        laid_out.shape[-1],
        program.operations,
        bool(complex_leaves or periodic),
        waiting.results,
    )


def launch_plan(plan: Plan, addresses: Sequence[int], streams: Sequence[Stream]) -> None:
    """Run a plan whose leaves are all plain streams.

    Parameters
    ----------
    plan : Plan
        What runs.
    addresses : sequence of int
        Of what it reads, then of what it writes.
    streams : sequence of Stream
        The same as memory of its device; none are needed on the host.
    """
    values = plan.values.copy()
    for position, address in zip(plan.positions, addresses, strict=True):
        values[position] = address
    launch_at(plan.place, plan.kernel, values, streams)


# Work that is done before another thread could have taken the interpreter over.
_BRIEF = 1 << 16


def launch_of(plan: Plan, node: Node, shape: tuple[int, ...]) -> object:
    """Return what the core needs to launch a plan by itself; None where it cannot."""
    numbers = tuple(range(len(node.leaves)))
    return _launch_of(plan, node.leaves, numbers, ((node.dtype, shape),), [(0, -1, shape)], shape)


def fused_launch_of(plan: Plan, pattern: Pattern, shape: tuple[int, ...]) -> object:
    """Return the same for an expression with reductions, whose result has a shape."""
    made = plan.results
    if made is None or len(made.results) != 1:
        return None
    results = [(made.results[0], -1, shape)]
    for target, (memory, _, _) in zip(made.pending, pattern.pending, strict=True):
        results.append((target, memory, made.targets[target][1]))
    leaves = pattern.root.leaves
    return _launch_of(plan, leaves, pattern.numbers, made.targets, results, pattern.shape)


def _launch_of(
    plan: Plan,
    leaves: tuple[Node, ...],
    numbers: tuple[int, ...],
    targets: tuple[Target, ...],
    results: list[tuple[int, int, tuple[int, ...]]],
    space: tuple[int, ...],
) -> object:
    if plan.place != HOST and plan.periodic:
        return None  # a kernel repeats them there
    formats = [_format(leaf.dtype) if leaf.op == "scalar" else "P" for leaf in leaves]
    return prepare_launch(
        plan.kernel,
        *plan.kernel.addresses,
        plan.kernel.pack(plan.values),  # type: ignore[arg-type]
        plan.kernel.offsets[1:],
        "".join(formats) + "P" * len(targets),
        numbers,
        tuple(math.prod(shape) * dtype.itemsize for dtype, shape in targets),
        tuple(
            (
                target,
                memory,
                leaf_node("stream", targets[target][0], plan.place),
                contiguous_strides(shape),
            )
            for target, memory, shape in results
        ),
        tuple((leaf, dtype.itemsize, *period, plan.row) for leaf, dtype, period in plan.periodic),
        plan.operations,
        math.prod(space) * plan.operations <= _BRIEF,
        -1 if plan.place == HOST else number_of(plan.place),
        plan.place,
    )


def _format(dtype: DType) -> str:
    """Return how the core packs a number: as `struct`, but for F and D, two of f or d."""
    return dtype.format if len(dtype.format) == 1 else dtype.format[0].upper()


def include_folders() -> tuple[Path, ...]:
    """Return the include folders of a translation unit, the first one winning."""
    return (config.fkl_include, INCLUDE) if config.fkl_include else (INCLUDE,)
