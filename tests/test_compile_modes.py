"""The bits of a result do not depend on how, or whether, its kernel was compiled."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits
from batches import LAYOUTS, TOGETHER, evaluate, in_layout
from fklarray import background, evaluation, kernels, plans
from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.ops import ACCEPTED, OPS, Op
from fklarray_codegen.render import Program
from samples import Values, operands, operations, random, special

NAMES = ("kernels_launched", "kernels_compiled", "reference_evaluations", "flushes")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Compile in the background, each kernel at its first use, into an empty cache."""
    monkeypatch.setattr(background, "_SECONDS_PER_COMPILATION", 0.0)
    _forget(monkeypatch)
    with xp.config.override(compile="background", cache_dir=tmp_path / "kernels"):
        yield tmp_path / "kernels"
        background.wait()


class Counted:
    """What has been added to the counters since it was made."""

    def __init__(self) -> None:
        self.before = xp.counters()

    def __getattr__(self, name: str) -> int:
        return xp.counters()[name] - self.before[name]


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the kernels in memory."""
    plans.plans.clear()
    for module, name in ((kernels, "_kernels"), (plans, "_waiting")):
        monkeypatch.setattr(module, name, type(getattr(module, name))())


@contextmanager
def op_by_op() -> Iterator[None]:
    """Evaluate as in the background mode while kernels are not ready."""
    change = Counted()
    with pytest.MonkeyPatch.context() as patch, xp.config.override(compile="background"):
        patch.setattr(evaluation, "_plan", lambda *_: None)
        plans.plans.clear()
        yield
    assert change.reference_evaluations == change.flushes


def _in_mode(mode: str, compute: Callable[[], Any]) -> Any:
    with xp.config.override(compile=mode):
        return compute()


def _assert_all_same(got: dict[str, Any], wanted: dict[str, Any], place: object = "") -> None:
    assert got.keys() == wanted.keys()
    for name, values in wanted.items():
        try:
            assert_same_bits(got[name], values)
        except AssertionError as error:
            raise AssertionError(f"{name} {place}: {error}") from None


# ------------------------------------------------------------- the whole op table, both ways


ROWS = [pytest.param(row, n, id=f"{row}-{n}") for row in DTYPES.values() for n in (1, 2)]


def _function(op: Op) -> Callable[..., xp.Array]:
    function: Callable[..., xp.Array] = getattr(
        xp.special if op.family == "special" else xp, op.name
    )
    return function


def _evaluate(row: DType, arity: int, arrays: tuple[xp.Array, ...]) -> dict[str, Values]:
    """Compute every operation that takes a data type, in the kernels of the other tests first."""
    results = evaluate(row, arity, arrays)
    accepting = [op for op in OPS.values() if op.arity == arity and row in ACCEPTED[op.accepts]]
    more = {op.name: _function(op)(*arrays) for op in accepting if op.name not in results}
    pending = list(more.values())
    for start in range(0, len(pending), TOGETHER):
        xp.materialize(*pending[start : start + TOGETHER])
    return results | {name: np.array(result) for name, result in more.items()}


@cache
def _compiled(row: DType, arity: int, device: str) -> dict[str, Values]:
    with xp.config.override(compile="sync"):
        return _evaluate(row, arity, _samples(row, arity, device))


def _samples(row: DType, arity: int, device: str) -> tuple[xp.Array, ...]:
    return tuple(xp.asarray(value, device=device) for value in operands(row, arity))


@pytest.mark.parametrize(("row", "arity"), ROWS)
def test_special_values(row: DType, arity: int, device: str) -> None:
    wanted = _compiled(row, arity, device)
    assert wanted
    with op_by_op():
        _assert_all_same(_evaluate(row, arity, _samples(row, arity, device)), wanted)


@pytest.mark.parametrize(("row", "arity"), ROWS)
def test_lengths_offsets_and_strides(row: DType, arity: int, device: str) -> None:
    """NumPy's loops have tails and strided versions of their own."""
    wanted = _compiled(row, arity, device)
    arrays = _samples(row, arity, device)
    offsets = np.random.default_rng(5).integers(2, arrays[0].size - 100, 3).tolist()
    lengths = (1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 100)
    views = [slice(at, at + length) for length in lengths for at in (0, 1, *offsets)]
    views += [slice(None, None, step) for step in (2, 3, -1, -5)]
    for view in views:
        with op_by_op():
            got = _evaluate(row, arity, tuple(array[view] for array in arrays))
        _assert_all_same(got, {name: values[view] for name, values in wanted.items()}, view)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "empty"])
