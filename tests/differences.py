"""What the tests of docs/numpy-differences.md share: results and exceptions of two libraries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp

INF, NAN = np.inf, np.nan
# A result of NumPy's type, an exception, or an object that is meant itself.
Outcome = Any
# What is called in each namespace, NumPy's outcome, and ours. Results are compared with their data
# types, NaN and the signs of zeros included.
Difference = tuple[Callable[[Any], Any], Outcome, Outcome]


def bools(m: Any) -> Any:
    return m.asarray([True, False])


def assert_outcome(use: Callable[[Any], Any], m: Any, wanted: Outcome) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        if m is np:
            warnings.simplefilter("ignore")
        if isinstance(wanted, type) and issubclass(wanted, Exception):
            with pytest.raises(wanted):
                use(m)
            return
        got = use(m)
    if not isinstance(wanted, (np.ndarray, np.generic)):
        assert got is wanted
        return
    values = np.asarray(got)
    assert (values.dtype, values.tolist().__repr__()) == (wanted.dtype, repr(wanted.tolist()))


def assert_difference(row: Difference, mode: str) -> None:
    """Assert NumPy's outcome, and ours in a compile mode."""
    use, numpys, ours = row
    assert_outcome(use, np, numpys)
    with xp.config.override(compile=mode):
        assert_outcome(use, xp, ours)
