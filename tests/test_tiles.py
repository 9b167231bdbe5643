"""Transposed and interleaved streams on a device: the bits of NumPy, whatever lies where."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fklarray as xp
from accuracy import assert_same_bits
from counting import counted
from fklarray_codegen.layout import DEVICE_ROW, Layout, contiguous_strides, layout

CUDA = "cuda:0"
KINDS = ["uint8", "bool", "int16", "float16", "float32", "float64", "complex64", "complex128"]


def _values(shape: tuple[int, ...], dtype: str, seed: int = 7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 100, shape)
    return (numbers % 3 > 0) if dtype == "bool" else numbers.astype(dtype)


def _device(values: np.ndarray) -> xp.Array:
    return xp.asarray(values, device=CUDA)


def _joined(m: Any, x: Any, y: Any) -> Any:
    return m.where(y != 0, x, y) if x.dtype == np.bool_ else x + y


def _check(compute: Any, *values: np.ndarray) -> None:
    with counted("kernels_launched", "reference_evaluations") as change:
        got = compute(xp, *map(_device, values))
        xp.materialize(got)
    assert change == {"kernels_launched": 1, "reference_evaluations": 0}
    assert_same_bits(np.asarray(got), np.ascontiguousarray(compute(np, *values)))


# Whole tiles, ragged ones, tiles with more rows than there are.
@pytest.mark.parametrize("shape", [(128, 256), (65, 257), (300, 33), (17, 16), (40, 130)])
@pytest.mark.parametrize("dtype", KINDS)
def test_transposed_and_plain(dtype: str, shape: tuple[int, int]) -> None:
    x, y = _values(shape, dtype), _values(shape[::-1], dtype, 8)
    _check(lambda m, x, y: _joined(m, m.permute_dims(x, (1, 0)), y), x, y)
    _check(lambda m, x, y: _joined(m, m.permute_dims(m.flip(x, axis=0), (1, 0)), y), x, y)
    _check(lambda m, x, y: _joined(m, m.permute_dims(m.flip(x, axis=1), (1, 0)), y), x, y)
    _check(lambda m, x, y: _joined(m, m.permute_dims(x[1:, 1:], (1, 0)), y[1:, 1:]), x, y)


@pytest.mark.parametrize("channels", [2, 3, 4, 16])
@pytest.mark.parametrize("dtype", KINDS)
def test_pixels_to_planes(dtype: str, channels: int) -> None:
    order = (0, 3, 1, 2)
    pixels, gain = _values((2, 27, 53, channels), dtype), _values((channels, 1, 1), dtype)
    _check(lambda m, x, k: _joined(m, m.permute_dims(x, order), k), pixels, gain)
    _check(lambda m, x, k: _joined(m, m.permute_dims(m.flip(x, axis=3), order), k), pixels, gain)
    _check(lambda m, x, k: _joined(m, m.permute_dims(m.flip(x, axis=2), order), k), pixels, gain)
    _check(lambda m, x, k: _joined(m, m.permute_dims(x[:, 1:], order), k), pixels, gain)
    if channels > 2:
        _check(lambda m, x, k: _joined(m, m.permute_dims(x[..., 1:], order), k[1:]), pixels, gain)


@pytest.mark.parametrize("channels", [2, 3, 4, 16])
@pytest.mark.parametrize("dtype", KINDS)
def test_planes_to_pixels(dtype: str, channels: int) -> None:
    order = (0, 2, 3, 1)
    planes, mask = _values((2, channels, 27, 53), dtype), _values((27, 53, 1), dtype)
    pixels = _values((2, 27, 53, channels), dtype)
    _check(lambda m, x, k: _joined(m, m.permute_dims(x, order), k), planes, mask)
    _check(lambda m, x, y: _joined(m, m.permute_dims(x, order), y), planes, pixels)
    _check(lambda m, x, k: _joined(m, x[:, 1:, 1:], k[1:, 1:]), pixels, mask)


def test_types_of_several_sizes() -> None:
    x, y, z = _values((90, 70), "uint8"), _values((90, 70), "float64"), _values((70, 90), "int16")
    _check(lambda m, x, y, z: m.permute_dims(x * y, (1, 0)) + z, x, y, z)
    _check(lambda m, x, y, z: m.permute_dims(x, (1, 0)) + z, x, y, z)


def test_two_results() -> None:
    x, y = _values((90, 70), "float32"), _values((30, 40, 3), "float32")
    for one in (_device(x).T, xp.permute_dims(_device(y), (2, 0, 1))):
        total, product = one + 1, one * 2
        with counted("kernels_launched") as change:
            xp.materialize(total, product)
        assert change == {"kernels_launched": 1}
        assert_same_bits(np.asarray(total) * 2, np.asarray(product) + np.float32(2))


def test_more_streams_than_a_block_has_room_for() -> None:
    values = [_values((50, 60), "float64", seed) for seed in range(12)]
    _check(lambda m, *xs: sum(m.permute_dims(x, (1, 0)) for x in xs), *values)


@settings(max_examples=30)
@given(data=st.data(), dtype=st.sampled_from(["uint8", "int16", "float32", "float64"]))
def test_permutations(data: Any, dtype: str) -> None:
    rank = data.draw(st.integers(2, 4))
    extents = st.sampled_from([1, 2, 3, 5, 17, 20, 40])
    shape = tuple(data.draw(st.lists(extents, min_size=rank, max_size=rank)))
    assume(math.prod(shape) <= 30_000)
    orders = [data.draw(st.permutations(range(rank))) for _ in range(2)]
    values = [_values(tuple(shape[order.index(axis)] for axis in range(rank)), dtype, 3)
              for order in orders]  # fmt: skip
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in shape)
    _check(
        lambda m, x, y: (
            m.permute_dims(x, tuple(orders[0]))[steps] * m.permute_dims(y, tuple(orders[1]))
        ),
        *values,
    )


# ---------------------------------------------------------------------------------- layouts


def _laid_out(shape: tuple[int, ...], *streams: np.ndarray) -> Layout:
    strides = [tuple(step // one.itemsize for step in one.strides) for one in streams]
    return layout(shape, strides, [contiguous_strides(shape)], DEVICE_ROW)


def test_rows_of_tiles_follow_the_streams() -> None:
    x, pixels = np.empty((40, 50, 60)), np.empty((8, 20, 30, 3))
    for order in ((2, 0, 1), (2, 1, 0), (0, 2, 1), (1, 2, 0)):
        turned = x.transpose(order)
        assert _laid_out(turned.shape, turned).inner == ("across", "unit")
    assert _laid_out((40, 50, 60), x).inner == ("unit", "unit")
    planes = pixels.transpose(0, 3, 1, 2)
    assert _laid_out(planes.shape, planes).inner == ("interleaved", "unit")
    assert _laid_out(pixels.shape, planes.copy().transpose(0, 2, 3, 1)).inner[1] == "interleaved"
    # A number per channel repeats within a row instead.
    assert _laid_out(pixels.shape, pixels, np.empty(3)).inner == ("unit",) * 3


def test_interleaved_rows_have_to_be_few_and_close() -> None:
    wide = np.empty((300, 400))
    assert _laid_out((20, 300), wide[:, :20].T).inner == ("across", "unit")
    assert _laid_out((3, 300), wide[:, :3].T).inner == ("strided", "unit")
    apart = contiguous_strides((300, 4))
    assert "interleaved" not in layout((300, 3), [(1, 300)], [apart], DEVICE_ROW).inner
