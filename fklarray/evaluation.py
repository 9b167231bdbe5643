"""From recorded expressions to values: the one module that sees both generator and runtime.

A launch is looked up by structure, shape and strides (`_plans`), its kernel by its signature
(`kernels`). Values, extents and addresses are parameters. While a kernel is not there, the
expression runs operation by operation, with the same bits.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fklarray import background
from fklarray.config import config
from fklarray.core import connect, core_counters, prepare_launch
from fklarray.deferred import resolved
from fklarray.dtype_rows import NUMPY_DTYPES
from fklarray.interchange import repeated_row
from fklarray.kernels import COUNTERS, Unit, build, compile_seconds, has_compiler, kernel_cache
from fklarray.recording import Leaf, Scalar, State, Stream, stream_of, stream_state
from fklarray.reference import Values, evaluate_on_numpy, view_of
from fklarray_codegen import INCLUDE
from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.graph import STREAMS, Node, apply, cast
from fklarray_codegen.layout import Layout, Period, broadcast_shapes, contiguous_strides, layout
from fklarray_codegen.ops import Op
from fklarray_codegen.render import Program, compose
from fklarray_runtime import Buffer, Kernel, allocate, native_functions, pool_bytes

__all__ = [
    "compile_seconds",
    "connect_core",
    "count",
    "counts",
    "evaluate",
    "evaluate_into",
    "kernel_cache",
    "pool_bytes",
    "program_of",
]

_MAX_PLANS = 4096

_Key = tuple[Any, ...]


@dataclass(slots=True)
class _Plan:
    """What one launch needs besides the leaves' values."""

    kernel: Kernel
    values: list[complex]  # all parameters; those of leaves and outputs are filled in
    positions: tuple[int, ...]  # of each leaf's value, then of each output's address
    complex_leaves: tuple[int, ...]
    periodic: tuple[tuple[int, DType, Period], ...]  # leaves that repeat within a row
    row: int
    operations: int
    is_special: bool  # has complex scalars or repeating leaves
    launch: object = None  # for the core: the same for a contiguous result, if it is not special


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What can be said of a launch before its kernel is there."""

    unit: Unit
    program: Program
    laid_out: Layout


_plans: dict[_Key, _Plan] = {}
_waiting: dict[_Key, _Waiting] = {}
_lock = threading.Lock()


def _renew_locks() -> None:
    global _lock  # noqa: PLW0603 (a forked child may inherit it locked)
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)


def evaluate(
    node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...], *, is_flush: bool = False
) -> list[State]:
    """Compute an expression into new memory.

    Parameters
    ----------
    node, leaves
        The expression; an ``"outputs"`` node gives several results.
    shape : tuple of int
        Shape of the results.
    is_flush : bool
        Whether somebody outside this library waits for the results.

    Returns
    -------
    list of State
        One C-contiguous array per result.

    Raises
    ------
    MemoryError
        If the results do not fit into memory.
    CompileError
        If the compiler refuses the kernel. The expression stays as it was.
    """
    node, leaves = resolved((node, leaves))
    elements = math.prod(shape)
    states = [
        stream_state(allocate(elements * dtype.itemsize), dtype, shape)
        for dtype in _result_dtypes(node)
    ]
    if elements:
        targets = tuple([stream_of(state) for state in states])
        plan = _plan(node, leaves, shape, None)
        if plan is not None:
            _launch(plan, leaves, targets, is_flush)
            return states
        _evaluate_reference(node, leaves, shape, targets)
    if is_flush:
        count("flushes")
    return states


def _result_dtypes(node: Node) -> list[DType]:
    return [source.dtype for source in node.inputs] if node.op == "outputs" else [node.dtype]


def evaluate_into(
    node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...], target: Stream
) -> None:
    """Compute an expression into a part of an existing array that no leaf reads.

    Parameters
    ----------
    node, leaves, shape
        As in `evaluate`, with one result.
    target : Stream
        Where the elements go; its strides must tell all elements apart.
    """
    if math.prod(shape) == 0:
        return
    node, leaves = resolved((node, leaves))
    plan = _plan(node, leaves, shape, target.strides)
    if plan is None:
        _evaluate_reference(node, leaves, shape, (target,))
    else:
        _launch(plan, leaves, (target,))


def _launch(
    plan: _Plan, leaves: tuple[Leaf, ...], targets: tuple[Stream, ...], is_flush: bool = False
) -> None:
    values = plan.values.copy()
    for position, leaf in zip(plan.positions, leaves + targets, strict=True):
        values[position] = leaf.value
    repeated: list[Stream] = []
    if plan.is_special:
        for index in plan.complex_leaves:
            position = plan.positions[index]
            value = complex(leaves[index].value)
            values[position : position + 2] = value.real, value.imag
        for index, dtype, period in plan.periodic:
            repeated.append(repeated_row(leaves[index], dtype, period, plan.row))
            values[plan.positions[index]] = repeated[-1].value
    plan.kernel.launch(values)  # type: ignore[arg-type]
    with _lock:
        COUNTERS["kernels_launched"] += 1
        COUNTERS["flushes"] += is_flush
        COUNTERS["ops_fused"] += plan.operations


def _plan(
    node: Node,
    leaves: tuple[Leaf, ...],
    shape: tuple[int, ...],
    target: tuple[int, ...] | None,
) -> _Plan | None:
    """Find or make the plan of a launch; None where the expression runs without a kernel.

    A `target` of None stands for results in C order.
    """
    if not config.compiles:
        return None
    plan_key = (node, shape, target, *[leaf.strides for leaf in leaves])
    plan = _plans.get(plan_key)
    if plan is None:
        strides = [leaf.strides for leaf in leaves if isinstance(leaf, Stream)]
        plan = _new_plan(plan_key, node, strides, shape, target or contiguous_strides(shape))
        if plan is not None and target is None and node.op != "outputs":
            plan.launch = _launch_of(plan, node, shape)
    return plan


def _new_plan(
    plan_key: _Key,
    node: Node,
    strides: Sequence[tuple[int, ...]],
    shape: tuple[int, ...],
    target: tuple[int, ...],
    at_once: bool = False,
) -> _Plan | None:
    """Make a plan; None where its kernel is not there yet, or never will be."""
    waiting_key = (*plan_key, config.cache_dir, config.fkl_include)
    waiting = _waiting.get(waiting_key)
    if waiting is None:
        laid_out = layout(shape, strides, [target] * len(_result_dtypes(node)))
        program = compose(node, laid_out.rank, laid_out.inner)
        signature = f"{config.fkl_include or ''}\n{program.signature}"
        waiting = _Waiting(
            Unit(signature, program, include_folders(), kernel_cache()), program, laid_out
        )
    if config.compile == "background" and not at_once:
        kernel = background.find(waiting.unit, waiting.program.operations, math.prod(shape))
    else:
        kernel = build(waiting.unit)
    if kernel is None:
        _remember(_waiting, waiting_key, waiting)
        return None
    _waiting.pop(waiting_key, None)
    plan = _make_plan(kernel, waiting.program, waiting.laid_out)
    _remember(_plans, plan_key, plan)
    return plan


_T = TypeVar("_T")


def _remember(known: dict[_Key, _T], place: _Key, value: _T) -> None:
    if len(known) >= _MAX_PLANS:
        known.clear()
    known[place] = value


def _make_plan(kernel: Kernel, program: Program, laid_out: Layout) -> _Plan:
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
        values += [0, *(strides if inner == "strided" else strides[:-1])]
        if period[0]:
            periodic.append((index, node.dtype, period))
    for strides, inner, _ in moves:
        positions.append(len(values))
        values += [0, *(strides if inner == "strided" else strides[:-1])]
    complex_leaves = tuple(
        index
        for index, node in enumerate(program.leaves)
        if node.op == "scalar" and node.dtype.kind == "complex"
    )
    return _Plan(
        kernel,
        values,
        tuple(positions),
        complex_leaves,
        tuple(periodic),
        laid_out.shape[-1],
        program.operations,
        bool(complex_leaves or periodic),
    )


# Work that is done before another thread could have taken the interpreter over.
_BRIEF = 1 << 16


def _launch_of(plan: _Plan, node: Node, shape: tuple[int, ...]) -> object:
    """Return what the core needs to launch a plan by itself; None where it cannot."""
    if plan.is_special:
        return None
    elements = math.prod(shape)
    formats = [leaf.dtype.format if leaf.op == "scalar" else "P" for leaf in node.leaves]
    return prepare_launch(
        plan.kernel,
        *plan.kernel.addresses,
        plan.kernel.pack(plan.values),  # type: ignore[arg-type]
        plan.kernel.offsets[1:],
        "".join((*formats, "P")),
        STREAMS[node.dtype],
        contiguous_strides(shape),
        elements * node.dtype.itemsize,
        plan.operations,
        elements * plan.operations <= _BRIEF,
    )


def connect_core(array: type[Any]) -> None:
    """Let the core work on arrays of this class."""
    connect(
        array=array,
        node=Node,
        dtype=DType,
        stream=Stream,
        scalar=Scalar,
        buffer=Buffer,
        plan=_Plan,
        stream_op=STREAMS[DTYPES["bool"]].op,
        settings=config.values,
        plans=_plans,
        broadcast=broadcast_shapes,
        runtime=native_functions(),
    )


def include_folders() -> tuple[Path, ...]:
    """Return the include folders of a translation unit, the first one winning."""
    return (config.fkl_include, INCLUDE) if config.fkl_include else (INCLUDE,)


def _evaluate_reference(
    node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...], targets: Sequence[Stream]
) -> None:
    dtypes = _result_dtypes(node)
    compiles = config.compile == "background" and has_compiler()
    results = evaluate_on_numpy(node, leaves, shape, _run_alone if compiles else None)
    for result, target, dtype in zip(results, targets, dtypes, strict=True):
        view_of(target, dtype, shape)[...] = result
    count("reference_evaluations")


def _run_alone(node: Node, operands: Sequence[Values]) -> Values:
    """Run one operation as a kernel of its own, on contiguous operands: few kernels serve all."""
    shape = np.broadcast_shapes(*[operand.shape for operand in operands])
    flat = [np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1) for x in operands]
    result = np.empty(flat[0].shape, NUMPY_DTYPES[node.dtype])
    alone = _on_streams(node)
    place = (alone, result.size)
    plan = _plans.get(place)
    if plan is None:
        plan = _new_plan(place, alone, [(1,)] * len(flat), result.shape, (1,), at_once=True)
        assert plan is not None
    values: list[Any] = plan.values.copy()
    for position, array in zip(plan.positions, (*flat, result), strict=True):
        values[position] = array.ctypes.data
    plan.kernel.launch(values)
    with _lock:
        COUNTERS["kernels_launched"] += 1
        COUNTERS["ops_fused"] += 1
    return result.reshape(shape)


def _on_streams(node: Node) -> Node:
    """Return the node of the same operation on arrays that are all in memory."""
    streams = [STREAMS[source.dtype] for source in node.inputs]
    if isinstance(node.op, Op):
        return apply(node.op, tuple(streams), tuple((index,) for index in range(len(streams))))
    return cast(streams[0], node.dtype)


def count(counter: str) -> None:
    """Add one to a counter."""
    with _lock:
        COUNTERS[counter] += 1


def counts() -> dict[str, int]:
    """Return the counters, what the core has run included."""
    launched, operations, flushes = core_counters()
    with _lock:
        result = dict(COUNTERS)
    result["kernels_launched"] += launched
    result["ops_fused"] += operations
    result["flushes"] += flushes
    return result


def program_of(node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...]) -> Program:
    """Return the program that evaluating an expression would run, without running it."""
    count = len(node.inputs) if node.op == "outputs" else 1
    strides = [leaf.strides for leaf in leaves if isinstance(leaf, Stream)]
    laid_out = layout(shape, strides, [contiguous_strides(shape)] * count)
    return compose(node, laid_out.rank, laid_out.inner)
