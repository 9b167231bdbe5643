"""NVIDIA's toolkits, of which clang takes headers, libraries and the assembler."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fklarray_runtime import fatbinary
from fklarray_runtime.compilation import identity_of

__all__ = ["IncompleteToolkit", "Toolkit", "nvidia_packages", "toolkits"]

_USUAL = Path("/usr/local/cuda")


class IncompleteToolkit(Exception):  # noqa: N818  (what it is, not an "error")
    """A folder lacks something that a toolkit has."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What clang needs of a toolkit, in one folder or several.

    Attributes
    ----------
    name : str
        Where it is, for users.
    version : str
        What its headers say: ``"12.4"``.
    assembler, runtime, bundler : Path
        ptxas; libcudart, the static one if there is one; fatbinary, or the library that can do
        the same.
    nvvm : Path
        The folder of the functions that devices lack.
    include : tuple of Path
        Folders of headers.
    """

    name: str
    version: str
    assembler: Path
    runtime: Path
    bundler: Path
    nvvm: Path
    include: tuple[Path, ...]

    def lay_out(self, folder: Path) -> None:
        """Make a folder that clang takes for this toolkit, of links.

        Raises
        ------
        OSError
            The disk is full.
        """
        (folder / "bin").mkdir(parents=True)
        (folder / "include").mkdir()
        (folder / "nvvm").symlink_to(self.nvvm)
        (folder / "bin/ptxas").symlink_to(self.assembler)
        (folder / "include/cuda.h").symlink_to(_header(self.include, "cuda.h"))
        # clang includes it with every unit, for random numbers; packages lack it.
        (folder / "include/curand_mtgp32_kernel.h").touch()
        bundler = folder / "bin/fatbinary"
        if self.bundler.name == "fatbinary":
            bundler.symlink_to(self.bundler)
            return
        command = (sys.executable, "-IS", fatbinary.__file__, str(self.bundler))
        bundler.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
        bundler.chmod(0o700)

    @property
    def fingerprint(self) -> str:
        """Path, size and modification time of what results depend on."""
        files = (self.assembler, self.runtime, self.bundler, _header(self.include, "cuda.h"))
        return "; ".join(map(identity_of, files))


def toolkits() -> Iterator[Toolkit | tuple[str, str]]:
    """List the toolkits of this machine, in the order in which they are to be tried.

    Yields
    ------
    Toolkit or (str, str)
        Those that CUDA_HOME and CUDA_PATH name, ``/usr/local/cuda``, and those of Python's
        packages; in the place of an incomplete one, its name and what it lacks.
    """
    variables = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"))
    alone = [Path(path) for path in dict.fromkeys(variables) if path]
    if _USUAL.exists():
        alone.append(_USUAL)
    folders = [[path] for path in alone]
    for packages in nvidia_packages():
        folders += [[path] for path in sorted(packages.glob("cu[0-9]*"), reverse=True)]
        parts = [packages / f"cuda_{part}" for part in ("nvcc", "runtime", "cccl")]
        if parts[0].exists():
            folders.append([*parts, packages / "nvfatbin"])
    for parts in folders:
        try:
            yield _toolkit(parts)
        except (IncompleteToolkit, OSError) as error:
            yield str(parts[0]), str(error)


def nvidia_packages() -> list[Path]:
    """List the folders in which pip has installed NVIDIA's packages."""
    spec = find_spec("nvidia")
    return [Path(path) for path in spec.submodule_search_locations or ()] if spec else []


def _toolkit(parts: list[Path]) -> Toolkit:
    assembler = _first(parts, "bin/ptxas")
    bundler = _first(parts, "bin/fatbinary", "lib/libnvfatbin.so.*", "lib64/libnvfatbin.so.*")
    device_library = _first(parts, "nvvm/libdevice/libdevice.10.bc")
    runtime = _first(
        parts,
        *("lib64/libcudart_static.a", "lib/libcudart_static.a"),
        *("lib64/libcudart.so.*", "lib/libcudart.so.*"),
    )
    include = tuple(folder for part in parts if (folder := part / "include").is_dir())
    said = re.search(r"CUDA_VERSION (\d+)", _header(include, "cuda.h").read_text("utf-8"))
    for header in ("cuda_runtime.h", "crt/host_defines.h"):
        _header(include, header)
    number = int(said[1]) if said else 0
    return Toolkit(
        name=str(parts[0]),
        version=f"{number // 1000}.{number % 1000 // 10}",
        assembler=assembler,
        runtime=runtime,
        bundler=bundler,
        nvvm=device_library.parents[1],
        include=include,
    )


def _first(parts: list[Path], *patterns: str) -> Path:
    for pattern in patterns:
        for part in parts:
            with suppress(OSError):
                for path in sorted(part.glob(pattern)):
                    return path
    raise IncompleteToolkit(f"it has no {patterns[0]}")


def _header(include: tuple[Path, ...], name: str) -> Path:
    for folder in include:
        if (folder / name).exists():
            return folder / name
    raise IncompleteToolkit(f"it has no header {name}")
