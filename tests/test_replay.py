"""What the core records again is what the function records, and is computed as it would be."""

from __future__ import annotations

import gc
import inspect
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits
from fklarray import core
from fklarray.fusion import PendingReduction
from fklarray.pending import held_by_thread
from fklarray.recording import Scalar, State

DTYPES = ("bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64")
SHAPES = ((4, 5), (5,), (), (0, 3), (1, 4), (2, 3, 4), (3, 1, 5))
_AXES = (None, 0, -1, 1, 2, 7, (0,), (0, -1), (), True, 1.0, (True,), [0], np.int64(0), "a")
_ARGUMENTS: dict[str, dict[str, tuple[Any, ...]]] = {
    "sum prod": {"axis": _AXES, "keepdims": (False, True, 1, "no"), "dtype": (None, np.float32)},
    "max min mean all any nansum nanmean nanmax nanmin logsumexp": {
        "axis": _AXES,
        "keepdims": (False, True, None, np.True_),
    },
    "var std nanvar nanstd": {
        "axis": _AXES,
        "correction": (0, 1, 1.0, 1.5, -0.0, "x", float("nan")),
    },
    "cumulative_sum cumulative_prod": {
        "axis": (*_AXES[:6], True),
        "include_initial": (False, True, "no"),
    },
    "argmax argmin": {"axis": (None, 0, 1, -1, True, (0,), 9)},
    "count_nonzero nn.softmax nn.log_softmax": {"axis": _AXES},
    "astype": {"copy": (True, False)},
}
_CASES = [(name, options) for names, options in _ARGUMENTS.items() for name in names.split()]
_NUMBERS = (0.0, -0.0, 0.5, 1, True, -1, 1 << 40, float("nan"), float("inf"), 1j, None, "b")


def _function(name: str) -> Callable[..., Any]:
    return getattr(xp.nn, name.removeprefix("nn.")) if "." in name else getattr(xp, name)  # type: ignore[no-any-return]


class _Description:
    """Describes a state, in which the leaves and results of others are known by their numbers."""

    def __init__(self, given: list[Any]) -> None:
        self.known = list(map(id, given))

    def state(self, state: State) -> tuple[Any, ...]:
        return state[0], *[self._leaf(leaf) for leaf in state[1]]

    def _leaf(self, leaf: Any) -> Any:
        if id(leaf) in self.known:
            return self.known.index(id(leaf))
        self.known.append(id(leaf))
        if isinstance(leaf, Scalar):
            return type(leaf.value), repr(leaf.value)
        memory = self._memory(leaf.buffer) if isinstance(leaf.buffer, PendingReduction) else ()
        return type(leaf), leaf.value if leaf.deferred else (), leaf.strides, memory

    def _memory(self, memory: PendingReduction) -> Any:
        if id(memory) in self.known:
            return self.known.index(id(memory))
        self.known.append(id(memory))
        sizes = memory.nbytes, memory.result_bytes, memory.depth, memory.passes
        assert memory.operand is not None
        operand = self.state(memory.operand)
        return memory.reduction, memory.shape, memory.rows, type(memory.rows), sizes, operand


