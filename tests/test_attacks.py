"""What hostile use has broken once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fklarray as xp
from fklarray.pending import MAX_HELD_BYTES

pytestmark = pytest.mark.usefixtures("device")

_X = np.arange(12.0).reshape(3, 4)
_NO_AXES: tuple[Any, ...] = (True, "0", 1.0, [0], {0}, {}, np.array([0]), range(1), b"0")
_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "count_nonzero")
_NAN_AWARE = ("nansum", "nanmean", "nanmax", "nanmin", "nanstd", "nanvar")
_ALONG_ONE = ("argmax", "argmin", "sort", "argsort", "cumulative_sum", "cumulative_prod", "unstack")


@pytest.mark.parametrize("axis", _NO_AXES, ids=repr)
@pytest.mark.parametrize("name", [*_REDUCTIONS, *_NAN_AWARE, *_ALONG_ONE, "diff", "squeeze"])
def test_what_is_no_axis_is_refused_when_it_is_recorded(name: str, axis: Any) -> None:
    with pytest.raises(TypeError):
        getattr(xp, name)(xp.asarray(_X), axis=axis)


@pytest.mark.parametrize("name", ["argmax", "argmin", "sort", "cumulative_sum", "diff"])
def test_a_tuple_is_not_one_axis(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(xp, name)(xp.asarray(_X), axis=(0, 1))


@pytest.mark.parametrize("axis", [(0, 1), [0], np.array([0]), True, "", ()], ids=repr)
def test_joining_refuses_what_is_not_one_axis(axis: Any) -> None:
    x = xp.asarray(_X)
    for join in (xp.concat, xp.stack):
        with pytest.raises(TypeError):
            join([x, x], axis=axis)


def test_roll_does_not_drop_axes_given_as_an_array() -> None:
    with pytest.raises(TypeError):
        xp.roll(xp.asarray(_X), 1, axis=np.array([0, 1]))  # type: ignore[arg-type]


def test_tensordot_takes_lists_and_numbers_for_axes() -> None:
    x = xp.asarray(_X)
    for axes in (([0], [0]), ((0, 1), (0, 1)), (0, 0), (range(1), range(1))):
        expected = np.tensordot(_X, _X, axes)
        np.testing.assert_array_equal(xp.tensordot(x, x, axes=axes), expected)


def test_a_reduction_of_a_broadcast_expression_takes_no_memory_for_it() -> None:
    row = xp.asarray(_X[0]) * 2
    before = xp.counters()["pool_bytes"]
    total = xp.sum(xp.broadcast_to(row, (1_000_000, 4)))
    assert float(total) == 1_000_000 * 12.0
    assert xp.counters()["pool_bytes"] - before < 1 << 20


def test_parts_that_are_broadcast_or_empty_are_shared_right() -> None:
    row, column = xp.asarray(_X[:1]), xp.asarray(_X[:, :1])
    cases = (
        (xp.broadcast_to(row + 1, (3, 4)), np.broadcast_to(_X[:1] + 1, (3, 4))),
        (xp.broadcast_to(row + 1, (0, 4)), np.empty((0, 4))),
        (row + column, _X[:1] + _X[:, :1]),
        (xp.broadcast_to(xp.asarray(2.0) * 3, (2, 0, 3)), np.empty((2, 0, 3))),
        (
            xp.flip(xp.broadcast_to(column - 1, (2, 3, 4)), axis=1),
            np.broadcast_to((_X[:, :1] - 1)[::-1], (2, 3, 4)),
        ),
    )
    for pending, expected in cases:
        for axis in range(expected.ndim):
            got = xp.cumulative_sum(pending, axis=axis)
            np.testing.assert_array_equal(got, np.cumulative_sum(expected, axis=axis))
        np.testing.assert_array_equal(pending, expected)


@pytest.mark.parametrize("keepdims", ["no", None, 1.5, np.True_], ids=repr)
@pytest.mark.parametrize("name", [*_REDUCTIONS, *_NAN_AWARE, "argmax", "argmin", "median"])
def test_what_is_no_truth_is_refused_when_it_is_recorded(name: str, keepdims: Any) -> None:
    with pytest.raises(TypeError):
        getattr(xp, name)(xp.asarray(_X), keepdims=keepdims)


def test_a_pending_result_that_fails_does_not_hit_what_is_recorded_after_it(host: str) -> None:
    xp.materialize(xp.sum(xp.asarray(_X)))
    indices = np.array([0, 1])
    broken = xp.take(xp.asarray(np.zeros(MAX_HELD_BYTES // 4)), xp.from_dlpack(indices))
    indices[0] = 1 << 40  # shared memory: what DLPack gives can be changed after the check
    later = [xp.sum(xp.asarray(np.ones(MAX_HELD_BYTES // 8 + 1))) for _ in range(3)]
    assert [float(one) for one in later] == [MAX_HELD_BYTES // 8 + 1] * 3
    with pytest.raises(IndexError):
        np.asarray(broken)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "explain"])
def test_what_is_no_array_is_refused_by_name(name: str) -> None:
    for value in (None, "a", [1, 2], 3):
        with pytest.raises(TypeError, match=name):
            getattr(xp, name)(value)


@pytest.mark.parametrize("value", [None, "1", [1, 2], {}], ids=repr)
def test_only_numbers_fill(value: Any) -> None:
    for dtype in (None, np.float64):
        with pytest.raises(TypeError, match="fill_value"):
            xp.full(3, value, dtype=dtype)
    with pytest.raises(TypeError, match="fill_value"):
        xp.full_like(xp.asarray(_X), value)


def test_in_asks_whether_any_element_is_equal() -> None:
    x = xp.asarray(_X)
    assert 3 in x
    assert 3.5 not in x
    assert "a" not in x
    assert 0.0 not in xp.zeros((0, 2))
