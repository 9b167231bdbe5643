"""Evaluation operation by operation on NumPy, for machines without a compiler.

This is the one place where the last bits may differ from a compiled kernel's, which is why the
first such evaluation on a machine without a compiler warns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fklarray.dtype_rows import NUMPY_DTYPES
from fklarray.recording import Leaf, Stream
from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import Instruction, Node, linearise

__all__ = ["evaluate_on_numpy", "view_of"]

_Array = np.ndarray[Any, np.dtype[Any]]


def view_of(stream: Stream, dtype: DType, shape: tuple[int, ...]) -> _Array:
    """Return a NumPy array over a stream's memory; it keeps the memory alive.

    Parameters
    ----------
    stream : Stream
        May have fewer dimensions than `shape`: it is broadcast.
    dtype : DType
        Data type of its elements.
    shape : tuple of int
        Shape of the view.
    """
    strides = (0,) * (len(shape) - len(stream.strides)) + stream.strides
    return np.ndarray(
        shape,
        NUMPY_DTYPES[dtype],
        stream.buffer.view(),
        stream.value - stream.buffer.address,
        tuple(stride * dtype.itemsize for stride in strides),
    )


def evaluate_on_numpy(root: Node, leaves: Sequence[Leaf], shape: tuple[int, ...]) -> list[_Array]:
    """Return the results of an expression (one, or those of an ``"outputs"`` node)."""
    steps = linearise(root)
    values: list[_Array] = []
    results: list[_Array] = []
    with np.errstate(all="ignore"):
        for step in steps:
            if step.node.op == "outputs":
                results = [values[operand] for operand in step.operands]
            else:
                values.append(_value(step, leaves, shape, values))
    return [np.broadcast_to(value, shape) for value in results or values[-1:]]


def _value(
    step: Instruction, leaves: Sequence[Leaf], shape: tuple[int, ...], values: Sequence[_Array]
) -> _Array:
    dtype = NUMPY_DTYPES[step.node.dtype]
    if step.leaf >= 0:
        leaf = leaves[step.leaf]
        if isinstance(leaf, Stream):
            return view_of(leaf, step.node.dtype, shape)
        return np.asarray(leaf.value, dtype=dtype)
    operands = [values[operand] for operand in step.operands]
    if isinstance(step.node.op, str):  # a cast
        operand: Any = operands[0]
        if operand.dtype.kind == "c" and dtype.kind not in "cb":
            operand = operand.real
        converted: _Array = operand.astype(dtype)
        return converted
    return np.asarray(_function(step.node.op.name)(*operands)).astype(dtype, copy=False)


def _function(name: str) -> Callable[..., Any]:
    return _SPECIAL.get(name) or getattr(np, name)


def _positive(x: _Array) -> _Array:
    return x


def _reciprocal(x: _Array) -> _Array:
    return np.asarray(1, dtype=x.dtype) / x


def _floor_divide(x1: _Array, x2: _Array) -> _Array:
    quotient = np.floor_divide(x1, x2)
    if x1.dtype.kind != "f":
        return quotient
    # The standard wants floor(x1 / x2) for infinities, where NumPy follows Python.
    exact = np.floor(x1 / x2)
    opposite = np.isinf(x2) & np.isfinite(x1)
    return np.where(np.isinf(x1), exact, np.where(opposite, np.copysign(0, x1 / x2), quotient))


def _pow(x1: _Array, x2: _Array) -> _Array:
    if x1.dtype.kind != "i" or not np.any(x2 < 0):
        return np.asarray(np.pow(x1, x2))
    # NumPy refuses negative exponents of integers: 1 / x, truncated.
    inverse = np.where(np.abs(x1) == 1, np.where(x2 % 2 == 0, 1, x1), 0)
    return np.where(x2 < 0, inverse, np.pow(x1, np.maximum(x2, 0))).astype(x1.dtype)


def _sign(x: _Array) -> _Array:
    signs = np.sign(x)
    if x.dtype.kind != "c":
        return signs
    unknown = np.isnan(x) | np.isnan(np.abs(x))
    return np.where(unknown, complex(np.nan, np.nan), signs)


_SPECIAL: dict[str, Callable[..., Any]] = {
    "floor_divide": _floor_divide,
    "positive": _positive,
    "pow": _pow,
    "reciprocal": _reciprocal,
    "sign": _sign,
}
