"""Kinds of fault that users of such libraries met: assignment, and memory that is handed over.

The numbers are those of the list of reported faults; they are varied over data types, shapes and
compile modes. Kinds of values and reductions are in `test_fault_kinds`.
"""

from __future__ import annotations

import gc
import itertools
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp

pytestmark = pytest.mark.usefixtures("compile_mode")

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]


def _values(x: xp.Array) -> Any:
    return np.asarray(x).tolist()


# -------------------------------------------------------- 31: assignment to what is not computed


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", *FLOATS, *COMPLEX])
@pytest.mark.parametrize("pending", [False, True])
def test_assignments_reach_their_elements_alone(dtype: str, pending: bool, device: str) -> None:
    keys: list[Any] = [
        (1, slice(1, 4), 2, slice(None, None, 2)), (0, ..., 0), (slice(None, None, -2), 1),
        (..., -1), (slice(-2, None), slice(1, -1), [0, 2]), ([1, 0], slice(None), [2, 1], -1),
    ]  # fmt: skip
    for key in keys:
        plain = (np.arange(2 * 5 * 3 * 4) % 50).reshape(2, 5, 3, 4).astype(dtype)
        x = xp.asarray(plain, copy=True, device=device)
        x = x + 0 if pending else x
        earlier = x + 0
        value = (np.arange(plain[key].shape[-1]) + 60).astype(dtype)
        x[key] = xp.asarray(value, device=device)
        before = plain.copy()
        plain[key] = value
        assert _values(x) == plain.tolist()
        assert _values(earlier) == before.tolist()
        assert x.dtype == dtype


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex128"])
def test_an_assignment_reads_its_own_array_first(dtype: str, device: str) -> None:
    plain = np.arange(36).reshape(6, 6).astype(dtype)
    moves: list[tuple[Any, Any]] = [
        (np.s_[1:, :], np.s_[:-1, :]), (np.s_[:-1, :], np.s_[1:, :]), (np.s_[::-1, :], np.s_[:]),
        (np.s_[1:-1, 1:-1], np.s_[2:, :-2]),
    ]  # fmt: skip
    for to, source in moves:
        x, wanted = xp.asarray(plain, copy=True, device=device), plain.copy()
        x[to] = x[source] * 10
        wanted[to] = plain[source] * 10
        assert _values(x) == wanted.tolist()


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex128"])
def test_results_of_functions_are_assigned_to(dtype: str, device: str) -> None:
    plain = np.arange(24).reshape(4, 6).astype(dtype)
    x = xp.asarray(plain, device=device)

    def change(a: Any, roll: Any) -> Any:
        y = roll(a, 2, axis=1)
        y[1:-1, ::2] = y[1:-1, ::2] * 10 + a[0, 0]
        y[-1] = y[0, ::-1]
        y[abs(y) > 100] = -1
        y += y[2]
        y[0, ...] = a[1]
        return y

    assert _values(change(x, xp.roll)) == change(plain, np.roll).tolist()
    assert _values(x) == plain.tolist()
    total = xp.sum(x, axis=0)
    with pytest.raises(IndexError):
        total[6] = 1
    total[xp.asarray([0, 5], device=device)] = 0
    assert _values(total) == [0, 40, 44, 48, 52, 0]


def test_in_place_operators_keep_the_object_and_its_type(device: str) -> None:
    for dtype in ("int16", "float32", "complex64"):
        x = xp.arange(6, dtype=dtype, device=device)
        same = x
        x += 1
        x[2:] *= 3
        x -= xp.ones((6,), dtype=dtype, device=device)
        assert x is same
        assert x.dtype == dtype
        assert _values(x) == [0, 1, 8, 11, 14, 17]
    counts = xp.zeros((3,), dtype=xp.int32, device=device)
    for wrong in (lambda: counts.__iadd__(0.5), lambda: counts.__itruediv__(2)):
        with pytest.raises(TypeError):
            wrong()


def test_masks_assign_where_they_hold(device: str) -> None:
    draw = np.random.default_rng(3)
    for shape, dtype in itertools.product([(7,), (3, 4), (2, 3, 2)], ["int64", "float64"]):
        plain = draw.integers(-9, 9, shape).astype(dtype)
        for value in (0, plain[plain < 0] * 2):
            x, wanted = xp.asarray(plain, copy=True, device=device), plain.copy()
            x[x < 0] = value if isinstance(value, int) else xp.asarray(value, device=device)
            wanted[wanted < 0] = value
            assert _values(x) == wanted.tolist()


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (5, 1, IndexError), (-4, 1, IndexError), ((0, 0), 1, IndexError),
        (slice(0, 2), [1, 2, 3], ValueError), ([0, 3], 1, IndexError), (0, 1j, TypeError),
        ([True, False], 1, IndexError), ("a", 1, IndexError), (1.0, 1, IndexError),
    ],
)  # fmt: skip
def test_a_bad_assignment_is_refused_at_once_and_changes_nothing(
    key: Any, value: Any, error: type[Exception], device: str
) -> None:
    for x in (xp.zeros((3,), device=device), xp.zeros((3,), device=device) + 0):
        given = xp.asarray(value, device=device) if isinstance(value, list) else value
        with pytest.raises(error):
            x[key] = given
        assert _values(x) == [0.0] * 3


# ----------------------------------------------------------- 33: capsules: access and versions

