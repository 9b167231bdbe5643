"""Build description of ``fklarray_runtime._native``, read by setuptools' ``cffi_modules``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cffi import FFI

SOURCES = (
    "pool.c",
    "dlpack.c",
    "capsule.c",
    "owner.c",
    "thread_pool.c",
    "loader.c",
    "driver.c",
    "device.c",
)
HEADERS = ("native.h", "interface.h", "owner.h", "driver.h")

# setuptools refuses absolute source paths, and runs this file with the project root as the
# current directory.
_NATIVE = Path(__file__).resolve().parent / "native"
_FOLDER = Path(os.path.relpath(_NATIVE))


def _relative(names: tuple[str, ...]) -> list[str]:
    return [(_FOLDER / name).as_posix() for name in names]


ffibuilder = FFI()
ffibuilder.cdef((_NATIVE / "interface.h").read_text(encoding="utf-8"))
ffibuilder.set_source(
    "fklarray_runtime._native",
    '#include "native.h"',
    sources=_relative(SOURCES),
    depends=_relative(SOURCES + HEADERS),
    include_dirs=[_FOLDER.as_posix()],
    extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden", "-pthread"],
    extra_link_args=["-pthread"],
    libraries=["dl"] if sys.platform.startswith("linux") else [],
)
