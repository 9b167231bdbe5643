"""Every kind of operation on every data type beside NumPy, to find what does not vectorise.

    python benchmarks/dtypes.py

On one thread and arrays that fit into the cache, where slow code shows. One operation on 65,536
elements takes NumPy 3 to 15 us, of which recording and export are 3 us of ours: below 0.5 code is
slow, above it the call is. The command writes ``results/dtypes-<date>.md`` and ends with status 1
if anything is below that.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import report
from measure import ratio

import fklarray as xp

_ELEMENTS = 1 << 16
_ROUNDS = 9
_SLOW = 0.5
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float32", "float64", "complex64", "complex128")  # fmt: skip
# What is computed of two arrays, and for which kinds of data types (NumPy's letters).
OPERATIONS: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "x + y": ("iufc", lambda m, x, y: m.add(x, y)),
    "x * y": ("iufc", lambda m, x, y: m.multiply(x, y)),
    "x / y": ("fc", lambda m, x, y: m.divide(x, y)),
    "x // y": ("iuf", lambda m, x, y: m.floor_divide(x, y)),
    "x % y": ("iuf", lambda m, x, y: m.remainder(x, y)),
    "x < y": ("iuf", lambda m, x, y: m.less(x, y)),
    "x == y": ("biufc", lambda m, x, y: m.equal(x, y)),
    "x & y": ("biu", lambda m, x, y: m.bitwise_and(x, y)),
    "x << 1": ("iu", lambda m, x, y: x << 1),
    "maximum": ("iuf", lambda m, x, y: m.maximum(x, y)),
    "where": ("biufc", lambda m, x, y: m.where(m.equal(x, y), x, y)),
    "abs": ("iufc", lambda m, x, y: m.abs(x)),
    "sqrt": ("fc", lambda m, x, y: m.sqrt(x)),
    "exp": ("fc", lambda m, x, y: m.exp(x)),
    "to float32": ("biuf", lambda m, x, y: m.astype(x, np.float32)),
    "to int16": ("biuf", lambda m, x, y: m.astype(x, np.int16)),
    "sum": ("biufc", lambda m, x, y: m.sum(m.reshape(x, (64, -1)), axis=1)),
    "sum over columns": ("biufc", lambda m, x, y: m.sum(m.reshape(x, (-1, 256)), axis=0)),
    "max": ("iuf", lambda m, x, y: m.max(m.reshape(x, (64, -1)), axis=1)),
    "any": ("b", lambda m, x, y: m.any(m.reshape(x, (64, -1)) & False, axis=1)),
    "cumulative_sum": ("iuf", lambda m, x, y: m.cumulative_sum(x)),
    "strided x + y": ("iuf", lambda m, x, y: m.add(x[::3], y[::3])),
}  # fmt: skip


def _operands(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    rng = np.random.default_rng(20)
    return tuple((rng.random(_ELEMENTS) * 100 + 1).astype(dtype) for _ in range(2))  # type: ignore[return-value]


def times_as_fast(name: str, dtype: np.dtype[Any]) -> float | None:
    """Return NumPy's time divided by ours; None where an operation is not for a data type."""
    kinds, compute = OPERATIONS[name]
    if dtype.kind not in kinds:
        return None
    x, y = _operands(dtype)
    ours, others = xp.asarray(x), xp.asarray(y)
    return ratio(
        lambda: np.from_dlpack(compute(xp, ours, others)),
        lambda: compute(np, x, y),
        rounds=_ROUNDS,
    )


def main() -> int:
    """Measure, write the table, and return 1 if some code is slow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    about = report.machine([])
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [
        f"# NumPy's time divided by ours, by data type, {today}",
        "",
        f"{about['cpu']}, one thread, {about['compiler']}, NumPy {np.__version__}, fklarray commit "
        f"{about['fklarray_commit']}. {_ELEMENTS:,} elements, in the cache; recording and export "
        "are part of our time.",
        "",
        f"| Operation | {' | '.join(DTYPES)} |",
        f"| --- |{' ---: |' * len(DTYPES)}",
    ]
    slower = 0
    with xp.config.override(threads=1, compile="sync"):
        for name in OPERATIONS:
            found = [times_as_fast(name, np.dtype(dtype)) for dtype in DTYPES]
            slower += sum(value is not None and value < _SLOW for value in found)
            cells = ["" if value is None else f"{value:.1f}" for value in found]
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    (options.output / f"dtypes-{today}.md").write_text("\n".join(lines) + "\n", "utf-8")
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
