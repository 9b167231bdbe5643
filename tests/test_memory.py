"""What expressions take of memory, what the pool keeps of it, and when there is none left."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import fklarray as xp

MIB = 1 << 20

# Kernels are compiled on small arrays first: shapes are parameters.
_PEAK = """
import re, sys
import numpy as np
import fklarray as xp

def resident(name):
    return int(re.search(name + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) << 10

def chain(x, y):
    for k in range(20):
        x = x * 1.01 + y if k % 2 else xp.where(x > y, x - 0.5, x + 0.25)
    return x

def normalise(x, y):
    return (x - xp.mean(x, axis=1, keepdims=True)) / xp.std(x, axis=1, keepdims=True) * y

expression, columns, megabytes = eval(sys.argv[1]), 1 << 12, 64
for rows in (4096, 600):
    values = np.ones((rows, columns), np.float32)
    if rows == 600:
        values[:] = np.arange(columns)
    small = xp.asarray(values[:600]), xp.asarray(values[:600] + 1)
    wanted = np.asarray(expression(*small))[:2].copy()
    del small, values
xp.clear_pool()
shape = ((megabytes << 20) // columns // 4, columns)
x, y = (xp.asarray(np.full(shape, n, np.float32)) for n in (1, 2))
xp.clear_pool()
open("/proc/self/clear_refs", "w").write("5")  # begins a new peak
before = resident("VmRSS")
result = expression(x, y)
xp.materialize(result)
print((resident("VmHWM") - before) / 2**20)
"""


@pytest.mark.parametrize("expression", ["chain", "normalise"])
def test_an_expression_takes_its_inputs_and_its_results(expression: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-c", _PEAK, expression]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    # The result takes 64 MiB; NumPy would hold a second intermediate at least.
    assert 63 <= float(run.stdout) <= 64 + 6


def test_the_pool_gives_back_what_it_keeps() -> None:
    gc.collect()
    xp.clear_pool()
    before = xp.counters()["pool_bytes"]
    x = xp.asarray(np.ones(8 * MIB, np.uint8))
    assert xp.counters()["pool_bytes"] >= before + 8 * MIB
    del x
    assert xp.counters()["pool_bytes"] >= before + 8 * MIB
    xp.clear_pool()
    assert xp.counters()["pool_bytes"] <= before


def test_what_the_pool_keeps_has_a_limit_of_the_users() -> None:
    gc.collect()
    xp.clear_pool()
    before = xp.counters()["pool_bytes"]
    with xp.config.override(pool_limit=4 * MIB):
        arrays = [xp.asarray(np.ones(3 * MIB, np.uint8)) for _ in range(3)]
        arrays += [xp.asarray(np.ones(MIB // 2, np.uint8)) for _ in range(8)]
        arrays.clear()
        assert xp.counters()["pool_bytes"] - before <= 4 * MIB
        xp.config.pool_limit = MIB
        assert xp.counters()["pool_bytes"] - before <= MIB
        xp.config.pool_limit = 0
        assert xp.counters()["pool_bytes"] <= before
        assert float(xp.sum(xp.asarray(np.ones(MIB)))) == MIB
    assert xp.config.pool_limit is None


@pytest.mark.parametrize(
    ("limit", "error"), [(-1, ValueError), (1.5, TypeError), ("much", ValueError)]
)
def test_what_is_no_limit_is_refused(limit: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=str(limit) if error is ValueError else None):
        xp.config.pool_limit = limit  # type: ignore[assignment]
    assert xp.config.pool_limit is None


def test_the_limit_is_a_variable_too() -> None:
    code = """
import numpy as np, fklarray as xp
assert xp.config.pool_limit == 1 << 20
x = xp.asarray(np.ones(1 << 23, np.uint8))
del x
assert xp.counters()["pool_bytes"] < 2 << 20
"""
    environment = {**os.environ, "FKLARRAY_POOL_LIMIT": str(1 << 20)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    environment["FKLARRAY_POOL_LIMIT"] = "lots"
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "FKLARRAY_POOL_LIMIT: a number of bytes is needed, not 'lots'" in run.stderr


# The kernels are there before memory is short: compiling takes some too.
_SHORT = """
import resource, sys
import numpy as np
import fklarray as xp

def pending(n):
    x = xp.asarray(np.arange(n, dtype=np.float64).reshape(-1, 1024))
    return [x * 2 + 1, (x - xp.mean(x, axis=1, keepdims=True)) * 3, xp.sum(x + 1, axis=0),
            xp.broadcast_to(x, (64, *x.shape)) + 0.5]

for array in pending(1 << 18) + pending(1 << 14):
    xp.materialize(array)
del array
xp.clear_pool()
arrays = pending(8 << 20)  # 64 MiB each
spare = [xp.asarray(np.ones(1 << 17)) for _ in range(40)]
spare.clear()  # 40 MiB that the pool keeps
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), resource.RLIM_INFINITY))
for array in (arrays[0], arrays[1], arrays[3]):
    for _ in range(2):
        try:
            np.asarray(array)
        except MemoryError as error:
            assert str(array.size * 8) in str(error), error
            assert "bytes are in the pool" in str(error), error
        else:
            raise AssertionError
total = np.asarray(arrays[2])  # 8 KiB
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
plain = np.arange(8 << 20, dtype=np.float64).reshape(-1, 1024)
np.testing.assert_array_equal(total, (plain + 1).sum(0))
np.testing.assert_array_equal(arrays[0], plain * 2 + 1)
np.testing.assert_array_equal(arrays[1], (plain - plain.mean(1, keepdims=True)) * 3)
print("whole")
"""


@pytest.mark.parametrize("core", ["compiled", "python"])
def test_a_result_that_finds_no_memory_stays_pending(core: str) -> None:
    environment = {**os.environ, "FKLARRAY_CORE": core, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", _SHORT], env=environment, capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.returncode) == ("whole\n", 0), run.stderr
