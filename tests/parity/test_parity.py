"""Every function of the namespace gives what NumPy gives: values, data types, shapes, errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fklarray as xp
from parity.expectations import assert_alike, numpy_outcome, outcome
from parity.rows import Row
from parity.table import ROWS

SPECIAL = [row for row in ROWS if row.name.startswith("special.")]
CHAPTERS = [row for row in ROWS if row not in SPECIAL]
# What is slow is drawing, on a busy machine.
_PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large]


def _assert_parity(row: Row, data: Any, device: str) -> None:
    call = data.draw(row.calls)
    wanted = numpy_outcome(row.reference, *call.with_arrays("numpy"))
    positional, keywords = call.with_arrays("ours")

    def run(*positional: Any, **keywords: Any) -> Any:
        # Results are where the operands are, wherever new arrays are made.
        with xp.default_device("cpu" if _places([positional, keywords]) else device):
            result = row.function(*positional, **keywords)
        assert _places(result) <= {device}
        return result

    # Kernels for every structure that is drawn would take hours; their bits are no others
    # (tests/test_compile_modes.py, tests/test_random_programs.py).
    with xp.config.override(compile="background"):
        assert_alike(outcome(run, positional, keywords), wanted)


def _places(value: Any) -> set[str]:
    """Return the devices of all arrays in arguments or results."""
    if isinstance(value, xp.Array):
        return {value.device.name}
    parts = value.values() if isinstance(value, dict) else value
    return set().union(*map(_places, parts)) if isinstance(value, (dict, list, tuple)) else set()


@pytest.mark.parametrize("row", CHAPTERS, ids=str)
@settings(suppress_health_check=_PATIENT)
@given(data=st.data())
def test_parity(row: Row, data: Any, device: str) -> None:
    _assert_parity(row, data, device)


@pytest.mark.parametrize("row", SPECIAL, ids=str)
@settings(suppress_health_check=_PATIENT, max_examples=settings.default.max_examples // 4)
@given(data=st.data())
def test_special_functions(row: Row, data: Any, device: str) -> None:
    """Most of them are SciPy's own: what there is to get wrong is data types and layouts."""
    _assert_parity(row, data, device)
