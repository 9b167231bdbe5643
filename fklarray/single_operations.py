"""Kernels of one operation each, for expressions that run operation by operation.

They run what NumPy would compute to other bits, on contiguous operands, so that few of them serve
all expressions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from fklarray.dtype_rows import NUMPY_DTYPES
from fklarray.fusion import alone
from fklarray.kernels import Unit, is_there
from fklarray.placement import Values, empty_state, placed, values_of
from fklarray.plans import Plan, draft_of, launch_plan, lay_out, new_plan, plans
from fklarray.recording import stream_of
from fklarray.reference import is_exact
from fklarray.staged_plans import staged
from fklarray_codegen.graph import HOST, Node, apply, cast, leaf_node, linearise
from fklarray_codegen.layout import contiguous_strides
from fklarray_codegen.ops import Op, Reduction
from fklarray_codegen.walk import Rows

__all__ = ["lacking", "matrix_of", "run_alone", "runs_on_devices"]


def lacking(root: Node, shape: tuple[int, ...], rows: Rows | None = None) -> list[Unit]:
    """Return what would have to be compiled before an expression runs operation by operation.

    Parameters
    ----------
    root : Node
        The expression.
    shape, rows
        Its index space and, if it has reductions, what they reduce.
    """
    units: dict[str, Unit] = {}
    for step in linearise(root):
        node = step.node
        if step.leaf >= 0 or node.op == "outputs":
            continue
        if isinstance(node.op, Reduction):
            assert rows is not None
            unit = _reduction_unit(node, shape, rows)
        else:
            unit = None if is_exact(node) else _unit(_on_streams(node, node.place or HOST))
        if unit is not None:
            units[unit.signature] = unit
    return [unit for unit in units.values() if not is_there(unit)]


def matrix_of(shape: tuple[int, ...], rows: Rows) -> tuple[tuple[int, int], Rows]:
    """Return the rows of an index space as those of a matrix: one kernel serves all layouts."""
    return (math.prod(rows.kept(shape)), rows.length(shape)), Rows(1, 2)


def run_alone(node: Node, operands: Sequence[Values]) -> Values:
    """Run one operation as a kernel of its own."""
    shape = np.broadcast_shapes(*[operand.shape for operand in operands])
    flat = [np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1) for x in operands]
    size = flat[0].size
    place = node.place if node.place and _has_device_code(node) else HOST
    alone = _on_streams(node, place)
    plan = _plan(alone, size)
    if place == HOST:
        result = np.empty(size, NUMPY_DTYPES[node.dtype])
        launch_plan(plan, [array.ctypes.data for array in (*flat, result)], ())
        return result.reshape(shape)
    arrays = [
        stream_of(placed(array, source.dtype, (size,), place))
        for array, source in zip(flat, alone.leaves, strict=True)
    ]
    arrays.append(stream_of(empty_state(node.dtype, (size,), place)))
    launch_plan(plan, [array.value for array in arrays], arrays)
    return values_of(arrays[-1], node.dtype, shape=(size,)).reshape(shape)


@lru_cache(maxsize=4096)
def runs_on_devices(root: Node) -> bool:
    """Return whether there is device code for all operations of an expression."""
    return all(map(_has_device_code, [step.node for step in linearise(root)]))


def _has_device_code(node: Node) -> bool:
    return not isinstance(node.op, Op) or node.op.runs_on_devices(node.inputs[-1].dtype)


def _plan(node: Node, size: int) -> Plan:
    key = (node, size)
    plan = plans.get(key)
    if plan is None:
        plan = new_plan(key, lambda: lay_out(node, *_places(node, size), node.place), size)
        assert plan is not None
    return plan


def _places(node: Node, size: int) -> tuple[list[tuple[int]], tuple[int], tuple[int]]:
    return [(1,)] * len(node.leaves), (size,), (1,)


def _unit(node: Node) -> Unit:
    # The extent is a parameter: any one gives the same unit.
    return lay_out(node, *_places(node, 1 << 20), node.place).unit


def _reduction_unit(node: Node, shape: tuple[int, ...], rows: Rows) -> Unit | None:
    reduction, dtype, place = node.op, node.inputs[0].dtype, node.place or HOST
    assert isinstance(reduction, Reduction)
    if reduction.scans and dtype.kind != "complex":
        return None
    if place == HOST and not reduction.scans:
        shape, rows = matrix_of(shape, rows)
    stream = leaf_node("stream", dtype, place)
    pattern = alone(reduction, stream, (contiguous_strides(shape),), shape, rows)
    kernel = staged(pattern, of_rows=not reduction.scans)
    return draft_of(kernel[0], kernel[1], place).unit if kernel else None


def _on_streams(node: Node, place: str) -> Node:
    """Return the node of the same operation on arrays that are all in memory of a device."""
    streams = [leaf_node("stream", source.dtype, place) for source in node.inputs]
    if isinstance(node.op, Op):
        return apply(node.op, tuple(streams), tuple((index,) for index in range(len(streams))))
    return cast(streams[0], node.dtype)
