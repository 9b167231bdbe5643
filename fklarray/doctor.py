"""What this machine offers: compilers, CPU, threads, cache, GPU libraries."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import sys

import numpy as np
from rich.console import Console
from rich.table import Table

import fklarray
from fklarray.config import config
from fklarray.evaluation import kernel_cache
from fklarray_runtime import CompilerError, candidates, find_compiler, probe, target, threads

__all__ = ["clear_cache", "run"]

_MEBIBYTE = 1 << 20
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
    table.add_row("threads", str(threads()))
    store = kernel_cache()
    files, size = store.size()
    table.add_row("cache", f"{store.directory}: {files} kernels, {size / _MEBIBYTE:.1f} MiB")
    table.add_row("config", repr(config))
    works = _add_compilers(table)
    for name in _LIBRARIES:
        found = importlib.util.find_spec(name) is not None
        table.add_row(name, "installed" if found else "not installed")
    table.add_row("devices", "cpu")
    console.print(table)
    return 0 if works else 1


def _add_compilers(table: Table) -> bool:
    store = kernel_cache()
    for command in candidates():
        try:
            compiler = probe(command, store.directory)
        except CompilerError as error:
            table.add_row(shlex.join(command), f"no: {error}")
        else:
            vector = "libmvec" if compiler.vector_math else "scalar elementary functions"
            table.add_row(shlex.join(command), f"works: {compiler.version} ({vector})")
    try:
        chosen = find_compiler(store.directory)
    except CompilerError as error:
        table.add_row("compiler in use", f"none, NumPy evaluates operation by operation: {error}")
        return False
    table.add_row("compiler in use", shlex.join(chosen.command))
    return True


def clear_cache() -> int:
    """Delete the compiled kernels; return 0."""
    store = kernel_cache()
    print(f"deleted {store.clear()} kernels from {store.directory}")
    return 0
