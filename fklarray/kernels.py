"""Kernels by their signature: in memory, then on disk, then compiled.

What a kernel computes is not known here: a unit is a text, and a layout of parameters.
"""

from __future__ import annotations

import os
import struct
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from fklarray.config import config
from fklarray.placement import number_of
from fklarray.progress import waiting
from fklarray.recording import HOST
from fklarray_runtime import (
    BinaryCache,
    CompileError,
    CompilerError,
    DeviceCompiler,
    DeviceProbe,
    Kernel,
    LoadError,
    compile_for_gpu,
    compile_library,
    describe_device,
    digest_of_folders,
    find_compiler,
    find_device_compiler,
    flags,
    gpu_flags,
    key,
)

__all__ = [
    "COUNTERS",
    "Kernel",
    "Unit",
    "architecture_of",
    "build",
    "compile_seconds",
    "device_compiler",
    "has_compiler",
    "is_there",
    "kernel_cache",
    "load",
    "remembered",
]

# Increased when the meaning of the parameter block changes.
_ABI = "1"
# The public library needs a newer standard than our headers, and throws.
_PUBLIC_LIBRARY_OPTIONS = ("-std=c++20", "-fexceptions", "-frtti")
_MAX_KERNELS = 1024
# What a compiler is tried with: a header that is a small unit.
_PROBE = "#include <fklarray/probe.h>\n"

COUNTERS: dict[str, int] = dict.fromkeys(
    (
        "kernels_launched",
        "kernels_compiled",
        "kernels_from_disk",
        "kernels_from_memory",
        "ops_fused",
        "reference_evaluations",
        "cupy_evaluations",
        "flushes",
    ),
    0,
)
compile_seconds: list[float] = []

_kernels: OrderedDict[str, Kernel] = OrderedDict()
_building: dict[str, threading.Lock] = {}
_lock = threading.Lock()


def _renew_locks() -> None:
    global _lock  # noqa: PLW0603 (a forked child may inherit it locked)
    _lock = threading.Lock()
    _building.clear()


os.register_at_fork(after_in_child=_renew_locks)


class _Rendered(Protocol):
    """A program of the generator."""

    @property
    def parameter_formats(self) -> tuple[str, ...]: ...

    def source(self) -> str: ...


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A translation unit and where its kernel is kept.

    Attributes
    ----------
    signature : str
        Everything that the code depends on.
    place : str
        Name of the device that it is for.
    program : object
        Gives the text and the formats of the parameters.
    include : tuple of Path
        Folders of headers, the first one winning.
    store : BinaryCache
        The cache on disk.
    """

    signature: str
    place: str
    program: _Rendered
    include: tuple[Path, ...]
    store: BinaryCache


def remembered(unit: Unit) -> Kernel | None:
    """Return a unit's kernel if it is in memory."""
    with _lock:
        kernel = _kernels.get(unit.signature)
        if kernel is not None:
            _kernels.move_to_end(unit.signature)
            COUNTERS["kernels_from_memory"] += 1
    return kernel


def is_there(unit: Unit) -> bool:
    """Return whether a unit's kernel is in memory or on disk."""
    return unit.signature in _kernels or load(unit) is not None


def load(unit: Unit) -> Kernel | None:
    """Return a unit's kernel if it is on disk; nothing is compiled."""
    recipe = _recipe(unit)
    path = None if recipe is None else unit.store.load(recipe.digest)
    if path is None:
        return None
    try:
        kernel = _open(unit, path)
    except LoadError:
        return None
    return _keep(unit, kernel, "kernels_from_disk")


def build(unit: Unit, *, shown: bool = True) -> Kernel | None:
    """Return a unit's kernel, compiled where it is neither in memory nor on disk.

    Parameters
    ----------
    unit : Unit
        What it is built from.
    shown : bool
        Whether the user waits for it, and a terminal says so.

    Returns
    -------
    Kernel or None
        None where no compiler works, after one warning.

    Raises
    ------
    CompileError
        If the compiler refuses the unit.
    """
    kernel = remembered(unit)
    if kernel is not None:
        return kernel
    with _lock:
        turn = _building.setdefault(unit.signature, threading.Lock())
    # One thread builds a kernel; others that need it wait for it instead of building it again.
    with turn:
        kernel = _kernels.get(unit.signature)
        if kernel is None:
            with waiting("fklarray compiles a kernel") if shown else nullcontext():
                kernel = _build(unit)
        with _lock:
            _building.pop(unit.signature, None)
    return kernel


