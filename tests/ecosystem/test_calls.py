"""Every call of the survey, as `report.py` runs it: what passes, what fails, and sync points."""

from __future__ import annotations

import pytest

from ecosystem.harness import FAILED, NUMPY
from ecosystem.report import LIBRARIES, report

ROOT = Path(__file__).parents[2]

# Every call through compiled kernels would take minutes of compilation: two libraries do so.
MODES = dict.fromkeys(LIBRARIES, "background") | {"einops": "sync", "extra": "sync"}
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


def test_the_page_lists_the_same_calls() -> None:
    page = (ROOT / "docs" / "ecosystem.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| (?:passed|came back|failed)", page, re.MULTILINE)
    calls = [
        name
        for library in LIBRARIES
        for name in re.findall(r'^    "([^"]+)":', _module(library), re.MULTILINE)
    ]
    assert set(rows) <= set(calls)
    assert len(rows) == sum(count for _, count in LEAST.values())


def _module(library: str) -> str:
    return (ROOT / "tests" / "ecosystem" / f"{library}_calls.py").read_text("utf-8")
