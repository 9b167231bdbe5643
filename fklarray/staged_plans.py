"""The kernel of an expression with reductions: its stages, and how they walk the index space."""

from __future__ import annotations

from fklarray.fusion import Pattern, fuse, row_strides
from fklarray.plans import Results, lay_out
from fklarray.recording import HOST, Leaf, Stream
from fklarray_codegen.graph import Node
from fklarray_codegen.layout import contiguous_strides
from fklarray_codegen.render import Program
from fklarray_codegen.staged import StagedProgram
from fklarray_codegen.staging import Plan, plan_stages
from fklarray_codegen.walk import Rows, Walk, walk

__all__ = ["program_of", "staged"]

# Rows that are read more than once across their neighbours have to fit into the cache together:
# as many as fill a cache line, at 8 bytes.
_MAX_COLUMN = 16384
# Steps of all stages together: longer kernels take seconds to compile.
_MAX_STEPS = 128


def staged(pattern: Pattern, *, of_rows: bool) -> tuple[StagedProgram, Walk, Results] | None:
    """Return an expression's program, its index space and what it stores; None if not one kernel.

    Parameters
    ----------
    pattern : Pattern
        The expression.
    of_rows : bool
        Whether its results are values of rows, rather than of elements.
    """
    shape, rows = pattern.shape, pattern.rows
    leaves = [
        strides
        for leaf, strides in zip(pattern.root.leaves, pattern.strides, strict=True)
        if leaf.op != "scalar"
    ]
    row_leaves = frozenset(
        number
        for number, strides in enumerate(pattern.strides)
        if not any(strides[rows.first : rows.stop])
    )
    plan = plan_stages(pattern.root, row_leaves, keeps=False)
    if any(is_row != of_rows for is_row, _ in plan.results):
        return None
    if sum(len(stage.steps) for stage in plan.stages) > _MAX_STEPS and pattern.pending:
        return None
    laid_out = walk(shape, rows, [*leaves, *_stored_strides(plan, shape, rows)])
    if laid_out is None:
        return None
    if not of_rows and laid_out.inner[-1] == "unit":
        plan = plan_stages(pattern.root, row_leaves, keeps=True)
    folds = any(stage.work == "fold" for stage in plan.stages)
    on_device = (pattern.root.place or HOST) != HOST
    program = StagedProgram(
        plan,
        laid_out.direction,
        laid_out.rank,
        laid_out.inner,
        is_shared=on_device and folds and laid_out.is_narrow,
    )
    if program.direction == "columns" and program.passes > 1 and rows.length(shape) > _MAX_COLUMN:
        return None
    return program, laid_out, _results(plan, pattern)


def _results(plan: Plan, pattern: Pattern) -> Results:
    kept = pattern.rows.kept(pattern.shape)
    rows = len(plan.row_values)
    stored = plan.row_nodes + plan.element_nodes
    return Results(
        tuple(
            [(dtype, kept) for dtype in plan.row_values]
            + [(dtype, pattern.shape) for dtype in plan.element_results]
        ),
        tuple(number + (0 if is_row else rows) for is_row, number in plan.results),
        tuple(stored.index((node, numbers)) for _, node, numbers in pattern.pending),
    )


def _stored_strides(plan: Plan, shape: tuple[int, ...], rows: Rows) -> list[tuple[int, ...]]:
    values, results = plan.row_values, plan.element_results
    return [row_strides(shape, rows)] * len(values) + [contiguous_strides(shape)] * len(results)


def program_of(
    node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...]
) -> Program | StagedProgram:
    """Return the program that evaluating an expression would run, without running it."""
    fused = fuse(node, leaves, shape)
    kernel = fused and staged(fused.pattern, of_rows=shape != fused.pattern.shape)
    if kernel:
        return kernel[0]
    strides = [leaf.strides for leaf in leaves if isinstance(leaf, Stream)]
    place = node.place or HOST
    return lay_out(node, strides, shape, contiguous_strides(shape), place).program
