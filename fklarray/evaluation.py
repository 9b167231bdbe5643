"""From recorded expressions to values: the one module that sees both generator and runtime.

A launch is looked up by structure, shape and strides (`_plans`); a kernel by its signature
(`_kernels`), then on disk, then compiled. Values, extents and addresses are parameters.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fklarray.config import config
from fklarray.deferred import resolved
from fklarray.interchange import repeated_row
from fklarray.recording import Leaf, State, Stream, stream_of, stream_state
from fklarray.reference import evaluate_on_numpy, view_of
from fklarray_codegen import INCLUDE
from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import Node
from fklarray_codegen.layout import Layout, Period, contiguous_strides, layout
from fklarray_codegen.render import Program, compose
from fklarray_runtime import (
    BinaryCache,
    CompileError,
    CompilerNotFound,
    Kernel,
    LoadError,
    allocate,
    compile_library,
    find_compiler,
    flags,
    key,
    pool_bytes,
)

__all__ = [
    "COUNTERS",
    "compile_seconds",
    "evaluate",
    "evaluate_into",
    "kernel_cache",
    "pool_bytes",
    "program_of",
]

# Increased when the meaning of the parameter block changes.
_ABI = "1"
# The public library needs a newer standard than our headers, and throws.
_PUBLIC_LIBRARY_OPTIONS = ("-std=c++20", "-fexceptions", "-frtti")
_MAX_PLANS = 4096
_MAX_KERNELS = 1024

COUNTERS: dict[str, int] = dict.fromkeys(
    (
        "kernels_launched",
        "kernels_compiled",
        "kernels_from_disk",
        "kernels_from_memory",
        "ops_fused",
        "reference_evaluations",
        "flushes",
    ),
    0,
)
compile_seconds: list[float] = []

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


_plans: dict[_Key, _Plan] = {}
_kernels: OrderedDict[str, Kernel] = OrderedDict()
_building: dict[str, threading.Lock] = {}
_lock = threading.Lock()


def _renew_locks() -> None:
    global _lock  # noqa: PLW0603 (a forked child may inherit it locked)
    _lock = threading.Lock()
    _building.clear()


os.register_at_fork(after_in_child=_renew_locks)


def evaluate(node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...]) -> list[State]:
    """Compute an expression into new memory.

    Parameters
    ----------
    node, leaves
        The expression; an ``"outputs"`` node gives several results.
    shape : tuple of int
        Shape of the results.

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
        plan = _plan(node, leaves, shape, targets[0].strides)
        if plan is None:
            _evaluate_reference(node, leaves, shape, targets)
        else:
            _launch(plan, leaves, targets)
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


def _launch(plan: _Plan, leaves: tuple[Leaf, ...], targets: tuple[Stream, ...]) -> None:
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
        COUNTERS["flushes"] += 1
        COUNTERS["ops_fused"] += plan.operations


def _plan(
    node: Node,
    leaves: tuple[Leaf, ...],
    shape: tuple[int, ...],
    target: tuple[int, ...],
) -> _Plan | None:
    """Find or make the plan of a launch; None where there is no compiler to make it with."""
    if not config.compiles:
        return None
    plan_key = (node, shape, target, *[leaf.strides for leaf in leaves])
    plan = _plans.get(plan_key)
    if plan is None:
        laid_out = layout(
            shape,
            [leaf.strides for leaf in leaves if isinstance(leaf, Stream)],
            [target] * len(_result_dtypes(node)),
        )
        program = compose(node, laid_out.rank, laid_out.inner)
        kernel = _kernel(program)
        if kernel is None:
            return None
        plan = _make_plan(kernel, program, laid_out)
        if len(_plans) >= _MAX_PLANS:
            _plans.clear()
        _plans[plan_key] = plan
    return plan


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


def _kernel(program: Program) -> Kernel | None:
    """Find a kernel in memory or on disk, or compile it; None where that is not possible."""
    signature = f"{config.fkl_include or ''}\n{program.signature}"
    with _lock:
        kernel = _kernels.get(signature)
        if kernel is not None:
            _kernels.move_to_end(signature)
            COUNTERS["kernels_from_memory"] += 1
            return kernel
        turn = _building.setdefault(signature, threading.Lock())
    # One thread builds a kernel; others that need it wait for it instead of building it again.
    with turn:
        kernel = _kernels.get(signature)
        if kernel is None:
            kernel = _build(program)
        with _lock:
            _building.pop(signature, None)
            if kernel is not None:
                _kernels[signature] = kernel
                if len(_kernels) > _MAX_KERNELS:
                    _kernels.popitem(last=False)
    return kernel