def has_compiler(place: str, include: tuple[Path, ...]) -> bool:
    """Return whether a compiler for a device and these headers works; it is looked for once."""
    try:
        if place == HOST:
            find_compiler(kernel_cache().directory)
        else:
            device_compiler(architecture_of(place), include)
    except CompilerError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How a unit is compiled, and the name of the result on disk."""

    source: str
    digest: str
    compile: Callable[[Path, Path], None]


def _recipe(unit: Unit) -> _Recipe | None:
    try:
        compiler, options, compile_unit = _how(unit)
    except CompilerError as error:
        _warn_without_compiler(str(error))
        return None
    source = unit.program.source()
    digest = key(
        {
            "abi": _ABI,
            "source": source,
            "headers": digest_of_folders(unit.include),
            "compiler": compiler,
            "flags": " ".join(options),
        }
    )
    return _Recipe(source, digest, compile_unit)


def _how(unit: Unit) -> tuple[str, Sequence[str], Callable[[Path, Path], None]]:
    """Return the compiler's identity, its flags, and what runs it from one file to another."""
    public = len(unit.include) > 1
    if unit.place != HOST:
        architecture = architecture_of(unit.place)
        found = device_compiler(architecture, unit.include)
        more = _PUBLIC_LIBRARY_OPTIONS[:1] if public else ()
        return (
            found.fingerprint,
            (*gpu_flags(found, architecture), *more),
            lambda text, output: compile_for_gpu(
                found, architecture, text, output, unit.include, more
            ),
        )
    compiler = find_compiler(unit.store.directory)
    options = _PUBLIC_LIBRARY_OPTIONS if public else ()
    return (
        f"{compiler.command} {compiler.fingerprint} {compiler.version}",
        (*flags(compiler), *options),
        lambda text, output: compile_library(compiler, text, output, unit.include, options),
    )


def device_compiler(architecture: str, include: tuple[Path, ...]) -> DeviceCompiler:
    """Return the compiler for devices of an architecture; it is looked for once.

    Raises
    ------
    DeviceCompilerNotFound
        If none works.
    """
    # With our own headers: those of the public library, if there are any, come before them.
    probe = DeviceProbe(architecture, _PROBE, include[-1:])
    return find_device_compiler(probe, kernel_cache().directory)


@cache
def architecture_of(place: str) -> str:
    """Return what kernels of a device are compiled for: ``"sm_90"``; empty for the host."""
    return "" if place == HOST else describe_device(number_of(place)).architecture


def _build(unit: Unit) -> Kernel | None:
    recipe = _recipe(unit)
    if recipe is None:
        return None

    def write(output: Path) -> None:
        text = output.with_suffix(".cpp")
        try:
            text.write_text(recipe.source)
            recipe.compile(text, output)
        except CompileError:
            raise  # it names the unit, which stays
        except BaseException:
            text.unlink(missing_ok=True)
            raise
        text.unlink()

    began = time.perf_counter()
    path, compiled = _find_or_build(unit.store, recipe.digest, write)
    try:
        kernel = _open(unit, path)
    except LoadError:
        # Another process may have cleared the cache in between, or the compiler wrote rubbish.
        path, compiled = _find_or_build(unit.store, recipe.digest, write)
        kernel = _open(unit, path)
    if compiled:
        compile_seconds.append(time.perf_counter() - began)
    return _keep(unit, kernel, "kernels_compiled" if compiled else "kernels_from_disk")


def _find_or_build(
    store: BinaryCache, digest: str, write: Callable[[Path], None]
) -> tuple[Path, bool]:
    path = store.load(digest)
    return (path, False) if path is not None else store.build(digest, write)


def _open(unit: Unit, path: Path) -> Kernel:
    try:
        return Kernel(path, *_packer(unit.program.parameter_formats))
    except LoadError:
        path.unlink(missing_ok=True)
        raise


def _keep(unit: Unit, kernel: Kernel, origin: str) -> Kernel:
    with _lock:
        COUNTERS[origin] += 1
        _kernels[unit.signature] = kernel
        if len(_kernels) > _MAX_KERNELS:
            _kernels.popitem(last=False)
    return kernel


def _packer(formats: Sequence[str]) -> tuple[str, list[int]]:
    """Return the format of the parameter block and the offset of each structure in it."""
    packer = "@"
    offsets: list[int] = []
    for item in formats:
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


@cache
def _warn_without_compiler(reason: str) -> None:
    warnings.warn(
        f"fklarray runs operation by operation on NumPy, which is slow: {reason}",
        RuntimeWarning,
        stacklevel=2,
    )
