"""Cubed computes each chunk's whole task as one kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys

COUNT = """
import json
import cubed, cubed.array_api as cx
import numpy as np
import fklarray

spec = cubed.Spec(allowed_mem="100MB", executor_name="single-threaded")
values = np.arange(24.0).reshape(4, 6)
a = cubed.from_array(values, chunks=(2, 3), spec=spec)
b = cx.sin(a) * 2 + a
before = fklarray.counters()
result = b.compute()
after = fklarray.counters()
np.testing.assert_allclose(np.asarray(result), np.sin(values) * 2 + values, rtol=1e-15)
print(json.dumps({name: after[name] - before[name] for name in before}))
"""


def test_a_chunks_task_is_one_flush_and_one_kernel() -> None:
    result = subprocess.run(
        [sys.executable, "-c", COUNT],
        env={
            **os.environ,
            "CUBED_BACKEND_ARRAY_API_MODULE": "fklarray",
            "FKLARRAY_COMPILE": "sync",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    counts = json.loads(result.stdout)
    assert counts["flushes"] == 4
    assert counts["kernels_launched"] == 4
    assert counts["reference_evaluations"] == 0
