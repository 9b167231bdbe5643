"""Finding a compiler for NVIDIA's devices: nvcc, or a clang that was tried with a toolkit."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fklarray_runtime.binary_cache import digest_of_folders
from fklarray_runtime.compilation import CompileError, CompilerError, first_lines, identity_of
from fklarray_runtime.device_compilation import DeviceCompiler, compile_for_gpu, gpu_flags
from fklarray_runtime.private_files import temporary_folder, write_atomically
from fklarray_runtime.toolkit import Toolkit, nvidia_packages, toolkits

__all__ = [
    "DeviceCompilerNotFound",
    "DeviceProbe",
    "find_device_compiler",
    "forget_device_compiler",
]

_VARIABLE = "FKLARRAY_NVCC"
_USUAL = Path("/usr/local/cuda/bin/nvcc")
_CLANGS = ("clang++", *(f"clang++-{version}" for version in range(24, 14, -1)))
_SECONDS = 20
_SITUATION = (_VARIABLE, "CUDA_HOME", "CUDA_PATH", "PATH")

_lock = threading.RLock()
_found: dict[tuple[object, ...], DeviceCompiler | DeviceCompilerNotFound] = {}


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603  (a forked child may inherit it locked)
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class DeviceCompilerNotFound(CompilerError):  # noqa: N818  (what happened, not an "error")
    """There is no compiler for NVIDIA's devices.

    Attributes
    ----------
    reasons : tuple of (str, str)
        Everything that was tried, and why it cannot be used.
    """

    def __init__(self, reasons: list[tuple[str, str]]) -> None:
        self.reasons = tuple(reasons)
        tried = "".join(f"\n  {name}: {reason}" for name, reason in reasons)
        super().__init__(
            "no working compiler for NVIDIA's devices (nvcc, or clang with a toolkit of CUDA 12) "
            f"was found. Tried:{tried or ' nothing, there is none'}\n"
            f"Set {_VARIABLE} or CUDA_HOME, or run: "
            'pip install "cuda-toolkit[nvcc,nvvm,cudart,crt,cccl]"'
        )


@dataclass(frozen=True, slots=True)
class DeviceProbe:
    """What a clang has to compile before it is chosen.

    Attributes
    ----------
    architecture : str
        Of the device: ``"sm_90"``.
    source : str
        A small unit.
    include : tuple of Path
        Folders of its headers.
    """

    architecture: str
    source: str
    include: tuple[Path, ...]


def find_device_compiler(probe: DeviceProbe, cache_directory: Path | None = None) -> DeviceCompiler:
    """Find the first compiler that works.

    Parameters
    ----------
    probe : DeviceProbe
        What is tried with clang; an nvcc only has to say its version.
    cache_directory : Path, optional
        A private folder that remembers what was found out about clang.

    Returns
    -------
    DeviceCompiler
        What FKLARRAY_NVCC names, be it an nvcc or a clang, or else the nvcc of Python's packages,
        of CUDA_HOME or CUDA_PATH, on PATH, or in ``/usr/local/cuda``, or else a clang on PATH. A
        clang comes with the first toolkit that it works with. The same one for as long as these
        variables and PATH stay.

    Raises
    ------
    DeviceCompilerNotFound
        None works; the text names each one tried.
    """
    situation = (*map(os.environ.get, _SITUATION), probe, cache_directory)
    with _lock:
        if situation not in _found:
            try:
                _found[situation] = _search(probe, cache_directory)
            except DeviceCompilerNotFound as error:
                # Remembered as well: the search starts programs, and flushes are many.
                _found[situation] = error
        found = _found[situation]
    if isinstance(found, DeviceCompilerNotFound):
        raise found
    return found


def forget_device_compiler() -> None:
    """Forget, in this process, which compiler was found."""
    with _lock:
        _found.clear()


def _search(probe: DeviceProbe, cache_directory: Path | None) -> DeviceCompiler:
    reasons: list[tuple[str, str]] = []
    for path in _candidates():
        try:
            kind, version = _kind_and_version(path)
        except CompilerError as error:
            reasons.append((str(path), str(error)))
            continue
        program = f"{identity_of(path.resolve())} {version}"
        if kind == "nvcc":
            return DeviceCompiler(kind, path, version, program)
        for toolkit in toolkits():
            if not isinstance(toolkit, Toolkit):
                reasons.append((f"{path} with {toolkit[0]}", toolkit[1]))
                continue
            fingerprint = f"{program}; {toolkit.version} {toolkit.fingerprint}"
            compiler = DeviceCompiler(kind, path, version, fingerprint, toolkit)
            problem = _recall_or_try(compiler, probe, cache_directory)
            if problem is None:
                return compiler
            reasons.append((str(compiler), problem))
    raise DeviceCompilerNotFound(reasons)


def _candidates() -> Iterator[Path]:
    if named := os.environ.get(_VARIABLE):
        yield Path(shutil.which(named) or named)
        return
    for packages in nvidia_packages():
        # One folder for each major version of CUDA.
        yield from sorted(packages.glob("cu*/bin/nvcc"), reverse=True)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder, "bin", "nvcc")
    if found := shutil.which("nvcc"):
        yield Path(found)
    if _USUAL.exists():
        yield _USUAL
    clangs = {Path(path).resolve(): Path(path) for path in map(shutil.which, _CLANGS) if path}
    yield from clangs.values()


def _kind_and_version(path: Path) -> tuple[Literal["nvcc", "clang"], str]:
    try:
        run = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilerError(f"it does not start: {error}") from error
    if run.returncode == 0 and (found := re.search(r"V(\d+\.\d+\.\d+)", run.stdout)):
        return "nvcc", found[1]
    if run.returncode == 0 and (found := re.search(r"clang version (\d+\.\d+\.\d+)", run.stdout)):
        return "clang", found[1]
    said = run.stderr.strip()[:200] or "it says no version"
    raise CompilerError(f"it ended with status {run.returncode}: {said}")


def _recall_or_try(
    compiler: DeviceCompiler, probe: DeviceProbe, cache_directory: Path | None
) -> str | None:
    """Return why a clang and its toolkit do not go together; None if they do."""
    if cache_directory is None:
        return _try(compiler, probe, None)
    facts = [
        compiler.fingerprint,
        gpu_flags(compiler, probe.architecture),
        probe.source,
        digest_of_folders(probe.include),
    ]
    name = hashlib.sha256(json.dumps(facts).encode("ascii")).hexdigest()[:32]
    path = cache_directory / f"device-compiler-{name}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        remembered = json.loads(path.read_bytes())["problem"]
        if remembered is None or isinstance(remembered, str):
            return remembered
    try:
        problem = _try(compiler, probe, cache_directory)
    except OSError as error:  # the disk's trouble, and gone the next time
        return str(error)
    with suppress(OSError):
        write_atomically(path, json.dumps({"problem": problem}).encode("ascii"))
    return problem


def _try(compiler: DeviceCompiler, probe: DeviceProbe, cache_directory: Path | None) -> str | None:
    with temporary_folder((".probe-", cache_directory), ("fklarray-probe-", None)) as folder:
        source, library = folder / "probe.cpp", folder / "probe.so"
        source.write_text(probe.source, "ascii")
        try:
            compile_for_gpu(compiler, probe.architecture, source, library, probe.include)
        except CompileError as error:
            return first_lines(error)
        try:
            ctypes.CDLL(str(library))
        except OSError as error:
            return f"its library does not load: {error}"
    return None
