"""What recording, flushing and exporting cost besides the kernel, beside NumPy in the same process.

Benchmarks measure it (``benchmarks/host.py``); here is only what would show that a quick way is
not taken any more. The best of many rounds, since machines are busy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from fklarray import core

CALLS = 50
ROUNDS = 60


def _chain(x: Any) -> Any:
    return ((x * 1.5 + 2.5 - 1.5) * 2.5 + 1.5) / 2.5


def _best(*candidates: Callable[[], object]) -> list[float]:
    best = [float("inf")] * len(candidates)
    for _ in range(ROUNDS):
        for index, call in enumerate(candidates):
            call()
            began = time.perf_counter()
            for _ in repeat(None, CALLS):
                call()
            best[index] = min(best[index], time.perf_counter() - began)
    return best


# Measured: 0.4 with the core and 2.4 without; 0.6 and 2.9 by np.asarray.
@pytest.mark.parametrize(
    ("take", "limit", "limit_of_python"),
    [(np.from_dlpack, 1.0, 5.0), (np.asarray, 1.5, 6.0)],
    ids=["np.from_dlpack", "np.asarray"],
)
def test_six_operations_and_their_export(
    take: Callable[[Any], Any], limit: float, limit_of_python: float, host: str
) -> None:
    values = np.linspace(-2, 2, 1024, dtype=np.float32)
    x = xp.asarray(values, device=host)
    take(_chain(x))
    numpy, ours = _best(lambda: _chain(values), lambda: take(_chain(x)))
    assert ours <= (limit if core.compiled() else limit_of_python) * numpy


def test_one_recorded_operation(device: str) -> None:
    values = np.ones(1024, np.float32)
    x, y = (xp.asarray(values, device=device) for _ in range(2))
    numpy, *ours = _best(
        lambda: values + values,
        lambda: x + y,
        lambda: x + x,
        lambda: x * 1.5,
        lambda: 1.5 - x,
        lambda: -x,
        lambda: xp.exp(x),
        lambda: xp.hypot(x, y),
    )
    assert max(ours) <= (1.2 if core.compiled() else 8.0) * numpy


# Measured: 1.2 and 0.6 with the core, 10 and 4 without.
@pytest.mark.parametrize(
    ("function", "numpys", "limit", "limit_of_python"),
    [
        (lambda x: xp.sum(x, axis=1), lambda x: x.sum(1), 2.5, 25.0),
        (
            lambda x: (x - xp.mean(x, axis=1, keepdims=True)) / xp.std(x, axis=1, keepdims=True),
            lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
            1.0,
            8.0,
        ),
    ],
    ids=["sum", "normalise"],
)
def test_reductions_and_their_export(
    function: Callable[[Any], Any],
    numpys: Callable[[Any], Any],
    limit: float,
    limit_of_python: float,
    host: str,
) -> None:
    values = np.linspace(-2, 2, 1024, dtype=np.float32).reshape(32, 32)
    x = xp.asarray(values, device=host)
    np.from_dlpack(function(x))
    numpy, ours = _best(lambda: numpys(values), lambda: np.from_dlpack(function(x)))
    assert ours <= (limit if core.compiled() else limit_of_python) * numpy


_START = """
import time
began = time.perf_counter()
import numpy as np
numpys = time.perf_counter()
import fklarray as xp
ours = time.perf_counter()
x = xp.asarray(np.linspace(-2, 2, 1024, dtype=np.float32))
np.from_dlpack(x * 1.5 + 2.5)
done = time.perf_counter()
print(numpys - began, ours - numpys, done - ours, xp.counters()["kernels_compiled"])
"""


def test_a_process_starts_soon_and_finds_its_kernels(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "FKLARRAY_CACHE_DIR": str(tmp_path / "kernels"),
        "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = []
    for _ in range(6):
        run = subprocess.run(
            [sys.executable, "-c", _START], env=environment, capture_output=True, check=True
        )
        runs.append([float(number) for number in run.stdout.split()])
    numpys, ours, first, compiled = map(min, zip(*runs[1:], strict=True))
    assert compiled == 0
    # Measured on a free machine: 70 ms beside NumPy's 80, and 9 ms.
    assert ours <= 1.6 * numpys
    assert first <= 0.4 * numpys
