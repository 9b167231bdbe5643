"""Building the library of tile kernels: cargo, with CUDA's headers and libclang from PyPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from fklarray_runtime.private_files import temporary_name
from fklarray_runtime.tile_library import TileError, built_library_path
from fklarray_runtime.toolkit import nvidia_packages

__all__ = [
    "TileBuildError",
    "build_environment",
    "build_tile_library",
    "crate_folder",
    "find_cargo",
]

_NEEDED = "cuda-toolkit[nvcc,nvvm,cudart,crt,cccl,curand,tileiras]>=13.3,<14"


class TileBuildError(TileError):
    """The library cannot be built here; the text names what is missing and what brings it."""


def crate_folder() -> Path:
    """Return the crate of the checkout, or source release, that this is or is run in.

    Raises
    ------
    TileBuildError
        An installed package does not have it.
    """
    here = Path(__file__).resolve().parents[1]
    places = [here / "cutile_kernels", Path.cwd() / "runtime" / "cutile_kernels"]
    for folder in places:
        if (folder / "Cargo.toml").is_file():
            return folder
    raise TileBuildError(
        f"there is no crate at {' or '.join(map(str, places))}: tile kernels are built in a "
        "checkout or a source release"
    )


def find_cargo() -> str:
    """Return the path of cargo: on PATH, or where rustup puts it.

    Raises
    ------
    TileBuildError
        If there is none.
    """
    homes = [os.environ.get("CARGO_HOME"), str(Path.home() / ".cargo")]
    places = [str(Path(home, "bin")) for home in homes if home]
    cargo = shutil.which("cargo") or shutil.which("cargo", path=os.pathsep.join(places))
    if cargo is None:
        raise TileBuildError("there is no cargo on PATH; Rust 1.89 or newer is needed")
    return cargo


def build_environment() -> Mapping[str, str]:
    """Return the environment variables that cargo needs to build and test the crate.

    Raises
    ------
    TileBuildError
        If CUDA's headers, its assembler of tile kernels, or libclang are not there.
    """
    return {
        **os.environ,
        "CUDA_TOOLKIT_PATH": str(_toolkit()),
        "LIBCLANG_PATH": str(_libclang()),
    }


def build_tile_library(source: Path, target: Path | None = None) -> Path:
    """Build the library and put it where `tile_library_path` looks.

    Parameters
    ----------
    source : Path
        Folder of the crate.
    target : Path, optional
        Where cargo keeps what it compiles; by default its own folder in the crate.

    Returns
    -------
    Path
        The library.

    Raises
    ------
    TileBuildError
        If something is missing, or cargo fails; it has said why on stderr.
    """
    cargo = find_cargo()
    place = target or source / "target"
    command = [cargo, "build", "--release", "--locked", "--target-dir", str(place)]
    run = subprocess.run(command, cwd=source, env=build_environment(), check=False)
    if run.returncode:
        raise TileBuildError(f"{' '.join(command)} ended with status {run.returncode}")
    library = built_library_path()
    library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = temporary_name(library)
    shutil.copyfile(place / "release" / library.name, copy)
    copy.replace(library)
    return library


def _toolkit() -> Path:
    named = os.environ.get("CUDA_TOOLKIT_PATH")
    folders = [Path(named)] if named else []
    for packages in nvidia_packages():
        folders += sorted(packages.glob("cu*"), reverse=True)
    for folder in folders:
        needed = (folder / "include" / "curand.h", folder / "bin" / "tileiras")
        if all(path.is_file() for path in needed):
            return folder
    raise TileBuildError(
        "there is no CUDA 13 toolkit with curand's headers and tileiras; run: "
        f'{Path(sys.executable).name} -m pip install "{_NEEDED}"'
    )


def _libclang() -> Path:
    if named := os.environ.get("LIBCLANG_PATH"):
        return Path(named)
    spec = find_spec("clang")
    for folder in spec.submodule_search_locations or () if spec else ():
        native = Path(folder, "native")
        if (native / "libclang.so").is_file():
            return native
    raise TileBuildError(
        "there is no libclang, which reads CUDA's headers for Rust; set LIBCLANG_PATH, or run: "
        f"{Path(sys.executable).name} -m pip install libclang"
    )
