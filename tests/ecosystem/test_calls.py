"""Every call of the survey, as `report.py` runs it: what passes, what fails, and sync points."""

from __future__ import annotations

import pytest

from ecosystem.harness import FAILED, NUMPY
from ecosystem.report import LIBRARIES, report

# Calls that must give NumPy's values, of all.
LEAST = {
    "scipy": (83, 84),
    "sklearn": (53, 57),
    "xarray": (38, 40),
    "cubed": (22, 22),
    "einops": (5, 5),
    "extra": (33, 33),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_calls(library: str) -> None:
    found = report(library, FKLARRAY_COMPILE="background")
    calls = found.outcomes
    failed = {name: call.reason for name, call in calls.items() if call.result == FAILED}
    assert failed.keys() == found.failures.keys(), failed
    assert len(calls) - len(failed) >= LEAST[library][0]
    assert len(calls) == LEAST[library][1]
    assert {name for name, call in calls.items() if call.result == NUMPY} == set(found.from_numpy)
    assert found.syncs.keys() <= calls.keys()
    too_many = {
        name: (calls[name].syncs, most)
        for name, most in found.syncs.items()
        if calls[name].syncs > most
    }
    assert not too_many
