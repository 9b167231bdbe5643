"""Kinds of fault that users of such libraries met: values, data types and reductions.

The numbers are those of the list of reported faults; they are varied over data types, shapes and
compile modes. Kinds of assignment and of handing over are in `test_fault_memory`.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits
from counting import counted

pytestmark = pytest.mark.usefixtures("compile_mode")

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INF, NAN = float("inf"), float("nan")


def _values(x: xp.Array) -> Any:
    return np.asarray(x).tolist()


# --------------------------------------------------------- 21: Python scalars widen the result


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX])
def test_python_numbers_take_the_type_of_the_array(dtype: str, device: str) -> None:
    x = xp.asarray([1, 2, 3], dtype=dtype, device=device)
    results = [x + 1, 1 + x, 2 * x, x - True, x * True, 3 - x, x**2, xp.where(x == 1, x, 0)]
    if dtype not in COMPLEX:
        results += [xp.maximum(x, 2), xp.clip(x, 1, 2), x // 2, x % 2, xp.minimum(1, x)]
    if dtype in FLOATS + COMPLEX:
        results += [x / 3, x * 0.5, 0.1 + x, x**0.5, xp.where(x == 1, 0.25, x)]
    if dtype in SIGNED + UNSIGNED:
        results += [x & 1, x | 2, 1 ^ x, x << 1, x >> 1]
    results += [xp.roll(x * 2, 1), xp.pad(x, 1, constant_values=3), xp.diff(x + 1)]
    assert {str(result.dtype) for result in results} == {dtype}
    assert (x == 2).dtype == xp.bool
    assert xp.full((2,), 1, dtype=dtype, device=device).dtype == dtype
    # Nor what is reduced later.
    wanted = xp.sum(x).dtype, xp.cumulative_sum(x).dtype
    for result in results:
        assert (xp.sum(result).dtype, xp.cumulative_sum(result).dtype) == wanted


@pytest.mark.parametrize(("real", "wider"), [("float32", "complex64"), ("float64", "complex128")])
def test_only_a_number_of_a_higher_kind_raises_the_type(real: str, wider: str, device: str) -> None:
    x = xp.asarray([1, 2], dtype=real, device=device)
    assert {str((x * 1j).dtype), str((2j - x).dtype)} == {wider}
    for integer in ("int8", "uint16", "int64", "bool"):
        assert (xp.asarray([1], dtype=integer, device=device) * 0.5).dtype == xp.float64


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_number_is_rounded_to_the_type_before_it_is_used(dtype: str, device: str) -> None:
    for number in (0.1, 1 / 3, 2.7182818, 1e-3):
        for start in (1, 3, 7):
            x = xp.asarray([start], dtype=dtype, device=device)
            rounded = np.asarray([number]).astype(dtype)
            product = (np.asarray([start]).astype(dtype) * rounded).astype(dtype)
            assert _values(x * number) == product.tolist()
            assert (
                _values(xp.full((1,), number, dtype=dtype, device=device) * x) == product.tolist()
            )


# ------------------------------------------- 23: extreme constants break or lose their digits

EXTREME = [INF, -INF, NAN, 0.0, -0.0, 0.1, -1 / 3, 5e-324, -2.2250738585072014e-308,
           1.7976931348623157e308, 2.0**-149, 3.4028234663852886e38, 1e22, 123456789.123456789,
           9007199254740993.0]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_reach_the_kernel_with_every_digit(dtype: str, device: str) -> None:
    one = np.ones(3, dtype)
    x = xp.asarray(one, device=device)
    for number in EXTREME:
        with np.errstate(all="ignore"):
            rounded = np.asarray(number).astype(dtype)
            wanted = [one * rounded, np.minimum(one, rounded), one - rounded, rounded / one]
        got = [x * number, xp.minimum(x, number), x - number, number / x]
        for ours, theirs in zip(got, wanted, strict=True):
            assert_same_bits(np.asarray(ours), theirs)
        assert_same_bits(np.asarray(xp.where(x > 0, number, x)), one * rounded)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_pass_through_joins_and_reductions(dtype: str, device: str) -> None:
    for number in EXTREME:
        with np.errstate(all="ignore"):
            wanted = np.full(3, number).astype(dtype)
        x = xp.full((3,), number, dtype=dtype, device=device)
        for result in (
            x,
            xp.concat([x, x * 1]),
            xp.pad(x[:0], (2, 2), constant_values=number),
            xp.max(x, keepdims=True),
            xp.min(x * 1, keepdims=True),
            xp.tile(x * 1, (2,)),
        ):
            assert_same_bits(np.asarray(result), np.resize(wanted, result.shape))


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_the_ends_of_integer_types_are_constants_too(dtype: str, device: str) -> None:
    info = np.iinfo(dtype)
    x = xp.zeros((4,), dtype=dtype, device=device)
    for number in (info.min, info.max, info.min + 1, info.max - 1):
        assert _values(x + number) == [number] * 4
        assert _values(xp.maximum(x, number)) == [max(0, number)] * 4
        assert _values(xp.where(x == 0, number, x)) == [number] * 4
    for beyond in (info.min - 1, info.max + 1):
        with pytest.raises(OverflowError, match=str(beyond)):
            x + beyond


def test_constants_are_not_compiled(device: str) -> None:
    x = xp.ones((5,), device=device)
    _values(x * 1.5 - 2.5)
    with counted("kernels_compiled") as change:
        for number in EXTREME:
            _values(x * number - number)
    assert change == {"kernels_compiled": 0}


# ------------------------------------------------------------ 25: NaN is dropped by max and min

PLACES = [lambda n: 0, lambda n: n // 2, lambda n: n - 1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 3, 8, 17, 64, 1000])
def test_extremes_propagate_nan_and_find_it(dtype: str, length: int, device: str) -> None:
    for place in {place(length) for place in PLACES}:
        values = np.arange(length, dtype="float64") % 100
        values[place] = NAN
        x = xp.asarray(values, dtype=dtype, device=device)
        for given in (x, x * 2 - 1):
            for function in (xp.max, xp.min, xp.sum, xp.mean):
                assert np.isnan(float(function(given)))
            assert np.isnan(float(xp.max(given[::-1])))
            assert (int(xp.argmax(given)), int(xp.argmin(given))) == (place, place)
        # Along each axis of a matrix, only where it is.
        lanes = xp.stack([xp.zeros_like(x), x], axis=0)
        assert [bool(np.isnan(v)) for v in _values(xp.max(lanes, axis=1))] == [False, True]
        assert int(np.sum(np.isnan(_values(xp.min(lanes, axis=0))))) == 1
        assert _values(xp.argmax(lanes, axis=1)) == [0, place]
        assert _values(xp.argmin(lanes, axis=0))[place] == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_elementwise_extremes_propagate_nan_from_either_side(dtype: str, device: str) -> None:
    pairs = np.array(list(itertools.product([NAN, 1.0, -INF, INF, -0.0], repeat=2)))
    a, b = (xp.asarray(column, dtype=dtype, device=device) for column in pairs.T)
    either = np.isnan(pairs).any(axis=1).tolist()
    for result in (xp.maximum(a, b), xp.minimum(a, b), xp.clip(a, b, b), xp.maximum(b, a)):
        assert np.isnan(_values(result)).tolist() == either


@pytest.mark.parametrize("dtype", ["bool", *SIGNED, *UNSIGNED, *FLOATS])
def test_the_first_of_equal_elements_is_found(dtype: str, device: str) -> None:
    low = -5 if dtype in SIGNED + FLOATS else 0
    lane = [1, 0, 1, 1, 0] if dtype == "bool" else [2, low, 9, 9, low]
    high = 0 if dtype == "bool" else 2
    x = xp.asarray(lane * 400, dtype=dtype, device=device)
    assert (int(xp.argmax(x)), int(xp.argmin(x))) == (high, 1)
    lanes = xp.reshape(x, (400, 5))
    assert set(_values(xp.argmax(lanes, axis=1))) == {high}
    assert set(_values(xp.argmin(lanes, axis=1))) == {1}
    assert set(_values(xp.argmax(lanes[:, ::-1], axis=1))) == {1}
    assert set(_values(xp.argmin(lanes[:, ::-1], axis=1))) == {0}
    assert _values(xp.argmax(lanes, axis=0)) == [0] * 5


# ------------------------------------------------ 26: sums are made naively in the operand's type


def test_sums_of_many_small_numbers_do_not_saturate(device: str) -> None:
    count = (1 << 24) + 12346
    ones = xp.ones((count,), dtype=xp.float32, device=device)
    assert float(xp.sum(ones)) == count
    assert float(xp.mean(ones)) == 1.0
    assert float(xp.sum(ones * 0.5 + 0.5)) == count
    tenths = xp.full((1 << 20,), 0.1, dtype=xp.float32, device=device)
    assert float(xp.sum(tenths)) == pytest.approx(float(np.float32(0.1)) * (1 << 20), rel=1e-6)
    parts = np.float32([0.3, 7.0])
    columns = xp.ones((90_000, 2), dtype=xp.float32, device=device) * parts
    np.testing.assert_allclose(_values(xp.mean(columns, axis=0)), parts, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "count"), [("float16", 4099), ("bfloat16", 1027)])
def test_sums_of_16_bit_numbers_are_made_wider(dtype: str, count: int, device: str) -> None:
    x = xp.ones((count, 2), dtype=dtype, device=device)
    nearest, twice = np.asarray([count, 2 * count], "float64").astype(dtype).tolist()
    assert _values(xp.sum(x, axis=0)) == [nearest] * 2
    assert float(xp.sum(x)) == twice
    for axis in (0, None):
        assert set(np.ravel(_values(xp.mean(x, axis=axis)))) == {1.0}
        assert set(np.ravel(_values(xp.var(x, axis=axis)))) == {0.0}
    assert _values(xp.cumulative_sum(x[:, 0]))[-1] == nearest


def test_means_of_numbers_whose_sum_is_out_of_range(device: str) -> None:
    large = xp.full((100,), 6e4, dtype=xp.float16, device=device)
    for mean in (xp.mean(large), xp.nanmean(large), xp.median(large)):
        assert float(mean) == float(large[0])
    assert float(xp.std(large)) == float(xp.nanstd(large)) == 0.0
    integers = xp.full((5,), 1 << 62, dtype=xp.int64, device=device)
    assert float(xp.mean(integers)) == float(xp.nanmean(integers)) == float(1 << 62)


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 2), (1, 2), (0, 1), None])
def test_sums_are_as_accurate_along_every_axis(axes: Any, device: str) -> None:
    shape = tuple(3000 if axes in (n, None) or n in np.atleast_1d(axes) else 3 for n in range(3))
    shape = shape if shape.count(3000) < 2 else tuple(70 if n == 3000 else n for n in shape)
    steps = np.asarray([1.0, 0.5, 0.1], dtype="float32")
    plain = np.resize(steps, (*shape[:2], 1)) * np.ones(shape, "float32")
    exact = plain.astype("float64").sum(axis=axes)
    unit = np.finfo("float32").eps
    x = xp.asarray(plain, device=device)
    # Any tree of additions has an error of some units: one by one, it would be hundreds.
    np.testing.assert_allclose(_values(xp.sum(x, axis=axes)), exact, rtol=10 * unit)
    mean = plain.astype("float64").mean(axis=axes)
    np.testing.assert_allclose(_values(xp.mean(x, axis=axes)), mean, rtol=10 * unit)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *[("float32", shape) for shape in ((300, 7), (7, 300), (5, 60, 4), (1, 129))],
        *[(dtype, (5, 60, 4)) for dtype in ("float16", "float64", "complex64")],
    ],
)
def test_sums_have_the_same_bits_in_every_layout(
    dtype: str, shape: tuple[int, ...], device: str
) -> None:
    plain = np.random.default_rng(5).normal(size=shape).astype(dtype)
    order = tuple(range(len(shape)))[::-1]
    viewed = xp.permute_dims(xp.asarray(plain, device=device), order)
    strided = xp.asarray(np.repeat(plain.T, 2, axis=0), device=device)[::2]
    copied = xp.asarray(plain.T.copy(), device=device)
    for function in (xp.sum, xp.mean, xp.std, xp.prod, xp.nanmean, xp.logsumexp):
        if function is xp.logsumexp and dtype == "complex64":
            continue
        for axis in (None, *range(len(shape)), (0, -1)):
            bits = np.asarray(function(copied, axis=axis))
            for x in (viewed, strided, viewed * 1, +strided):
                assert_same_bits(np.asarray(function(x, axis=axis)), bits)


@pytest.mark.parametrize(
    ("dtype", "offset", "rel"),
    [("float32", 1e4, 1e-6), ("float64", 1e8, 1e-9), ("float64", -3e9, 1e-9),
     ("float64", 1e12, 1e-9)],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(4,), (4, 1), (1, 4), (2, 2)])
def test_spreads_do_not_cancel(
    dtype: str, offset: float, rel: float, shape: tuple[int, ...], device: str
) -> None:
    values = np.reshape(offset + np.arange(4.0), shape)
    x = xp.asarray(values, dtype=dtype, device=device)
    for given in (x, x + 1):
        assert float(xp.var(given)) == pytest.approx(1.25, rel=rel)
        assert float(xp.nanvar(given)) == pytest.approx(1.25, rel=rel)
        assert float(xp.std(given, correction=1)) == pytest.approx(math.sqrt(5 / 3), rel=rel)


# ----------------------------------------------- 27: sums of small integers: type and wrapping


@pytest.mark.parametrize("dtype", ["bool", *SIGNED, *UNSIGNED])
@pytest.mark.parametrize("length", [0, 1, 2, 5, 300])
def test_integer_sums_are_64_bits_wide_whatever_the_length(
    dtype: str, length: int, device: str
) -> None:
    wide = "uint64" if dtype in UNSIGNED else "int64"
    top = 1 if dtype == "bool" else min(np.iinfo(dtype).max, 1000)
    x = xp.full((length, 2), top, dtype=dtype, device=device)
    assert _values(xp.sum(x, axis=0)) == _values(xp.nansum(x, axis=0)) == [top * length] * 2
    last = xp.cumulative_sum(x[:, 0], include_initial=True)
    assert _values(last)[-1] == top * length
    made = [
        xp.sum(x), xp.sum(x, axis=1), xp.nansum(x), xp.prod(x, axis=0), xp.prod(x, axis=1), last,
        xp.cumulative_sum(x, axis=0), xp.cumulative_prod(x[:, 1]),
        xp.cumulative_prod(x, axis=1, include_initial=True),
    ]  # fmt: skip
    assert {str(result.dtype) for result in made} == {wide}
    assert xp.sum(x, dtype=xp.float32).dtype == xp.float32
    assert xp.sum(x, dtype=xp.int8).dtype == xp.int8
    assert xp.mean(x).dtype == xp.float64


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_operands_wrap_before_sums_widen(dtype: str, device: str) -> None:
    info = np.iinfo(dtype)
    x = xp.full((50,), info.max, dtype=dtype, device=device)
    with np.errstate(all="ignore"):
        wrapped = np.full(50, info.max, dtype) * np.asarray(info.max, dtype)
    assert int(xp.sum(x * x)) == int(wrapped.sum())
    assert int(xp.sum(x + 1)) == 50 * info.min
    assert int(xp.sum(x + x)) == 50 * int(np.asarray(2 * info.max).astype(dtype))
    assert int(xp.sum(xp.astype(x > 3, xp.int8))) == int(xp.count_nonzero(x > 3)) == 50
    assert int(xp.sum(x > 3)) == int(xp.count_nonzero(x)) == 50


# -------------------------------------------------------------------- 29: empty and 0-d arrays

EMPTY = [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)]


@pytest.fixture
def _dirty_pool() -> None:
    """Leave blocks of other values where the next results will lie."""
    junk = [np.asarray(xp.full((n,), 1e30) + 1) for n in (1, 2, 3, 4, 8, 12, 24)]
    del junk


@pytest.mark.usefixtures("_dirty_pool")
@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", *FLOATS, *COMPLEX])
@pytest.mark.parametrize("shape", EMPTY)
def test_reductions_of_nothing_are_their_neutral_element(
    dtype: str, shape: tuple[int, ...], device: str
) -> None:
    x, plain = xp.zeros(shape, dtype=dtype, device=device), np.zeros(shape)
    pending = ~x if dtype == "bool" else x + 1
    for axis, given in itertools.product((None, *range(len(shape))), (x, pending)):
        for name in ("sum", "prod", "all", "any", "count_nonzero"):
            expected = np.asarray(getattr(np, name)(plain, axis=axis))
            reduced = getattr(xp, name)(given, axis=axis)
            assert reduced.shape == expected.shape
            assert _values(reduced) == expected.tolist(), name
        if axis is None or shape[axis] == 0:
            for function in (xp.max, xp.min, xp.argmax, xp.argmin, xp.nanmin):
                with pytest.raises(ValueError, match=function.__name__):
                    function(given, axis=axis)
        else:
            chosen = {f(given, axis=axis).shape for f in (xp.max, xp.min, xp.argmax, xp.argmin)}
            assert chosen == {plain.sum(axis=axis).shape}
    mean = complex(xp.mean(x))
    assert math.isnan(mean.real)


@pytest.mark.usefixtures("_dirty_pool")
@pytest.mark.parametrize("shape", EMPTY)
def test_shapes_survive_where_there_is_nothing(shape: tuple[int, ...], device: str) -> None:
    e = xp.zeros(shape, dtype=xp.float32, device=device)
    same = [e + 1, e * e, xp.sin(e), e == 1, e + xp.ones((1,) * len(shape), device=device)]
    same += [xp.roll(e, 3), xp.flip(e), xp.sort(e), xp.nn.softmax(e), xp.cumulative_sum(e, axis=0)]
    for result in same:
        assert result.shape == np.asarray(result).shape == shape
    assert xp.concat([e, e], axis=0).shape == (2 * shape[0], *shape[1:])
    assert xp.stack([e, e], axis=-1).shape == (*shape, 2)
    assert xp.permute_dims(e, tuple(range(len(shape)))[::-1]).shape == shape[::-1]
    assert xp.reshape(e, (0, 5)).shape == (0, 5)
    assert e[..., None].shape == (*shape, 1)
    product = xp.zeros((2, 0), device=device) @ xp.zeros((0, 3), device=device)
    assert _values(product) == [[0.0] * 3] * 2


@pytest.mark.parametrize("dtype", ["bool", *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX])
def test_arrays_without_dimensions_stay_so(dtype: str, device: str) -> None:
    s = xp.asarray(1, dtype=dtype, device=device)
    same = [s[()], s[...], +s if dtype != "bool" else ~~s, xp.flip(s), xp.roll(s, 1)]
    same += [xp.sum(s), xp.max(s), xp.all(s), xp.reshape(s, ()), s == 1]
    assert {result.shape for result in same} == {()}
    assert {complex(result) for result in same} == {1}
    assert (s == xp.ones((1,), dtype=dtype, device=device)).shape == (1,)
    assert xp.reshape(s, (1, 1)).shape == xp.expand_dims(s, axis=(0, 1)).shape == (1, 1)
    assert xp.stack([s, s]).shape == xp.tile(s, (2,)).shape == xp.repeat(s, 2).shape == (2,)
    for mistake in (lambda: xp.concat([s, s]), lambda: xp.unstack(s), lambda: xp.diff(s)):
        with pytest.raises(ValueError, match="dimensions"):
            mistake()
    s[()] = 0
    assert complex(s) == 0
    for key in (0, slice(None), (..., 0)):
        with pytest.raises(IndexError):
            s[key]


def test_reductions_of_one_number_are_the_number(device: str) -> None:
    x = xp.asarray(-2.5, device=device) * 2
    for name in ("sum", "prod", "max", "min", "mean", "median", "nansum", "nanmax"):
        result = getattr(xp, name)(x)
        assert (result.shape, float(result)) == ((), -5.0), name
    assert (int(xp.argmax(x)), int(xp.argmin(x))) == (0, 0)
    assert float(xp.var(x)) == 0.0
    assert (xp.all(x).shape, bool(xp.all(x)), bool(xp.any(x))) == ((), True, True)


@pytest.mark.parametrize("convert", [bool, int, float, complex, operator.index])
def test_arrays_of_many_elements_or_none_are_no_number(
    convert: Callable[[Any], Any], device: str
) -> None:
    for shape in ((2,), (3, 1), (0,)):
        with pytest.raises((TypeError, ValueError)):
            convert(xp.ones(shape, dtype=xp.int64, device=device) * 2)


# -------------------------------------------------------- 37: NumPy on the left of an operator

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
              operator.mod, operator.pow]  # fmt: skip
ORDER = [operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("dtype", ["int8", "float32", "bfloat16", "complex64"])
def test_numpy_on_the_left_gives_arrays_of_the_promoted_type(dtype: str, device: str) -> None:
    plain = np.asarray([1, 2, 3]).astype(dtype)
    x = xp.asarray(plain, device=device)
    for name, shape in itertools.product(
        ("bool", "int8", "int64", "float16", "float32", "float64", "complex64"), ((), (3,))
    ):
        left = np.ones(shape).astype(name)[()]
        is_complex = "complex64" in (name, dtype)
        functions = [*ARITHMETIC[: 4 if is_complex else None], operator.eq, operator.ne]
        with counted("flushes") as change:
            for function in functions + ([] if is_complex else ORDER):
                result = function(left, x)
                assert type(result) is xp.Array
                assert (result.shape, result.dtype) == ((3,), function(left, plain).dtype)
        assert change == {"flushes": 0}
        if is_complex:
            with pytest.raises(TypeError, match="complex"):
                left < x  # noqa: B015


@pytest.mark.parametrize("dtype", ["int8", "float32", "bfloat16"])
def test_numpy_on_the_left_stays_on_the_left(dtype: str, device: str) -> None:
    plain = np.asarray([1, 2, 5]).astype(dtype)
    x = xp.asarray(plain, device=device)
    for left in (np.float64(2), np.int64(2), np.asarray(2, dtype)[()], np.asarray([2, 0, 9])):
        results = [left - x, left < x, left / x]
        xp.materialize(*results)
        for ours, theirs in zip(results, [left - plain, left < plain, left / plain], strict=True):
            np.testing.assert_array_equal(np.asarray(ours), theirs)


class _Unknown:
    """An array of another library, which knows what to do beside any."""

    __array_ufunc__ = None

    def __radd__(self, left: object) -> str:
        return f"{type(left).__name__} + unknown"

    def __rmatmul__(self, left: object) -> str:
        return f"{type(left).__name__} @ unknown"


def test_unknown_operands_are_left_to_their_own_operators(device: str) -> None:
    x = xp.asarray([1.0, 2.0], device=device)
    for left in (x, x * 2):
        assert left + _Unknown() == "Array + unknown"
        assert left @ _Unknown() == "Array @ unknown"
        with pytest.raises(TypeError, match="unsupported operand"):
            left - _Unknown()
