"""Cubed's tasks with fklarray and with NumPy as its backend.

    python benchmarks/cubed_tasks.py

The backends take turns, each in a process of its own, since Cubed chooses its backend once. Tasks
run one after the other in that process, so that their time is that of reading, computing and
writing chunks; the process executor's time, with the start of its workers, is given apart. The
command ends with status 1 if the results differ, or if a task that writes what it computed
launched more than one kernel for a chunk.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
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
import report

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import larger_than_memory as example

BACKENDS = ("numpy", "fklarray")
# Of each task what NumPy's time must be of ours, at least.
AIMS = {"scale": 1.0, "energy": 1.5, "summary": 1.5, "mean": 1.0}
MEAN, STD = 3.0, 1.2


def _scale(chunk: Any) -> Any:
    return chunk * 2.0 + 1.0


def _energy(backend: str, chunk: Any) -> Any:
    return example.energy(importlib.import_module(backend), chunk, MEAN, STD)


def _tasks(backend: str, field: Any, folder: str) -> dict[str, Callable[..., Any]]:
    """Return what runs each task over all chunks, given an executor."""
    import cubed
    import cubed.array_api as xp
    import zarr

    # Compressed chunks would take most of the time.
    target = zarr.create_array(
        f"{folder}/{backend}.zarr",
        shape=field.shape,
        chunks=field.chunksize,
        dtype="float32",
        compressors=None,
        overwrite=True,
    )

    def stored(array: Any) -> Callable[..., Any]:
        def run(executor: Any) -> Any:
            cubed.store([array], [target], executor=executor)
            return target[:: example.CHUNK_SAMPLES, ::50]

        return run

    summaries = cubed.map_blocks(
        partial(example.summarize, backend),
        field,
        dtype=xp.float64,
        chunks=((1,) * field.numblocks[0], (4,)),
        mean=MEAN,
        std=STD,
    )
    return {
        "scale": stored(cubed.map_blocks(_scale, field, dtype=field.dtype)),
        "energy": stored(cubed.map_blocks(partial(_energy, backend), field, dtype=field.dtype)),
        "summary": lambda executor: summaries.compute(executor=executor)[:, :3],
        "mean": lambda executor: xp.mean(field).compute(executor=executor),
    }


def _timed(task: Callable[..., Any], executor: Any, xp: Any) -> tuple[dict[str, float], Any]:
    before = example.launches(xp)
    wall, processor = time.perf_counter(), time.process_time()
    result = task(executor)
    return {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - processor,
        "launches": example.launches(xp) - before,
    }, np.asarray(result).tolist()


def run_backend(backend: str, path: str, folder: str, repeats: int) -> dict[str, Any]:
    """Run every task with one backend in this process.

    Returns
    -------
    dict
        For each task its samples and its result; for the process executor the wall time.
    """
    os.environ["CUBED_BACKEND_ARRAY_API_MODULE"] = backend
    os.environ["FKLARRAY_COMPILE"] = "sync"
    os.environ["OMP_NUM_THREADS"] = "1"  # as in the workers of Cubed's executors
    import cubed
    from cubed.runtime.executors.local import ProcessesExecutor, SingleThreadedExecutor

    xp = importlib.import_module(backend)
    spec = cubed.Spec(folder, allowed_mem="1GB", zarr_compressor=None)
    field = cubed.from_zarr(path, spec=spec)
    tasks = _tasks(backend, field, folder)
    found: dict[str, Any] = {}
    for name, task in tasks.items():
        _timed(task, SingleThreadedExecutor(), xp)  # compiles, and fills the pool
        samples = [_timed(task, SingleThreadedExecutor(), xp) for _ in range(repeats)]
        found[name] = {"samples": [sample for sample, _ in samples], "result": samples[0][1]}
    sample, _ = _timed(tasks["energy"], ProcessesExecutor(max_workers=2), xp)
    found["chunks"] = field.npartitions
    found["processes_s"] = sample["wall_s"]
    return found


def _child(backend: str, path: str, folder: str, repeats: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--backend", backend, "--field", path]
    command += ["--folder", folder, "--repeats", str(repeats)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(run.stdout.splitlines()[-1]))


def _summary(name: str, runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the best times of a task with each backend, and what is wrong with it."""
    samples = {
        backend: [sample for run in runs[backend] for sample in run[name]["samples"]]
        for backend in BACKENDS
    }
    best = {
        f"{backend}_{clock}": min(sample[clock] for sample in samples[backend])
        for backend in BACKENDS
        for clock in ("wall_s", "cpu_s")
    }
    chunks = runs["fklarray"][0]["chunks"]
    launches = max(sample["launches"] for sample in samples["fklarray"])
    wrong = []
    results = [np.asarray(runs[backend][0][name]["result"]) for backend in BACKENDS]
    if not np.allclose(*results, rtol=example.TOLERANCE, atol=example.TOLERANCE):
        wrong.append(f"{name}: the backends' results differ")
    if name in ("scale", "energy") and launches != chunks:
        wrong.append(f"{name}: {launches} kernels were launched for {chunks} chunks")
    return {
        "task": name,
        "chunks": chunks,
        "launches": launches,
        **{key: round(value, 4) for key, value in best.items()},
        "wall_ratio": round(best["numpy_wall_s"] / best["fklarray_wall_s"], 2),
        "cpu_ratio": round(best["numpy_cpu_s"] / best["fklarray_cpu_s"], 2),
        "aim": AIMS[name],
        "wrong": wrong,
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure every task with both backends in turn."""
    about = report.machine([])
    runs: dict[str, list[dict[str, Any]]] = {backend: [] for backend in BACKENDS}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = f"{folder}/field.zarr"
        example.write_field(path, options.megabytes)
        for _ in range(options.rounds):
            for backend in BACKENDS:
                runs[backend].append(_child(backend, path, folder, options.repeats))
    tasks = [_summary(name, runs) for name in AIMS]
    processes = {name: min(run["processes_s"] for run in runs[name]) for name in BACKENDS}
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": about,
        "load_average_after": [round(load, 2) for load in os.getloadavg()],
        "megabytes": options.megabytes,
        "samples": options.rounds * options.repeats,
        "tasks": tasks,
        "processes_s": {name: round(seconds, 2) for name, seconds in processes.items()},
    }


def markdown(results: dict[str, Any]) -> str:
    """Return the results as tables."""
    about = results["machine"]
    loads = (*about["load_average_before"], *results["load_average_after"])
    lines = [
        f"# Cubed's tasks, {results['date']}",
        "",
        f"{about['cpu']}, {about['cores']} cores, Python {about['python']}, {about['compiler']}, "
        f"fklarray commit {about['fklarray_commit']}. Load average before {loads[:3]}, after "
        f"{loads[3:]}. A field of {results['megabytes']} MB in chunks of 8 MB; the best of "
        f"{results['samples']} runs over all of them, the backends in turn.",
        "",
        "| Task | Kernels / chunks | NumPy, s | fklarray, s | NumPy / fklarray, wall | CPU | Aim |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {task['task']} | {task['launches']} / {task['chunks']} | {task['numpy_wall_s']:.3f} "
        f"| {task['fklarray_wall_s']:.3f} | {task['wall_ratio']:.2f} | {task['cpu_ratio']:.2f} "
        f"| {task['aim']} |"
        for task in results["tasks"]
    ]
    seconds = results["processes_s"]
    lines += [
        "",
        f"Task energy with Cubed's process executor, two workers, their start included: NumPy "
        f"{seconds['numpy']:.2f} s, fklarray {seconds['fklarray']:.2f} s.",
    ]
    return "\n".join(lines) + "\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=96, help="size of the field")
    parser.add_argument("--rounds", type=int, default=3, help="processes per backend")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each task per process")
    parser.add_argument("--folder", help="where the chunks are written meanwhile")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--backend", help=argparse.SUPPRESS)
    parser.add_argument("--field", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Measure, write the results, and return 1 if something was wrong."""
    options = _arguments()
    if options.backend:
        found = run_backend(options.backend, options.field, options.folder, options.repeats)
        print(json.dumps(found))
        return 0
    results = measure(options)
    stem = options.output / f"cubed-{results['date']}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    text = markdown(results)
    stem.with_suffix(".md").write_text(text, "utf-8")
    print(text)
    wrong = [line for task in results["tasks"] for line in task["wrong"]]
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
