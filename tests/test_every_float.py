"""Functions of one float32 keep their bounds over a sample of all bit patterns.

``benchmarks/every_float.py`` takes every pattern; its result is among the benchmarks' results.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
every_float: Any = importlib.import_module("every_float")
# Every exponent and both signs, and last digits of all kinds.
STEP = 8209
# What the table shows of the functions whose bound is not 0.
FUNCTIONS = every_float.functions()


@pytest.mark.parametrize("op", FUNCTIONS, ids=[op.name for op in FUNCTIONS])
def test_errors_stay_below_their_bounds(op: Any, device: str) -> None:
    worst = every_float.measure(op, STEP)
    assert worst.patterns == -(-every_float.PATTERNS // STEP)
    assert 0.4 < worst.error <= op.max_ulp, worst


def test_a_function_that_is_wrong_somewhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import fklarray as xp

    op = next(op for op in FUNCTIONS if op.name == "exp")
    exp = xp.exp

    def wrong(x: Any) -> Any:
        return exp(x) if x.dtype == xp.float64 else xp.where(xp.abs(x - 3) < 1, x, exp(x))

    monkeypatch.setattr(xp, "exp", wrong)
    assert every_float.measure(op, STEP).error > 1e6
