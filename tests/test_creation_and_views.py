"""Creation and manipulation functions against NumPy, on arrays in memory and pending ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fklarray as xp
from accuracy import assert_same_bits
from fklarray_codegen.dtypes import DTYPES

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
NAMES = list(DTYPES)


def _pair(shape: tuple[int, ...], device: str, pending: bool = True) -> tuple[np.ndarray, xp.Array]:
    values = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    x = xp.asarray(values, device=device)
    return values, (x * 2 - x if pending else x)


def _same(x: xp.Array, values: Any) -> None:
    """Assert equality now, after another operation, and where the array is only looked at."""
    assert x.shape == values.shape
    assert_same_bits(np.asarray(x + 1), values + 1)
    assert_same_bits(np.asarray(x), np.ascontiguousarray(values).reshape(values.shape))


# ------------------------------------------------------------------------------------ creation


@pytest.mark.parametrize("dtype", [None, *NAMES])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3), 4, [2, 2]])
def test_constant_arrays(shape: Any, dtype: str | None, device: str) -> None:
    options = {"dtype": dtype, "device": device}
    for name in ("zeros", "ones"):
        assert_same_bits(
            np.asarray(getattr(xp, name)(shape, **options)), getattr(np, name)(shape, dtype=dtype)
        )
    assert xp.empty(shape, **options).dtype == np.dtype(dtype or "float64")
    x = xp.zeros((2, 1), dtype="int16", device=device)
    for name in ("zeros_like", "ones_like", "empty_like"):
        like = getattr(xp, name)(x, dtype=dtype)
        assert (like.shape, like.dtype) == ((2, 1), np.dtype(dtype or "int16"))
    assert_same_bits(np.asarray(xp.full_like(x, 7)), np.full((2, 1), 7, np.int16))


@pytest.mark.parametrize("value", [True, 3, 2.5, 1 - 2j, float("nan"), np.float32(1.5), np.int8(3)])
def test_full(value: Any, device: str) -> None:
    assert_same_bits(np.asarray(xp.full((2, 3), value, device=device)), np.full((2, 3), value))
    x = xp.full((2,), xp.asarray(4, dtype=xp.uint8), device=device)
    assert_same_bits(np.asarray(x), np.full(2, 4, np.uint8))
    for bad in (lambda: xp.full((2,), xp.ones((1,))), lambda: xp.zeros((-1, 2))):
        with pytest.raises(ValueError, match=r"\(1,\)|-1"):
            bad()


@settings(max_examples=60)
@given(
    start=st.integers(-20, 20) | st.floats(-5, 5),
    stop=st.none() | st.integers(-20, 20) | st.floats(-5, 5),
    step=st.sampled_from([1, 2, -1, -3, 0.25, -0.5, 7]),
    dtype=st.sampled_from([None, "int32", "float32", "float64"]),
)
def test_arange(device: str, start: Any, stop: Any, step: Any, dtype: str | None) -> None:
    if dtype == "int32" and not all(isinstance(v, int | None) for v in (start, stop, step)):
        dtype = None
    arguments = (0, start, step) if stop is None else (start, stop, step)
    wanted = np.arange(*arguments, dtype=dtype)
    ours = (start,) if stop is None else (start, stop)
    assert_same_bits(np.asarray(xp.arange(*ours, step=step, dtype=dtype, device=device)), wanted)


@settings(max_examples=40)
@given(
    start=st.floats(-5, 5) | st.complex_numbers(max_magnitude=3),
    stop=st.floats(-5, 5),
    num=st.integers(0, 20),
    endpoint=st.booleans(),
)
def test_linspace(device: str, start: Any, stop: float, num: int, endpoint: bool) -> None:
    got = xp.linspace(start, stop, num, endpoint=endpoint, device=device)
    wanted = np.linspace(start, stop, num, endpoint=endpoint)
    assert got.dtype == wanted.dtype
    assert_same_bits(np.asarray(got), wanted)


def test_bad_ranges() -> None:
    with pytest.raises(ValueError, match="step"):
        xp.arange(0, 5, 0)
    with pytest.raises(ValueError, match="-3"):
        xp.linspace(0, 1, -3)


@pytest.mark.parametrize("k", [-4, -1, 0, 1, 2, 9])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (5, 1), (0, 2), (2, 3, 4)])
def test_triangles_and_eye(shape: tuple[int, ...], k: int, device: str) -> None:
    if len(shape) == 2:
        assert_same_bits(
            np.asarray(xp.eye(*shape, k=k, dtype=xp.int8, device=device)),
            np.eye(*shape, k=k, dtype=np.int8),
        )
    values, x = _pair(shape, device)
    values, x = values + 1, x + 1
    _same(xp.tril(x, k=k), np.tril(values, k))
    _same(xp.triu(x, k=k), np.triu(values, k))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        xp.tril(xp.ones((3,)))
    assert np.asarray(xp.tril(xp.full((2, 2), float("nan")))).tolist()[0][1] == 0.0


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("lengths", [(), (3,), (2, 3), (4, 1, 2), (0, 2)])
def test_meshgrid(lengths: tuple[int, ...], indexing: Any, device: str) -> None:
    pairs = [_pair((n,), device) for n in lengths]
    got = xp.meshgrid(*(x for _, x in pairs), indexing=indexing)
    wanted = np.meshgrid(*(values for values, _ in pairs), indexing=indexing)
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted, strict=True):
        _same(ours, theirs)


@pytest.mark.parametrize("dtype", NAMES)
def test_asarray_of_everything(dtype: str, device: str) -> None:
    values = np.array([[1, 0, 1], [0, 1, 1]], dtype)
    for source in (
        values,
        values.tolist(),
        list(values),
        xp.asarray(values),
        values[:, ::-1][:, ::-1],
    ):
        assert_same_bits(np.asarray(xp.asarray(source, dtype=dtype, device=device)), values)
    assert_same_bits(np.asarray(xp.asarray(values[::-1, ::2])), values[::-1, ::2].copy())
    assert_same_bits(np.asarray(xp.asarray(values.astype(values.dtype.newbyteorder(">")))), values)
    assert_same_bits(np.asarray(xp.asarray(values.dtype.type(1))), np.asarray(1, dtype))
    assert_same_bits(np.asarray(xp.asarray([xp.asarray(v) for v in values[0]])), values[0])
    if dtype not in ("bool", "bfloat16", "complex64", "complex128"):
        assert_same_bits(np.asarray(xp.asarray(memoryview(values))), values)


def test_asarray_defaults(device: str) -> None:
    defaults = ((True, "bool"), (3, "int64"), (3.0, "float64"), (1j, "complex128"))
    for value, dtype in defaults:
        for source in (value, [value, value], [[value]]):
            assert xp.asarray(source, device=device).dtype == np.dtype(dtype)
    assert xp.asarray([], device=device).dtype == xp.float64
    assert xp.asarray([1, 2.5, True], device=device).dtype == xp.float64
    with pytest.raises((TypeError, ValueError)):
        xp.asarray([[1, 2], [3]])


def test_unaligned_memory(device: str) -> None:
    raw = np.zeros(41, np.uint8)
    values = raw[1:].view(np.float64)
    values[...] = [1, 2, 3, 4, 5]
    for source in (values, values[::-2]):
        assert np.asarray(xp.asarray(source, device=device) * 2).tolist() == (source * 2).tolist()
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(values, copy=False)


# --------------------------------------------------------------------------------------- views


@settings(max_examples=120)
@given(data=st.data(), shape=SHAPES, pending=st.booleans())
def test_any_sequence_of_views(device: str, data, shape: tuple[int, ...], pending: bool) -> None:
    values, x = _pair(shape, device, pending)
    for _ in range(data.draw(st.integers(1, 5))):
        values, x = _change(data.draw, values, x)
        assert x.shape == values.shape
    _same(x, values)


def _change(draw: Any, values: np.ndarray, x: xp.Array) -> tuple[np.ndarray, xp.Array]:
    ndim = values.ndim
    kind = draw(st.sampled_from(["permute", "move", "expand", "squeeze", "flip", "cast", "shape"]))
    if kind == "permute":
        axes = tuple(
            axis - ndim * draw(st.booleans()) for axis in draw(st.permutations(range(ndim)))
        )
        return values.transpose(axes), xp.permute_dims(x, axes)
    if kind == "move" and ndim:
        count = draw(st.integers(1, ndim))
        source, target = (tuple(draw(st.permutations(range(ndim))))[:count] for _ in "ab")
        return np.moveaxis(values, source, target), xp.moveaxis(x, source, target)
    if kind == "flip":
        axes = tuple(axis for axis in range(ndim) if draw(st.booleans()))
        every = draw(st.booleans())
        return np.flip(values, None if every else axes), xp.flip(x, axis=None if every else axes)
    return _reshaped(draw, kind, values, x)


def _reshaped(draw: Any, kind: str, values: np.ndarray, x: xp.Array) -> tuple[np.ndarray, xp.Array]:
    ndim = values.ndim
    if kind == "expand" and ndim < 6:
        axes = tuple(draw(st.permutations(range(ndim + 2)))[:2])
        return np.expand_dims(values, axes), xp.expand_dims(x, axes)
    if kind == "squeeze":
        axes = tuple(axis for axis in range(ndim) if values.shape[axis] == 1)[:2]
        return values.squeeze(axes), xp.squeeze(x, axes)
    if kind == "cast":
        shape = (2, *(n if n != 1 else draw(st.integers(0, 3)) for n in values.shape))[-5:]
        if len(shape) > ndim:
            return np.broadcast_to(values, shape), xp.broadcast_to(x, shape)
    shape = tuple(draw(st.permutations(values.shape)))
    if shape and values.size:
        shape = (*shape[:-1], -1)
    if draw(st.booleans()) and values.size:
        shape = (-1,)
    return values.reshape(shape), xp.reshape(x, shape)


def test_reshape_copies_only_where_it_must(device: str) -> None:
    _, x = _pair((4, 6), device, pending=False)
    assert np.asarray(xp.reshape(x, (2, 2, 6), copy=False)).shape == (2, 2, 6)
    assert np.asarray(xp.reshape(x[:, ::2], (2, 2, 3, 1), copy=False)).shape == (2, 2, 3, 1)
    assert xp.reshape(xp.zeros((0, 2)), (5, 0), copy=False).shape == (5, 0)
    assert np.asarray(xp.reshape(xp.asarray(3.0), 1)).tolist() == [3.0]
    with pytest.raises(ValueError, match=r"\(4, 3\).*\(12,\)"):
        xp.reshape(x[:, :3], (12,), copy=False)
    for bad in ((5, 5), (-1, -1), (-1, 5), (-2, -12), (0, -1)):
        with pytest.raises(ValueError, match=r"\(4, 6\)"):
            xp.reshape(x, bad)
    y = xp.reshape(x, (24,), copy=True)
    y[0] = 100
    assert float(x[0, 0]) == 0.0


def test_bad_axes(device: str) -> None:
    _, x = _pair((2, 1, 3), device)
    for bad in (
        lambda: xp.permute_dims(x, (0, 1, 3)),
        lambda: xp.moveaxis(x, 3, 0),
        lambda: xp.expand_dims(x, 4),
        lambda: xp.expand_dims(x, -5),
        lambda: xp.squeeze(x, 5),
        lambda: xp.flip(x, axis=-4),
    ):
        with pytest.raises((IndexError, ValueError), match=r"axis|axes"):
            bad()
    for bad in (
        lambda: xp.permute_dims(x, (0, 1)),
        lambda: xp.permute_dims(x, (0, 0, 1)),
        lambda: xp.moveaxis(x, (0, 1), 0),
        lambda: xp.expand_dims(x, (0, 0)),
        lambda: xp.squeeze(x, 0),
        lambda: xp.broadcast_to(x, (2, 3)),
        lambda: xp.broadcast_to(x, (2, 2, 2)),
        lambda: xp.broadcast_to(xp.zeros((2,)), (1,)),
        lambda: xp.broadcast_shapes((2, 3), (3, 2)),
    ):
        with pytest.raises(ValueError, match=r"\d|repeated axis"):
            bad()


@settings(max_examples=60)
@given(shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=4, min_side=0))
def test_broadcasting(device: str, shapes: Any) -> None:
    assert xp.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape
    pairs = [_pair(shape, device) for shape in shapes.input_shapes]
    got = xp.broadcast_arrays(*(x for _, x in pairs))
    wanted = np.broadcast_arrays(*(values for values, _ in pairs))
    for ours, theirs in zip(got, wanted, strict=True):
        _same(ours, theirs)
    (a, x), (b, y), (c, z) = pairs
    assert_same_bits(np.asarray(x - y * z), a - b * c)


def test_no_arguments() -> None:
    assert xp.broadcast_shapes() == ()
    assert tuple(xp.broadcast_arrays()) == ()
