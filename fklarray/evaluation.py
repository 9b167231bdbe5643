"""From recorded expressions to values: the one module that sees both generator and runtime.

A launch is looked up by structure, shape and strides (`plans`), its kernel by its signature
(`kernels`). Values, extents and addresses are parameters. While a kernel is not there, the
expression runs operation by operation, with the same bits.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fklarray.config import config
from fklarray.core import connect, core_counters
from fklarray.deferred import DeferredStream, resolved, resolved_leaf, resolved_leaves
from fklarray.fusion import Fused, Pattern, PendingReduction, fuse, outcome, patterns, reduced_alone
from fklarray.interchange import repeated_row
from fklarray.kernels import COUNTERS, compile_seconds, has_compiler, kernel_cache
from fklarray.placement import (
    Values,
    empty_state,
    launch_at,
    placed,
    values_of,
    view_of,
    write_values,
)
from fklarray.plans import (
    Draft,
    Plan,
    draft_of,
    fused_launch_of,
    include_folders,
    launch_of,
    lay_out,
    new_plan,
    plans,
    result_dtypes,
)
from fklarray.recording import (
    Leaf,
    Scalar,
    State,
    Stream,
    is_contiguous,
    stream_of,
    stream_state,
)
from fklarray.reference import evaluate_on_numpy, reduce_on_numpy
from fklarray.repetition import repeated_on_device
from fklarray.single_operations import lacking, matrix_of, run_alone, runs_on_devices
from fklarray.staged_plans import staged
from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.graph import HOST, STREAMS, Node
from fklarray_codegen.layout import broadcast_shapes, contiguous_strides
from fklarray_codegen.ops import Reduction
from fklarray_codegen.walk import Rows
from fklarray_runtime import (
    Buffer,
    DeviceBuffer,
    current_stream,
    native_functions,
    pool_bytes,
    trim,
    trim_device,
)

__all__ = [
    "compile_seconds",
    "connect_core",
    "count",
    "counts",
    "evaluate",
    "evaluate_deferred",
    "evaluate_into",
    "evaluate_reduction",
    "kernel_cache",
    "pool_bytes",
    "trim",
    "trim_device",
]

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
    if any(leaf.deferred for leaf in leaves):
        fused = fuse(node, leaves, shape)
        results = fused and _evaluate_fused(fused, shape, is_flush=is_flush)
        if results:
            return results
        node, leaves = resolved((node, leaves))
    states = [empty_state(dtype, shape, node.place or HOST) for dtype in result_dtypes(node)]
    if math.prod(shape):
        targets = tuple([stream_of(state) for state in states])
        plan = _plan(node, leaves, shape, None, node.place or HOST)
        if plan is not None:
            _launch(plan, leaves, targets, is_flush)
            return states
        _evaluate_reference(node, leaves, shape, targets)
    if is_flush:
        count("flushes")
    return states


def evaluate_deferred(node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...]) -> State:
    """Compute a deferred result that nothing is to be done with; its strides stay."""
    fused = fuse(node, leaves, shape)
    results = fused and _evaluate_fused(fused, shape)
    return results[0] if results else resolved((node, leaves))


def evaluate_reduction(
    reduction: Reduction, operand: State, shape: tuple[int, ...], rows: Rows
) -> State:
    """Compute a reduction of an operand without deferred leaves.

    Parameters
    ----------
    reduction : Reduction
        Row of the table of reductions.
    operand, shape
        What is reduced, and its shape; no extent is 0.
    rows : Rows
        The axes to reduce.

    Returns
    -------
    State
        A C-contiguous array of the other axes, or of all for a scan.
    """
    dtype, kept, _ = outcome(reduction, operand[0].dtype, shape, rows)
    place = operand[0].place or HOST
    # A scan has NumPy's order, and its bits where NumPy's operation has the kernel's.
    at_once = not reduction.scans or dtype.kind == "complex"
    is_background = config.compile == "background" and has_compiler(HOST, include_folders())
    if place == HOST and is_background and not reduction.scans:
        operand = _rows_last(_in_order(operand, shape), shape, rows)
        shape, rows = matrix_of(shape, rows)
    # The second time in C order: its strides may be what stands in the way.
    for state in (operand, None):
        operand = state or _in_order(operand, shape)
        fused = reduced_alone(reduction, operand, shape, rows)
        results = _evaluate_fused(
            fused, kept if reduction.scans else rows.kept(shape), at_once=at_once
        )
        if results:
            return stream_state(stream_of(results[0]).buffer, dtype, kept)
    values = values_of(stream_of(operand), operand[0].dtype, shape)
    count("reference_evaluations")
    return placed(reduce_on_numpy(reduction, values, rows), dtype, kept, place)


def _in_order(state: State, shape: tuple[int, ...]) -> State:
    """Return an array that fills its memory in C order: the same one, or computed anew."""
    return state if is_contiguous(state, shape) else evaluate(*state, shape)[0]


def _rows_last(operand: State, shape: tuple[int, ...], rows: Rows) -> State:
    """Return an array as a matrix of its rows, copied where they are not so in memory."""
    matrix, _ = matrix_of(shape, rows)
    dtype = operand[0].dtype
    if rows.stop == len(shape):
        return stream_state(stream_of(operand).buffer, dtype, matrix)
    copy = empty_state(dtype, matrix, HOST)
    values = view_of(stream_of(operand), dtype, shape).reshape(
        math.prod(shape[: rows.first]), matrix[1], -1
    )
    view_of(stream_of(copy), dtype, matrix)[...] = values.swapaxes(1, 2).reshape(matrix)
    return copy


def _evaluate_fused(
    fused: Fused, shape: tuple[int, ...], *, is_flush: bool = False, at_once: bool = False
) -> list[State] | None:
    """Run an expression with reductions as one kernel; None if there is none."""
    pattern, leaves, memories = fused
    root = pattern.root
    if not config.compiles or (root.place not in ("", HOST) and not runs_on_devices(root)):
        return None
    key = (pattern,)
    plan = plans.get(key)
    if plan is None:
        of_rows = shape != pattern.shape
        plan = new_plan(
            key,
            lambda: _stage(pattern, of_rows),
            math.prod(pattern.shape),
            None if at_once else partial(lacking, root, pattern.shape, pattern.rows),
        )
        if plan is not None:
            plan.launch = fused_launch_of(plan, pattern, shape)
    if plan is None or plan.results is None:
        return None
    leaves = resolved_leaves(leaves)
    states = [empty_state(dtype, extents, plan.place) for dtype, extents in plan.results.targets]
    _launch(plan, leaves, tuple([stream_of(state) for state in states]), is_flush)
    for memory, number in zip(memories, plan.results.pending, strict=True):
        memory.settle(stream_of(states[number]))
    found = [states[number] for number in plan.results.results]
    return [stream_state(stream_of(state).buffer, state[0].dtype, shape) for state in found]


def _stage(pattern: Pattern, of_rows: bool) -> Draft | None:
    kernel = staged(pattern, of_rows=of_rows)
    if kernel is None:
        return None
    program, laid_out, results = kernel
    return draft_of(program, laid_out, pattern.root.place or HOST, results)


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
    if node.place not in ("", target.buffer.place):
        raise ValueError(
            f"values on {node.place} cannot be assigned to an array on {target.buffer.place}; "
            "to_device moves them"
        )
    plan = _plan(node, leaves, shape, target.strides, target.buffer.place)
    if plan is None:
        _evaluate_reference(node, leaves, shape, (target,))
    else:
        _launch(plan, leaves, (target,))


def _launch(
    plan: Plan, leaves: tuple[Leaf, ...], targets: tuple[Stream, ...], is_flush: bool = False
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
            leaf = leaves[index]
            assert isinstance(leaf, Stream)
            repeat = repeated_row if plan.place == HOST else repeated_on_device
            repeated.append(repeat(leaf, dtype, period, plan.row))
            values[plan.positions[index]] = repeated[-1].value
    launch_at(plan.place, plan.kernel, values, (*leaves, *repeated, *targets))
    with _lock:
        COUNTERS["kernels_launched"] += 1
        COUNTERS["flushes"] += is_flush
        COUNTERS["ops_fused"] += plan.operations


def _plan(
    node: Node,
    leaves: tuple[Leaf, ...],
    shape: tuple[int, ...],
    target: tuple[int, ...] | None,
    device: str,
) -> Plan | None:
    """Find or make the plan of a launch; None where the expression runs without a kernel.

    A `target` of None stands for results in C order.
    """
    if not config.compiles or (device != HOST and not runs_on_devices(node)):
        return None
    plan_key: tuple[Any, ...] = (node, shape, target, *[leaf.strides for leaf in leaves])
    if not node.place and device != HOST:  # numbers alone
        plan_key += (device,)
    plan = plans.get(plan_key)
    if plan is None:
        strides = [leaf.strides for leaf in leaves if isinstance(leaf, Stream)]
        place = target or contiguous_strides(shape)
        plan = new_plan(
            plan_key,
            lambda: lay_out(node, strides, shape, place, device),
            math.prod(shape),
            partial(lacking, node, shape),
        )
        if plan is not None and target is None and node.op != "outputs":
            plan.launch = launch_of(plan, node, shape)
    return plan


def connect_core(array: type[Any], **recording: Callable[..., object]) -> None:
    """Let the core work on arrays of this class, and use classes and functions of recording."""
    connect(
        array=array,
        node=Node,
        dtype=DType,
        stream=Stream,
        deferred_stream=DeferredStream,
        scalar=Scalar,
        buffer=Buffer,
        device_buffer=DeviceBuffer,
        current_stream=current_stream,
        pending_reduction=PendingReduction,
        plan=Plan,
        stream_op=STREAMS[DTYPES["bool"]].op,
        settings=config.values,
        patterns=patterns,
        plans=plans,
        broadcast=broadcast_shapes,
        resolve=resolved_leaf,
        runtime=native_functions(),
        **recording,
    )


def _evaluate_reference(
    node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...], targets: Sequence[Stream]
) -> None:
    dtypes = result_dtypes(node)
    # In "sync", what is here has no code for its device as a whole.
    compiles = config.compiles and has_compiler(node.place or HOST, include_folders())
    results = evaluate_on_numpy(node, leaves, shape, _run_alone if compiles else None)
    for result, target, dtype in zip(results, targets, dtypes, strict=True):
        write_values(target, dtype, shape, result)
    count("reference_evaluations")


def _run_alone(node: Node, operands: Sequence[Values]) -> Values:
    result = run_alone(node, operands)
    with _lock:
        COUNTERS["kernels_launched"] += 1
        COUNTERS["ops_fused"] += 1
    return result


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
