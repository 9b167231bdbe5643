"""Statistics of a field that is larger than the memory of the workers that compute them.

A float32 field (noise and waves at some stations) is written to a Zarr array, and
reduced by Cubed's process executor and by Dask's distributed scheduler, with fklarray and with
NumPy in the workers:

1. mean and standard deviation of the field, by the engine's own reductions;
2. of every sample the energy in decibels: standardised, outliers clipped, companded, limited; and
   of that mean, standard deviation and greatest value. Each chunk is one task; what is elementwise
   in it is one kernel of fklarray, where NumPy makes a pass over memory for each operation.

Every worker process has its limit of memory beyond what it takes before it has data. The command
ends with status 1 if a worker exceeded it, if fklarray launched more than one kernel for a chunk,
or if the backends' results differ.

    pip install "fklarray[cubed,dask]"
    python examples/larger_than_memory.py --megabytes 240 --limit 100
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

STATIONS = 1000
CHUNK_SAMPLES = 1500  # 6 MB of float32
# Two roundings of float32, which the mean of decibels repeats.
TOLERANCE = 1e-5
ENGINES = ("cubed", "dask")
BACKENDS = ("numpy", "fklarray")


def energy(xp: Any, field: Any, mean: float, std: float) -> Any:
    """Return the energy of every sample in decibels."""
    z = xp.clip((field - mean) / std, -4.0, 4.0)
    companded = xp.sign(z) * xp.log1p(255.0 * xp.abs(z)) / math.log(256.0)
    limited = xp.tanh(1.5 * companded)
    return 10.0 * xp.log10(limited * limited + 1e-6)


def summarize(backend: str, chunk: Any, mean: float, std: float) -> Any:
    """Return one chunk's mean, variance and greatest energy, and the kernels launched for it."""
    xp = importlib.import_module(backend)
    before = launches(xp)
    level = xp.reshape(energy(xp, xp.asarray(chunk), mean, std), (-1,))
    values = xp.mean(level), xp.var(level), xp.max(level)
    if hasattr(xp, "materialize"):
        xp.materialize(*values)  # one kernel for all three
    return xp.asarray([[*map(float, values), launches(xp) - before]])


def launches(xp: Any) -> int:
    """Return how many kernels this process has launched; NumPy has none."""
    return int(xp.counters()["kernels_launched"]) if hasattr(xp, "counters") else 0


def combine(parts: Any, samples: list[int]) -> dict[str, float]:
    """Return the statistics of all chunks from those of each (Chan, Golub and LeVeque, 1979)."""
    import numpy as np

    means, variances, greatest, launched = np.asarray(parts).T
    mean = np.average(means, weights=samples)
    variance = np.average(variances + (means - mean) ** 2, weights=samples)
    return {
        "energy mean": float(mean),
        "energy std": math.sqrt(variance),
        "energy max": float(greatest.max()),
        "launches per chunk": float(launched.max()),
        "chunks": len(samples),
    }


def write_field(path: str, megabytes: int) -> None:
    """Write a field of that size to a Zarr array."""
    import numpy as np
    import zarr

    samples = math.ceil(megabytes * 1e6 / (4 * STATIONS))
    chunks = (CHUNK_SAMPLES, STATIONS)
    field = zarr.create_array(
        path, shape=(samples, STATIONS), chunks=chunks, dtype="float32", compressors=None
    )
    random = np.random.default_rng(1)
    amplitudes = np.linspace(0.5, 1.5, STATIONS, dtype=np.float32)
    for start in range(0, samples, CHUNK_SAMPLES):
        count = min(CHUNK_SAMPLES, samples - start)
        noise = random.standard_normal((count, STATIONS), dtype=np.float32)
        wave = np.sin(np.arange(start, start + count, dtype=np.float32) / 300.0)
        field[start : start + count] = 3.0 + noise + wave[:, None] * amplitudes


def samples_of(field: Any) -> list[int]:
    """Return the number of samples in each of a field's chunks."""
    return [rows * STATIONS for rows in field.chunks[0]]


def resident_bytes() -> int:
    """Return how much memory this process has now."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def peak_bytes() -> int:
    """Return the most memory that this process ever had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---------------------------------------------------------------------------------------- engines


def with_cubed(backend: str, path: str, limit: int, workers: int) -> dict[str, float]:
    """Compute with Cubed, one process per worker."""
    os.environ["CUBED_BACKEND_ARRAY_API_MODULE"] = backend
    os.environ.setdefault("FKLARRAY_COMPILE", "sync")  # these workers live for seconds
    import cubed
    import cubed.array_api as xp
    from cubed.runtime.executors.local import ProcessesExecutor

    class Peak(cubed.Callback):
        nbytes = 0

        def on_task_end(self, event: Any) -> None:
            self.nbytes = max(self.nbytes, event.peak_measured_mem_end or 0)

    peak = Peak()
    reserved = resident_bytes()
    with tempfile.TemporaryDirectory() as work_dir:
        executor = ProcessesExecutor(max_workers=workers)
        spec = cubed.Spec(
            work_dir,
            allowed_mem=reserved + limit,
            reserved_mem=reserved,
            executor=executor,
            zarr_compressor=None,
        )
        field = cubed.from_zarr(path, spec=spec)
        began = time.perf_counter()
        mean, std = map(
            float, cubed.compute(xp.mean(field), xp.std(field), executor=executor, callbacks=[peak])
        )
        middle = time.perf_counter()
        parts = cubed.map_blocks(
            partial(summarize, backend),
            field,
            dtype=xp.float64,
            chunks=((1,) * field.numblocks[0], (4,)),
            mean=mean,
            std=std,
        )
        found = combine(parts.compute(executor=executor, callbacks=[peak]), samples_of(field))
        ended = time.perf_counter()
    return {
        "mean": mean,
        "std": std,
        **found,
        "seconds of pass 1": middle - began,
        "seconds of pass 2": ended - middle,
        "megabytes used": (peak.nbytes - reserved) / 1e6,
    }


