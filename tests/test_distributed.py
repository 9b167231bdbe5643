"""Cubed with fklarray as its backend, Dask's distributed scheduler, and the example of both."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fklarray

# Cubed looks once, when it is imported.
os.environ["CUBED_BACKEND_ARRAY_API_MODULE"] = "fklarray"

import cubed
import cubed.array_api as cxp
import zarr
from cubed.backend_array_api import namespace
from cubed.runtime.executors.local import SingleThreadedExecutor, ThreadsExecutor

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "larger_than_memory.py"
VALUES = np.random.default_rng(0).standard_normal((600, 50)).astype(np.float32)


def _field(folder: Path, **spec: Any) -> Any:
    spec = {"allowed_mem": "100MB", "executor": SingleThreadedExecutor(), **spec}
    return cubed.from_array(VALUES, chunks=(100, 50), spec=cubed.Spec(str(folder), **spec))


def _stored(folder: Path, field: Any) -> Any:
    """Return an array on disk that an earlier computation wrote, so that reading is all it asks."""
    cubed.to_zarr(field, f"{folder}/stored.zarr")
    return cubed.from_zarr(f"{folder}/stored.zarr", spec=field.spec)


def test_cubed_computes_with_fklarray() -> None:
    assert namespace is fklarray


def test_each_output_chunk_is_one_kernel(tmp_path: Path) -> None:
    field = _stored(tmp_path, _field(tmp_path))
    target = zarr.create_array(
        f"{tmp_path}/target.zarr", shape=field.shape, chunks=field.chunksize, dtype="float32"
    )
    chain = cxp.sqrt(cxp.abs(cxp.tanh(cxp.exp(field) * 0.5)) + 1.0)
    before = fklarray.counters()
    cubed.store([chain], [target])
    after = fklarray.counters()
    assert field.npartitions == 6
    assert after["kernels_launched"] - before["kernels_launched"] == field.npartitions
    assert after["reference_evaluations"] == before["reference_evaluations"]
    expected = np.sqrt(np.abs(np.tanh(np.exp(VALUES) * np.float32(0.5))) + np.float32(1))
    np.testing.assert_allclose(target[:], expected, rtol=1e-6)


def test_statistics_over_several_chunks(tmp_path: Path) -> None:
    field = _field(tmp_path)
    found = cubed.compute(
        cxp.sum(field),
        cxp.mean(field, axis=0),
        cxp.std(field),
        cxp.max(field, axis=1),
        executor=SingleThreadedExecutor(),
    )
    expected = (VALUES.sum(), VALUES.mean(axis=0), VALUES.std(), VALUES.max(axis=1))
    for result, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(result), value, rtol=1e-5, atol=1e-6)


def test_tasks_in_threads(tmp_path: Path) -> None:
    field = _field(tmp_path)
    found = (cxp.exp(field) - cxp.mean(field)).compute(executor=ThreadsExecutor(max_workers=4))
    np.testing.assert_allclose(np.asarray(found), np.exp(VALUES) - VALUES.mean(), rtol=1e-5)


def test_a_loop_over_chunks_holds_few_of_them() -> None:
    chunk = np.ones((1 << 20,))  # 8 MiB
    total: Any = 0.0
    before = fklarray.counters()["pool_bytes"]
    for _ in range(20):
        total = total + fklarray.sum(fklarray.asarray(chunk) * 2.0)
    assert fklarray.counters()["pool_bytes"] - before <= 5 * chunk.nbytes
    assert float(total) == 20 * 2 * chunk.size


def test_small_results_stay_pending() -> None:
    x = fklarray.asarray(np.ones((1000, 100)))
    before = fklarray.counters()
    parts = [fklarray.sum(x * float(i)) for i in range(20)]
    after = fklarray.counters()
    assert after == before
    assert [float(part) for part in parts] == [i * 1e5 for i in range(20)]


def _environment(**variables: str) -> dict[str, str]:
    # Children import what this process does, installed or not.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}


def test_tasks_take_the_memory_that_cubed_projects() -> None:
    command = [sys.executable, str(Path(__file__).with_name("cubed_memory.py"))]
    # glibc keeps freed chunks of Zarr and NumPy otherwise, which is not what is looked at.
    environment = _environment(MALLOC_MMAP_THRESHOLD_="1048576")
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    ratios = {name: float(ratio) for name, ratio in map(str.split, run.stdout.splitlines())}
    assert set(ratios) == {"elementwise", "max", "mean"}
    assert max(ratios.values()) <= 1.05, ratios
    assert min(ratios.values()) > 0.3, ratios  # else nothing was measured


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """Give the example as a module."""
    spec = importlib.util.spec_from_file_location("larger_than_memory", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_examples_summaries_combine_to_the_whole(example: ModuleType) -> None:
    chunks = np.split(VALUES, [100, 350])
    parts = np.concatenate([example.summarize("fklarray", chunk, 0.1, 1.2) for chunk in chunks])
    found = example.combine(parts, [chunk.size for chunk in chunks])
    level = example.energy(np, VALUES.astype(np.float64), 0.1, 1.2)
    assert math.isclose(found["energy mean"], level.mean(), rel_tol=1e-5)
    assert math.isclose(found["energy std"], level.std(), rel_tol=1e-5)
    assert math.isclose(found["energy max"], level.max(), abs_tol=1e-5)
    assert found["launches per chunk"] == 1


def test_the_example_finds_wrong_results(example: ModuleType) -> None:
    right = {
        "mean": 3.0,
        "std": 1.2,
        "energy mean": -1.5,
        "energy std": 1.7,
        "energy max": -0.4,
        "launches per chunk": 1,
        "megabytes used": 80.0,
    }
    assert example.differences(right, right, 100) == []
    for name, value in {"std": 1.21, "launches per chunk": 2, "megabytes used": 101.0}.items():
        (text,) = example.differences({**right, name: value}, right, 100)
        assert "std" in text or "launches" in text or "limit" in text


def _run_example(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *options]
    environment = _environment(CUBED_BACKEND_ARRAY_API_MODULE="numpy")  # each run sets its own
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=600
    )


def test_the_example_runs_on_both_engines() -> None:
    run = _run_example("--megabytes", "24")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "cubed  fklarray" in run.stdout
    assert "dask   fklarray" in run.stdout
    assert "WRONG" not in run.stdout


def test_workers_of_dask_exchange_arrays() -> None:
    code = """
import numpy as np
import dask
from dask.distributed import Client, LocalCluster

import fklarray as xp
import fklarray.dask


def main():
    dask.config.set({"distributed.worker.preload": ["fklarray.dask"]})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            first, second = client.scheduler_info()["workers"]
            values = np.arange(12.0).reshape(3, 4)
            pending = xp.exp(xp.asarray(values) * 0.1)
            remote = client.submit(lambda x: x * 2.0, pending, workers=[first])
            joined = client.submit(lambda x: xp.concat([x, x]), remote, workers=[second])
            result = joined.result()
            assert isinstance(result, xp.Array)
            expected = np.exp(values * 0.1) * 2.0
            np.testing.assert_allclose(np.asarray(result), np.concatenate([expected, expected]))
            result[0, 0] = 0.0  # values, like any other array's
            assert float(joined.result()[0, 0]) == expected[0, 0]


if __name__ == "__main__":
    main()
"""
    command = [sys.executable, "-c", code]
    run = subprocess.run(
        command, env=_environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
