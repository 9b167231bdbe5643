"""Finding NVIDIA's compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from fklarray_runtime.compilation import CompilerError

__all__ = ["NvccNotFound", "find_nvcc", "nvcc_version"]

_VARIABLE = "FKLARRAY_NVCC"
_USUAL = Path("/usr/local/cuda/bin/nvcc")
_SECONDS = 20


class NvccNotFound(CompilerError):  # noqa: N818  (what happened, not an "error")
    """There is no compiler for NVIDIA's devices.

    Attributes
    ----------
    reasons : tuple of (Path, str)
        Every file that was tried, and why it cannot be used.
    """

    def __init__(self, reasons: list[tuple[Path, str]]) -> None:
        self.reasons = tuple(reasons)
        tried = "".join(f"\n  {path}: {reason}" for path, reason in reasons)
        super().__init__(
            f"no working nvcc was found. Tried:{tried or ' nothing, there is none'}\n"
            f"Set {_VARIABLE} or CUDA_HOME, or run: "
            'pip install "cuda-toolkit[nvcc,nvvm,cudart,crt,cccl]"'
        )


def find_nvcc() -> Path:
    """Find the first nvcc that says its version.

    Returns
    -------
    Path
        What FKLARRAY_NVCC names, or else the one of Python's package ``nvidia-cuda-nvcc``, of
        CUDA_HOME or CUDA_PATH, on PATH, or in ``/usr/local/cuda``.

    Raises
    ------
    NvccNotFound
        None works; the text names each one tried.
    """
    reasons: list[tuple[Path, str]] = []
    for path in _candidates():
        try:
            nvcc_version(path)
        except CompilerError as error:
            reasons.append((path, str(error)))
        else:
            return path
    raise NvccNotFound(reasons)


def nvcc_version(nvcc: Path) -> str:
    """Ask a compiler for its version, such as ``"13.2.86"``.

    Raises
    ------
    CompilerError
        It does not start, or says something else.
    """
    try:
        run = subprocess.run(
            [str(nvcc), "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilerError(f"it does not start: {error}") from error
    found = re.search(r"V(\d+\.\d+\.\d+)", run.stdout)
    if run.returncode != 0 or found is None:
        raise CompilerError(f"it ended with status {run.returncode}: {run.stderr.strip()[:200]}")
    return found[1]


def _candidates() -> Iterator[Path]:
    if named := os.environ.get(_VARIABLE):
        yield Path(named)
        return
    yield from _of_packages()
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := os.environ.get(variable):
            yield Path(folder, "bin", "nvcc")
    if found := shutil.which("nvcc"):
        yield Path(found)
    if _USUAL.exists():
        yield _USUAL


def _of_packages() -> Iterator[Path]:
    """The compiler that pip has installed: one folder for each major version of CUDA."""
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(folder).glob("cu*/bin/nvcc"), reverse=True)
