"""Rows of sorting, searching and set functions: the same bits as NumPy, always."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from parity.operands import (
    EVERY,
    FLOATS,
    INTEGERS,
    REAL,
    Call,
    Input,
    Values,
    axis_of,
    call,
    extreme_values,
    inputs,
)
from parity.rows import Row, normal_axis, promoted


def ordered(x: Values) -> Values:
    """Return the values in a type in which NumPy can order them: exactly as they are."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def crowded_values(dtype: str) -> Values:
    """Return few different values, so that some are equal; also NaN, 0 and -0."""
    if dtype in FLOATS:
        return np.array([0.0, -0.0, 1.0, -2.5, np.inf, np.nan]).astype(dtype)
    return extreme_values(dtype)[:6]


# ---------------------------------------------------------------------------------- sorting


@st.composite
def _sort_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs(pool=draw(st.sampled_from([crowded_values, extreme_values]))))
    axis = draw(axis_of(len(x.shape)))
    return Call.of(x, axis=axis, descending=draw(st.booleans()), stable=draw(st.booleans()))


def _argsort(x: Values, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Values:
    axis = normal_axis(axis, x.ndim)
    if not descending:
        return np.argsort(ordered(x), axis=axis, stable=True)
    # NumPy sorts upwards only: of the reversed elements, from the end.
    indices = np.argsort(np.flip(ordered(x), axis), axis=axis, stable=True)
    return np.flip(x.shape[axis] - 1 - indices, axis)


def _sort(x: Values, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Values:
    indices = _argsort(x, axis=axis, descending=descending)
    return np.take_along_axis(x, indices, axis)


# -------------------------------------------------------------------------------- searching


@st.composite
def _searchsorted_calls(draw: st.DrawFn) -> Call:
    line = draw(inputs(REAL, hnp.array_shapes(max_dims=1, min_side=0), crowded_values))
    values = np.sort(ordered(line.numpy)).astype(line.memory.dtype)
    line = Input(values, (0,), (1,), values.shape, line.source)
    elements = st.one_of(inputs(REAL, pool=crowded_values), st.sampled_from([0, 1, -1, 2.5, 300]))
    return Call.of(line, draw(elements), side=draw(st.sampled_from(["left", "right", "middle"])))


@st.composite
def _sorter_calls(draw: st.DrawFn) -> Call:
    line = draw(inputs(REAL, hnp.array_shapes(max_dims=1, min_side=0), crowded_values))
    order = np.argsort(ordered(line.numpy), stable=True)
    sorter = Input(order, (0,), (1,), order.shape, "copied")
    elements = draw(inputs((line.memory.dtype.name,), pool=crowded_values))
    return Call.of(line, elements, sorter=sorter)


def _searchsorted(
    x1: Values, x2: Any, *, side: str = "left", sorter: Values | None = None
) -> Values:
    if side not in ("left", "right"):
        raise ValueError(side)
    line = x1 if sorter is None else x1[sorter]
    if isinstance(x2, np.ndarray) and {x1.dtype.name, x2.dtype.name} == {"int64", "uint64"}:
        # Exactly: neighbours are merged in float64, NumPy's common type.
        compare = np.less if side == "left" else np.less_equal
        found = compare(line.reshape(-1, *(1,) * x2.ndim), x2)
        return np.sum(found, axis=0, dtype=np.int64)
    dtype = promoted(x1, x2)
    try:
        elements = np.asarray(x2, None if isinstance(x2, np.ndarray) else dtype)
    except OverflowError:
        return np.asarray(0 if x2 < 0 else line.size, np.int64)
    common = ordered(line.astype(dtype)), ordered(elements.astype(dtype))
    return np.asarray(np.searchsorted(*common, side))


def _nonzero(x: Values) -> Any:
    if x.ndim == 0:
        raise ValueError(x)
    return np.nonzero(x.astype(bool))


# ------------------------------------------------------------------------------------- sets


def _unique(x: Values, **wanted: bool) -> Any:
    if not wanted:
        return np.unique(ordered(x), equal_nan=False).astype(x.dtype)
    values, *rest = np.unique(ordered(x), equal_nan=False, **wanted)
    return values.astype(x.dtype), *rest


def _unique_all(x: Values) -> Any:
    return _unique(x, return_index=True, return_inverse=True, return_counts=True)


@st.composite
def _isin_calls(draw: st.DrawFn) -> Call:
    pool = draw(st.sampled_from([crowded_values, extreme_values]))
    if draw(st.booleans()):
        number = st.sampled_from([0, 1, -1, 2.5, True, np.nan, 300])
        operands = [draw(inputs(pool=pool)), draw(number)]
        if draw(st.booleans()):
            operands.reverse()
    else:
        # One data type mostly, so that something is found.
        dtypes = draw(st.sampled_from([(name,) for name in EVERY] + [INTEGERS, EVERY]))
        operands = [draw(inputs(dtypes, pool=pool)) for _ in range(2)]
    return Call.of(*operands, invert=draw(st.booleans()))


def _isin(x1: Any, x2: Any, *, invert: bool = False) -> Values:
    arrays = [value for value in (x1, x2) if isinstance(value, np.ndarray)]
    if {array.dtype.name for array in arrays} != {"int64", "uint64"}:
        dtype = promoted(x1, x2)
        try:
            x1, x2 = (
                value.astype(dtype) if isinstance(value, np.ndarray) else np.asarray(value, dtype)
                for value in (x1, x2)
            )
        except OverflowError:
            return np.full(np.shape(x1), invert)
    # As `equal` compares: one by one.
    found = np.equal(ordered(x1)[..., None], ordered(x2).reshape(-1)).any(axis=-1)
    return np.asarray(found != invert)


_CROWDED = st.one_of(inputs(pool=crowded_values), inputs())

ROWS = [
    Row("sort", _sort_calls(), _sort),
    Row("argsort", _sort_calls(), _argsort),
    Row("searchsorted", st.one_of(_searchsorted_calls(), _sorter_calls()), _searchsorted),
    Row("nonzero", call(inputs()), _nonzero),
    Row("isin", _isin_calls(), _isin),
    Row("unique_all", call(_CROWDED), _unique_all),
    Row("unique_counts", call(_CROWDED), lambda x: _unique(x, return_counts=True)),
    Row("unique_inverse", call(_CROWDED), lambda x: _unique(x, return_inverse=True)),
    Row("unique_values", call(_CROWDED), _unique),
]