@pytest.mark.parametrize(("row", "arity"), [case for case in ROWS if operations(*case.values)])
def test_layouts(row: DType, arity: int, layout: str, device: str) -> None:
    _, wanted = _in_mode("sync", lambda: in_layout(row.name, layout, arity, device))
    with op_by_op():
        _, got = in_layout.__wrapped__(row.name, layout, arity, device)
    _assert_all_same(got, wanted)


@pytest.mark.parametrize("source", DTYPES)
def test_casts_also_out_of_range(source: str, device: str) -> None:
    row = DTYPES[source]
    values = np.concatenate([special(row), random(row, 3000, 5)])
    if row.kind == "real":
        with np.errstate(all="ignore"):
            wide = np.random.default_rng(1).standard_normal(500) * np.exp2(np.linspace(5, 70, 500))
            values = np.concatenate([values, wide.astype(values.dtype)])
    kinds = {"complex", "bool"} if row.kind == "complex" else {to.kind for to in DTYPES.values()}
    targets = [name for name, to in DTYPES.items() if to.kind in kinds]

    def compute() -> dict[str, Any]:
        x = xp.asarray(values, device=device)
        results = [xp.astype(x[::-1], to) for to in targets]
        xp.materialize(*results)
        return dict(zip(targets, map(np.array, results), strict=True))

    compiled = _in_mode("sync", compute)
    with op_by_op():
        _assert_all_same(compute(), compiled)


@pytest.mark.parametrize("name", DTYPES)
def test_where_and_scalars(name: str, device: str) -> None:
    a, b = operands(DTYPES[name], 2)
    mask = random(DTYPES["bool"], a.size, 9)
    scalar = b[3].item() if DTYPES[name].is_standard else float(b[3])

    def compute() -> dict[str, Any]:
        x, y, m = (xp.asarray(value, device=device) for value in (a, b, mask))
        results = [xp.where(m, x, y), xp.where(m[::-1], x[::-1], y[0]), xp.where(m, scalar, y)]
        if name != "bool":
            results += [x * scalar, scalar - x, x**scalar, xp.equal(x, scalar)]
        xp.materialize(*results)
        return {str(place): np.array(value) for place, value in enumerate(results)}

    compiled = _in_mode("sync", compute)
    with op_by_op():
        _assert_all_same(compute(), compiled)


# ------------------------------------------------------------------------------ random graphs

BINARY = [op for op in OPS.values() if op.arity == 2 and hasattr(xp, op.name)]
UNARY = [op for op in OPS.values() if op.arity == 1 and hasattr(xp, op.name)]
KINDS = ["float64", "float32", "float32", "int32", "uint8", "complex64", "complex128", "bool"]


def _random_results(seed: int, device: str) -> list[Any]:
    """Compute three results of one random graph of up to 14 steps, in one kernel."""
    draw = np.random.default_rng(seed)
    pool: list[xp.Array] = []
    for place in range(4):
        row = DTYPES[KINDS[draw.integers(len(KINDS))]]
        memory = xp.asarray(random(row, 12 * 35, place + seed).reshape(12, 35), device=device)
        views = [memory, memory[::-1, ::-1], memory[:1], memory[:, :1], memory[3], memory[0, 0]]
        pool.append(views[draw.integers(len(views))])
    while len(pool) < 18:
        table = BINARY if draw.integers(3) else UNARY
        op = table[draw.integers(len(table))]
        chosen: list[Any] = [pool[draw.integers(len(pool))] for _ in range(op.arity)]
        if op.arity == 2 and draw.integers(4) == 0:
            chosen[draw.integers(2)] = [2, 0.5, -3][draw.integers(3)]
        try:
            pool.append(getattr(xp, op.name)(*chosen))
        except (TypeError, OverflowError):
            continue
    results = [xp.broadcast_to(value, (12, 35)) for value in pool[-3:]]
    xp.materialize(*results)
    return [np.array(value) for value in results]


