"""Nothing runs before it must, everything runs as one kernel, and kernels are made once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from counting import counted
from fklarray_codegen.graph import MAX_OPERATIONS, check_graph

NAMES = ("kernels_launched", "kernels_compiled", "ops_fused", "flushes", "reference_evaluations")


@pytest.fixture
def x(device: str) -> xp.Array:
    return xp.asarray(np.linspace(-1, 1, 60).reshape(5, 12), device=device)


def _six(x: xp.Array) -> xp.Array:
    return xp.sqrt(xp.abs(x * 2.0 + 1.0)) / 3.0 - x


# ---------------------------------------------------------------------------------- recording


def test_recording_runs_nothing(x: xp.Array) -> None:
    with counted(*NAMES) as change:
        y = _six(x)
        y = xp.where(y > 0, y, -y)[::-1, 1:]
        y = xp.astype(xp.permute_dims(y, (1, 0)), xp.float32)
        y = xp.reshape(xp.expand_dims(y, 0), (11, 1, 5))
        y[...] = y + 1
        y += 1
        y[y > 2] = 0
        xp.broadcast_to(y, (11, 3, 5))
        _ = (y.shape, y.dtype, y.ndim, y.size, y.nbytes, y.device, len(y), y.mT, y == 1)
    assert not any(change.values()), change


def test_creation_runs_nothing(device: str) -> None:
    with counted(*NAMES) as change:
        for make in (xp.zeros, xp.ones, xp.empty):
            make((3, 4), device=device)
        xp.full((2, 2), 7, device=device)
        xp.arange(10, device=device)
        xp.asarray([1, 2], device=device)
        xp.tril(xp.ones((3, 3), device=device))
    assert not any(change.values()), change


def test_explain_runs_nothing_and_shows_what_is_compiled(
    x: xp.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = xp.atan2(_six(x), x - 0.5) * xp.hypot(x, 2.0)
    with counted(*NAMES) as change:
        explanation = xp.explain(y)
        text = str(explanation)
    assert not any(change.values()), change
    assert explanation.source.splitlines()[5].strip() in text
    from fklarray import kernels

    compiled: list[str] = []

    def spy(build: Callable[..., None], place: int) -> Callable[..., None]:
        def compile_unit(*arguments: Any) -> None:
            compiled.append(arguments[place].read_text())
            build(*arguments)

        return compile_unit

    for name, place in (("compile_library", 1), ("compile_for_gpu", 2)):
        monkeypatch.setattr(kernels, name, spy(getattr(kernels, name), place))
    with xp.config.override(compile="sync", cache_dir=tmp_path / "kernels"):
        xp.materialize(y)
    assert compiled == [explanation.source]


# ----------------------------------------------------------------------------------- launches


@pytest.mark.parametrize("count", [1, 2, 6, 20, MAX_OPERATIONS])
def test_any_number_of_operations_is_one_launch(count: int, device: str) -> None:
    x = xp.asarray(np.arange(10.0), device=device)
    y = x
    for _ in range(count):
        y = y + x
    with counted(*NAMES) as change:
        assert np.asarray(y).tolist() == [(count + 1) * k for k in range(10)]
    assert change["kernels_launched"] == change["flushes"] == 1
    assert change["ops_fused"] == count


def test_views_between_operations_are_the_same_launch(x: xp.Array) -> None:
    y = xp.permute_dims((x * 2)[1:, ::-1], (1, 0)) + 1
    y = xp.reshape(y[:, :, None] * xp.ones((3,), device=x.device), (12, 4, 3)) - x[0, 0]
    with counted(*NAMES) as change:
        np.asarray(y)
    assert change["kernels_launched"] == 1


def test_a_computed_array_is_not_computed_again(x: xp.Array) -> None:
    y = _six(x)
    np.asarray(y)
    with counted(*NAMES) as change:
        for _ in range(3):
            np.asarray(y)
            xp.from_dlpack(y)
            repr(y)
            float(y[0, 0])
            xp.materialize(y, y)
    assert change["kernels_launched"] == 0


def test_later_work_starts_from_the_computed_values(x: xp.Array) -> None:
    y = _six(x)
    np.asarray(y)
    z = y + 1
    with counted(*NAMES) as change:
        np.asarray(z)
    assert change["ops_fused"] == 1


def test_materialize_of_one_shape_is_one_launch(x: xp.Array) -> None:
    shared = x * 3
    a, b, c = shared + 1, shared - x, xp.astype(shared, xp.float32)
    with counted(*NAMES) as change:
        xp.materialize(a, b, c)
    assert (change["kernels_launched"], change["ops_fused"]) == (1, 4)
    with counted(*NAMES) as change:
        got = [np.asarray(value) for value in (a, b, c)]
    assert change["kernels_launched"] == 0
    base = np.asarray(x) * 3
    assert all(
        np.array_equal(g, w)
        for g, w in zip(got, (base + 1, base - np.asarray(x), base.astype("f4")), strict=True)
    )


def test_materialize_of_two_shapes_is_one_launch_each(x: xp.Array) -> None:
    with counted(*NAMES) as change:
        xp.materialize(x + 1, x - 1, x[0] + 1, x[0] - 1, x)
    assert change["kernels_launched"] == 2


def test_empty_arrays_launch_nothing(device: str) -> None:
    with counted(*NAMES) as change:
        assert np.asarray(xp.ones((0, 3), device=device) * 2 + 1).shape == (0, 3)
    assert change["kernels_launched"] == change["kernels_compiled"] == 0


def test_assignment_to_a_private_array_writes_in_place(device: str) -> None:
    x = xp.asarray(np.zeros(1000), device=device)
    x[0] = 1
    with counted(*NAMES) as change:
        for k in range(5):
            x[10 * k : 10 * k + 5] = k
    assert change["kernels_launched"] == 5  # one each, and none that copies the array


# -------------------------------------------------------------------------------- compilations

_VALUES = [0.0, 1.0, -1.0, -0.0, 0.1, 1e300, 5e-324, float("inf"), float("-inf"), float("nan"), 3]


def _changing(kind: str, k: int, device: str) -> xp.Array:
    x = xp.asarray(np.arange(400.0), device=device)
    grid = xp.reshape(x, (20, 20))
    return {
        "values": lambda: x * _VALUES[k % 11] + k,
        "lengths": lambda: x[: k + 1] * 0.5 + 1,
        "offsets": lambda: x[k : k + 9] * 0.5 + 1,
        "steps": lambda: x[:: k + 2] * 0.5 + 1,
        "reversed": lambda: x[200 : 2 * k : -1 - k] * 0.5 + 1,
        "rows": lambda: grid[k] * 0.5 + 1,
        "columns": lambda: grid[:, k] * 0.5 + 1,
        "blocks": lambda: grid[k:, 1 : 3 + k // 2] * 0.5 + 1,
        "matrices": lambda: xp.ones((k + 1, 30), device=device) * x[:30] + 1,
        "fill": lambda: xp.full((k + 2,), k, dtype=xp.float64, device=device) * 0.5 + 1,
    }[kind]()


@pytest.mark.parametrize(
    "kind",
    [
        "values",
        "lengths",
        "offsets",
        "steps",
        "reversed",
        "rows",
        "columns",
        "blocks",
        "matrices",
        "fill",
    ],
)
def test_changed_values_shapes_and_offsets_compile_nothing(kind: str, device: str) -> None:
    for k in (3, 4):  # two, because a stride of 1 is another kernel than any other stride
        np.asarray(_changing(kind, k, device))
    with counted(*NAMES) as change:
        for k in range(18):
            np.asarray(_changing(kind, k, device))
    assert change["kernels_compiled"] == 0
    assert change["kernels_launched"] == 18


def test_a_changed_topology_compiles_exactly_one(x: xp.Array) -> None:
    variants: list[Callable[[], xp.Array]] = [
        lambda: xp.hypot(x * 2, x - 3),
        lambda: xp.hypot(x - 3, x * 2),
        lambda: xp.hypot(x * 2, x * 2),
        lambda: xp.hypot(x * 2, 3 - x),
        lambda: xp.hypot(x * 2, x[::-1, ::-1] - 3),
        lambda: xp.astype(xp.hypot(x * 2, x - 3), xp.float32),
        lambda: xp.hypot(xp.astype(x, xp.float32) * 2, xp.astype(x, xp.float32) - 3),
    ]
    for variant in variants:
        with counted(*NAMES) as change:
            np.asarray(variant())
        assert change["kernels_compiled"] == 1, xp.explain(variant()).graph
        with counted(*NAMES) as change:
            np.asarray(variant())
        assert change["kernels_compiled"] == 0


SECOND = """
import numpy as np, fklarray as xp
x = xp.asarray(np.arange(20.0)[::-1].copy())
assert np.asarray(xp.logaddexp(x, x * 2) - 1).shape == (20,)
counts = xp.counters()
print(counts["kernels_compiled"], counts["kernels_from_disk"])
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "FKLARRAY_CACHE_DIR": str(tmp_path / "kernels")}
    command = [sys.executable, "-c", SECOND]
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert [run.split() for run in runs] == [["1", "0"], ["0", "1"]]


