"""The 22 cubed operations; CUBED_BACKEND_ARRAY_API_MODULE must be set before this is imported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cubed
import cubed.array_api
import numpy as np

from ecosystem.harness import Calls, normal

__all__ = ["CALLS", "FAILURES", "FROM_NUMPY", "OPERATIONS", "SYNCS"]

# An operation takes the namespace (NumPy, or cubed's), a matrix in four chunks, and another one.
_Operation = Callable[[Any, Any, Any], Any]

_SPEC = cubed.Spec(allowed_mem="100MB", executor_name="single-threaded")


def _holes() -> Any:
    values = np.array(normal(np, 4, 6))
    values[1, 2] = values[3, :2] = np.nan
    return values


def _chunked(values: Any) -> Any:
    return cubed.from_array(values, chunks=(2, 3), spec=_SPEC)


def _on_holes(name: str, xp: Any, a: Any, b: Any) -> Any:
    if xp is np:
        return getattr(np, name)(_holes(), axis=0)
    return getattr(cubed, name)(_chunked(_holes()), axis=0)


def _sine(block: Any) -> Any:
    return np.sin(block)


OPERATIONS: dict[str, _Operation] = {
    "asarray": lambda xp, a, b: xp.asarray(
        normal(np, 4), **({} if xp is np else {"spec": _SPEC, "chunks": (2,)})
    ),
    "sin(a) * 2 + a": lambda xp, a, b: xp.sin(a) * 2 + a,
    "sum": lambda xp, a, b: xp.sum(a),
    "sum(axis=)": lambda xp, a, b: xp.sum(a, axis=1),
    "mean(axis=)": lambda xp, a, b: xp.mean(a, axis=0),
    "argmax(axis=)": lambda xp, a, b: xp.argmax(a, axis=1),
    "std(axis=)": lambda xp, a, b: xp.std(a, axis=0),
    "cumulative_sum(axis=)": lambda xp, a, b: (
        np.cumsum(a, axis=0) if xp is np else xp.cumulative_sum(a, axis=0)
    ),
    "matmul": lambda xp, a, b: xp.matmul(a, b.T),
    "tensordot": lambda xp, a, b: xp.tensordot(a, b, axes=((0, 1), (0, 1))),
    "concat": lambda xp, a, b: xp.concat([a, b], axis=0),
    "stack": lambda xp, a, b: xp.stack([a, b]),
    "rechunk": lambda xp, a, b: a if xp is np else a.rechunk((3, 2)),
    "reshape": lambda xp, a, b: xp.reshape(a, (24,)),
    "permute_dims": lambda xp, a, b: xp.permute_dims(a, (1, 0)),
    "a[1:, ::2]": lambda xp, a, b: a[1:, ::2],
    "a[[0, 2], :]": lambda xp, a, b: a[[0, 2], :],
    "where": lambda xp, a, b: xp.where(a > 0, a, b),
    "astype": lambda xp, a, b: xp.astype(a, xp.float32),
    "nansum": functools.partial(_on_holes, "nansum"),
    "nanmean": functools.partial(_on_holes, "nanmean"),
    "map_blocks(np.sin)": lambda xp, a, b: (
        np.sin(a) if xp is np else cubed.map_blocks(_sine, a, dtype=a.dtype)
    ),
}


def _computed(operation: _Operation) -> Callable[[Any], Any]:
    def call(xp: Any) -> Any:
        a, b = normal(np, 4, 6), normal(np, 4, 6, seed=1)
        if xp is np:
            return operation(np, a, b)
        return operation(cubed.array_api, _chunked(a), _chunked(b)).compute()

    return call


CALLS: Calls = {name: _computed(operation) for name, operation in OPERATIONS.items()}

FAILURES: dict[str, str] = {}
FROM_NUMPY: set[str] = set()
# The most sync points that a call may have: four chunks, and the number 2 shown in the plan.
SYNCS = {"sin(a) * 2 + a": 5, "astype": 4, "permute_dims": 4}