@pytest.mark.parametrize("seed", range(16))
def test_random_graphs(seed: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute() -> dict[str, Any]:
        return {str(n): value for n, value in enumerate(_random_results(seed, device))}

    change = Counted()
    compiled = _in_mode("sync", compute)
    without_kernel = change.reference_evaluations
    # On a device, that is a graph with an operation that only the CPU has.
    assert without_kernel <= (device != "cpu")
    with op_by_op():
        _assert_all_same(compute(), compiled)
    _forget(monkeypatch)
    ready = Counted()
    _assert_all_same(_in_mode("background", compute), compiled)
    assert ready.reference_evaluations == without_kernel


# ------------------------------------------------------------------- from op by op to a kernel


def _chain(x: xp.Array) -> xp.Array:
    return xp.tan(x) * 1.5 - xp.sqrt(xp.abs(x)) / 3.25


def _values(size: int = 1000) -> Any:
    return np.linspace(-3, 3, size)


def test_a_kernel_takes_over_when_it_is_ready(fresh: Path, device: str) -> None:
    x = xp.asarray(_values(), device=device)
    np.array(xp.tan(x))
    background.wait()
    change = Counted()
    first = np.array(_chain(x))
    # One tiny kernel for the tangent; NumPy does the rest.
    assert (change.reference_evaluations, change.kernels_launched, change.flushes) == (1, 1, 1)
    background.wait()
    assert change.kernels_compiled == 1
    change = Counted()
    second = np.array(_chain(x))
    assert (change.reference_evaluations, change.kernels_launched, change.flushes) == (0, 1, 1)
    with xp.config.override(compile="sync"):
        assert_same_bits(first, np.array(_chain(x)))
    assert_same_bits(second, first)
    assert change.kernels_compiled == 0
    assert len(list(fresh.glob("*.so"))) == 2


def test_a_kernel_on_disk_is_used_at_once(fresh: Path, device: str) -> None:
    x = xp.asarray(_values(), device=device)
    with xp.config.override(compile="sync"):
        wanted = np.array(_chain(x) + 2.125)
    kernels._kernels.clear()
    plans.plans.clear()
    change = Counted()
    assert_same_bits(np.array(_chain(x) + 2.125), wanted)
    assert (change.kernels_from_disk, change.reference_evaluations) == (1, 0)


SHARED: dict[str, list[Callable[[xp.Array], xp.Array]]] = {
    "elementwise": [
        lambda x: xp.sinh(x[::2]) - 1.75,
        lambda x: 3.5 * xp.sinh(x * x),
        lambda x: xp.sinh(x) * xp.sinh(1 / x),
    ],
    "reductions": [
        lambda x: xp.sum(xp.sinh(xp.reshape(x, (10, 100))), axis=0),
        lambda x: 3.5 * xp.sum(xp.reshape(x, (50, 20)) * 2.25, axis=1),
        lambda x: xp.sinh(xp.sum(xp.reshape(x, (5, 4, 50)) + 1.125, axis=1)),
        lambda x: xp.sum(xp.reshape(x, (20, 50)) - 0.375, axis=0) / 7,
    ],
    "complex scans": [
        lambda x: xp.cumulative_sum(x + 0.5j) * 1.75,
        lambda x: 3.5j - xp.cumulative_sum(xp.exp(x) + 0.75j),
        lambda x: 3.5 * xp.cumulative_sum(x * 2.25 - 1j),
    ],
}


@pytest.mark.parametrize("kind", SHARED)
def test_the_first_to_need_an_operation_compiles_at_once(
    fresh: Path, device: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others find that operation compiled, and run it alone: nobody waits twice."""
    monkeypatch.setattr(background, "_SECONDS_PER_COMPILATION", 0.3)
    x = xp.asarray(np.linspace(0.5, 3, 1000), device=device)
    results, single = [], []
    for compute in SHARED[kind]:
        change = Counted()
        results.append(np.array(compute(x)))
        single.append(change.reference_evaluations > 0)
        background.wait()
    assert single[0] is False
    assert single[-1] is True
    if device == "cpu":  # others have kernels for the layouts of a reduction
        assert single[2] is True
    with xp.config.override(compile="sync"):
        for compute, result in zip(SHARED[kind], results, strict=True):
            assert_same_bits(result, np.array(compute(x)))


def test_small_graphs_stay_operation_by_operation(
    fresh: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_SECONDS_PER_COMPILATION", 0.3)
    change = Counted()
    for k in range(20):
        x = xp.asarray(_values(100 + k), device=device)
        assert_same_bits(np.array((x - 0.625) * x), (_values(100 + k) - 0.625) * _values(100 + k))
    background.wait()
    assert (change.reference_evaluations, change.kernels_compiled) == (20, 0)
    assert not list(fresh.glob("*.so"))


def test_the_time_lost_by_all_shapes_together_decides(
    fresh: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_SECONDS_PER_COMPILATION", 6.5 * 2 * (2e-6 + 1e-6))
    change = Counted()
    for k in range(7):
        assert change.kernels_compiled == 0
        x = xp.asarray(_values().reshape([(1000,), (10, 100), (500, 2)][k % 3]), device=device)
        np.array((x + 0.375) / x)
        background.wait()
    assert change.kernels_compiled == 1
    assert change.reference_evaluations == 7


def test_a_kernel_that_does_not_compile_warns_once(
    fresh: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Path] = []
    name, place = ("compile_library", 1) if device == "cpu" else ("compile_for_gpu", 2)
    build, source = getattr(kernels, name), Program.source

    def spy(*arguments: Any) -> None:
        tried.append(arguments[place])
        build(*arguments)

    monkeypatch.setattr(kernels, name, spy)
    monkeypatch.setattr(Program, "source", lambda self: source(self) + "\n#error planted\n")
    x = xp.asarray(_values(), device=device)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(4):
            got = np.array((x + 0.25) / 7.5 - x)
            assert_same_bits(got, (_values() + 0.25) / 7.5 - _values())
            background.wait()
    (warning,) = [w for w in seen if w.category is RuntimeWarning]
    (unit,) = tried
    assert unit.name in str(warning.message)
    assert "planted" in str(warning.message)
    assert [path.name for path in fresh.rglob("*.cpp")] == [unit.name]


def test_many_threads_while_a_kernel_is_compiled(fresh: Path, device: str) -> None:
    x = xp.asarray(_values(), device=device)
    barrier = threading.Barrier(6)
    change = Counted()

    def work(k: int) -> list[Any]:
        barrier.wait()
        results = []
        while not results or len(results) < 30 or (not list(fresh.glob("*.so"))):
            results.append(np.array(_chain(x + k) - k))
        background.wait()
        return [*results, np.array(_chain(x + k) - k)]

    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(work, range(6)))
    assert change.kernels_compiled == 2
    with xp.config.override(compile="sync"):
        for k, results in enumerate(got):
            wanted = np.array(_chain(x + k) - k)
            for result in results:
                assert_same_bits(result, wanted)


# -------------------------------------------------------------------------------------- off


@pytest.mark.parametrize(("row", "arity"), ROWS)
def test_off_compiles_nothing(row: DType, arity: int, device: str, tmp_path: Path) -> None:
    change = Counted()
    with xp.config.override(compile="off", cache_dir=tmp_path / "kernels"):
        arrays = tuple(xp.asarray(random(row, 50, k), device=device) for k in range(arity))
        assert _evaluate(row, arity, arrays)
    assert (change.kernels_compiled, change.kernels_launched) == (0, 0)
    assert not (tmp_path / "kernels").exists()
