"""Functions of NumPy on arrays: operands are protected, results are taken over and are values."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from fklarray.delegation import on_numpy

LARGE = 1 << 14


def _address(x: xp.Array) -> int:
    return np.asarray(x).ctypes.data


def test_operands_are_read_only_and_shared(host: str) -> None:
    x = xp.asarray(np.arange(4.0), device=host) + 1
    seen: list[np.ndarray[Any, Any]] = []

    def write(values: np.ndarray[Any, Any]) -> None:
        seen.append(values)
        values[0] = 9

    with pytest.raises(ValueError, match="read-only"):
        on_numpy(write, x)
    assert seen[0].ctypes.data == _address(x)
    assert np.asarray(x).tolist() == [1, 2, 3, 4]


def test_a_large_result_is_taken_over_without_a_copy(host: str) -> None:
    made: list[np.ndarray[Any, Any]] = []

    def double(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        made.append(values * 2)
        return made[0]

    result = on_numpy(double, xp.ones(LARGE, device=host))
    assert _address(result) == made[0].ctypes.data


@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize(
    "view", [lambda a: a, lambda a: a[::-1], lambda a: a[1:], np.asarray, np.atleast_2d]
)
def test_a_result_that_is_a_view_of_an_operand_is_copied(view: Any, size: int, device: str) -> None:
    x = xp.asarray(np.arange(float(size)), device=device)
    result = on_numpy(view, x)
    wanted = view(np.arange(float(size))).tolist()
    x[...] = -1
    assert np.asarray(result).tolist() == wanted
    result[...] = -2
    assert float(x[0]) == -1


def test_scalars_tuples_and_named_tuples(device: str) -> None:
    x = xp.asarray([3.0, 4.0], device=device)
    assert float(on_numpy(np.sum, x)) == 7
    assert on_numpy(np.sum, x).shape == ()
    pair = on_numpy(np.divmod, x, xp.asarray([2.0, 3.0], device=device))
    assert type(pair) is tuple
    assert [np.asarray(part).tolist() for part in pair] == [[1, 1], [1, 1]]
    named = namedtuple("named", ("low", "high"))
    found = on_numpy(lambda a: named(a.min(), a.max()), x)
    assert type(found) is named
    assert (float(found.low), float(found.high)) == (3, 4)


def test_it_counts_and_stays_silent_and_lets_errors_through(device: str) -> None:
    x = xp.asarray([0.0, 1.0], device=device)
    before = xp.counters()["reference_evaluations"]
    assert np.asarray(on_numpy(np.log, x)).tolist() == [-float("inf"), 0]
    assert xp.counters()["reference_evaluations"] == before + 1
    with pytest.raises(TypeError, match="<U2"):
        on_numpy(lambda _: np.asarray(["no"]), x)
    with pytest.raises(ZeroDivisionError):
        on_numpy(lambda _: 1 // 0, x)
