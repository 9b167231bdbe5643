"""Kernels of one operation each, for expressions that run operation by operation.

They run what NumPy would compute to other bits, on contiguous operands, so that few of them serve
all expressions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fklarray.dtype_rows import NUMPY_DTYPES
from fklarray.fusion import alone
from fklarray.kernels import Unit, is_there
from fklarray.plans import Plan, draft_of, lay_out, new_plan, plans
from fklarray.reference import Values, is_exact
from fklarray.staged_plans import staged
from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import STREAMS, Node, apply, cast, linearise
from fklarray_codegen.layout import contiguous_strides
from fklarray_codegen.ops import Op, Reduction
from fklarray_codegen.walk import Rows

__all__ = ["lacking", "matrix_of", "run_alone"]


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
            unit = _reduction_unit(node.op, node.inputs[0].dtype, shape, rows)
        else:
            unit = None if is_exact(node) else _unit(_on_streams(node))
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
    result = np.empty(flat[0].shape, NUMPY_DTYPES[node.dtype])
    plan = _plan(_on_streams(node), result.size)
    values: list[Any] = plan.values.copy()
    for position, array in zip(plan.positions, (*flat, result), strict=True):
        values[position] = array.ctypes.data
    plan.kernel.launch(values)
    return result.reshape(shape)


def _plan(node: Node, size: int) -> Plan:
    key = (node, size)
    plan = plans.get(key)
    if plan is None:
        plan = new_plan(key, lambda: lay_out(node, *_places(node, size)), size)
        assert plan is not None
    return plan


def _places(node: Node, size: int) -> tuple[list[tuple[int]], tuple[int], tuple[int]]:
    return [(1,)] * len(node.leaves), (size,), (1,)


def _unit(node: Node) -> Unit:
    # The extent is a parameter: any one gives the same unit.
    return lay_out(node, *_places(node, 1 << 20)).unit


def _reduction_unit(
    reduction: Reduction, dtype: DType, shape: tuple[int, ...], rows: Rows
) -> Unit | None:
    if not reduction.scans:
        shape, rows = matrix_of(shape, rows)
    elif dtype.kind != "complex":
        return None
    pattern = alone(reduction, STREAMS[dtype], (contiguous_strides(shape),), shape, rows)
    kernel = staged(pattern, of_rows=not reduction.scans)
    return draft_of(*kernel).unit if kernel else None


def _on_streams(node: Node) -> Node:
    """Return the node of the same operation on arrays that are all in memory."""
    streams = [STREAMS[source.dtype] for source in node.inputs]
    if isinstance(node.op, Op):
        return apply(node.op, tuple(streams), tuple((index,) for index in range(len(streams))))
    return cast(streams[0], node.dtype)
