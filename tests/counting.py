"""What a block of code adds to the library's counters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import fklarray as xp


@contextmanager
def counted(*names: str) -> Iterator[dict[str, int]]:
    """Give what the block adds to each counter; kernels from disk count as compiled.

    What runs on NumPy or on CuPy counts as ``"delegated"``.
    """
    change: dict[str, int] = {}
    before = xp.counters()
    yield change
    after = xp.counters()
    added = {name: after[name] - before[name] for name in after}
    added["kernels_compiled"] += added["kernels_from_disk"]
    added["delegated"] = added["reference_evaluations"] + added["cupy_evaluations"]
    change.update({name: added[name] for name in names})
