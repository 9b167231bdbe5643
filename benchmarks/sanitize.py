"""Kernels under NVIDIA's compute-sanitizer: what it finds is written beside the benchmarks.

    python benchmarks/sanitize.py --output benchmarks/results/gpu.json

Runs the golden expressions of the tests, changes of layout, and reductions of short, long, odd and
strided rows and columns, once under each tool. The file gets one record for each. Needs
compute-sanitizer of CUDA's toolkit on PATH.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import fklarray as xp
from fklarray_runtime import describe_device

TOOLS = ("memcheck", "racecheck", "initcheck")
_ROOT = Path(__file__).resolve().parents[1]
_SECONDS = 280
_SHAPES = [(3, 5), (70, 130), (2, 5000), (5000, 3), (9, 70001), (2, 40000), (33, 1024)]


def _reduced(x: Any, axis: int | None) -> Iterator[Any]:
    yield xp.sum(x, axis=axis)
    yield xp.max(xp.exp(x), axis=axis)
    if axis is not None:
        yield (x - xp.mean(x, axis=axis, keepdims=True)) / xp.std(x, axis=axis, keepdims=True)
        yield xp.nn.softmax(x, axis=axis)
        yield xp.cumulative_sum(x, axis=axis)
        yield xp.argmax(x, axis=axis)


def _expressions() -> Iterator[Any]:
    """Yield expressions of arrays on the default device."""
    sys.path.insert(0, str(_ROOT / "tests"))
    from golden_graphs import ALL

    for make in ALL.values():
        yield from make()
    random = np.random.default_rng(2)
    for dtype, some in (("float32", _SHAPES), ("float16", _SHAPES[1:3]), ("float64", _SHAPES[:2])):
        for shape in some:
            x = xp.asarray(random.random(shape), dtype=dtype)
            yield x * 2 + 1
            yield x[:, ::-1] + x
            yield x.T * 2 + 1
            for axis in (0, 1, None):
                yield from _reduced(x, axis)
                yield from _reduced(x[:, 1:], axis)
    pixels = xp.asarray(random.integers(0, 256, (2, 37, 131, 3), np.uint8))
    yield xp.permute_dims(xp.astype(pixels, xp.float32) / 255, (0, 3, 1, 2))
    yield xp.astype(pixels, xp.float64) / 255


def _run_all() -> None:
    with xp.default_device("cuda"):
        expressions = list(_expressions())
    # Threads wait for compilers; under a tool all kernels are there.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(np.asarray, expressions))


def _errors(tool: str) -> int:
    """Run all under a tool and return how many errors it counts."""
    command = ["compute-sanitizer", "--tool", tool, sys.executable, __file__, "--run"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    output = run.stdout + run.stderr
    # racecheck counts hazards.
    found = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) ", output)
    if found is None or run.returncode:
        raise SystemExit(f"{tool} ended with {run.returncode}:\n{output[-3000:]}")
    return int(found[1])


def main(arguments: list[str] | None = None) -> int:
    """Run under all tools; return 1 if one found something."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--output", type=Path, help="JSON file that gets the records")
    parser.add_argument("--run", action="store_true", help="only run the expressions")
    options = parser.parse_args(arguments)
    if options.run:
        _run_all()
        return 0
    if options.output is None:
        parser.error("--output is needed")
    found = describe_device(0)
    records: list[Any] = json.loads(options.output.read_text()) if options.output.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FKLARRAY_CACHE_DIR"] = str(Path(folder, "kernels"))
        os.environ["FKLARRAY_COMPILE"] = "sync"
        _run_all()  # compiles, which the tools need not watch
        with ThreadPoolExecutor(len(TOOLS)) as pool:
            counts = list(pool.map(_errors, TOOLS))
        for tool, errors in zip(TOOLS, counts, strict=True):
            print(f"{tool}: {errors} errors", flush=True)
            records.append({
                "work": f"compute-sanitizer {tool}", "dtype": "all", "shape": [], "ours": errors,
                "peers": {}, "limit": 0, "unit": "errors", "gpu": found.name,
                "driver": found.driver, "date": datetime.date.today().isoformat(),
            })  # fmt: skip
    options.output.write_text(json.dumps(records, indent=1) + "\n")
    return int(any(record["ours"] for record in records if record["unit"] == "errors"))


if __name__ == "__main__":
    sys.exit(main())
