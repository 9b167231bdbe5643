"""The largest error of the functions of one float32 argument, over every bit pattern of it.

    python benchmarks/every_float.py [--device cuda:0]

The same function in float64, whose own error is a billionth of a float32's last place, tells what
the result should be; `tests/test_ops.py` compares that with arbitrary precision. All of it runs as
one kernel for each piece of the patterns: some minutes for each function on two cores, half of one
on sixteen, seconds on an NVIDIA device (which needs torch to make the patterns there). The command
ends with status 1 if an error exceeds the bound that the op table states.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import math
import os
import platform
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import report

import fklarray as xp
from fklarray.kernels import device_compiler
from fklarray.plans import include_folders
from fklarray_codegen.ops import OPS, Op
from fklarray_runtime import describe_device

PATTERNS = 1 << 32
_PIECE = 1 << 18
_PIECE_OF_DEVICE = 1 << 26
_GREATEST = float(np.finfo(np.float32).max)
_BEYOND = 2.0**128  # what rounds to infinity counts as the number after the greatest


@dataclass(frozen=True)
class Worst:
    """The largest error of a function, in units in the last place, and where it is."""

    error: float
    argument: float
    patterns: int


def functions() -> list[Op]:
    """Return the rows of the op table that are measured: those without NumPy's own bits."""
    return [op for op in OPS.values() if op.arity == 1 and op.max_ulp > 0]


def _error(function: Callable[[Any], Any], x: Any) -> Any:
    got, exact = function(x), function(xp.astype(x, xp.float64))
    value = xp.clip(xp.astype(got, xp.float64), -_BEYOND, _BEYOND)
    target = xp.clip(exact, -_BEYOND, _BEYOND)
    size = xp.minimum(xp.abs(xp.astype(exact, xp.float32)), _GREATEST)
    above = xp.astype(
        xp.nextafter(size, xp.asarray(np.float32(np.inf), device=x.device)), xp.float64
    )
    unit = xp.where(size >= _GREATEST, 2.0**104, above - xp.astype(size, xp.float64))
    signs = (got == 0) & (exact == 0) & (xp.signbit(got) != xp.signbit(exact))
    wrong = signs | (xp.isnan(got) != xp.isnan(exact))
    error = xp.where(xp.isnan(exact), 0.0, xp.abs(value - target) / unit)
    return xp.where(wrong, math.inf, error)


def _patterns(first: int, step: int, device: str) -> Any:
    """Return an array of a piece of the patterns, which begins with one of them."""
    if device == "cpu":
        bits = np.arange(first, min(first + _PIECE * step, PATTERNS), step, dtype=np.int64)
        return xp.asarray(bits.astype(np.uint32).view(np.float32))
    torch: Any = importlib.import_module("torch")
    last = min(first + _PIECE_OF_DEVICE * step, PATTERNS)
    bits = torch.arange(first, last, step, dtype=torch.int64, device=device)
    return xp.from_dlpack(bits.to(torch.int32).view(torch.float32))


def measure(op: Op, step: int = 1, device: str = "cpu") -> Worst:
    """Return the largest error over every so many bit patterns."""
    function = getattr(xp, op.name, None) or getattr(xp.special, op.name)
    worst = Worst(-1.0, math.nan, 0)
    patterns = first = 0
    while first < PATTERNS:
        x = _patterns(first, step, device)
        error = _error(function, x)
        most = float(xp.max(error))
        patterns += x.size
        first += x.size * step
        if most > worst.error:
            worst = Worst(most, float(x[int(xp.argmax(error))]), 0)
    return Worst(worst.error, worst.argument, patterns)


def markdown(about: dict[str, str], errors: dict[str, Worst]) -> str:
    """Return the results as a table."""
    lines = [
        f"# Functions of float32, every bit pattern, {about['date']}",
        "",
        f"{about['processor']}, {about['compiler']}, {about['library']}, fklarray commit "
        f"{about['commit']}. Errors in units in the last place of the correctly rounded result.",
        "",
        "| Function | Patterns | Largest error | at | Bound |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {op.name} | {worst.patterns:,} | {worst.error:.3f} | {worst.argument!r} "
        f"| {op.max_ulp:g} |"
        for op in functions()
        if (worst := errors.get(op.name))
    ]
    return "\n".join(lines) + "\n"


def _about(device: str) -> dict[str, str]:
    machine = report.machine([])
    about = {
        "date": str(datetime.datetime.now(datetime.UTC).date()),
        "processor": str(machine["cpu"]),
        "compiler": str(machine["compiler"]),
        "library": " ".join(platform.libc_ver()),
        "commit": str(machine["fklarray_commit"] or "unknown"),
    }
    if device != "cpu":
        found = describe_device(int(device.partition(":")[2] or 0))
        about["processor"] = f"{found.name} ({found.architecture})"
        compiler = device_compiler(found.architecture, include_folders())
        about["compiler"] = f"{compiler.kind} {compiler.version}"
        about["library"] = f"driver for CUDA {found.driver}"
    return about


def _known(path: Path, about: dict[str, str]) -> dict[str, Worst]:
    """Return what an earlier run has left, if it was the same day on the same machine."""
    try:
        left = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    same = left["about"] == about
    return {name: Worst(**worst) for name, worst in left["errors"].items()} if same else {}


def main() -> int:
    """Measure, write the results after each function, and return 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--step", type=int, default=1, help="take every so many patterns")
    parser.add_argument("--functions", nargs="*", help="names; all by default")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    options = parser.parse_args()
    about = _about(options.device)
    name = "every-float" if options.device == "cpu" else "every-float-cuda"
    path = options.output / f"{name}-{about['date']}.json"
    errors = _known(path, about)
    wanted = [op for op in functions() if not options.functions or op.name in options.functions]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # compiles
        list(pool.map(lambda op: measure(op, PATTERNS >> 10, options.device), wanted))
    for op in wanted:
        errors[op.name] = measure(op, options.step, options.device)
        print(op.name, errors[op.name], flush=True)
        record = {name: asdict(worst) for name, worst in errors.items()}
        path.write_text(json.dumps({"about": about, "errors": record}, indent=1) + "\n", "utf-8")
        path.with_suffix(".md").write_text(markdown(about, errors), "utf-8")
    return int(any(worst.error > OPS[name].max_ulp for name, worst in errors.items()))


if __name__ == "__main__":
    sys.exit(main())
