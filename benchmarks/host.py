"""What a call costs besides its kernel: recording, flushing, exporting, and the first compile.

Run as a script with the name of a graph, it computes that graph once and prints what that took:
so each cold compile has a process of its own.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES
from measure import Call, interleave, spread

ELEMENTS = 1024


def _six_ops(xp: Any) -> tuple[Any, ...]:
    x = xp.asarray(np.ones(1000, np.float32))
    return (CASES[0].compute(xp, x),)


def _row(xp: Any) -> tuple[Any, ...]:
    matrix = xp.asarray(np.ones((20, 50), np.float32))
    return (matrix * matrix[0, :] + xp.exp(2.0 * matrix),)


def _mixed(xp: Any) -> tuple[Any, ...]:
    dtypes = (np.uint8, np.int32, np.float32, np.bool_)
    u, i, f, chosen = (xp.asarray(np.ones(1000, dtype)) for dtype in dtypes)
    half = xp.astype(u, xp.float32) * 0.5 + f
    return (xp.where(chosen, half, xp.astype(i, xp.float64) - f),)


def _two_outputs(xp: Any) -> tuple[Any, ...]:
    x, y = (xp.asarray(np.ones(1000, np.float32)) for _ in range(2))
    total = x + y
    return total * 0.5, xp.sqrt(total * total + 1.0)


def _complex_strided(xp: Any) -> tuple[Any, ...]:
    z = xp.asarray(np.ones((40, 50), np.complex64))[::2, ::-2]
    return (z * z + (0.5 - 0.25j),)


def _sum_exp(xp: Any) -> tuple[Any, ...]:
    x = xp.asarray(np.ones((64, 100), np.float32))
    return (xp.sum(xp.exp(x), axis=1),)


def _softmax(xp: Any) -> tuple[Any, ...]:
    return (xp.nn.softmax(xp.asarray(np.ones((64, 100), np.float32))),)


GRAPHS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "six_ops": _six_ops,
    "row": _row,
    "mixed_where": _mixed,
    "two_outputs": _two_outputs,
    "complex_strided": _complex_strided,
    "sum_exp": _sum_exp,
    "softmax": _softmax,
}


def run_graph(name: str) -> dict[str, Any]:
    """Compute one graph in this process, for the first time.

    Returns
    -------
    dict
        Seconds that the import, the first call, and within it compiling took, and counters.
    """
    began = time.perf_counter()
    import fklarray as xp
    from fklarray.evaluation import compile_seconds

    imported = time.perf_counter()
    results = GRAPHS[name](xp)
    recorded = time.perf_counter()
    xp.materialize(*results)
    done = time.perf_counter()
    return {
        "import_s": imported - began,
        "first_call_s": done - recorded,
        "compile_s": sum(compile_seconds),
        **xp.counters(),
    }


def _in_new_process(graph: str, cache: str) -> dict[str, Any]:
    environment = {**os.environ, "FKLARRAY_CACHE_DIR": cache, "FKLARRAY_COMPILE": "sync"}
    command = [sys.executable, str(Path(__file__)), graph]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"the graph {graph} failed in a new process:\n{run.stderr}")
    return dict(json.loads(run.stdout))


def compile_cost(repeats: int, after_graph: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Measure cold compiles, and what a second process gets from the disk cache.

    Every cold compile has a new process and an empty cache folder, so it includes trying the
    compiler for the first time. The second process has the same folder.

    Raises
    ------
    RuntimeError
        If a process fails, or the second one compiles.
    """
    graphs: dict[str, Any] = {}
    for name in GRAPHS:
        cold, warm = [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(_in_new_process(name, cache))
                warm.append(_in_new_process(name, cache))
        if any(run["kernels_compiled"] != 1 or run["kernels_launched"] != 1 for run in cold):
            raise RuntimeError(f"the graph {name} did not run as one kernel, compiled once: {cold}")
        if any(run["kernels_compiled"] for run in warm):
            raise RuntimeError(f"a second process compiled the graph {name} again: {warm}")
        graphs[name] = {
            "compile_s": spread([run["compile_s"] for run in cold]),
            "first_call_s": spread([run["first_call_s"] for run in cold]),
            "second_process_first_call_s": spread([run["first_call_s"] for run in warm]),
            "second_process_kernels_compiled": max(run["kernels_compiled"] for run in warm),
            "import_s": spread([run["import_s"] for run in warm]),
        }
        after_graph()
    keys = ("compile_s", "first_call_s", "second_process_first_call_s")
    medians = {key: spread([graph[key]["median"] for graph in graphs.values()]) for key in keys}
    return {"graphs": graphs, "median_of_graphs": {k: v["median"] for k, v in medians.items()}}


def host_cost(rounds: int) -> dict[str, Any]:
    """Measure the six-op chain on 1024 float32, in microseconds.

    Returns
    -------
    dict
        ``steps``: the chain up to a point; ``parts``: internal calls by themselves.
    """
    import fklarray as xp

    values = np.linspace(-2, 2, ELEMENTS, dtype=np.float32)
    x = xp.asarray(values)
    chain = CASES[0].compute
    steps: dict[str, Call] = {
        "NumPy": lambda: chain(np, values),
        "record": lambda: chain(xp, x),
        "record + flush": lambda: xp.materialize(chain(xp, x)),
        "record + flush + np.from_dlpack": lambda: np.from_dlpack(chain(xp, x)),
        "record + flush + np.asarray": lambda: np.asarray(chain(xp, x)),
    }
    for call in steps.values():
        call()
    parts = _internal_calls(xp, steps["record"])
    timings = interleave({**steps, **parts}, rounds=rounds)
    return {
        "elements": ELEMENTS,
        "steps": {name: timings[name].as_dict() for name in steps},
        "parts": {name: timings[name].as_dict() for name in parts},
    }


def _replay(owner: Any, name: str, run: Callable[[], Any]) -> Call:
    """Run something, and return the last call it made to a function, to be made again."""
    original = getattr(owner, name)
    calls: list[Call] = []

    def spy(*args: Any, **kwargs: Any) -> Any:
        calls.append(partial(original, *args, **kwargs))
        return original(*args, **kwargs)

    setattr(owner, name, spy)
    try:
        run()
    finally:
        setattr(owner, name, original)
    if not calls:
        raise RuntimeError(f"a flush does not call {name} any more: change {Path(__file__).name}")
    return calls[-1]


def _flush_in_python(xp: Any, recorded: Callable[[], Any]) -> None:
    inspect.unwrap(xp.Array._materialize)(recorded())


def _internal_calls(xp: Any, record: Callable[[], Any]) -> dict[str, Call]:
    """Return the calls that a flush in Python is made of, each on its own."""
    from fklarray import evaluation
    from fklarray_runtime import Kernel

    # The compiled core, where there is one, does all of it in one step.
    flush = partial(_flush_in_python, xp, record)
    computed = xp.asarray(np.ones(ELEMENTS, np.float32))
    return {
        "allocate and release the output": _replay(evaluation, "empty_state", flush),
        "look the plan up": _replay(evaluation, "_plan", flush),
        "launch: fill in, pack, run, count": _replay(evaluation, "_launch", flush),
        "of the launch: pack and run the kernel": _replay(Kernel, "launch", flush),
        "export: __dlpack__ of a computed array": lambda: computed.__dlpack__(max_version=(1, 0)),
        "export: np.from_dlpack of a computed array": lambda: np.from_dlpack(computed),
        "export: np.asarray of a computed array": lambda: np.asarray(computed),
    }


if __name__ == "__main__":
    print(json.dumps(run_graph(sys.argv[1])))
