"""Results are where the operands are, wherever arrays are made that no device is named for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits

CUDA = "cuda:0"
VALUES = np.arange(6.0).reshape(3, 1, 2)
EMPTY = np.zeros((0, 3), np.float32)
BEYOND = 1 << 70


def _assigned(x: xp.Array, key: Any, value: Any) -> xp.Array:
    x = xp.asarray(x, copy=True)
    x[key] = value
    return x


# A function of one array, and the array.
CALLS: dict[str, tuple[Callable[[xp.Array], xp.Array], Any]] = {
    "argmax of one": (lambda x: xp.argmax(x, axis=1), VALUES),
    "argmin of one": (lambda x: xp.argmin(x, axis=1, keepdims=True), VALUES),
    "assignment": (lambda x: _assigned(x, ..., 3), VALUES),
    "assignment of no dimensions": (lambda x: _assigned(x, (), 1), np.asarray(5)),
    "assignment to a row": (lambda x: _assigned(x, 1, 2.5), VALUES),
    "assignment through a mask": (lambda x: _assigned(x, x > 2, 7), VALUES),
    "diagonal without elements": (xp.linalg.diagonal, EMPTY),
    "filled with an element": (lambda x: xp.full((2, 2), x), np.asarray(5)),
    "isin of no such integer": (lambda x: xp.isin(x, BEYOND), np.arange(3)),
    "isin of a number among others": (lambda x: xp.isin(BEYOND, x, invert=True), np.arange(3)),
    "median of nothing": (lambda x: xp.median(x, axis=0), EMPTY),
    "repeat never": (lambda x: xp.repeat(x, 0), VALUES),
    "reshape of nothing": (lambda x: xp.reshape(x, (3, 0)), EMPTY),
    "searchsorted of a large integer": (lambda x: xp.searchsorted(x, BEYOND), np.arange(3)),
    "searchsorted of a small integer": (lambda x: xp.searchsorted(x, -BEYOND), np.arange(3)),
    "special, beside an array of NumPy": (
        lambda x: xp.special.gammainc(np.asarray(2.0), x),
        VALUES,
    ),
    "tile never": (lambda x: xp.tile(x, (0, 1)), VALUES),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("elsewhere", ["cpu", CUDA])
def test_results_are_where_the_operands_are(name: str, elsewhere: str) -> None:
    function, values = CALLS[name]
    place = CUDA if elsewhere == "cpu" else "cpu"
    wanted = function(xp.asarray(values, device="cpu"))
    with xp.default_device(elsewhere):
        got = function(xp.asarray(values, device=place))
    assert got.device == place
    assert_same_bits(np.asarray(got), np.asarray(wanted))


def test_isin_has_the_shape_of_an_array_of_numpy() -> None:
    got = xp.isin(np.arange(3), BEYOND, invert=True)  # type: ignore[arg-type]
    assert np.asarray(got).tolist() == [True] * 3


@pytest.mark.parametrize("key", [..., 0, (slice(None), 0), [0, 2]], ids=str)
@pytest.mark.parametrize("places", [(CUDA, "cpu"), ("cpu", CUDA)], ids=str)
def test_assigning_an_array_of_another_device_is_refused(key: Any, places: tuple[str, str]) -> None:
    x, other = xp.asarray(VALUES, device=places[0]), xp.asarray(1.5, device=places[1])
    with pytest.raises(ValueError, match="different devices: "):
        x[key] = other
    assert x.device == places[0]
    assert_same_bits(np.asarray(x), VALUES)
