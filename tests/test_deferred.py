"""Reductions, joins and gathers are recorded; they run once, in order, when values are needed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from counting import counted
from fklarray import evaluation
from fklarray.deferred import MAX_DEPTH, depth

NAMES = ("kernels_launched", "delegated", "flushes")


@pytest.fixture
def values() -> np.ndarray:
    return np.linspace(-2, 3, 60).reshape(3, 4, 5)


@pytest.fixture
def x(values: np.ndarray, device: str) -> xp.Array:
    return xp.asarray(values, device=device)


INDICES = np.asarray([3, 0, -1])
# How each is called, and what NumPy gives.
RECORDED: dict[str, tuple[Callable[[xp.Array], xp.Array], Callable[[Any], Any]]] = {
    "sum": (lambda x: xp.sum(x, axis=1), lambda n: n.sum(1)),
    "prod": (lambda x: xp.prod(x, axis=-1, keepdims=True), lambda n: n.prod(-1, keepdims=True)),
    "max": (lambda x: xp.max(x, axis=(0, 2)), lambda n: n.max((0, 2))),
    "min": (xp.min, lambda n: n.min()),
    "mean": (lambda x: xp.mean(x, axis=0), lambda n: n.mean(0)),
    "var": (lambda x: xp.var(x, axis=0, correction=1), lambda n: n.var(0, ddof=1)),
    "std": (xp.std, lambda n: n.std()),
    "all": (lambda x: xp.all(x > -1, axis=2), lambda n: (n > -1).all(2)),
    "any": (lambda x: xp.any(x > 2), lambda n: (n > 2).any()),
    "argmax": (lambda x: xp.argmax(x, axis=1), lambda n: n.argmax(1)),
    "argmin": (lambda x: xp.argmin(x, keepdims=True), lambda n: n.argmin(keepdims=True)),
    "count_nonzero": (lambda x: xp.count_nonzero(x > 0, axis=0), lambda n: (n > 0).sum(0)),
    "cumulative_sum": (lambda x: xp.cumulative_sum(x, axis=1), lambda n: n.cumsum(1)),
    "cumulative_prod": (lambda x: xp.cumulative_prod(x, axis=2), lambda n: n.cumprod(2)),
    "concat": (lambda x: xp.concat([x, x[:1] * 2]), lambda n: np.concat([n, n[:1] * 2])),
    "stack": (lambda x: xp.stack([x, -x], axis=2), lambda n: np.stack([n, -n], axis=2)),
    "roll": (lambda x: xp.roll(x, (1, -2), axis=(0, 2)), lambda n: np.roll(n, (1, -2), (0, 2))),
    "roll flat": (lambda x: xp.roll(x, 7), lambda n: np.roll(n, 7)),
    "repeat": (lambda x: xp.repeat(x, 3, axis=1), lambda n: np.repeat(n, 3, 1)),
    "tile": (lambda x: xp.tile(x, (2, 1, 3)), lambda n: np.tile(n, (2, 1, 3))),
    "pad": (
        lambda x: xp.pad(x, ((0, 1), (2, 0), (1, 1)), constant_values=7.0),
        lambda n: np.pad(n, ((0, 1), (2, 0), (1, 1)), constant_values=7.0),
    ),
    "diff": (lambda x: xp.diff(x, axis=0, n=2), lambda n: np.diff(n, n=2, axis=0)),
    "take": (
        lambda x: xp.take(x, xp.asarray(INDICES), axis=1),
        lambda n: np.take(n, INDICES, 1),
    ),
    "reshape": (
        lambda x: xp.reshape(xp.permute_dims(x, (2, 0, 1)), (12, 5)),
        lambda n: n.transpose(2, 0, 1).reshape(12, 5),
    ),
    "nansum": (lambda x: xp.nansum(x, axis=0), lambda n: np.nansum(n, 0)),
    "nanvar": (xp.nanvar, np.nanvar),
    "nanmax": (lambda x: xp.nanmax(x, axis=1), lambda n: np.nanmax(n, 1)),
    "median": (lambda x: xp.median(x, axis=(0, 1)), lambda n: np.median(n, (0, 1))),
    "logsumexp": (
        lambda x: xp.logsumexp(x, axis=1),
        lambda n: np.log(np.exp(n - n.max(1, keepdims=True)).sum(1)) + n.max(1),
    ),
    "softmax": (
        lambda x: xp.nn.softmax(x, axis=0),
        lambda n: np.exp(n - n.max(0)) / np.exp(n - n.max(0)).sum(0),
    ),
}


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("pending", [False, True], ids=["in memory", "pending"])
def test_recording_runs_nothing_and_values_are_numpys(
    name: str, pending: bool, x: xp.Array, values: np.ndarray
) -> None:
    function, wanted = RECORDED[name]
    if pending:
        x, values = x * 0.5 + 1, values * 0.5 + 1
    with counted(*NAMES) as change:
        result = function(x)
        later = function(result[..., None] + 0 * x[0, 0, 0]) if name == "sum" else result * 2
        _ = (result.shape, result.dtype, later.shape)
    assert not any(change.values()), change
    expected = np.asarray(wanted(values))
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", RECORDED)
def test_the_operand_is_seen_as_it_was(name: str, x: xp.Array, values: np.ndarray) -> None:
    function, wanted = RECORDED[name]
    result = function(x)
    x[...] = 100
    x[0] = -1
    np.testing.assert_allclose(np.asarray(result), wanted(values), rtol=1e-14, atol=1e-14)
    assert float(x[0, 0, 0]) == -1


def test_a_pending_operand_is_computed_once(x: xp.Array) -> None:
    y = xp.exp(x) + 1
    with counted(*NAMES) as change:
        total = y / xp.sort(y, axis=0)
        more = xp.sort(y, axis=1) - xp.sort(y, axis=2)
        np.asarray(total + more)
    # One kernel for y, one for what follows, and three that do not fuse.
    assert change == {"kernels_launched": 2, "delegated": 3, "flushes": 1}


def test_joined_parts_are_computed_into_place(x: xp.Array) -> None:
    with counted(*NAMES) as change:
        np.asarray(xp.concat([x + 1, x * 2, xp.exp(x)]))
    assert change == {"kernels_launched": 3, "delegated": 0, "flushes": 1}


def test_a_selection_computes_its_elements_only(x: xp.Array) -> None:
    big = xp.zeros((1 << 30,), device=x.device) + x[0, 0, 0]  # 8 GiB if it were computed
    assert bool(xp.any(xp.reshape(big, (-1,))[0])) is True


def test_a_result_is_computed_once_for_all_who_read_it(x: xp.Array) -> None:
    mean = xp.mean(x)
    first, second = x - mean, x + mean
    np.asarray(first)
    with counted(*NAMES) as change:
        np.asarray(second)
        float(mean)
    assert change["delegated"] == 0


def test_operands_are_let_go_when_the_result_is_there(device: str) -> None:
    x = xp.asarray(np.ones(1000), device=device)
    total = xp.sum(x)
    state = x._state
    held = sys.getrefcount(state)
    alias = total[...]  # whoever reads the result still has its recipe
    float(total)
    assert sys.getrefcount(state) == held - 1
    assert float(alias) == 1000


def test_chains_are_cut_and_need_no_deep_stack(device: str) -> None:
    x = xp.asarray(np.arange(4.0), device=device)
    deepest = 0
    for _ in range(20 * MAX_DEPTH):
        x = x - xp.mean(x) + 1
        deepest = max(deepest, depth(x._state))
    assert MAX_DEPTH // 2 <= deepest <= MAX_DEPTH + 2
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_frames() + 60)
    try:
        result = np.asarray(x)
    finally:
        sys.setrecursionlimit(limit)
    assert result.tolist() == [-0.5, 0.5, 1.5, 2.5]


def _frames() -> int:
    frame, count = sys._getframe(), 0
    while frame:
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]
    return count


def test_memory_of_many_pending_sums_is_bounded(device: str) -> None:
    total = xp.zeros((), device=device)
    for k in range(100):
        total = total + xp.sum(xp.asarray(np.full(1 << 21, float(k)), device=device))
    held = {id(leaf.buffer): leaf.buffer for leaf in total._state[1] if hasattr(leaf, "buffer")}
    assert sum(block.nbytes for block in held.values()) <= 640 << 20
    assert float(total) == 4950.0 * (1 << 21)


def test_a_failing_reduction_leaves_everything_usable(
    x: xp.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_state, calls = evaluation.empty_state, []

    def fail_once(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 1:
            raise MemoryError("no memory today")
        return empty_state(*given)

    monkeypatch.setattr(evaluation, "empty_state", fail_once)
    total = xp.sum(x) + 1
    with pytest.raises(MemoryError, match="today"):
        float(total)
    assert float(total) == pytest.approx(31.0)
    assert calls


def test_threads_share_a_deferred_result(x: xp.Array) -> None:
    mean = xp.mean(xp.exp(x), axis=0)
    wanted = np.exp(np.asarray(x)).mean(0)
    errors: list[BaseException] = []
    start = threading.Barrier(8)

    def read(scale: int) -> None:
        try:
            start.wait()
            np.testing.assert_allclose(np.asarray(mean * scale), wanted * scale, rtol=1e-14)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_in_place_after_a_join_does_not_reach_its_parts(x: xp.Array, values: np.ndarray) -> None:
    joined = xp.concat([x, x])
    other = joined[1:]
    joined[0] = 9
    assert np.array_equal(np.asarray(x), values)
    assert np.array_equal(np.asarray(other), np.concat([values, values])[1:])
    assert np.all(np.asarray(joined[0]) == 9)


def test_explain_takes_what_is_deferred(x: xp.Array) -> None:
    explanation = xp.explain((x - xp.mean(x)) / xp.std(x))
    assert "subtract" in explanation.graph
    assert explanation.graph.count("reduce by sum") == 2
    assert any("over each row" in reason for reason in explanation.reasons)
    explanation = xp.explain(x - xp.sort(x, axis=0) / xp.flip(xp.roll(x, 1)))
    assert any("2 arrays of them" in reason for reason in explanation.reasons)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: xp.sum(x, axis=3), np.exceptions.AxisError),
        (lambda x: xp.sum(x, axis=(0, 0)), ValueError),
        (lambda x: xp.max(x[:0], axis=0), ValueError),
        (lambda x: xp.argmin(x[:0]), ValueError),
        (lambda x: xp.concat([]), ValueError),
        (lambda x: xp.concat([x, x[0]]), ValueError),
        (lambda x: xp.stack([x, x[0]]), ValueError),
        (lambda x: xp.take(x, xp.asarray([4]), axis=1), IndexError),
        (lambda x: xp.take(x, xp.asarray([0.5]), axis=1), IndexError),
        (lambda x: xp.take(x, xp.asarray([0])), ValueError),
        (lambda x: xp.repeat(x, -1), ValueError),
        (lambda x: xp.repeat(x, xp.asarray([1.0, 2.0, 3.0]), axis=0), TypeError),
        (lambda x: xp.roll(x, (1, 2, 3), axis=(0, 1)), ValueError),
        (lambda x: xp.pad(x, -1), ValueError),
        (lambda x: xp.pad(x, 0.5), TypeError),
        (xp.cumulative_sum, ValueError),
        (lambda x: xp.diff(x, n=-1), ValueError),
        (lambda x: xp.nn.softmax(x + 0j), TypeError),
        (lambda x: xp.sum([1, 2]), TypeError),
    ],
)
def test_mistakes_are_refused_by_the_call(
    call: Callable[[xp.Array], object], error: type[Exception], x: xp.Array
) -> None:
    with counted(*NAMES) as change, pytest.raises(error):
        call(x)
    assert not any(change.values())


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_methods_are_the_functions(
    axis: int | tuple[int, ...] | None, x: xp.Array, values: np.ndarray
) -> None:
    for name in ("sum", "prod", "mean", "var", "std", "max", "min", "all", "any"):
        got = getattr(x, name)(axis=axis, keepdims=True)
        wanted = getattr(xp, name)(x, axis=axis, keepdims=True)
        assert got.dtype == wanted.dtype
        assert np.array_equal(np.asarray(got), np.asarray(wanted)), name
    assert x.reshape(12, 5).shape == x.reshape((12, -1)).shape == (12, 5)
    assert x[None].squeeze().shape == x.copy().shape == x.astype("float32").shape == x.shape
    assert x.transpose().shape == x.transpose((2, 1, 0)).shape == (5, 4, 3)
    assert np.array_equal(np.asarray(x.round(1)), values.round(1))
    assert np.array_equal(np.asarray((x + 1j).imag), np.ones_like(values))
    assert not np.asarray(x.imag).any()
