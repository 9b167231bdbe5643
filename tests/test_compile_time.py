"""Every golden source compiles, and quickly: first uses wait for the compiler."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from fklarray.plans import include_folders
from fklarray_runtime import compile_library, find_compiler
from golden_graphs import FOLDER, GRAPHS

# The aim is 0.6 s on an idle machine, which the benchmarks measure; this one may be busy.
MOST_SECONDS = 2.0


def test_golden_sources_compile_quickly(tmp_path: Path) -> None:
    compiler = find_compiler(tmp_path / "probe")
    seconds: dict[str, float] = {}
    for name in GRAPHS:
        library = tmp_path / f"{name}.so"
        began = time.process_time(), time.perf_counter()
        compile_library(compiler, FOLDER / f"{name}.cpp", library, include_folders())
        seconds[name] = time.perf_counter() - began[1]
        assert library.stat().st_size > 0
    print(*(f"{name}: {value:.2f} s" for name, value in seconds.items()), sep="\n")
    assert statistics.median(seconds.values()) <= MOST_SECONDS
