"""Runs one call of another library on NumPy and on fklarray: same values, whose array, syncs."""

from __future__ import annotations

import dataclasses
import math
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import fklarray

__all__ = [
    "FAILED",
    "NUMPY",
    "PASSED",
    "Calls",
    "Outcome",
    "check_same",
    "integers",
    "normal",
    "positive",
    "run",
    "uniform",
]

PASSED, NUMPY, FAILED = "passed", "came back as numpy", "failed"

# A call makes its own data in the namespace that it is given, and returns what it computed.
Calls = Mapping[str, Callable[[Any], Any]]


def normal(xp: Any, *shape: int, seed: int = 0) -> Any:
    return xp.asarray(np.random.default_rng(seed).normal(size=shape))


def uniform(xp: Any, *shape: int, seed: int = 0) -> Any:
    return xp.asarray(np.random.default_rng(seed).uniform(0.05, 0.95, size=shape))


def positive(xp: Any, *shape: int, seed: int = 0) -> Any:
    return xp.asarray(np.random.default_rng(seed).uniform(0.5, 3.0, size=shape))


def integers(xp: Any, *shape: int, high: int = 5, seed: int = 0) -> Any:
    return xp.asarray(np.random.default_rng(seed).integers(0, high, size=shape))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a call: one of the three words, its sync points, and why it failed."""

    result: str
    syncs: int
    reason: str = ""


def run(call: Callable[[Any], Any]) -> Outcome:
    """Run a call on both namespaces; any exception of the second run is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = call(np)
        before = fklarray.counters()["flushes"]
        try:
            actual = call(fklarray)
            syncs = fklarray.counters()["flushes"] - before
            check_same(actual, expected)
        except Exception as error:
            syncs = fklarray.counters()["flushes"] - before
            return Outcome(FAILED, syncs, _reason(error))
    arrays = [leaf for leaf in _leaves(actual) if isinstance(leaf, np.ndarray | fklarray.Array)]
    ours = all(isinstance(array, fklarray.Array) for array in arrays)
    return Outcome(PASSED if ours else NUMPY, syncs)


def _reason(error: Exception) -> str:
    """Say what went wrong in one line, and in which function."""
    text = str(error).strip().splitlines()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    # Where a module lies on this machine is nobody's business.
    first = re.sub(r" from '[^']*'", "", text[0]) if text else ""
    return f"{type(error).__name__} in {frame.name}: {first}"[:200]


def check_same(actual: Any, expected: Any) -> None:
    """Compare nested results: the structure, shapes and, within rounding, values."""
    found, wanted = list(_leaves(actual)), list(_leaves(expected))
    if len(found) != len(wanted):
        raise AssertionError(f"{len(found)} results instead of {len(wanted)}")
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, np.ndarray | np.generic | bool | int | float | complex):
            np.testing.assert_allclose(
                np.asarray(one), np.asarray(other), rtol=1e-6, atol=1e-9, strict=False
            )
        elif one != other:
            raise AssertionError(f"{one!r} instead of {other!r}")


def _leaves(result: Any) -> Iterator[Any]:
    """Walk through tuples, lists, dictionaries and result objects, in order."""
    if isinstance(result, Mapping):
        for key in sorted(result):
            yield from _leaves(result[key])
    elif isinstance(result, tuple | list):
        for item in result:
            yield from _leaves(item)
    elif isinstance(result, float) and math.isnan(result):
        yield np.float64(result)
    else:
        yield result
