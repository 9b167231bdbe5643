"""Every call of the survey, as `report.py` runs it: what passes, what fails, and sync points."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ecosystem.harness import FAILED, NUMPY
from ecosystem.report import LIBRARIES, report

PAGE = Path(__file__).parents[2] / "docs" / "ecosystem.md"

# Every call through compiled kernels would take minutes of compilation: one library does so.
MODES = dict.fromkeys(LIBRARIES, "background") | {"einops": "sync"}
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
    found = report(library, FKLARRAY_COMPILE=MODES[library])
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
    assert _listed(LIBRARIES[library].title) == list(calls)


def _listed(title: str) -> list[str]:
    """Name the calls in a library's section of the page."""
    _, section = PAGE.read_text("utf-8").split(f"## {title}\n")
    rows = section.partition("\n## ")[0]
    return re.findall(r"^\| (.+?) \| (?:passed|came back|failed)", rows, re.MULTILINE)
