"""Operations of one data type in few kernels, on operands in every layout.

Compiling takes longer than anything else in the tests, so operations share kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import fklarray as xp
from fklarray_codegen.dtypes import DTYPES, DType
from samples import Values, operands, operations, random

# Outputs of one kernel: fewer are more compilations, more take longer than in proportion.
TOGETHER = 8

# What a layout does to an operand, for arrays of this library and of NumPy alike, and the shape
# of the memory below it.
_View = Callable[[Any, Any], Any]


def _as_is(array: Any, _namespace: Any) -> Any:
    return array


_LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[_View, _View]]] = {
    "contiguous": ((5, 200), (_as_is, _as_is)),
    "inner-broadcast": (
        (6, 70),
        (lambda a, n: n.broadcast_to(a[:, :1], (6, 70)), _as_is),
    ),
    "outer-broadcast": (
        (6, 70),
        (_as_is, lambda a, n: n.broadcast_to(a[:1, :], (6, 70))),
    ),
    "short-row": ((40, 3), (_as_is, lambda a, n: n.broadcast_to(a[0], (40, 3)))),
    "strided": ((7, 300), (lambda a, _: a[:, ::3], lambda a, _: a[:, 1:101])),
    "negative": ((7, 100), (lambda a, _: a[::-1, ::-1], lambda a, _: a[:, ::-1])),
    "transposed": (
        (30, 40),
        (lambda a, n: n.permute_dims(a, (1, 0)), lambda a, n: n.permute_dims(a, (1, 0))),
    ),
    "0-d": ((3,), (lambda a, _: a[2, ...], lambda a, _: a[0, ...])),
    "empty": ((0, 3), (_as_is, _as_is)),
    **{f"length-{n}": ((n,), (_as_is, _as_is)) for n in (1, 7, 8, 9, 31, 33, 1000)},
}
LAYOUTS = list(_LAYOUTS)


def evaluate(row: DType, arity: int, arrays: tuple[xp.Array, ...]) -> dict[str, Values]:
    """Compute every operation on the same operands."""
    names = [op.name for op in operations(row, arity)]
    results = [getattr(xp, name)(*arrays) for name in names]
    for start in range(0, len(results), TOGETHER):
        xp.materialize(*results[start : start + TOGETHER])
    return {name: np.array(result) for name, result in zip(names, results, strict=True)}


@cache
def on_samples(row: DType, arity: int, device: str) -> dict[str, Values]:
    """Compute every operation on the sample values."""
    arrays = tuple(xp.asarray(value, device=device) for value in operands(row, arity))
    return evaluate(row, arity, arrays)


@cache
def in_layout(name: str, layout: str, arity: int, device: str) -> tuple[list[Values], Any]:
    """Compute every operation on operands of one layout; return NumPy's operands and results."""
    row = DTYPES[name]
    shape, views = _LAYOUTS[layout]
    size = int(np.prod(shape))
    plain: list[Values] = []
    arrays: list[xp.Array] = []
    for place, view in enumerate(views[:arity]):
        memory = random(row, size, 70 + place).reshape(shape)
        plain.append(view(memory, np))
        arrays.append(view(xp.asarray(memory, device=device), xp))
    shapes = {value.shape for value in plain}
    assert len(shapes) == 1, shapes
    return plain, evaluate(row, arity, tuple(arrays))