# ------------------------------------------------------------------------------ long programs


LOOP = """
import resource, sys
import numpy as np, fklarray as xp
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
t, u = xp.zeros((64, 64)), xp.ones((64, 64))
for _ in range(2000):
    t = (t + u) / 2
float(t[0, 0])
before = used()
for _ in range(50_000):
    t = (t + u) / 2
assert float(t[3, 5]) == 1.0
print(used() - before)
"""


def test_a_long_loop_runs_in_constant_memory() -> None:
    command = [sys.executable, "-c", LOOP]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown < 16 * 1024, f"{grown} KiB"


def test_a_deep_chain(device: str) -> None:
    limit = sys.getrecursionlimit()
    x = xp.asarray(np.zeros(4), device=device)
    for _ in range(20_000):
        x = x + 1
    y = x * 2
    del x
    assert float(y[3]) == 40_000.0
    assert sys.getrecursionlimit() == limit


def test_shared_subexpressions_take_linear_time(device: str) -> None:
    """2 ** 400 paths: only a walk that visits each value once comes to an end."""
    x = xp.asarray(np.array([2.0, 8.0]), device=device)
    y = xp.asarray(np.array([-5.0]), device=device)
    with xp.config.override(compile="off"), counted(*NAMES) as change:
        for _ in range(200):
            x = (x + x) * 0.5 - x + x
            y = xp.where(y < 0, y, -y)
            check_graph(y._state[0])
        assert np.asarray(x).tolist() == [2.0, 8.0]
        assert np.asarray(y).tolist() == [-5.0]
    assert change["reference_evaluations"] <= 60