def _build(program: Program) -> Kernel | None:
    store = kernel_cache()
    try:
        compiler = find_compiler(store.directory)
    except CompilerNotFound as error:
        _warn_without_compiler(str(error))
        return None
    source = program.source()
    include = include_folders()
    options = _PUBLIC_LIBRARY_OPTIONS if config.fkl_include else ()
    digest = key(
        {
            "abi": _ABI,
            "source": source,
            "headers": _header_digest(include),
            "compiler": f"{compiler.command} {compiler.fingerprint} {compiler.version}",
            "flags": " ".join((*flags(compiler), *options)),
        }
    )

    def write(output: Path) -> None:
        unit = output.with_suffix(".cpp")
        try:
            unit.write_text(source)
            compile_library(compiler, unit, output, include, options)
        except CompileError:
            raise  # it names the unit, which stays
        except BaseException:
            unit.unlink(missing_ok=True)
            raise
        unit.unlink()

    began = time.perf_counter()
    path, compiled = _find_or_build(store, digest, write)
    try:
        kernel = Kernel(path, *_packer(program))
    except LoadError:
        # Another process may have cleared the cache in between, or the compiler wrote rubbish.
        path.unlink(missing_ok=True)
        path, compiled = _find_or_build(store, digest, write)
        kernel = Kernel(path, *_packer(program))
    if compiled:
        compile_seconds.append(time.perf_counter() - began)
    with _lock:
        COUNTERS["kernels_compiled" if compiled else "kernels_from_disk"] += 1
    return kernel


def _find_or_build(
    store: BinaryCache, digest: str, write: Callable[[Path], None]
) -> tuple[Path, bool]:
    path = store.load(digest)
    return (path, False) if path is not None else store.build(digest, write)


def _packer(program: Program) -> tuple[str, list[int]]:
    """Return the format of the parameter block and the offset of each structure in it."""
    packer = "@"
    offsets: list[int] = []
    for item in program.parameter_formats:
        # The empty repeat count aligns the block's end as the next structure's first field is.
        offsets.append(struct.calcsize(f"{packer}0{item.lstrip('0123456789')[0]}"))
        packer += item
    return packer, offsets


@cache
def _store(directory: Path | None) -> BinaryCache:
    return BinaryCache(directory)


def kernel_cache() -> BinaryCache:
    """Return the cache of compiled kernels that the settings name."""
    return _store(config.cache_dir)


def include_folders() -> tuple[Path, ...]:
    """Return the include folders of a translation unit, the first one winning."""
    return (config.fkl_include, INCLUDE) if config.fkl_include else (INCLUDE,)


@cache
def _header_digest(folders: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for folder in folders:
        for header in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(f"{header.relative_to(folder)}\0".encode())
            digest.update(header.read_bytes())
    return digest.hexdigest()


@cache
def _warn_without_compiler(reason: str) -> None:
    warnings.warn(
        f"fklarray runs operation by operation on NumPy, which is slow: {reason}",
        RuntimeWarning,
        stacklevel=2,
    )


def _evaluate_reference(
    node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...], targets: Sequence[Stream]
) -> None:
    dtypes = _result_dtypes(node)
    results = evaluate_on_numpy(node, leaves, shape)
    for result, target, dtype in zip(results, targets, dtypes, strict=True):
        view_of(target, dtype, shape)[...] = result
    with _lock:
        COUNTERS["flushes"] += 1
        COUNTERS["reference_evaluations"] += 1


def program_of(node: Node, leaves: tuple[Leaf, ...], shape: tuple[int, ...]) -> Program:
    """Return the program that evaluating an expression would run, without running it."""
    count = len(node.inputs) if node.op == "outputs" else 1
    strides = [leaf.strides for leaf in leaves if isinstance(leaf, Stream)]
    laid_out = layout(shape, strides, [contiguous_strides(shape)] * count)
    return compose(node, laid_out.rank, laid_out.inner)
