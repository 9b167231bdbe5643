"""The largest error of the functions of one float32 argument, over every bit pattern of it.

    python benchmarks/every_float.py

The same function in float64, whose own error is a billionth of a float32's last place, tells what
the result should be; `tests/test_ops.py` compares that with arbitrary precision. All of it runs as
one kernel for each piece of the patterns: some minutes for each function on two cores. The command
ends with status 1 if an error exceeds the bound that the op table states.
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import report

import fklarray as xp
from fklarray_codegen.ops import OPS, Op

PATTERNS = 1 << 32
_PIECE = 1 << 18
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
    above = xp.astype(xp.nextafter(size, xp.asarray(np.float32(np.inf))), xp.float64)
    unit = xp.where(size >= _GREATEST, 2.0**104, above - xp.astype(size, xp.float64))
    signs = (got == 0) & (exact == 0) & (xp.signbit(got) != xp.signbit(exact))
    wrong = signs | (xp.isnan(got) != xp.isnan(exact))
    error = xp.where(xp.isnan(exact), 0.0, xp.abs(value - target) / unit)
    return xp.where(wrong, math.inf, error)


def measure(op: Op, step: int = 1) -> Worst:
    """Return the largest error over every so many bit patterns."""
    function = getattr(xp, op.name, None) or getattr(xp.special, op.name)
    worst = Worst(-1.0, math.nan, 0)
    patterns = 0
    offsets = np.arange(0, min(_PIECE * step, PATTERNS), step, dtype=np.uint32)
    for first in range(0, PATTERNS, _PIECE * step):
        bits = offsets[: -(-(PATTERNS - first) // step)] + np.uint32(first)
        values = bits.view(np.float32)
        error = _error(function, xp.asarray(values, copy=False))
        most = float(xp.max(error))
        patterns += len(values)
        if most > worst.error:
            worst = Worst(most, float(values[int(xp.argmax(error))]), 0)
    return Worst(worst.error, worst.argument, patterns)


def markdown(results: list[tuple[Op, Worst, float]], about: dict[str, Any]) -> str:
    """Return the results as a table."""
    lines = [
        f"# Functions of float32, every bit pattern, {datetime.datetime.now(datetime.UTC).date()}",
        "",
        f"{about['cpu']}, {about['compiler']}, fklarray commit {about['fklarray_commit']}. Errors "
        "in units in the last place of the correctly rounded result.",
        "",
        "| Function | Patterns | Largest error | at | Bound | Seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {op.name} | {worst.patterns:,} | {worst.error:.3f} | {worst.argument!r} "
        f"| {op.max_ulp:g} | {seconds:.0f} |"
        for op, worst, seconds in results
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure, write the results, and return 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--step", type=int, default=1, help="take every so many patterns")
    parser.add_argument("--functions", nargs="*", help="names; all by default")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    about = report.machine([])
    results: list[tuple[Op, Worst, float]] = []
    for op in functions():
        if options.functions and op.name not in options.functions:
            continue
        began = time.perf_counter()
        results.append((op, measure(op, options.step), time.perf_counter() - began))
        print(op.name, results[-1][1], flush=True)
    text = markdown(results, about)
    path = options.output / f"every-float-{datetime.datetime.now(datetime.UTC).date()}.md"
    path.write_text(text, "utf-8")
    print(text)
    return int(any(worst.error > op.max_ulp for op, worst, _ in results))


if __name__ == "__main__":
    sys.exit(main())
