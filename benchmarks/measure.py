"""Timing: candidates take turns, round by round, so that noise hits all of them alike."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

Call = Callable[[], Any]

# Worker threads of other libraries spin for a while after their work and would take a core.
_SETTLE_SECONDS = 0.005
_MOST_CALLS = 2_000
# A busy machine can make one candidate a hundred times slower; fewer rounds then have to do.
_MOST_SECONDS = 25
_LEAST_ROUNDS = 5


@dataclass
class Timing:
    """Times of one candidate, in microseconds per call.

    Attributes
    ----------
    calls : int
        Calls in one sample; a sample is their mean.
    samples : list of float
        One for each round.
    """

    calls: int
    samples: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """Shortest sample."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """Median of the samples."""
        return statistics.median(self.samples)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers for the report."""
        return {
            "best_us": round(self.best, 3),
            "median_us": round(self.median, 3),
            "calls_per_sample": self.calls,
            "samples_us": [round(sample, 3) for sample in self.samples],
        }


def once(call: Call) -> tuple[float, Any]:
    """Make one call.

    Returns
    -------
    float, object
        Microseconds, and what it returned.
    """
    began = time.perf_counter_ns()
    result = call()
    return (time.perf_counter_ns() - began) / 1e3, result


def _sample(call: Call, calls: int) -> float:
    began = time.perf_counter_ns()
    for _ in repeat(None, calls):
        call()
    return (time.perf_counter_ns() - began) / 1e3 / calls


@contextmanager
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def interleave(
    candidates: dict[str, Call],
    *,
    rounds: int,
    sample_us: float = 2_000,
    after_round: Callable[[], None] = lambda: None,
) -> dict[str, Timing]:
    """Time calls that were made before at least once.

    Parameters
    ----------
    candidates : dict of str to callable
        What each returns is dropped within its time.
    rounds : int
        Samples of each candidate; fewer, but at least five, if they take longer than a minute.
    sample_us : float
        Least length of a sample; short calls are repeated to fill it.
    after_round : callable
        Called after each round, to show progress.

    Returns
    -------
    dict of str to Timing
        In the order of `candidates`.

    Notes
    -----
    A round times every candidate once, in an order drawn anew. Before each sample come a pause and
    one untimed call, so that no candidate pays for the caches and threads of the one before it.
    """
    timings: dict[str, Timing] = {}
    with _no_collection():
        for name, call in candidates.items():
            estimate = max(min(once(call)[0] for _ in range(3)), 0.05)
            timings[name] = Timing(max(1, min(_MOST_CALLS, round(sample_us / estimate))))
        order = list(candidates)
        shuffled = random.Random(0)
        end = time.monotonic() + _MOST_SECONDS
        for done in range(rounds):
            if done >= _LEAST_ROUNDS and time.monotonic() > end:
                break
            shuffled.shuffle(order)
            for name in order:
                time.sleep(_SETTLE_SECONDS)
                candidates[name]()
                timings[name].samples.append(_sample(candidates[name], timings[name].calls))
            after_round()
    return timings


def ratio(call: Call, other: Call, *, rounds: int) -> float:
    """Return how often one call's best time goes into another's; both are made once before."""
    candidates = {"call": call, "other": other}
    for candidate in candidates.values():
        once(candidate)
    timings = interleave(candidates, rounds=rounds)
    return timings["other"].best / timings["call"].best


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Return the median and all of a few values."""
    return {
        "median": round(statistics.median(values), 4),
        "all": [round(value, 4) for value in values],
    }
