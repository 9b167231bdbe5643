"""What this machine offers: compilers, CPU, threads, cache, GPU libraries."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import sys

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import fklarray
from fklarray.config import config
from fklarray.core import compiled
from fklarray.evaluation import kernel_cache
from fklarray.kernels import device_compiler
from fklarray.on_cupy import where_runs
from fklarray.plans import include_folders
from fklarray_runtime import (
    CompilerError,
    DeviceCompilerNotFound,
    DeviceError,
    candidates,
    describe_device,
    device_count,
    device_problem,
    find_compiler,
    probe,
    target,
    threads,
)

__all__ = ["build_tile", "clear_cache", "run", "show_cache"]

_KIBIBYTE = 1 << 10
_GIBIBYTE = 1 << 30
# What a compiler is tried for where there is no device.
_ARCHITECTURE = "sm_80"
_LIBRARIES = ("cupy", "torch", "jax", "ml_dtypes", "scipy", "ziglang")


def run() -> int:
    """Print the report; return 0 if kernels can be compiled, 1 otherwise."""
    console = Console()
    table = Table(title=f"fklarray {fklarray.__version__}", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("Python", f"{platform.python_version()} ({sys.platform}, {platform.machine()})")
    table.add_row("NumPy", np.__version__)
    cpu = target()
    table.add_row("CPU", f"{' '.join(cpu.flags) or cpu.architecture}: {' '.join(cpu.features)}")
    table.add_row("core", "compiled" if compiled() else "Python; FKLARRAY_CORE=compiled says why")
    table.add_row("threads", _threads())
    table.add_row("cache", escape(_describe_cache()))
    table.add_row("config", escape(repr(config)))
    works = _add_compilers(table)
    for name in _LIBRARIES:
        found = importlib.util.find_spec(name) is not None
        table.add_row(name, "installed" if found else "not installed")
    _add_devices(table)
    console.print(table)
    return 0 if works else 1


def _threads() -> str:
    try:
        return str(threads())
    except ValueError as error:
        return escape(str(error))


def _describe_cache() -> str:
    store = kernel_cache()
    files, size = store.size()
    return f"{store.directory}: {files} kernels, {size / _KIBIBYTE:.0f} KiB"


def show_cache() -> int:
    """Print where the compiled kernels are and how many; return 0."""
    print(_describe_cache())
    return 0


def _add_compilers(table: Table) -> bool:
    store = kernel_cache()
    for command in candidates():
        try:
            compiler = probe(command, store.directory)
        except CompilerError as error:
            if str(error) != "not found":
                table.add_row(escape(shlex.join(command)), f"no: {escape(str(error))}")
        else:
            vector = "libmvec" if compiler.vector_math else "scalar elementary functions"
            table.add_row(shlex.join(command), f"works: {compiler.version} ({vector})")
    try:
        chosen = find_compiler(store.directory)
    except CompilerError as error:
        reason = escape(str(error))
        table.add_row("compiler in use", f"none, NumPy evaluates operation by operation: {reason}")
        return False
    table.add_row("compiler in use", shlex.join(chosen.command))
    return True


def _add_devices(table: Table) -> None:
    architectures: list[str] = []
    if not device_count():
        table.add_row("NVIDIA devices", f"none: {escape(device_problem())}")
    for number in range(device_count()):
        try:
            found = describe_device(number)
        except DeviceError as error:
            table.add_row(f"cuda:{number}", f"no: {escape(str(error))}")
            continue
        architectures.append(found.architecture)
        free, total = (round(nbytes / _GIBIBYTE) for nbytes in (found.free, found.total))
        table.add_row(
            f"cuda:{number}",
            f"{found.name} ({found.architecture}), {free} of {total} GiB free, driver for CUDA "
            f"{found.driver}",
        )
    try:
        compiler = device_compiler((architectures or [_ARCHITECTURE])[0], include_folders())
    except DeviceCompilerNotFound as error:
        reason = escape(str(error))
        table.add_row("compiler for devices", f"none, device arrays are slow: {reason}")
    else:
        table.add_row("compiler for devices", escape(str(compiler)))
    if device_count():
        table.add_row("what is not fused", escape(f"runs on {where_runs('sort', 'cuda:0')}"))


def build_tile() -> int:
    """Build the library of tile kernels; return 1 where that fails, having said why."""
    # Imported here, as parsing the library's interface takes time that no other command needs.
    from fklarray_runtime.tile_build import build_tile_library, crate_folder
    from fklarray_runtime.tile_library import TileError

    try:
        print(build_tile_library(crate_folder()))
    except TileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def clear_cache() -> int:
    """Delete the compiled kernels; return 0."""
    store = kernel_cache()
    print(f"deleted {store.clear()} kernels from {store.directory}")
    return 0
