"""Cubed tasks in a worker process, whose peak memory is compared with what Cubed projects.

A script of its own, since Linux counts the memory of the process that starts a worker as the
worker's: this one stays small. It prints, for each computation, the greatest ratio of both.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import cubed
import cubed.array_api as xp
import zarr
from cubed.runtime.executors.local import ProcessesExecutor

ELEMENTS, CHUNK = 16_000_000, 2_000_000  # chunks of 16 MB

_FILL = """
import sys, numpy, zarr
field = zarr.open(sys.argv[1], mode="r+")
for start in range(0, field.shape[0], field.chunks[0]):
    field[start : start + field.chunks[0]] = numpy.ones(field.chunks)
"""


class Peaks(cubed.Callback):
    """The most memory that tasks of each operation took, and what was projected."""

    def on_compute_start(self, event: Any) -> None:
        """Look at the plan."""
        nodes = event.dag.nodes(data=True)
        self.projected = {
            name: node["primitive_op"].projected_mem
            for name, node in nodes
            if "primitive_op" in node
        }
        self.measured = dict.fromkeys(self.projected, 0)

    def on_task_end(self, event: Any) -> None:
        """Look at a task's worker."""
        if event.name in self.measured:
            peak = max(self.measured[event.name], event.peak_measured_mem_end)
            self.measured[event.name] = peak

    def ratio(self, reserved: int) -> float:
        """Return the greatest part of its projected memory that an operation took."""
        return max(
            (self.measured[name] - reserved) / (projected - reserved)
            for name, projected in self.projected.items()
            if projected - reserved > 8 * CHUNK  # later ones find a peak that is not theirs
        )


def _computations(field: Any, target: Any) -> dict[str, Callable[..., Any]]:
    return {
        "elementwise": lambda **how: cubed.store([xp.sqrt(xp.exp(field) + 1.0)], [target], **how),
        "max": lambda **how: xp.max(field * 2.0).compute(**how),
        "mean": lambda **how: xp.mean(xp.exp(field)).compute(**how),
    }


def main() -> None:
    """Compute, and print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        how: dict[str, Any] = {"shape": (ELEMENTS,), "chunks": (CHUNK,), "dtype": "float64"}
        zarr.create_array(f"{folder}/field", compressors=None, **how)
        target = zarr.create_array(f"{folder}/target", compressors=None, **how)
        subprocess.run([sys.executable, "-c", _FILL, f"{folder}/field"], check=True)
        executor = ProcessesExecutor(max_workers=1)
        reserved = cubed.measure_reserved_mem(executor, folder)
        spec = cubed.Spec(folder, allowed_mem=reserved + 2**27, reserved_mem=reserved)
        source = cubed.from_zarr(f"{folder}/field", spec=spec)
        for name, compute in _computations(source, target).items():
            peaks = Peaks()
            compute(executor=executor, callbacks=[peaks])
            print(name, peaks.ratio(reserved))


if __name__ == "__main__":
    main()
