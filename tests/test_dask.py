"""Dask arrays whose chunks are arrays of fklarray."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from dask.sizeof import sizeof

import fklarray as xp
import fklarray.dask

VALUES = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)

_Call = Callable[[Any, Any], Any]


def _chunked(values: np.ndarray[Any, Any] = VALUES) -> Any:
    return da.from_array(xp.asarray(values), chunks=(10, 15), asarray=False)


def _launches() -> int:
    return xp.counters()["kernels_launched"]


def _standardized(block: Any) -> Any:
    return block.__array_namespace__().exp((block - 0.5) * 2.0)


def _mapped(a: Any) -> Any:
    return _standardized(a) if isinstance(a, np.ndarray) else a.map_blocks(_standardized)


# Operations on a Dask array (or on NumPy's) that stay arrays of fklarray.
STAYING: dict[str, _Call] = {
    "compute": lambda np_, a: a,
    "a + 1": lambda np_, a: a + 1,
    "2 * abs(a) ** 2": lambda np_, a: 2 * abs(a) ** 2,
    "a > 0.5": lambda np_, a: a > 0.5,
    "sum": lambda np_, a: a.sum(),
    "sum(axis=0)": lambda np_, a: a.sum(axis=0),
    "mean": lambda np_, a: a.mean(),
    "mean(axis=1)": lambda np_, a: a.mean(axis=1),
    "max": lambda np_, a: a.max(),
    "all(axis=0)": lambda np_, a: (a > -3).all(axis=0),
    "a - mean(axis=0)": lambda np_, a: a - a.mean(axis=0),
    "map_blocks": lambda np_, a: _mapped(a),
    "dot": lambda np_, a: np_.dot(a, a.T),
    "tensordot": lambda np_, a: np_.tensordot(a, a, axes=((0, 1), (0, 1))),
    "concatenate": lambda np_, a: np_.concatenate([a, a], axis=1),
    "stack": lambda np_, a: np_.stack([a, a]),
    "reshape": lambda np_, a: a.reshape(1200),
    "T": lambda np_, a: a.T,
    "astype": lambda np_, a: a.astype("float64"),
    "a[3:17, ::2]": lambda np_, a: (a * 1)[3:17, ::2],
    "a[[0, 5, 33]]": lambda np_, a: (a * 1)[[0, 5, 33]],
}

# Dask calls functions of NumPy by name here; the values are right, the type is NumPy's.
LEAVING: dict[str, _Call] = {
    "matmul": lambda np_, a: a @ a.T,
    "std": lambda np_, a: a.std(),
    "var(axis=0)": lambda np_, a: a.var(axis=0),
    "da.sin": lambda np_, a: np_.sin(a),
    "argmax(axis=1)": lambda np_, a: a.argmax(axis=1),
}


def _equals_numpy(result: Any, expected: Any) -> None:
    result, expected = np.asarray(result), np.asarray(expected)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", STAYING)
def test_chunks_stay_arrays_of_fklarray(name: str) -> None:
    result = STAYING[name](da, _chunked()).compute(scheduler="synchronous")
    assert isinstance(result, xp.Array)
    _equals_numpy(result, STAYING[name](np, VALUES))


@pytest.mark.parametrize("name", LEAVING)
def test_functions_of_numpy_give_its_values(name: str) -> None:
    _equals_numpy(
        LEAVING[name](da, _chunked()).compute(scheduler="synchronous"), LEAVING[name](np, VALUES)
    )


def test_equal_arrays_have_equal_tokens() -> None:
    token = tokenize(xp.asarray(VALUES))
    assert token == tokenize(xp.asarray(VALUES) * 1.0)
    assert token != tokenize(xp.asarray(VALUES) * 2.0)
    assert token != tokenize(xp.astype(xp.asarray(VALUES), xp.float64))
    assert token != tokenize(xp.reshape(xp.asarray(VALUES), (30, 40)))
    assert token != tokenize(VALUES)
    assert _chunked().name == _chunked().name


def test_a_token_computes_a_pending_array_once() -> None:
    pending = xp.asarray(VALUES) * 3.0
    before = _launches()
    tokenize(pending)
    tokenize(pending)
    np.asarray(pending)
    assert _launches() - before == 1


def test_the_size_is_that_of_the_values_and_nothing_else_is_kept() -> None:
    chunk = xp.asarray(np.ones((1000, 1000), np.float32))
    assert sizeof(chunk) == 4_000_000
    total = xp.sum(chunk)
    held = xp.counters()["pool_bytes"]
    assert sizeof({"total": total}) < 1000
    del chunk
    xp.asarray(np.ones((1000, 1000), np.float32))  # in the memory that the chunk left
    # But for the few KiB that the sum took on its way, if the pool had no such block.
    assert xp.counters()["pool_bytes"] <= held + (16 << 10)
    assert float(total) == 1e6


def test_elementwise_work_on_a_block_is_one_kernel() -> None:
    chunked = _chunked().map_blocks(lambda block: block * 1.0).persist(scheduler="synchronous")
    before = _launches()
    results = chunked.map_blocks(_standardized).to_delayed().ravel()
    blocks = dask.compute(*results, scheduler="synchronous")
    xp.materialize(blocks[0])
    assert _launches() - before == 1
    for block in blocks[1:]:
        xp.materialize(block)
    assert _launches() - before == chunked.npartitions


def test_threads_share_pending_arrays() -> None:
    x = xp.asarray(np.random.default_rng(1).standard_normal((200, 500)))
    values = np.exp(np.asarray(x)) * 2 + 1

    for _ in range(3):
        shared = xp.exp(x) * 2 + 1
        mean = xp.mean(shared)  # pending in all threads, as are the rows
        rows = [shared[10 * i : 10 * (i + 1)] for i in range(20)]

        def work(
            i: int, shared: xp.Array = shared, mean: xp.Array = mean, rows: Any = rows
        ) -> tuple[float, float, float]:
            return float(xp.sum(shared * i)), float(mean), float(xp.max(rows[i % 20]))

        found = dask.compute(
            *[dask.delayed(work)(i) for i in range(100)], scheduler="threads", num_workers=8
        )
        expected = [
            ((values * i).sum(), values.mean(), values[10 * (i % 20) : 10 * (i % 20) + 10].max())
            for i in range(100)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_threaded_scheduler_holds_few_chunks() -> None:
    code = """
import dask.array as da, numpy as np
import fklarray as xp, fklarray.dask
field = da.ones((40 * 1000, 1000), chunks=(1000, 1000), dtype="float32").map_blocks(xp.asarray)
total = (field * 2.0).sum().compute(scheduler="threads", num_workers=2)
assert float(total) == 8e7, total
assert xp.counters()["pool_bytes"] < 20 * 4e6, xp.counters()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_without_dask_the_module_says_what_it_needs() -> None:
    code = "import sys; sys.modules['dask'] = None; import fklarray.dask"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: fklarray.dask needs Dask with its arrays" in run.stderr
    assert "pip install 'dask[array]'" in run.stderr


def test_dask_is_imported_only_by_its_module() -> None:
    code = "import sys, fklarray; assert 'dask' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
