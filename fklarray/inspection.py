"""Looking inside: what was recorded, what ran, and what the namespace offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.deferred import Deferred, DeferredStream
from fklarray.delegation import Delegated
from fklarray.device import Device, as_device, devices
from fklarray.dtype_rows import NUMPY_DTYPES
from fklarray.evaluation import counts, pool_bytes, trim, trim_device
from fklarray.on_cupy import where_runs
from fklarray.placement import number_of
from fklarray.recording import State, combine_outputs, is_stream
from fklarray.reductions import array_operand
from fklarray.staged_plans import program_of
from fklarray_codegen.staged import StagedProgram

__all__ = ["Explanation", "__array_namespace_info__", "clear_pool", "counters", "explain"]


def counters() -> dict[str, int]:
    """Return what has happened in this process.

    Returns
    -------
    dict
        ``kernels_launched``, ``kernels_compiled``, ``kernels_from_disk``, ``kernels_from_memory``
        (a kernel served another shape or layout), ``ops_fused`` (operations in launched kernels),
        ``reference_evaluations`` (on NumPy), ``cupy_evaluations``, ``flushes``, and ``pool_bytes``
        (memory held now).
    """
    return {**counts(), "pool_bytes": pool_bytes()}


def clear_pool() -> None:
    """Give the memory that is kept for reuse back to the system, and that of devices to them.

    The next results of these sizes take fresh memory, which costs about as much as a kernel over
    it. `config.pool_limit` limits what is kept.
    """
    trim()
    for device in devices()[1:]:
        trim_device(number_of(device.name))


@dataclass(frozen=True)
class Explanation:
    """What computing an array would run. Prints well.

    Attributes
    ----------
    graph : str
        The steps: registers, operations and data types.
    signature : str
        Everything that the kernel's code depends on; equal signatures share a kernel.
    source : str
        The C++ translation unit.
    reasons : tuple of str
        What was fused, and what was not and why.
    """

    graph: str
    signature: str
    source: str
    reasons: tuple[str, ...]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join(
            ["Graph", *_indented(self.graph), "Fusion", *_indented("\n".join(self.reasons)),
             "Source", *_indented(self.source)]
        )  # fmt: skip


def _indented(text: str) -> list[str]:
    return [f"  {line}".rstrip() for line in text.splitlines()]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def explain(*arrays: Array) -> Explanation:
    """Explain what computing pending arrays would run, without running it.

    Parameters
    ----------
    *arrays : Array
        Arrays of one shape, which `materialize` would compute as one kernel.

    Raises
    ------
    ValueError
        If no array is given, or their shapes differ.
    TypeError
        If an argument is not an array.
    """
    if not arrays:
        raise ValueError("explain needs at least one array")
    arrays = tuple(array_operand("explain", array) for array in arrays)
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise ValueError(f"arrays of different shapes are different kernels: {sorted(shapes)}")
    states = tuple(array._state for array in arrays)
    state = states[0] if len(states) == 1 else combine_outputs(states)
    # An array without elements runs nothing; it is explained as one of the same layout.
    program = program_of(*state, tuple(max(1, extent) for extent in arrays[0].shape))
    streams = sum(leaf.op == "stream" for leaf in program.leaves)
    reasons = [
        f"{_count(program.operations, 'operation')} on {_count(streams, 'array')} and "
        f"{_count(len(program.leaves) - streams, 'scalar')} run as one kernel with "
        f"{_count(len(states), 'output')}"
    ]
    if all(is_stream(one) for one in states):
        reasons.append("nothing is pending: the values are in memory (strided ones are copied)")
    if isinstance(program, StagedProgram):
        reasons.append(f"passes over each row, which stays in the cache: {program.passes}")
    else:
        reasons += _delegated(state)
        waiting = sum(leaf.deferred for leaf in state[1])
        if waiting:
            reasons.append(
                f"{_count(waiting, 'array')} of them (of joins, gathers, matrix products, and "
                "reductions of other rows, which are not fused) are computed first"
            )
    shapes_of_streams = sorted(set(program.inner))
    reasons.append(f"strides within a row: {', '.join(shapes_of_streams)}")
    return Explanation(program.graph, program.signature, program.source(), tuple(reasons))


def _delegated(state: State) -> list[str]:
    """Say which functions run in other libraries before the kernel."""
    memories = [leaf.buffer for leaf in state[1] if isinstance(leaf, DeferredStream)]
    computing = [memory.computes for memory in memories if isinstance(memory, Deferred)]
    called = {(one.called, one.place) for one in computing if isinstance(one, Delegated)}
    return [
        f"{name or 'a function'} runs on {where_runs(name, place)}"
        for name, place in sorted(called)
    ]


class _NamespaceInfo:
    """What the namespace offers ("Inspection" in the standard)."""

    def capabilities(self) -> dict[str, Any]:
        """Return the optional capabilities."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device of arrays that are made without naming one."""
        return as_device(None)

    def devices(self) -> tuple[Device, ...]:
        """Return the devices of this machine."""
        return devices()

    def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, np.dtype[Any]]:
        """Return the default data types of a device."""
        as_device(device)
        names = {
            "real floating": "float64",
            "complex floating": "complex128",
            "integral": "int64",
            "indexing": "int64",
        }
        return {kind: np.dtype(name) for kind, name in names.items()}

    def dtypes(
        self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """Return the data types of a device, of all kinds or of some."""
        as_device(device)
        return {
            row.name: dtype
            for row, dtype in NUMPY_DTYPES.items()
            if row.is_standard and (kind is None or np.isdtype(dtype, kind))
        }


def __array_namespace_info__() -> _NamespaceInfo:  # noqa: N807 (the standard's name)
    """Return an object that tells what the namespace offers."""
    return _NamespaceInfo()
