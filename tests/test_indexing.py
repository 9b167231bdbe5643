"""Selecting and assigning elements: as NumPy does, on arrays in memory and pending ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fklarray as xp

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def _base(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)


def _pair(shape: tuple[int, ...], pending: bool, device: str) -> tuple[np.ndarray, xp.Array]:
    values = _base(shape)
    x = xp.asarray(values, device=device)
    return values, (x * 2 - x if pending else x)


def _same(x: xp.Array, values: Any) -> None:
    got, wanted = np.asarray(x), np.asarray(values)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    assert got.tolist() == wanted.tolist()


@settings(max_examples=200)
@given(data=st.data(), shape=SHAPES, pending=st.booleans())
def test_basic_indexing(device: str, data, shape: tuple[int, ...], pending: bool) -> None:
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=6))
    values, x = _pair(shape, pending, device)
    _same(x[key], values[key])
    again = data.draw(hnp.basic_indices(values[key].shape))
    _same(x[key][again] + 1, np.asarray(values[key][again] + 1))


@settings(max_examples=150)
@given(data=st.data(), shape=SHAPES, pending=st.booleans())
def test_basic_assignment(device: str, data, shape: tuple[int, ...], pending: bool) -> None:
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=False))
    values, x = _pair(shape, pending, device)
    values = values.copy()
    before = x + 0
    target = values[key].shape
    kept = target[data.draw(st.integers(0, len(target))) :]
    kept = tuple(n if data.draw(st.booleans()) else 1 for n in kept)
    new: Any = -1 - _base(kept)
    if data.draw(st.booleans()):
        new = new.astype(np.float32)  # cast to the array's type, which never changes
    x[key] = xp.asarray(new, device=device) if data.draw(st.booleans()) else new
    values[key] = new
    _same(x, values)
    _same(before, _base(shape))


@settings(max_examples=60)
@given(data=st.data(), shape=hnp.array_shapes(max_dims=3, max_side=5), pending=st.booleans())
def test_masks(device: str, data, shape: tuple[int, ...], pending: bool) -> None:
    values, x = _pair(shape, pending, device)
    values = values.copy()
    dims = data.draw(st.integers(0, len(shape)))
    mask = data.draw(hnp.arrays(np.bool_, shape[:dims]))
    ours = xp.asarray(mask, device=device) if data.draw(st.booleans()) else mask
    _same(x[ours], values[mask])
    x[ours] = 77
    values[mask] = 77
    _same(x, values)
    row = np.arange(values[mask].shape[0])
    if values[mask].ndim == 1:
        x[ours] = xp.asarray(row, device=device)
        values[mask] = row
        _same(x, values)


@settings(max_examples=60)
@given(data=st.data(), shape=hnp.array_shapes(max_dims=3, max_side=5))
def test_arrays_of_indices(device: str, data, shape: tuple[int, ...]) -> None:
    values, x = _pair(shape, True, device)
    key = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2)))
    ours = tuple(xp.asarray(part, device=device) for part in key)
    _same(x[ours], values[key])
    _same(x[key], values[key])
    values = values.copy()
    x[ours] = -5
    values[key] = -5
    _same(x, values)


def test_keys_of_other_types(device: str) -> None:
    values, x = _pair((4, 5), False, device)
    for integer in (np.int8(2), np.uint64(2), np.asarray(2), xp.asarray(2, device=device)):
        _same(x[integer], values[2])
        _same(x[integer, ::2], values[2, ::2])
        _same(x[:, integer], values[:, 2])
    _same(x[np.int64(1) : np.int64(3)], values[1:3])
    _same(x[xp.asarray(1) : 3], values[1:3])
    _same(x[[0, 2]], values[[0, 2]])
    _same(x[1:, np.array([0, 4])], values[1:, np.array([0, 4])])
    _same(x[True], values[True])
    _same(x[False], values[False])
    for key in (1.0, "a", np.float64(1), (0, 1.5), slice(0.5, 2)):
        with pytest.raises((IndexError, TypeError)):
            x[key]


@pytest.mark.parametrize(
    "key",
    [4, -5, (0, 5), (0, 0, 0), (..., 5), (..., ...), (slice(None), -6), np.int64(4)],
)
def test_out_of_bounds(key: Any, device: str) -> None:
    _, x = _pair((4, 5), True, device)
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 1
    assert np.asarray(x)[3, 4] == 19


def test_bounds_are_checked_when_recorded(device: str) -> None:
    """Not when the values are needed: also arrays of indices and masks name the mistake."""
    _, x = _pair((4, 5), False, device)
    for key in (np.array([0, 4]), (slice(None), np.array([5])), np.ones(3, bool)):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 0
    _same(x, _base((4, 5)))


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        (slice(1, 3), (3, 5)),
        ((0,), (4,)),
        (..., (2, 4, 5)),
        ((slice(None), 0), (4, 1)),
        (0, (5, 1)),
    ],
)
def test_values_that_do_not_fit(key: Any, shape: tuple[int, ...], device: str) -> None:
    _, x = _pair((4, 5), False, device)
    with pytest.raises(ValueError, match=rf"\({shape[0]}, "):
        x[key] = xp.ones(shape if len(shape) > 1 else (*shape, 1), device=device)
    _same(x, _base((4, 5)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "complex64"])
def test_assignment_keeps_the_data_type(dtype: str, device: str) -> None:
    values = np.array([0, 1, 1, 0], dtype)
    x = xp.asarray(values, device=device)
    for key, new in ((0, True), (1, 1), (slice(2, None), np.float64(0.0)), (3, xp.asarray(1))):
        x[key] = new
        values[key] = np.asarray(new).astype(dtype)
    _same(x, values)
    if dtype != "complex64":
        with pytest.raises(TypeError, match=dtype):
            x[0] = 1j
        with pytest.raises(TypeError, match=dtype):
            x[:2] = xp.asarray([1j, 2j], device=device)
    _same(x, values)


def test_many_pieces(device: str) -> None:
    x = xp.zeros((60,), device=device)
    for k in range(6):
        x[10 * k : 10 * k + 10] += k + 1
    assert np.asarray(x).reshape(6, 10).tolist() == [[k + 1.0] * 10 for k in range(6)]
    cube = xp.zeros((2, 4, 3, 6), device=device)
    cube[1, 1:3, 2, ::3] = xp.full((2, 2), 3.0, device=device)
    cube[0, ..., 1] = xp.asarray(np.array([7.0, 8.0, 9.0]), device=device)
    reference = np.zeros((2, 4, 3, 6))
    reference[1, 1:3, 2, ::3] = 3
    reference[0, ..., 1] = [7, 8, 9]
    _same(cube, reference)
