"""Each header compiles alone, twice over, and without a warning, under both compilers."""

import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

INCLUDE = Path(__file__).parents[2] / "codegen" / "fklarray_codegen" / "include"
HEADERS = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.h"))

COMPILERS = (("g++",), ("clang++", "clang++-19"))
WARNINGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-fopenmp-simd")
LEVELS = (("-march=x86-64-v3",), ("-march=x86-64-v4",)) if platform.machine() == "x86_64" else ()
VARIANTS = (*LEVELS, ("-DFKLARRAY_VECTOR_MATH=1",))


def _find(names: tuple[str, ...]) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.fail(f"no {' or '.join(names)} on PATH; the header tests need both compilers")


def _diagnostics(header: str, compiler: str, variant: tuple[str, ...]) -> str:
    command = [compiler, *WARNINGS, *variant, "-I", str(INCLUDE), "-x", "c++", "-"]
    # From a second file, for a header is no main file; twice, to see its guard.
    source = f"#include <{header}>\n#include <{header}>\n"
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else f"{' '.join(command)}\n{result.stderr}"


@pytest.mark.parametrize("header", HEADERS)
def test_header_compiles_alone(header: str) -> None:
    runs = [(_find(names), variant) for names in COMPILERS for variant in VARIANTS]
    with ThreadPoolExecutor(max_workers=len(runs)) as pool:
        found = pool.map(lambda run: _diagnostics(header, *run), runs)
    report = "\n".join(filter(None, found))
    assert not report, report


def test_headers_read_little_of_the_standard_library() -> None:
    """Reading more of it takes longer than reading all of ours: `lean.h` has what they need."""
    text = "\n".join((INCLUDE / header).read_text("ascii") for header in HEADERS)
    found = set(re.findall(r"#\s*include\s*[<\"](.+?)[>\"]", text))
    assert found - set(HEADERS) == {"cstddef", "cstdint"}
