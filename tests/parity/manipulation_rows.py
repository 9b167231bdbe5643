"""Rows of manipulation, indexing and utility functions: the same bits as NumPy, always."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as np_compat
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from parity.operands import (
    EVERY,
    SHAPES,
    SOLID_SHAPES,
    Call,
    Input,
    Values,
    axes_of,
    axis_of,
    broadcastable,
    call,
    inputs,
    tame_values,
)
from parity.rows import Row, normal_axis, promoted


def _with_shape(shape: tuple[int, ...], dtypes: Any = EVERY, **keywords: Any) -> Any:
    return inputs(dtypes, st.just(shape), **keywords)


@st.composite
def _with_axis(draw: st.DrawFn, axes: Any = axis_of, **keywords: Any) -> Call:
    x = draw(inputs())
    drawn = {name: draw(values) for name, values in keywords.items()}
    return Call.of(x, axis=draw(axes(len(x.shape))), **drawn)


# ----------------------------------------------------------------------------------- shapes


@st.composite
def _broadcast_to_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    small, large = draw(broadcastable(2))
    if draw(st.booleans()):
        return Call.of(x, large)  # mostly impossible
    target = np.broadcast_shapes(small, large)
    return Call.of(draw(_with_shape(small)), target)


@st.composite
def _several(draw: st.DrawFn) -> Call:
    shapes = draw(st.one_of(broadcastable(1), broadcastable(3), st.tuples(SHAPES, SHAPES)))
    return Call.of(*(draw(_with_shape(shape)) for shape in shapes))


def _broadcast_arrays(*arrays: Values) -> Any:
    return tuple(np.broadcast_arrays(*arrays))


def _expand_dims(x: Values, axis: Any) -> Values:
    return np.expand_dims(x, axis)


@st.composite
def _expand_dims_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    ndim = len(x.shape)
    one = st.integers(-ndim - 2, ndim + 1)
    return Call.of(x, draw(st.one_of(one, st.lists(one, max_size=2).map(tuple))))


@st.composite
def _squeeze_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs(shapes=hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=2)))
    ones = [axis for axis, extent in enumerate(x.shape) if extent == 1]
    chosen = st.lists(st.sampled_from(ones), unique=True).map(tuple) if ones else st.just(())
    return Call.of(x, draw(st.one_of(chosen, axis_of(len(x.shape)))))


def _squeeze(x: Values, axis: Any) -> Values:
    return np.squeeze(x, normal_axis(axis, x.ndim))


def _flip(x: Values, *, axis: Any = None) -> Values:
    return np.flip(x, axis)


@st.composite
def _moveaxis_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    ndim = len(x.shape)
    if ndim and draw(st.booleans()):
        count = draw(st.integers(0, ndim))
        source = draw(st.permutations(range(ndim)))[:count]
        destination = draw(st.permutations(range(-ndim, 0)))[:count]
        return Call.of(x, tuple(source), tuple(destination))
    axis = st.integers(-ndim - 1, ndim)
    return Call.of(x, draw(axis), draw(axis))


@st.composite
def _permute_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    ndim = len(x.shape)
    axes = st.permutations(range(-1, ndim - 1) if ndim else [])
    wrong = st.lists(st.integers(-ndim - 1, ndim), max_size=3)
    return Call.of(x, tuple(draw(st.one_of(axes, axes, wrong))))


def _permute_dims(x: Values, axes: Any) -> Values:
    return np.permute_dims(x, axes)


@st.composite
def _reshape_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs(shapes=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
    size = int(np.prod(x.shape, dtype=int))
    target = draw(st.permutations([*x.shape, 1]))
    if size and draw(st.booleans()):
        target[draw(st.integers(0, len(target) - 1))] = -1
    wrong = st.sampled_from([(5, -1), (-1, -1), (size + 1,), -1, size, (0, -1), (-2, size)])
    return Call.of(x, draw(st.one_of(st.just(tuple(target)), wrong)), copy=draw(_COPIES))


_COPIES = st.sampled_from([None, True])


def _reshape(x: Values, shape: Any, *, copy: bool | None = None) -> Values:
    if np.min(shape) < -1:
        # Any negative number is one to be found out, for NumPy.
        raise ValueError(shape)
    return np.reshape(x, shape)


def _transpose(x: Values, axes: Any = None) -> Values:
    return np.transpose(x, axes)


# ---------------------------------------------------------------------------------- joining


@st.composite
def _concat_calls(draw: st.DrawFn) -> Call:
    shape = draw(SHAPES)
    dtypes = draw(st.one_of(st.sampled_from(EVERY).map(lambda one: (one,)), st.just(EVERY)))
    axis = draw(st.one_of(axis_of(len(shape)), st.none()))
    along = axis % len(shape) if shape and axis is not None else 0
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        extent = draw(st.integers(0, 3))
        part = (*shape[:along], extent, *shape[along + 1 :]) if shape else ()
        parts.append(draw(_with_shape(part, dtypes)))
    if draw(st.booleans()) and draw(st.booleans()):
        parts.append(draw(inputs()))
    return Call.of(parts, axis=axis)


def _in_common(arrays: Any) -> list[Values]:
    dtype = promoted(*arrays) if arrays else None
    return [array.astype(dtype) for array in arrays]


def _concat(arrays: Any, *, axis: int | None = 0) -> Values:
    return np.concat(_in_common(arrays), axis=axis)


@st.composite
def _stack_calls(draw: st.DrawFn) -> Call:
    shape = draw(SHAPES)
    arrays = [draw(_with_shape(shape)) for _ in range(draw(st.integers(0, 3)))]
    if draw(st.booleans()) and draw(st.booleans()):
        arrays.append(draw(inputs()))
    return Call.of(arrays, axis=draw(st.integers(-len(shape) - 2, len(shape) + 1)))


def _stack(arrays: Any, *, axis: int = 0) -> Values:
    return np.stack(_in_common(arrays), axis=axis)


def _unstack(x: Values, *, axis: int = 0) -> Any:
    return np_compat.unstack(x, axis=axis)


@st.composite
def _roll_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    shift = st.integers(-9, 9)
    ndim = len(x.shape)
    if draw(st.booleans()):
        return Call.of(x, draw(shift), axis=draw(st.one_of(st.none(), axis_of(ndim))))
    axes = draw(st.lists(axis_of(ndim), max_size=2).map(tuple))
    shifts = tuple(draw(shift) for _ in axes)
    return Call.of(x, shifts[: len(axes) - draw(st.sampled_from([0, 0, 0, 1]))], axis=axes)


def _roll(x: Values, shift: Any, *, axis: Any = None) -> Values:
    if isinstance(axis, int):
        axis = normal_axis(axis, x.ndim)
    # NumPy cannot roll along no axis.
    return x if shift == () == axis else np.roll(x, shift, axis)


@st.composite
def _repeat_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    axis = draw(st.one_of(st.none(), axis_of(len(x.shape))))
    try:
        extent = int(np.prod(x.shape)) if axis is None else x.shape[axis]
    except IndexError:
        extent = 1
    counts = inputs(
        ("int64", "int8", "uint16"), st.just((extent,)), lambda d: np.arange(4, dtype=d)
    )
    number = st.integers(-1, 3)
    return Call.of(x, draw(st.one_of(number, number, counts)), axis=axis)


def _repeat(x: Values, repeats: Any, *, axis: int | None = None) -> Values:
    counts = repeats.astype(np.int64) if isinstance(repeats, np.ndarray) else repeats
    return np.repeat(x, counts, normal_axis(axis, x.ndim))


@st.composite
def _pad_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    width = st.integers(0, 3)
    pairs = st.tuples(*(st.tuples(width, width) for _ in x.shape)) if x.shape else width
    some = st.one_of(width, st.tuples(width, width), pairs, st.integers(-2, -1))
    value = draw(st.sampled_from([0, 1, True]))
    keywords = {"constant_values": value} if draw(st.booleans()) else {}
    return Call.of(x, draw(some), **keywords)


def _pad(x: Values, pad_width: Any, mode: str = "constant", **keywords: Any) -> Values:
    return np.pad(x, pad_width, mode, **keywords)


# --------------------------------------------------------------------------------- indexing


@st.composite
def _take_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs(shapes=st.one_of(SOLID_SHAPES, SHAPES)))
    ndim = len(x.shape)
    axis = draw(st.one_of(st.none(), axis_of(ndim))) if ndim == 1 else draw(axis_of(ndim))
    indices = _indices(x, axis, draw(st.sampled_from([(3,), (0,), (2, 2), ()])))
    return Call.of(x, draw(indices), axis=axis)


def _indices(x: Input, axis: int | None, shape: tuple[int, ...]) -> Any:
    try:
        extent = x.shape[axis or 0]
    except IndexError:
        extent = 0
    pool = np.arange(-extent, extent) if extent else np.zeros(1, np.int64)
    # One in a few is out of bounds.
    beyond = np.append(np.repeat(pool, 5), extent)
    return st.sampled_from(["int64", "int32", "int8", "uint8", "uint64"]).flatmap(
        lambda d: inputs(
            (d,),
            st.just(shape),
            lambda d: (beyond[beyond >= 0] if d[0] == "u" else beyond).astype(d),
        )
    )


def _signed(indices: Values) -> Values:
    # NumPy does not index with uint64.
    return indices.astype(np.int64) if indices.dtype.kind == "u" else indices


def _take(x: Values, indices: Values, *, axis: int | None = None) -> Values:
    if x.ndim > 1 and axis is None:
        raise ValueError(axis)
    along = normal_axis(0 if axis is None else axis, max(1, x.ndim) if axis is None else x.ndim)
    extent = np.atleast_1d(x).shape[along]
    if indices.size and not (-extent <= indices.min() and indices.max() < extent):
        # NumPy does not see it where the other axes have no elements.
        raise IndexError(indices)
    return np.take(x, _signed(indices), axis=along if x.ndim else None)


@st.composite
def _take_along_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs(shapes=SOLID_SHAPES))
    ndim = len(x.shape)
    axis = draw(axis_of(ndim))
    extent = draw(st.integers(0, 4))
    shape = [draw(st.sampled_from([n, n, 1])) for n in x.shape]
    if -ndim <= axis < ndim:
        shape[axis] = extent
    return Call.of(x, draw(_indices(x, axis, tuple(shape))), axis=axis)


def _take_along_axis(x: Values, indices: Values, *, axis: int = -1) -> Values:
    return np.take_along_axis(x, _signed(indices), axis)


# ---------------------------------------------------------------------------------- utility


@st.composite
def _diff_calls(draw: st.DrawFn) -> Call:
    dtype = draw(st.sampled_from(EVERY))
    x = draw(inputs((dtype,), pool=tame_values))
    axis = draw(axis_of(len(x.shape)))
    keywords: dict[str, Any] = {"axis": axis, "n": draw(st.integers(-1, 3))}
    for name in ("prepend", "append"):
        if x.shape and -len(x.shape) <= axis < len(x.shape) and draw(st.booleans()):
            shape = list(x.shape)
            shape[axis] = draw(st.integers(0, 2))
            keywords[name] = draw(_with_shape(tuple(shape), (dtype,), pool=tame_values))
    return Call((x,), keywords)


def _diff(x: Values, **keywords: Any) -> Values:
    if x.ndim == 0:
        # NumPy looks at the dimensions only if it has to take differences.
        raise ValueError(x)
    keywords["axis"] = normal_axis(keywords["axis"], x.ndim)
    if x.dtype.name != "bfloat16":
        return np.diff(x, **keywords)
    # In float32, rounded after each difference.
    before = {name: keywords.pop(name) for name in ("prepend", "append") if name in keywords}
    before = {name: value.astype(np.float32) for name, value in before.items()}
    times = keywords.pop("n")
    values = np.diff(x.astype(np.float32), n=min(times, 0), **keywords)
    for _ in range(times):
        values = np.diff(values, **keywords, **before).astype(x.dtype).astype(np.float32)
        before = {}
    return values.astype(x.dtype)


def _axes_checked(name: str) -> Any:
    """Return the reference of a test of all elements."""
    function = getattr(np, name)

    def reference(x: Values, *, axis: Any = None, keepdims: bool = False) -> Values:
        axes = normal_axis(axis, x.ndim)
        return np.asarray(function(x.astype(bool), axis=axes, keepdims=keepdims))

    return reference


ROWS = [
    Row("broadcast_arrays", _several(), _broadcast_arrays),
    Row(
        "broadcast_shapes",
        st.one_of(broadcastable(2), broadcastable(3), st.tuples(SHAPES, SHAPES)).map(
            lambda shapes: Call.of(*shapes)
        ),
        np.broadcast_shapes,
    ),
    Row("broadcast_to", _broadcast_to_calls(), np.broadcast_to),
    Row("concat", _concat_calls(), _concat),
    Row("expand_dims", _expand_dims_calls(), _expand_dims),
    Row("flip", _with_axis(axes_of), _flip),
    Row("moveaxis", _moveaxis_calls(), np.moveaxis),
    Row("pad", _pad_calls(), _pad),
    Row("permute_dims", _permute_calls(), _permute_dims),
    Row("repeat", _repeat_calls(), _repeat),
    Row("reshape", _reshape_calls(), _reshape),
    Row("roll", _roll_calls(), _roll),
    Row("squeeze", _squeeze_calls(), _squeeze),
    Row("stack", _stack_calls(), _stack),
    Row(
        "tile",
        call(inputs(), st.one_of(st.lists(st.integers(0, 3), max_size=4).map(tuple))),
        np.tile,
    ),
    Row("transpose", st.one_of(call(inputs()), _permute_calls()), _transpose),
    Row("unstack", _with_axis(), _unstack),
    Row("take", _take_calls(), _take),
    Row("take_along_axis", _take_along_calls(), _take_along_axis),
    Row("all", _with_axis(axes_of, keepdims=st.booleans()), _axes_checked("all")),
    Row("any", _with_axis(axes_of, keepdims=st.booleans()), _axes_checked("any")),
    Row("diff", _diff_calls(), _diff),
]
