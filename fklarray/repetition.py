"""Short streams of a device as long rows in which their elements repeat."""

from __future__ import annotations

from fklarray.placement import empty_state
from fklarray.plans import Plan, draft_of, launch_plan, new_plan, plans
from fklarray.recording import Stream, stream_of
from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import leaf_node
from fklarray_codegen.layout import Layout, Period, inner_class
from fklarray_codegen.render import compose

__all__ = ["repeated_on_device"]


def repeated_on_device(stream: Stream, dtype: DType, period: Period, row: int) -> Stream:
    """Return a contiguous row in which a short stream's elements repeat; a kernel writes it."""
    place = stream.buffer.place
    plan = _plan(dtype, period, row, place)
    repeated = stream_of(empty_state(dtype, (row,), place))
    launch_plan(plan, (stream.value, repeated.value), (stream, repeated))
    return repeated


def _plan(dtype: DType, period: Period, row: int, place: str) -> Plan:
    key = ("repeated", dtype, period, row, place)
    plan = plans.get(key)
    if plan is None:
        length, step = period
        laid_out = Layout(
            (row // length, length),
            length,
            ((0, step), (length, 1)),
            (inner_class(step, length), "unit"),
            ((0, 0), (0, 0)),
        )
        program = compose(leaf_node("stream", dtype, place), laid_out.rank, laid_out.inner)
        plan = new_plan(key, lambda: draft_of(program, laid_out, place), row)
        assert plan is not None
    return plan
