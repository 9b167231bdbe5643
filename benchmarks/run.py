"""The command: measure fklarray beside NumPy, numexpr, JAX and torch in one run."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import report
from cases import CASES, ELEMENTS, Arrays, Case, differs
from host import GRAPHS, compile_cost, host_cost
from libraries import FklArray, Library, UnsupportedError, installed
from measure import Call, interleave, once

_SEED = 20_26
_SAMPLE_US = 2_000


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu"], default="cpu", help="device to measure")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds, small sizes, no torch.compile"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        help="folder of the results",
    )
    return parser.parse_args()


def _first_calls(
    case: Case, inputs: Arrays, libraries: list[Library]
) -> tuple[dict[str, Call], dict[str, float], list[tuple[str, str]]]:
    """Call every candidate once and compare it with NumPy, which is the first.

    Returns
    -------
    dict, dict, list
        Calls and the first call's microseconds by name; names and reasons of what failed.
    """
    calls: dict[str, Call] = {}
    first: dict[str, float] = {}
    failed: list[tuple[str, str]] = []
    expected = None
    for library in libraries:
        try:
            call = library.call(case, inputs)
            microseconds, result = once(call)
            values = library.numpy(result)
            expected = values if expected is None else expected
            wrong = differs(case, library.name, values, expected)
            if not wrong and isinstance(library, FklArray):
                kernels = library.kernels_of(call)
                wrong = "" if kernels == 1 else f"{kernels} kernels instead of one"
        except UnsupportedError:
            continue
        except Exception as error:
            wrong = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        if wrong:
            failed.append((library.name, wrong))
        else:
            calls[library.name], first[library.name] = call, microseconds
    assert expected is not None
    source, target = np.ones_like(expected), np.ones_like(expected)
    calls[report.COPY] = lambda: np.copyto(target, source)
    return calls, first, failed


def _measure_case(
    case: Case, elements: int, libraries: list[Library], rounds: int, tick: Callable[[], None]
) -> dict[str, Any]:
    inputs = case.inputs(elements, np.random.default_rng(_SEED))
    calls, first, failed = _first_calls(case, inputs, libraries)
    timings = interleave(calls, rounds=rounds, sample_us=_SAMPLE_US, after_round=tick)
    numpy, copy = timings["NumPy"].best, timings[report.COPY].best
    return {
        "case": case.name,
        "formula": case.formula,
        "elements": elements,
        "shapes": [list(array.shape) for array in inputs],
        "dtypes": [str(array.dtype) for array in inputs],
        "failed": failed,
        "candidates": {
            name: {
                "first_call_us": round(first[name], 1) if name in first else None,
                "times_as_fast_as_numpy": round(numpy / timing.best, 3),
                "times_copyto": round(timing.best / copy, 3),
                **timing.as_dict(),
            }
            for name, timing in timings.items()
        },
    }


def _measure(options: argparse.Namespace, progress: Any) -> dict[str, Any]:
    libraries, absent = installed(with_torch_compile=not options.quick)
    rounds = 5 if options.quick else 25
    elements = ELEMENTS[:3] if options.quick else ELEMENTS
    about = report.machine(libraries)
    total = len(GRAPHS) + rounds * len(elements) * len(CASES) + 1
    task = progress.add_task("cold compile", total=total)

    def tick() -> None:
        progress.advance(task)

    compiling = compile_cost(1 if options.quick else 3, tick)
    cases = []
    for case in CASES:
        for count in elements:
            progress.update(task, description=f"{case.name}, {count:,} elements")
            cases.append(_measure_case(case, count, libraries, rounds, tick))
    # After the cases: it uses a kernel of theirs, whose first call was to be cold.
    progress.update(task, description="host cost")
    host = host_cost(rounds)
    tick()
    return {
        "device": options.device,
        "quick": options.quick,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "rounds": rounds,
        "machine": about,
        "load_average_after": [round(load, 2) for load in os.getloadavg()],
        "absent": absent,
        "left_out": ["torch.compile"] if options.quick else [],
        "errors": [
            f"{case['case']}, {case['elements']:,} elements, {name}: {why}"
            for case in cases
            for name, why in case["failed"]
        ],
        "host": host,
        "compile": compiling,
        "cases": cases,
    }


def main() -> int:
    """Measure, write the results, and return 1 if fklarray failed or was wrong."""
    from rich.console import Console
    from rich.progress import Progress

    options = _arguments()
    terminal = sys.stderr.isatty()
    with tempfile.TemporaryDirectory() as caches:
        # First calls are cold: nothing compiled earlier is found.
        os.environ["FKLARRAY_CACHE_DIR"] = str(Path(caches, "fklarray"))
        os.environ["FKLARRAY_COMPILE"] = "sync"
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(caches, "inductor"))
        with Progress(console=Console(stderr=True), disable=not terminal) as progress:
            results = _measure(options, progress)
    suffix = "-quick" if options.quick else ""
    stem = options.output / f"{options.device}-{results['date']}{suffix}"
    for path in report.write(results, stem):
        print(path)
    for error in results["errors"]:
        print(f"error: {error}", file=sys.stderr)
    # What a peer gets wrong stands in the results; it is no failure of ours.
    return int(any(name == report.OURS for case in results["cases"] for name, _ in case["failed"]))


if __name__ == "__main__":
    sys.exit(main())