# What is in memory, what a kernel computes, a view, and what functions compute.
MAKERS: dict[str, Callable[[str], xp.Array]] = {
    "memory": lambda device: xp.arange(6, device=device),
    "kernel": lambda device: xp.arange(6, device=device) * 2,
    "view": lambda device: xp.arange(18, device=device)[::3],
    "concat": lambda device: xp.concat([xp.arange(3, device=device)] * 2),
    "cumulative_sum": lambda device: xp.cumulative_sum(xp.arange(6, device=device)),
    "take": lambda device: xp.take(xp.arange(6, device=device), xp.asarray([5, 4, 0, 1])),
    "sort": lambda device: xp.sort(xp.arange(6, device=device)[::-1]),
}


class _Producer:
    """Hands out an array's capsule as libraries of different ages do."""

    def __init__(self, array: Any, export: Callable[..., Any]) -> None:
        self.array, self.export = array, export

    def __dlpack__(self, *args: Any, **keywords: Any) -> Any:
        return self.export(self.array, *args, **keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, "float16", "float32", *COMPLEX, "bool"])
def test_an_owner_who_forbids_writing_is_never_written_to(dtype: str, device: str) -> None:
    owner = (np.arange(6) % 2).reshape(2, 3).astype(dtype)
    before = owner.tolist()
    for view in (owner, owner.T, owner[:, ::2], owner[::-1]):
        shown = view.view()
        shown.flags.writeable = False
        x = xp.from_dlpack(shown, device=device)
        assert _values(x) == shown.tolist()
        x[0, 0] = 1
        x[...] = 0
        assert owner.tolist() == before


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_capsules_are_of_the_version_that_was_asked_for(
    make: Callable[[str], xp.Array], host: str
) -> None:
    assert '"dltensor_versioned"' in repr(make(host).__dlpack__(max_version=(1, 0)))
    assert '"dltensor_versioned"' in repr(make(host).__dlpack__(max_version=(7, 3)))
    for old in ({}, {"max_version": None}, {"max_version": (0, 8)}):
        assert '"dltensor"' in repr(make(host).__dlpack__(**old))
    for keywords in ({"dl_device": (2, 0)}, {"dl_device": (10, 1)}, {"stream": 7}):
        with pytest.raises(BufferError):
            make(host).__dlpack__(**keywords)


def test_a_write_into_what_was_handed_over_reaches_nothing_recorded(host: str) -> None:
    x = xp.roll(xp.asarray([1.0, 2.0, 3.0], device=host), 1)
    reader = xp.cumulative_sum(x)
    taken = np.from_dlpack(x)
    if taken.flags.writeable:
        taken[...] = 50
    assert _values(reader) == [3.0, 4.0, 6.0]


def test_producers_that_know_no_keywords_are_understood() -> None:
    exports: list[Callable[..., Any]] = [
        lambda a: a.__dlpack__(),
        lambda a, stream=None: a.__dlpack__(),
        lambda a, *, stream=None, max_version=None: a.__dlpack__(max_version=max_version),
        lambda a, **keywords: a.__dlpack__(**keywords),
    ]
    for export in exports:
        assert _values(xp.from_dlpack(_Producer(np.arange(4), export))) == [0, 1, 2, 3]


# --------------------------------------------------------- 34: capsules: each is released once


def test_capsules_that_nobody_takes_are_released(device: str) -> None:
    def leave(count: int) -> int:
        for index in range(count):
            version = (1, 0) if index % 2 else None
            (xp.ones((50_000,), device=device) * index).__dlpack__(max_version=version)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    first = leave(20)
    # 1500 of them are 600 MB.
    assert leave(1500) - first < 64 * 1024


def test_memory_stays_while_a_consumer_has_it(host: str) -> None:
    kept = []
    for size in (1, 5, 1000, 40_000):
        x = xp.arange(size, device=host) * 2
        kept.append(np.from_dlpack(x))
        del x
    gc.collect()
    others = [
        xp.full((size,), -1, device=host) + 0 for size in (1, 5, 1000, 40_000) for _ in range(20)
    ]
    xp.materialize(*others)
    assert all((view == np.arange(view.size) * 2).all() for view in kept)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_was_handed_over_outlives_its_array(
    make: Callable[[str], xp.Array], host: str
) -> None:
    x = make(host)
    wanted = _values(x)
    taken = np.from_dlpack(x)
    del x
    gc.collect()
    _ = [np.asarray(xp.full((len(wanted),), k, device=host) + k) for k in range(50)]
    assert taken.tolist() == wanted


def test_a_producer_may_go_before_what_was_made_of_it() -> None:
    owner = np.arange(1000.0)
    x = xp.from_dlpack(owner)
    later = x + 1
    last = later[-1]
    del owner, x
    gc.collect()
    assert float(last) == 1000.0
    assert float(xp.sum(later)) == 500_500.0


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_is_taken_once(version: Any) -> None:
    capsule = (xp.arange(3) + 1).__dlpack__(max_version=version)
    producer = _Producer(capsule, lambda capsule, **_: capsule)
    first = xp.from_dlpack(producer)
    for _ in range(2):
        with pytest.raises((ValueError, RuntimeError, BufferError)):
            xp.from_dlpack(producer)
    del producer, capsule
    gc.collect()
    assert _values(first + 0) == [1, 2, 3]
