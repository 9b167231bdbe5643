"""Kinds of fault that users of such libraries met, as far as reductions and their like have them.

Their elementwise, indexing and DLPack forms are in `test_values`, `test_indexing`, `test_dlpack`.
"""

from __future__ import annotations

import gc
import math
from typing import Any

import numpy as np
import pytest

import fklarray as xp

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = {
    "bool": "int64",
    "int8": "int64",
    "int16": "int64",
    "int32": "int64",
    "int64": "int64",
    "uint8": "uint64",
    "uint16": "uint64",
    "uint32": "uint64",
    "uint64": "uint64",
}


# ------------------------------------------------------------- scalars are weak (21) and exact (23)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint16", "complex64"])
def test_python_scalars_do_not_widen_what_is_reduced(dtype: str, device: str) -> None:
    x = xp.ones((3, 4), dtype=dtype, device=device)
    for result in (x + 1, x * True, 2 - x, xp.where(x != 0, x, 0), xp.roll(x * 2, 1)):
        assert result.dtype == x.dtype
        wanted = xp.sum(x).dtype
        assert (xp.sum(result).dtype, xp.cumulative_sum(result, axis=0).dtype) == (wanted, wanted)
    assert xp.pad(x, 1, constant_values=3).dtype == xp.diff(x).dtype == x.dtype
    assert xp.full((2,), 1, dtype=dtype, device=device).dtype == x.dtype


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, 1e22]
)
def test_extreme_constants_pass_through_joins_and_reductions(value: float, device: str) -> None:
    x = xp.full((3,), value, device=device)
    wanted = np.full(3, value)
    for result in (
        xp.concat([x, x + 0 * x]) if value == 0 else xp.concat([x, x]),
        xp.pad(x[:0], (2, 2), constant_values=value),
        xp.max(x, keepdims=True),
        xp.tile(x * 1, (2,)),
    ):
        got = np.asarray(result)
        assert np.array_equal(got, np.resize(wanted, got.shape), equal_nan=True)
        assert np.array_equal(np.signbit(got), np.signbit(np.resize(wanted, got.shape)))