def with_dask(backend: str, path: str, limit: int, workers: int) -> dict[str, float]:
    """Compute with Dask's distributed scheduler, which ends a worker that exceeds its memory."""
    import dask.array as da
    from dask import config
    from dask.distributed import Client, LocalCluster

    xp = importlib.import_module(backend)
    modules = [backend] if backend == "numpy" else [f"{backend}.dask"]
    for module in modules:
        importlib.import_module(module)
    # A chunk is in memory only while its task runs, so nothing is gained by spilling or pausing.
    memory: dict[str, Any] = {"target": False, "spill": False, "pause": False, "terminate": 1.0}
    settings = {f"distributed.worker.memory.{name}": value for name, value in memory.items()}
    settings["distributed.worker.preload"] = modules
    reserved = resident_bytes()
    with (
        config.set(settings),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=reserved + limit,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        field = da.from_zarr(path).map_blocks(xp.asarray)
        began = time.perf_counter()
        mean, std = map(float, da.compute(field.mean(), field.std()))
        middle = time.perf_counter()
        parts = field.map_blocks(
            partial(summarize, backend),
            mean,
            std,
            dtype="float64",
            chunks=((1,) * field.numblocks[0], (4,)),
            meta=xp.empty((0, 0)),
        )
        found = combine(parts.compute(), samples_of(field))
        ended = time.perf_counter()
        peak = max(client.run(peak_bytes).values())
    return {
        "mean": mean,
        "std": std,
        **found,
        "seconds of pass 1": middle - began,
        "seconds of pass 2": ended - middle,
        "megabytes used": (peak - reserved) / 1e6,
    }


RUNS = {"cubed": with_cubed, "dask": with_dask}


# --------------------------------------------------------------------------------------- the runs


def start(engine: str, backend: str, path: str, options: argparse.Namespace) -> dict[str, float]:
    """Run an engine with a backend in a process of its own, whose memory is small to begin with."""
    command = [sys.executable, __file__, "--run", engine, backend, path]
    command += ["--limit", str(options.limit), "--workers", str(options.workers)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def differences(found: dict[str, float], expected: dict[str, float], limit: int) -> list[str]:
    """Return what is wrong with a run, in words."""
    wrong = [
        f"{name} is {found[name]!r}, but NumPy's is {expected[name]!r}"
        for name in ("mean", "std", "energy mean", "energy std", "energy max")
        if not math.isclose(found[name], expected[name], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    ]
    if found["launches per chunk"] > 1:
        wrong.append(f"a chunk took {found['launches per chunk']:.0f} kernel launches")
    if found["megabytes used"] > limit:
        wrong.append(f"a worker used {found['megabytes used']:.0f} MB; its limit was {limit}")
    return wrong


def report(engine: str, backend: str, found: dict[str, float]) -> None:
    """Print one run's line."""
    seconds = [f"{found[f'seconds of pass {number}']:7.2f} s" for number in (1, 2)]
    print(
        f"{engine:6} {backend:9} {seconds[0]} {seconds[1]}"
        f" {found['launches per chunk']:9.0f} {found['megabytes used']:9.0f} MB"
        f"   {found['energy mean']:.5f} {found['energy std']:.5f} {found['energy max']:.5f}",
        flush=True,
    )


def compare(options: argparse.Namespace) -> int:
    """Run every engine with both backends; return the command's status."""
    failed = False
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = str(Path(folder) / "field.zarr")
        began = time.perf_counter()
        command = [sys.executable, __file__, "--write", path, "--megabytes", str(options.megabytes)]
        subprocess.run(command, check=True)
        print(
            f"a field of {options.megabytes} MB, written in {time.perf_counter() - began:.1f} s; "
            f"{options.workers} workers, each with {options.limit} MB for data"
        )
        print(
            f"{'engine':6} {'backend':9} {'pass 1':>9} {'pass 2':>9} {'launches':>9} {'memory':>12}"
            "   energy: mean, std, max"
        )
        for engine in options.engines:
            runs = {}
            for backend in BACKENDS:
                runs[backend] = start(engine, backend, path, options)
                report(engine, backend, runs[backend])
                for text in differences(runs[backend], runs["numpy"], options.limit):
                    print(f"WRONG: {text}")
                    failed = True
            ratio = runs["numpy"]["seconds of pass 2"] / runs["fklarray"]["seconds of pass 2"]
            print(f"{engine}: pass 2 is {ratio:.2f} times as fast with fklarray")
    return int(failed)


def main() -> int:
    """Read the command line; return the command's status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=240, help="size of the field")
    parser.add_argument(
        "--limit", type=int, default=100, help="megabytes for the data of one worker"
    )
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--folder", help="where the field is written for the time of the run")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write_field(options.write, options.megabytes)
        return 0
    if options.run:
        engine, backend, path = options.run
        found = RUNS[engine](backend, path, int(options.limit * 1e6), options.workers)
        print(json.dumps(found))
        return 0
    return compare(options)


if __name__ == "__main__":
    sys.exit(main())
