"""Unusual and wrong arguments: NumPy's results, or exceptions of NumPy's types."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from differences import NAN, bools

pytestmark = pytest.mark.usefixtures("device")

Use = Callable[[Any], Any]

SAME: dict[str, Use] = {
    # Data types
    "an array for a data type": lambda m: m.astype(m.ones(1), m.ones(1)),
    "an array for the data type of zeros": lambda m: m.zeros(1, dtype=m.ones(1)),
    "an array for a data type to look at": lambda m: m.isdtype(m.ones(1), "real floating"),
    "None for a data type to look at": lambda m: m.isdtype(None, "bool"),
    "a complex number as a real one": lambda m: m.asarray(1j, dtype="float64"),
    "a complex number as an integer": lambda m: m.asarray(1j, dtype="int64"),
    "std in integers": lambda m: m.std(m.asarray([[1.0, 4.0]]), axis=1, dtype="int64"),
    "nanmean in integers": lambda m: m.nanmean(m.asarray([1.0, 4.0]), dtype="int64"),
    "nanvar in bool": lambda m: m.nanvar(m.asarray([1.0, 4.0]), dtype="bool"),
    "arange of NumPy's integers": lambda m: m.arange(np.int8(3)),
    "arange of an array's integer": lambda m: m.arange(m.asarray(3)),
    "arange without a step": lambda m: m.arange(0, 5, None),
    "arange of None": lambda m: m.arange(None),
    "linspace of complex arrays": lambda m: m.linspace(m.asarray([0j]), m.asarray([1 + 1j]), 3),
    "linspace of NumPy's complex numbers": lambda m: m.linspace(0, np.complex128(2j), 3),
    "power of bool": lambda m: m.linalg.matrix_power(m.asarray([[True, False], [True, True]]), 2),
    # Shapes and axes
    "bool for a shape": lambda m: m.zeros(True),
    "bool in a shape": lambda m: m.ones((2, True)),
    "bool to reshape to": lambda m: m.reshape(m.ones(1), True),
    "bool to broadcast to": lambda m: m.broadcast_to(m.ones(1), (True,)),
    "bool among shapes": lambda m: m.broadcast_shapes((True,), (3,)),
    "a number to broadcast to": lambda m: m.broadcast_to(m.ones(1), 3),
    "a number that does not fit": lambda m: m.broadcast_to(m.ones(2), 3),
    "numbers among shapes": lambda m: m.asarray(m.broadcast_shapes(1, (2, 3))),
    "text among shapes": lambda m: m.broadcast_shapes("a", (3,)),
    "a permutation of bool": lambda m: m.permute_dims(m.ones((1, 2)), (True, False)),
    "a permutation of one number": lambda m: m.permute_dims(m.ones(2), 0),
    "a permutation that is a number": lambda m: m.permute_dims(m.ones((1, 2)), 0),
    # Values
    "variance with a divisor of 0": lambda m: m.var(m.asarray([1.0, 2.0]), correction=2),
    "variance of equals": lambda m: m.var(m.asarray([1.0, 1.0]), correction=2),
    "deviation below 0": lambda m: m.std(m.asarray([[1.0, 2.0]]), correction=3, axis=1),
    "variance of integers": lambda m: m.var(m.asarray([1, 2]), correction=2.5),
    "variance of nothing": lambda m: m.var(m.zeros((0, 2)), axis=0),
    "mean of nothing": lambda m: m.mean(m.zeros((0, 2), dtype="complex64"), axis=0),
    "nanvar with a divisor of 0": lambda m: m.nanvar(m.asarray([1.0, 2.0, NAN]), correction=2),
    "a correction of None": lambda m: m.var(m.ones(2), correction=None),
    "a correction of text": lambda m: m.std(m.ones(2), correction="1"),
    "isin inverted by None": lambda m: m.isin(m.asarray([1, 2]), m.asarray([1]), invert=None),
    "padding out of range": lambda m: m.pad(
        m.asarray([1], dtype="int8"), 1, constant_values=300
    ),
    "padding by no widths": lambda m: m.pad(m.ones(2), ()),
    "an empty list of indices": lambda m: (m.ones(2) + 1)[[]],
    "an empty list of indices in memory": lambda m: m.asarray([1.0, 2.0])[[]],
    "one index of several": lambda m: m.take_along_axis(m.ones((2, 2)), m.asarray([5])),
    "a float for an index": lambda m: m.take_along_axis(m.ones((2, 2)), m.asarray([1.0])),
    "clip of text": lambda m: m.clip(m.asarray([1]), "a", 1),
    "clip of shapes": lambda m: m.clip(m.ones(2), m.ones(3), 1),
}  # fmt: skip


def _outcome(use: Use, m: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        if m is np:
            warnings.simplefilter("ignore")
        try:
            values = np.asarray(use(m))
        except Exception as error:
            return type(error)
    return values.dtype, values.shape, repr(values.tolist())


@pytest.mark.parametrize("use", SAME.values(), ids=SAME)
def test_unusual_arguments_do_what_numpy_does(use: Use) -> None:
    wanted, got = _outcome(use, np), _outcome(use, xp)
    if isinstance(wanted, type) and isinstance(got, type):
        # NumPy raises private subclasses of what Python has.
        assert issubclass(wanted, got) or issubclass(got, wanted)
    else:
        assert got == wanted


@pytest.mark.parametrize(
    "use",
    [
        lambda: xp.clip(bools(xp), False, True),
        lambda: xp.clip(xp.asarray([1j]), 0, 1),
        lambda: xp.clip(xp.asarray([1]), "a", 1),
        lambda: xp.clip(xp.asarray([1]), 1.5),
        lambda: xp.clip(xp.asarray([1.0]), 1j),
        lambda: xp.clip([1], 0),
    ],
)
def test_messages_of_clip_name_it(use: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"^clip "):
        use()