# ----------------------------------------------------------------------- NaN in extremes (kind 25)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 5, 33, 700])
def test_extremes_give_nan_wherever_it_lies(size: int, dtype: str, device: str) -> None:
    for place in {0, size // 2, size - 1}:
        values = np.linspace(-4, 4, size)
        values[place] = math.nan
        x = xp.astype(xp.asarray(values, device=device), dtype)
        for pending in (x, x * 2 - 1):
            assert math.isnan(float(xp.max(pending)))
            assert math.isnan(float(xp.min(pending)))
            assert int(xp.argmax(pending)) == int(xp.argmin(pending)) == place
        column = xp.stack([x, xp.zeros_like(x)], axis=1)
        assert np.isnan(np.asarray(xp.max(column, axis=0), dtype=float)).tolist() == [True, False]
        assert int(xp.argmax(column, axis=0)[0]) == place


def test_the_first_of_equal_extremes_is_found(device: str) -> None:
    x = xp.asarray(np.tile([2.0, -5.0, 9.0, 9.0, -5.0], 400).reshape(40, 50), device=device)
    assert int(xp.argmax(x)) == 2
    assert int(xp.argmin(x)) == 1
    assert np.asarray(xp.argmax(x, axis=1)).tolist() == [2] * 40
    assert np.asarray(xp.argmin(x[:, ::-1], axis=1)).tolist() == [0] * 40


# ------------------------------------------------------------------------- accumulation (kind 26)


def test_float32_sums_do_not_saturate(device: str) -> None:
    count = (1 << 24) + 7776
    ones = xp.ones((count,), dtype=xp.float32, device=device)
    assert float(xp.sum(ones)) == count
    assert float(xp.mean(ones)) == 1.0
    tenths = xp.full((1 << 20,), 0.1, dtype=xp.float32, device=device)
    assert float(xp.sum(tenths)) == pytest.approx(np.float64(np.float32(0.1)) * (1 << 20), rel=1e-6)
    columns = xp.ones((90_000, 2), dtype=xp.float32, device=device) * xp.asarray(
        np.float32([0.3, 7.0]), device=device
    )
    np.testing.assert_allclose(np.asarray(xp.mean(columns, axis=0)), [0.3, 7.0], rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bit_floats_are_accumulated_wider(dtype: str, device: str) -> None:
    x = xp.ones((5000, 3), dtype=dtype, device=device)
    exact = np.asarray(5000, xp.ones((), dtype=dtype).dtype).astype(float)
    for axis in (0, None):
        factor = 1 if axis == 0 else 3
        wanted = np.asarray(5000 * factor, x.dtype).astype(float)
        assert np.all(np.asarray(xp.sum(x, axis=axis), dtype=float) == wanted)
        assert np.all(np.asarray(xp.mean(x, axis=axis), dtype=float) == 1)
        assert np.all(np.asarray(xp.var(x, axis=axis), dtype=float) == 0)
    last = xp.cumulative_sum(x[:, 0])[-1]
    assert float(last) == exact


@pytest.mark.parametrize("offset", [1e8, -3e9, 1e12])
def test_variance_does_not_cancel(offset: float, device: str) -> None:
    x = xp.asarray(offset + np.asarray([0.0, 1.0, 2.0, 3.0]), device=device)
    assert float(xp.var(x)) == pytest.approx(1.25, rel=1e-9)
    assert float(xp.std(x, correction=1)) == pytest.approx(math.sqrt(5 / 3), rel=1e-9)


# --------------------------------------------------------------- data types of integers (kind 27)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("rows", [0, 1, 2, 9])
def test_sums_of_integers_are_wide_whatever_the_shape(rows: int, dtype: str, device: str) -> None:
    x = xp.ones((rows, 2), dtype=dtype, device=device)
    for result in (
        xp.sum(x),
        xp.sum(x, axis=0),
        xp.prod(x, axis=1),
        xp.cumulative_sum(x, axis=0),
        xp.cumulative_prod(x, axis=1, include_initial=True),
        xp.nansum(x, axis=0),
    ):
        assert result.dtype == INTEGERS[dtype]
    assert np.asarray(xp.sum(x, axis=0)).tolist() == [rows, rows]
    assert xp.sum(x, dtype=xp.int8).dtype == xp.int8
    assert xp.mean(x).dtype == xp.float64


def test_elements_wrap_before_they_are_summed(device: str) -> None:
    bytes_ = xp.full((300,), 200, dtype=xp.uint8, device=device)
    assert int(xp.sum(bytes_)) == 60_000
    assert int(xp.sum(bytes_ + bytes_)) == 300 * 144
    assert int(xp.sum(bytes_ > 100)) == int(xp.count_nonzero(bytes_)) == 300
    assert int(xp.cumulative_sum(xp.full((4,), 100, dtype=xp.int8, device=device))[-1]) == 400


# ------------------------------------------------------------------------- empty and 0-d (kind 29)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_reductions_of_nothing(shape: tuple[int, ...], device: str) -> None:
    x, n = xp.zeros(shape, device=device), np.zeros(shape)
    for name in ("sum", "prod", "all", "any", "count_nonzero"):
        for axis in (None, *range(len(shape))):
            got = np.asarray(getattr(xp, name)(x + 1, axis=axis))
            wanted = np.asarray(getattr(np, name)(n + 1, axis=axis))
            assert got.shape == wanted.shape
            assert np.array_equal(got, wanted), (name, axis)
    for name in ("max", "min", "argmax"):
        for axis in (None, *range(len(shape))):
            try:
                wanted = np.asarray(getattr(np, name)(n, axis=axis))
            except ValueError:
                with pytest.raises(ValueError, match=name):
                    getattr(xp, name)(x, axis=axis)
            else:
                assert getattr(xp, name)(x, axis=axis).shape == wanted.shape
    assert math.isnan(float(xp.mean(x)))
    assert xp.concat([x, x]).shape == (2 * shape[0], *shape[1:])
    assert xp.stack([x, x], axis=-1).shape == (*shape, 2)
    assert xp.roll(x, 3).shape == xp.flip(x).shape == xp.sort(x).shape == shape
    assert xp.nn.softmax(x).shape == xp.cumulative_sum(x, axis=0).shape == shape


def test_arrays_without_dimensions(device: str) -> None:
    x = xp.asarray(-2.5, device=device) * 2
    for name in ("sum", "prod", "max", "min", "mean", "median", "nansum", "nanmax"):
        result = getattr(xp, name)(x)
        assert (result.shape, float(result)) == ((), -5.0), name
    assert int(xp.argmax(x)) == 0
    assert float(xp.var(x)) == 0.0
    assert (xp.all(x).shape, bool(xp.any(x))) == ((), True)
    assert xp.roll(x, 1).shape == xp.reshape(x, ()).shape == ()
    assert xp.stack([x, x]).shape == xp.tile(x, (2,)).shape == xp.repeat(x, 2).shape == (2,)
    for mistake in (lambda: xp.concat([x, x]), lambda: xp.unstack(x), lambda: xp.diff(x)):
        with pytest.raises(ValueError, match="dimensions"):
            mistake()


# --------------------------------------------------- assignment to what is not computed (kind 31)


def test_assignment_to_deferred_results(device: str) -> None:
    n = np.arange(24.0).reshape(4, 6)
    x = xp.asarray(n, device=device)

    def change(a: Any, roll: Any) -> Any:
        y = roll(a, 2, axis=1)
        y[1:-1, ::2] = y[1:-1, ::2] * 10 + a[0, 0]
        y[-1] = y[0, ::-1]
        y[y > 100] = -1
        y += y[2]
        y[0, ...] = a[1]
        return y

    assert np.array_equal(np.asarray(change(x, xp.roll)), change(n, np.roll))
    assert np.array_equal(np.asarray(x), np.arange(24.0).reshape(4, 6))
    total = xp.sum(x, axis=0)
    with pytest.raises(IndexError):
        total[6] = 1
    total[xp.asarray([0, 5])] = 0
    assert np.asarray(total).tolist() == [0.0, 40.0, 44.0, 48.0, 52.0, 0.0]


# ------------------------------------------------ handing over what is not computed (kinds 33, 34)


def test_deferred_results_are_handed_over_once_and_live_on(device: str) -> None:
    for make in (
        lambda x: xp.concat([x, x]),
        xp.cumulative_sum,
        lambda x: xp.take(x, xp.asarray([1, 0])),
        xp.sort,
    ):
        x = make(xp.asarray([3.0, 1.0], device=device))
        wanted = np.asarray(x).tolist()
        taken = np.from_dlpack(x)
        assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
        assert '"dltensor"' in repr(x.__dlpack__())
        del x
        gc.collect()
        _ = [np.asarray(xp.zeros((len(wanted),)) + k) for k in range(50)]
        assert taken.tolist() == wanted


def test_a_write_into_what_was_handed_over_reaches_nothing_recorded(device: str) -> None:
    x = xp.roll(xp.asarray([1.0, 2.0, 3.0], device=device), 1)
    reader = xp.cumulative_sum(x)
    taken = np.from_dlpack(x)
    if taken.flags.writeable:
        taken[...] = 50
    assert np.asarray(reader).tolist() == [3.0, 4.0, 6.0]