def test_a_cut_computes_little_again(device: str) -> None:
    y = xp.asarray(np.array([-5.0, -6.0]), device=device)
    with counted(*NAMES) as change:
        for _ in range(60):
            y = xp.where(y < 0, y, -y)
        assert np.asarray(y).tolist() == [-5.0, -6.0]
    assert change["ops_fused"] <= 2 * 60 * 3


def test_an_expression_that_grows_too_large_is_cut(device: str) -> None:
    x = xp.asarray(np.ones(5), device=device)
    y = x
    with counted(*NAMES) as change:
        for _ in range(3 * MAX_OPERATIONS):
            y = y * x
            assert y._state[0].operations <= MAX_OPERATIONS
    assert 1 <= change["flushes"] <= 4
    assert np.asarray(y).tolist() == [1.0] * 5


def test_many_operands_are_cut(device: str) -> None:
    total = xp.zeros((7,), device=device)
    for k in range(300):
        total = total + xp.asarray(np.full(7, k, dtype=np.float64), device=device)
    assert np.asarray(total).tolist() == [300 * 299 / 2] * 7


def test_operands_that_hold_much_memory_are_not_kept(device: str) -> None:
    total = xp.zeros((1 << 21,), device=device)
    for k in range(100):  # 1.6 GB if all of them were pending
        total = total + xp.asarray(np.full(1 << 21, k, dtype=np.float64), device=device)
    assert xp.counters()["pool_bytes"] < 1 << 30
    assert float(total[-1]) == 100 * 99 / 2
