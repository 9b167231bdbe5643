"""Compare how fast fklarray is beside NumPy now with the newest committed results.

    python benchmarks/regressions.py

Ratios are compared, not times. A case that seems slower is measured again, since other work on the
machine can only make it slower. The command ends with status 1 if a case stays below.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, Case
from libraries import FklArray, Library, NumPy
from measure import ratio

RESULTS = Path(__file__).parent / "results"
_SEED = 20_26
_ATTEMPTS = 4


def committed(folder: Path = RESULTS) -> dict[tuple[str, int], float]:
    """Return NumPy's time divided by ours, by case and number of elements, of the newest results.

    Raises
    ------
    FileNotFoundError
        If there are none.
    """
    found = sorted(folder.glob("cpu-[0-9]*-[0-9][0-9].json"))
    if not found:
        raise FileNotFoundError(f"there are no results of benchmarks/run.py in {folder}")
    results: dict[str, Any] = json.loads(found[-1].read_text("utf-8"))
    return {
        (case["case"], case["elements"]): case["candidates"]["fklarray"]["times_as_fast_as_numpy"]
        for case in results["cases"]
        if "fklarray" in case["candidates"]
    }


def times_as_fast(
    case: Case, elements: int, libraries: tuple[Library, Library], rounds: int
) -> float:
    """Return the second library's time divided by the first one's."""
    inputs = case.inputs(elements, np.random.default_rng(_SEED))
    call, other = (library.call(case, inputs) for library in libraries)
    return ratio(call, other, rounds=rounds)


def main() -> int:
    """Measure, print a line for each case, and return 1 if one has lost too much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keeps", type=float, default=0.75, help="part that has to be left")
    parser.add_argument("--most", type=int, default=16_000_000, help="largest size to measure")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    libraries = FklArray(), NumPy()
    cases = {case.name: case for case in CASES}
    lost = 0
    for (name, elements), before in committed().items():
        if elements > options.most or name not in cases:
            continue
        now = 0.0
        for _ in range(_ATTEMPTS):
            now = max(now, times_as_fast(cases[name], elements, libraries, options.rounds))
            if now >= options.keeps * before:
                break
        is_lost = now < options.keeps * before
        lost += is_lost
        verdict = "  LOST" if is_lost else ""
        print(f"{name:10} {elements:>12,}  {before:7.2f} -> {now:7.2f}{verdict}", flush=True)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
