"""Rows of products of matrices and vectors, in the main namespace and in `linalg`.

The bound of a sum of n products is n + 2 units of roundoff of the sum of their magnitudes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from parity.expectations import Within
from parity.operands import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    NARROW,
    Call,
    Values,
    broadcastable,
    call,
    inputs,
    tame_values,
)
from parity.rows import Row, normal_axis, promoted, roundoff, widest

_SIDES = st.integers(0, 4)


def _array(shape: tuple[int, ...], dtypes: tuple[str, ...] = EVERY) -> Any:
    return inputs(dtypes, st.just(shape), tame_values)


# One data type mostly: products of mixed ones convert first.
_PAIRS = st.sampled_from([(name,) for name in EVERY] * 2 + [EVERY])


@st.composite
def _matmul_calls(draw: st.DrawFn) -> Call:
    dtypes = draw(_PAIRS)
    m, k, n = draw(_SIDES), draw(_SIDES), draw(_SIDES)
    stacks = draw(st.one_of(st.just(((), ())), broadcastable(2)))
    first, second = (*stacks[0][:2], m, k), (*stacks[1][:2], k, n)
    if draw(st.booleans()) and draw(st.booleans()):
        first = draw(st.sampled_from([(k,), (), (m, k + 1), (2, m, k)]))
    if draw(st.booleans()) and draw(st.booleans()):
        second = draw(st.sampled_from([(k,), (), (k + 1,), (3, k, n)]))
    return Call.of(draw(_array(first, dtypes)), draw(_array(second, dtypes)))


def _in_common(x1: Values, x2: Values) -> tuple[Values, Values, np.dtype[Any]]:
    dtype = promoted(x1, x2)
    return x1.astype(dtype), x2.astype(dtype), dtype


def _bounded(product: Any, x1: Values, x2: Values, terms: int) -> Any:
    """Return a sum of products in the common data type: wrapped integers, or a bound."""
    first, second, dtype = _in_common(x1, x2)
    if dtype.name not in FLOATS + COMPLEX:
        return np.asarray(product(first, second))
    exact = np.asarray(product(widest(first), widest(second)))
    magnitudes = product(np.abs(widest(first)), np.abs(widest(second)))
    unit = roundoff("float32" if dtype.name in NARROW else dtype)
    return Within(exact, dtype, 2 * (terms + 2) * unit * magnitudes)


def _matmul(x1: Values, x2: Values) -> Any:
    return _bounded(np.matmul, x1, x2, x1.shape[-1] if x1.ndim else 0)


def _bmm(x1: Values, x2: Values) -> Any:
    if x1.ndim != 3 or x2.ndim != 3 or x1.shape[0] != x2.shape[0]:
        raise ValueError(x1.shape)
    return _matmul(x1, x2)


@st.composite
def _bmm_calls(draw: st.DrawFn) -> Call:
    dtypes = draw(_PAIRS)
    b, m, k, n = (draw(_SIDES) for _ in range(4))
    second = draw(st.sampled_from([(b, k, n), (b, k, n), (b, k, n), (1, k, n), (k, n), (b, k, n)]))
    return Call.of(draw(_array((b, m, k), dtypes)), draw(_array(second, dtypes)))


@st.composite
def _vecdot_calls(draw: st.DrawFn) -> Call:
    dtypes, k = draw(_PAIRS), draw(_SIDES)
    shapes = [[*shape[:2], k] for shape in draw(broadcastable(2))]
    axis = -1
    if draw(st.booleans()):
        axis = -min(map(len, shapes))
        for shape in shapes:
            shape.insert(len(shape) + axis, shape.pop())
    if draw(st.booleans()) and draw(st.booleans()):
        axis = draw(st.integers(-5, -1))
    return Call.of(*(draw(_array(tuple(shape), dtypes)) for shape in shapes), axis=axis)


def _vecdot(x1: Values, x2: Values, *, axis: int = -1) -> Any:
    first, second = (np.moveaxis(x, normal_axis(axis, x.ndim), -1) for x in (x1, x2))
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(x1.shape)
    return _bounded(_dot, first, second, first.shape[-1])


def _dot(first: Values, second: Values) -> Values:
    return np.sum(np.conj(first) * second, axis=-1, dtype=promoted(first, second))


@st.composite
def _tensordot_calls(draw: st.DrawFn) -> Call:
    dtypes = draw(_PAIRS)
    common = draw(st.lists(st.integers(0, 3), max_size=2))
    ours, theirs = (draw(st.lists(st.integers(0, 3), max_size=1)) for _ in range(2))
    first, second = [*ours, *common], [*common, *theirs]
    if draw(st.booleans()):
        axes: Any = len(common) + draw(st.sampled_from([0, 0, 0, 1, -1]))
    else:
        # The axes at other places, in another order.
        order = draw(st.permutations(range(len(first))))
        first = [first[axis] for axis in order]
        mine = tuple(order.index(len(ours) + one) for one in range(len(common)))
        axes = (mine, tuple(one - len(second) for one in range(len(common))))
    return Call.of(
        draw(_array(tuple(first), dtypes)), draw(_array(tuple(second), dtypes)), axes=axes
    )


def _tensordot(x1: Values, x2: Values, *, axes: Any = 2) -> Any:
    if isinstance(axes, int) and axes < 0:
        # NumPy takes it for no axis at all.
        raise ValueError(axes)
    if isinstance(axes, int) and axes > min(x1.ndim, x2.ndim):
        # NumPy's IndexError of a list; an axis is out of bounds.
        raise np.exceptions.AxisError(axes, x1.ndim)
    return _bounded(lambda a, b: np.tensordot(a, b, axes), x1, x2, max(1, x1.size))


# -------------------------------------------------------------------------------------- vectors


@st.composite
def _cross_calls(draw: st.DrawFn) -> Call:
    dtypes = draw(_PAIRS)
    k = draw(st.sampled_from([3, 3, 3, 2]))
    shapes = [[*shape[:2], k] for shape in draw(broadcastable(2))]
    return Call.of(*(draw(_array(tuple(shape), dtypes)) for shape in shapes), axis=-1)


def _cross(x1: Values, x2: Values, *, axis: int = -1) -> Any:
    first, second, dtype = _in_common(x1, x2)
    if dtype.name == "bool":
        raise TypeError(dtype)
    if dtype.name in INTEGERS:
        return np.linalg.cross(first, second, axis=axis)
    # Two products and a difference, each rounded.
    largest = np.max(np.abs(widest(first)), axis=axis, keepdims=True, initial=0) * np.max(
        np.abs(widest(second)), axis=axis, keepdims=True, initial=0
    )
    exact = np.linalg.cross(widest(first), widest(second), axis=axis)
    return Within(exact, dtype, 8 * roundoff(dtype) * largest)


@st.composite
def _outer_calls(draw: st.DrawFn) -> Call:
    dtypes = draw(_PAIRS)
    shapes = [draw(st.sampled_from([(0,), (3,), (4,), (1,), (2, 2)])) for _ in range(2)]
    return Call.of(*(draw(_array(shape, dtypes)) for shape in shapes))


def _outer(x1: Values, x2: Values) -> Any:
    first, second, dtype = _in_common(x1, x2)
    if first.ndim != 1 or second.ndim != 1:
        raise ValueError(x1.shape)
    product = first[:, None] * second
    return Within(widest(product), dtype, 0) if dtype.name in COMPLEX else product


_MATRICES = st.tuples(
    st.lists(st.integers(0, 2), max_size=1), st.tuples(_SIDES, _SIDES)
).map(lambda parts: (*parts[0], *parts[1]))  # fmt: skip
_MATRICES_OR_LESS = st.one_of(_MATRICES, _MATRICES, _MATRICES, st.sampled_from([(), (3,)]))


def _matrices_only(function: Any) -> Any:
    def reference(x: Values, **keywords: Any) -> Any:
        if x.ndim < 2:
            raise ValueError(x.shape)
        return function(x, **keywords)

    return reference


def _diagonal(x: Values, *, offset: int = 0) -> Values:
    if not -x.shape[-2] <= offset <= x.shape[-1]:
        # A diagonal outside of the matrix is empty here; NumPy has the same.
        assert np.diagonal(x, offset, -2, -1).shape[-1] == 0
    return np.diagonal(x, offset, -2, -1)


def _trace(x: Values, *, offset: int = 0, dtype: Any = None) -> Any:
    from parity.reduction_rows import sum_reference

    return sum_reference(_diagonal(x, offset=offset), axis=-1, dtype=dtype)


_MATMUL, _VECDOT, _TENSORDOT = _matmul_calls(), _vecdot_calls(), _tensordot_calls()
_TRANSPOSES = call(inputs(shapes=_MATRICES_OR_LESS))
_DIAGONALS = call(inputs(shapes=_MATRICES_OR_LESS, pool=tame_values), offset=st.integers(-5, 5))

ROWS = [
    Row("matmul", _MATMUL, _matmul),
    Row("matrix_transpose", _TRANSPOSES, _matrices_only(np.matrix_transpose)),
    Row("tensordot", _TENSORDOT, _tensordot),
    Row("vecdot", _VECDOT, _vecdot),
    Row("bmm", _bmm_calls(), _bmm),
    Row("linalg.matmul", _MATMUL, _matmul),
    Row("linalg.matrix_transpose", _TRANSPOSES, _matrices_only(np.matrix_transpose)),
    Row("linalg.tensordot", _TENSORDOT, _tensordot),
    Row("linalg.vecdot", _VECDOT, _vecdot),
    Row("linalg.cross", _cross_calls(), _cross),
    Row("linalg.outer", _outer_calls(), _outer),
    Row("linalg.diagonal", _DIAGONALS, _matrices_only(_diagonal)),
    Row("linalg.trace", _DIAGONALS, _matrices_only(_trace)),
]