def _outcome(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    given = [leaf for x in arguments if isinstance(x, xp.Array) for leaf in x._state[1]]
    try:
        result = function(*arguments, **options)
    except Exception as error:
        return type(error), str(error)
    if type(result) is not xp.Array:
        return type(result)
    return result.shape, _Description(given).state(result._state)


def _arrays(device: str) -> list[xp.Array]:
    arrays = [
        xp.asarray(np.ones(shape, dtype), device=device) for dtype in DTYPES for shape in SHAPES
    ]
    arrays += [xp.flip(x) for x in arrays[::3]]
    arrays += [x * 2 for x in arrays[1::4]] + [x + x for x in arrays[2::5]]
    # Before the calls: a deferred operand is computed by some of them, and stays computed.
    return arrays + [xp.sum(x) for x in arrays[:2]]


@pytest.mark.parametrize(("name", "choices"), _CASES, ids=[name for name, _ in _CASES])
def test_reductions_are_recorded_as_without_the_core(
    name: str, choices: dict[str, tuple[Any, ...]], device: str
) -> None:
    draw = random.Random(name)
    function = _function(name)
    python = inspect.unwrap(function)
    assert (function is not python) == core.compiled()
    for x in _arrays(device):
        for _ in range(12):
            options = {
                key: draw.choice(values) for key, values in choices.items() if draw.random() < 0.7
            }
            arguments = (x, draw.choice(DTYPES)) if name == "astype" else (x,)
            wanted = _outcome(python, *arguments, **options)
            for _ in range(3):
                assert _outcome(function, *arguments, **options) == wanted, (x, options)


@pytest.mark.parametrize("name", ["clip", "where", "vecdot"])
def test_functions_of_several_arrays_are_recorded_as_without_the_core(
    name: str, device: str
) -> None:
    draw = random.Random(name)
    function = _function(name)
    python = inspect.unwrap(function)
    arrays = _arrays(device)
    matching = 0
    for _ in range(1500):
        x = draw.choice(arrays)
        alike = [y for y in arrays if y.dtype == x.dtype]
        others = [draw.choice((x, draw.choice(alike), draw.choice(_NUMBERS))) for _ in range(2)]
        first = draw.choice(arrays[:20]) if name == "where" else x
        arguments = (first, *others[: draw.randrange(3)])
        wanted = _outcome(python, *arguments)
        matching += wanted[0] is not TypeError if isinstance(wanted, tuple) else 0
        for _ in range(3):
            assert _outcome(function, *arguments) == wanted, arguments
    assert matching > 100


def test_what_was_given_itself_is_returned_again() -> None:
    x = xp.asarray(np.ones(3))
    assert all(xp.astype(x, x.dtype, copy=False) is x for _ in range(3))


def test_numbers_are_new_and_shared_as_they_were() -> None:
    x, y = (xp.asarray(np.arange(6.0).reshape(2, 3) + n) for n in range(2))
    first, second = (xp.mean(one, axis=1) for one in (x, y))
    scalars = [
        leaf for one in (first, second) for leaf in one._state[1] if isinstance(leaf, Scalar)
    ]
    assert len(set(scalars)) == 2
    assert_same_bits(np.asarray(first + second), np.mean(x, axis=1) + np.mean(y, axis=1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("shape", [(7, 130), (130, 7), (40000,), (300, 200), (1, 1)])
def test_the_core_computes_what_python_computes(
    dtype: str, shape: tuple[int, ...], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = (np.random.default_rng(7).random(shape) * 9).astype(dtype)
    x = xp.asarray(values, device=device)
    materialize = inspect.unwrap(xp.Array._materialize)

    def results() -> list[Any]:
        centred = x - xp.mean(x, axis=-1, keepdims=True)
        expressions = [
            xp.sum(x), xp.sum(x, axis=0), xp.max(x * 2, axis=-1), centred, xp.std(x, axis=0),
            centred / xp.std(x, axis=-1, keepdims=True), xp.argmax(x, axis=0),
            xp.nn.softmax(x, axis=0), xp.nn.softmax(x), xp.mean(centred), xp.sum(x) * 2 + x,
        ]  # fmt: skip
        return [np.asarray(one) for one in expressions]

    first, again = results(), results()
    with monkeypatch.context() as patch:
        patch.setattr(xp.Array, "_materialize", materialize)
        wanted = results()
    for one, other, expected in zip(first, again, wanted, strict=True):
        assert_same_bits(one, expected)
        assert_same_bits(other, expected)


def test_one_kernel_computes_all_that_it_meets_also_in_the_core(device: str) -> None:
    x = xp.asarray(np.arange(12.0).reshape(3, 4), device=device)
    for _ in range(3):
        mean = xp.mean(x, axis=1, keepdims=True)
        spread = xp.std(x, axis=1, keepdims=True)
        before = xp.counters()
        np.asarray((x - mean) / spread)
        assert xp.counters()["kernels_launched"] == before["kernels_launched"] + 1
        assert xp.counters()["flushes"] == before["flushes"] + 1
        # The sum below the mean is there now; a kernel of one division is left.
        memory = mean._state[1][0].buffer
        assert isinstance(memory, PendingReduction)
        assert not memory.is_pending
        np.testing.assert_array_equal(mean, np.arange(12.0).reshape(3, 4).mean(1, keepdims=True))


def test_small_results_keep_no_more_memory_when_the_core_records_them(device: str) -> None:
    count, nbytes = 48, 1 << 20
    results = []
    held = xp.counters()["pool_bytes"]
    for number in range(count):
        chunk = xp.asarray(np.full(nbytes // 8, float(number)), device=device)
        results.append(xp.sum(chunk))
        del chunk
    assert xp.counters()["pool_bytes"] - held < count * nbytes / 2
    assert [float(one) for one in results] == [n * nbytes / 8 for n in range(count)]


def test_functions_of_the_same_arguments_are_told_apart(device: str) -> None:
    for number in range(300):
        # A shape of its own: other keys, of which a few share their place among the latest.
        x = xp.asarray(np.array([[1.0, 2.0, 3.0 + number]]), device=device)
        for _ in range(2):
            found = [float(f(x)) for f in (xp.sum, xp.prod, xp.max, xp.min)]
            assert found == [6.0 + number, 6.0 + 2 * number, 3.0 + number, 1.0]


@pytest.mark.parametrize("size", [100, 1 << 16, 3 << 19])
def test_the_core_counts_what_is_pending_as_python_does(size: int, device: str) -> None:
    held, counted = held_by_thread(), []
    for function in (inspect.unwrap(xp.sum), xp.sum, xp.sum):
        held.clear()
        arrays = [xp.asarray(np.full(size, n, np.int32), device=device) for n in range(5)]
        results = [function(x) for x in arrays]
        # Not looked at yet, in their order; and those that are still pending.
        recent = [reference() for reference in held.recent]
        memories = [x._state[1][0].buffer for x in results]
        places = [memories.index(memory) for memory in recent]
        counted.append((held.room, held.nbytes, places, [one.is_pending for one in memories]))
    held.clear()
    assert counted[0] == counted[1] == counted[2]


def test_the_core_counts_what_is_pending_for_each_thread(device: str) -> None:
    x = xp.asarray(np.ones(5000, np.float32), device=device)
    kept = [xp.sum(x)]
    turn, failures = threading.Barrier(2, timeout=60), []

    def count(mine: int) -> None:
        try:
            before, results = held_by_thread().room, []
            for number in range(6):
                turn.wait()
                if number % 2 == mine:
                    results.append(xp.sum(x))
            nbytes = sum(one._state[1][0].buffer.nbytes for one in results)
            assert before - held_by_thread().room == nbytes > 3 * 20_000
        except BaseException as error:
            failures.append(error)

    room = held_by_thread().room
    for _ in range(3):
        threads = [threading.Thread(target=count, args=(mine,)) for mine in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    assert held_by_thread().room == room
    kept.append(xp.sum(x))
    assert held_by_thread().room < room


def test_threads_that_compute_the_same_pending_results(device: str) -> None:
    x = xp.asarray(np.random.default_rng(3).random((50, 700)), device=device)
    wanted = np.asarray(xp.nn.softmax(x))
    for _ in range(20):
        shared = xp.sum(xp.exp(x), axis=1, keepdims=True)
        found: list[Any] = []

        def use(found: list[Any] = found, shared: Any = shared) -> None:
            found.append(np.asarray(xp.exp(x) / shared))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        for one in found:
            np.testing.assert_allclose(one, wanted, rtol=1e-12)


class _Finaliser:
    """Does something when the collector finds it, which may be in the middle of any call."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.itself = self
        self.action = action

    def __del__(self) -> None:
        self.action()


def _collected_within(call: Callable[[], object], action: Callable[[], object], after: int) -> None:
    """Make a call, and the collector run an action after so many allocations."""
    gc.collect()
    gc.disable()
    threshold = gc.get_threshold()
    try:
        _Finaliser(action)
        gc.set_threshold(1 + after)
        gc.enable()
        call()
    finally:
        gc.disable()
        gc.set_threshold(*threshold)
        gc.enable()


@pytest.fixture
def little_to_collect() -> Iterator[None]:
    """Leave out what other tests have made: it would take most of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("little_to_collect")
def test_a_finaliser_may_compute_what_is_being_computed(device: str) -> None:
    base = np.arange(400, dtype=np.float32).reshape(40, 10)

    def pending() -> xp.Array:
        x = xp.asarray(base, device=device) + 1
        mean = xp.mean(x * x, axis=1, keepdims=True)
        return (x - mean) * xp.sum(x, axis=1, keepdims=True)

    wanted = np.asarray(pending())
    for after in range(300):
        y = pending()
        found: list[Any] = []
        _collected_within(
            lambda y=y, found=found: found.append(np.asarray(y)),  # type: ignore[misc]
            lambda y=y: np.asarray(y),  # type: ignore[misc]
            after % 45,
        )
        assert_same_bits(found[0], wanted)


@pytest.mark.usefixtures("little_to_collect")
def test_an_array_that_changes_meanwhile_is_not_what_is_remembered(device: str) -> None:
    for count in range(1, 120):
        values = np.ones((count, 3), np.float32)
        x = xp.asarray(values, device=device)

        def change(x: xp.Array = x) -> None:
            x += 1

        _collected_within(lambda x=x: xp.sum(x, axis=1), change, count % 40)  # type: ignore[misc]
        later = xp.sum(xp.asarray(values, device=device), axis=1)
        assert np.asarray(later).tolist() == [3.0] * count


def test_results_are_not_the_array_that_was_given(device: str) -> None:
    for call in (
        lambda x: xp.max(x, axis=()),
        lambda x: xp.sum(x, axis=()),
        lambda x: xp.max(x[:1], axis=0, keepdims=True),
        lambda x: xp.cumulative_sum(x[:0]),
        lambda x: xp.sum(x[0]),
    ):
        for _ in range(2):
            x = xp.asarray(np.arange(4.0), device=device)
            result = call(x)
            result += 1
            assert np.asarray(x).tolist() == [0.0, 1.0, 2.0, 3.0]
