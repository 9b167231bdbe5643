"""Evaluation operation by operation on NumPy.

Operations whose bits NumPy shares with kernels (`is_exact`) always run there. The others are handed
to a kernel of their own; on machines without a compiler NumPy evaluates them too, and their last
bits may differ, which is why the first such evaluation warns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fklarray.accumulation import accumulated
from fklarray.dtype_rows import NUMPY_DTYPES
from fklarray.placement import Values, values_of
from fklarray.recording import Leaf, Stream
from fklarray.special_reference import SPECIAL_FUNCTIONS
from fklarray_codegen.graph import Node, linearise
from fklarray_codegen.ops import Op, Reduction
from fklarray_codegen.walk import Rows

__all__ = ["evaluate_on_numpy", "is_exact", "reduce_on_numpy"]

# Runs one operation, given its node and its operands, which broadcast.
Run = Callable[[Node, Sequence[Values]], Values]


def evaluate_on_numpy(
    root: Node, leaves: Sequence[Leaf], shape: tuple[int, ...], run: Run | None = None
) -> list[Values]:
    """Return the results of an expression (one, or those of an ``"outputs"`` node).

    Parameters
    ----------
    root, leaves, shape
        The expression, and the shape that its results broadcast to.
    run : callable, optional
        Runs the operations that are not exact; by default NumPy does.
    """
    steps = linearise(root)
    results = steps.pop().operands if root.op == "outputs" else (len(steps) - 1,)
    last_use = {operand: place for place, step in enumerate(steps) for operand in step.operands}
    last_use.update(dict.fromkeys(results, len(steps)))
    values: dict[int, Values] = {}
    with np.errstate(all="ignore"):
        for place, step in enumerate(steps):
            if step.leaf >= 0:
                values[place] = _load(step.node, leaves[step.leaf], shape)
                continue
            operands = [values[operand] for operand in step.operands]
            evaluate = _value if run is None or is_exact(step.node) else run
            values[place] = evaluate(step.node, operands)
            for operand in set(step.operands):
                if last_use[operand] == place:
                    del values[operand]
    return [np.broadcast_to(values[register], shape) for register in results]


def reduce_on_numpy(reduction: Reduction, values: Values, rows: Rows) -> Values:
    """Return the results of a reduction: one for each row, or for each element of a scan."""
    shape = values.shape
    ufunc = {"prod": np.multiply, "sum": np.add}.get(reduction.scans or reduction.name)
    with np.errstate(all="ignore"):
        if reduction.scans:
            assert ufunc is not None
            return ufunc.accumulate(values, axis=rows.first, dtype=values.dtype)
        flat = values.reshape(math.prod(shape[: rows.first]), rows.length(shape), -1)
        if ufunc is not None:
            result = accumulated(ufunc, flat, (1,), values.dtype)
        else:
            result = getattr(np, reduction.name)(flat, axis=1)
    return np.ascontiguousarray(result).reshape(rows.kept(shape))


def is_exact(node: Node) -> bool:
    """Return whether NumPy computes an operation to the same bits as a kernel."""
    source = node.inputs[-1].dtype
    if not isinstance(node.op, Op):
        # Out of range, what NumPy makes of a number depends on the processor and on its place.
        from_floating = source.kind in ("real", "complex")
        return not (from_floating and node.dtype.kind in ("signed", "unsigned"))
    if source.kind == "real":
        return node.op.max_ulp == 0
    return source.kind != "complex" or node.op.complex_ulp == 0


def _load(node: Node, leaf: Leaf, shape: tuple[int, ...]) -> Values:
    if isinstance(leaf, Stream):
        return values_of(leaf, node.dtype, shape)
    return np.asarray(leaf.value, dtype=NUMPY_DTYPES[node.dtype])


def _value(node: Node, operands: Sequence[Values]) -> Values:
    dtype = NUMPY_DTYPES[node.dtype]
    if not isinstance(node.op, Op):
        operand: Any = operands[0]
        if operand.dtype.kind == "c" and dtype.kind not in "cb":
            operand = operand.real
        converted: Values = operand.astype(dtype)
        return converted
    name = node.op.name
    if not node.inputs[-1].dtype.is_standard and name not in ("nextafter", "where"):
        # As in kernels: computed in float32, then rounded.
        operands = [operand.astype(np.float32) for operand in operands]
    return np.asarray(_function(name)(*operands)).astype(dtype, copy=False)


def _function(name: str) -> Callable[..., Any]:
    return _SPECIAL.get(name) or getattr(np, name)


def _positive(x: Values) -> Values:
    return x


def _reciprocal(x: Values) -> Values:
    return np.asarray(1, dtype=x.dtype) / x


def _floor_divide(x1: Values, x2: Values) -> Values:
    quotient = np.floor_divide(x1, x2)
    if x1.dtype.kind != "f":
        return quotient
    # The standard wants floor(x1 / x2) for infinities, where NumPy follows Python.
    exact = np.floor(x1 / x2)
    opposite = np.isinf(x2) & np.isfinite(x1)
    return np.where(np.isinf(x1), exact, np.where(opposite, np.copysign(0, x1 / x2), quotient))


def _pow(x1: Values, x2: Values) -> Values:
    if x1.dtype.kind != "i" or not np.any(x2 < 0):
        return np.asarray(np.pow(x1, x2))
    # NumPy refuses negative exponents of integers: 1 / x, truncated.
    inverse = np.where(np.abs(x1) == 1, np.where(x2 % 2 == 0, 1, x1), 0)
    return np.where(x2 < 0, inverse, np.pow(x1, np.maximum(x2, 0))).astype(x1.dtype)


def _complex(real: Any, imag: Any, dtype: np.dtype[Any]) -> Values:
    result: Any = np.empty(np.shape(real), dtype)
    # By parts: a product with 1j would make NaN of infinities.
    result.real, result.imag = real, imag
    return np.asarray(result)


def _expm1(x: Any) -> Values:
    if x.dtype.kind != "c":
        return np.asarray(np.expm1(x))
    exponential: Any = np.exp(x)
    half_sine: Any = np.sin(x.imag / 2)
    precise: Any = np.expm1(x.real) * np.cos(x.imag) - 2 * half_sine * half_sine
    where: Callable[..., Any] = np.where
    real = where(np.isfinite(precise), precise, exponential.real - 1)
    return _complex(where(x == 0, 0, real), exponential.imag, x.dtype)


def _log1p(x: Any) -> Values:
    if x.dtype.kind != "c":
        return np.asarray(np.log1p(x))
    # As in kernels: near zero |1 + x|^2 - 1 is summed from its parts, of which 1 has gone.
    where: Callable[..., Any] = np.where
    near = (np.abs(x.real) < 0.5) & (np.abs(x.imag) < 0.5)
    precise = 0.5 * np.log1p(x.real * (2 + x.real) + x.imag * x.imag)
    general: Any = np.log1p(x)
    return _complex(where(near, precise, general.real), general.imag, x.dtype)


def _tanh(x: Any) -> Values:
    result: Any = np.tanh(x)
    if x.dtype.kind != "c":
        return np.asarray(result)
    # As in kernels, the zero at infinity has the sign of the operand's imaginary part.
    where: Callable[..., Any] = np.where
    imag = where(np.isinf(x.real), np.copysign(0, x.imag), result.imag)
    return _complex(result.real, imag, x.dtype)


def _tan(x: Any) -> Values:
    if x.dtype.kind != "c":
        return np.asarray(np.tan(x))
    turned: Any = _tanh(_complex(-x.imag, x.real, x.dtype))
    return _complex(turned.imag, -turned.real, x.dtype)


def _sign(x: Values) -> Values:
    signs = np.sign(x)
    if x.dtype.kind != "c":
        return signs
    unknown = np.isnan(x) | np.isnan(np.abs(x))
    return np.where(unknown, complex(np.nan, np.nan), signs)


def _nextafter(x1: Values, x2: Values) -> Values:
    # Of equal zeros the second, as in C; NumPy's float16 takes the first.
    return np.where(x1 == x2, x2, np.nextafter(x1, x2))


_SPECIAL: dict[str, Callable[..., Any]] = {
    "expm1": _expm1,
    "floor_divide": _floor_divide,
    "log1p": _log1p,
    "nextafter": _nextafter,
    "positive": _positive,
    "pow": _pow,
    "reciprocal": _reciprocal,
    "sign": _sign,
    "tan": _tan,
    "tanh": _tanh,
    **SPECIAL_FUNCTIONS,
}
