"""Kinds of faults that users of array, fusion and JIT libraries have reported, each held off.

They are varied over data types and shapes, and run compiled and operation by operation.
"""

from __future__ import annotations

import gc
import itertools
import resource
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INF, NAN = float("inf"), float("nan")


@pytest.fixture(params=["sync", "off"], autouse=True)
def _mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with xp.config.override(compile=request.param):
        yield


def _values(x: xp.Array) -> Any:
    return np.asarray(x).tolist()


# ------------------------------------------------------------- Python scalars widen the result


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, *FLOATS, *COMPLEX])
def test_python_numbers_take_the_type_of_the_array(dtype: str) -> None:
    x = xp.asarray([1, 2, 3], dtype=dtype)
    results = [x + 1, 1 + x, 2 * x, x - True, 3 - x, x**2, xp.where(x == 1, x, 0), x == 2]
    if dtype not in COMPLEX:
        results += [xp.maximum(x, 2), xp.clip(x, 1, 2), x // 2, x % 2, xp.minimum(1, x)]
    if dtype in FLOATS + COMPLEX:
        results += [x / 3, x * 0.5, 0.1 + x, x**0.5, xp.where(x == 1, 0.25, x)]
    if dtype in SIGNED + UNSIGNED:
        results += [x & 1, x | 2, 1 ^ x, x << 1, x >> 1]
    assert {str(result.dtype) for result in results} == {dtype, "bool"}


@pytest.mark.parametrize(("real", "wider"), [("float32", "complex64"), ("float64", "complex128")])
def test_only_a_number_of_a_higher_kind_raises_the_type(real: str, wider: str) -> None:
    x = xp.asarray([1, 2], dtype=real)
    assert {str((x * 1j).dtype), str((2j - x).dtype)} == {wider}
    for integer in ("int8", "uint16", "int64", "bool"):
        assert (xp.asarray([1], dtype=integer) * 0.5).dtype == xp.float64


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_number_is_rounded_to_the_type_before_it_is_used(dtype: str) -> None:
    for number in (0.1, 1 / 3, 2.7182818, 1e-3):
        for start in (1, 3, 7):
            x = xp.asarray([start], dtype=dtype)
            rounded = np.asarray([number]).astype(dtype)
            product = (np.asarray([start]).astype(dtype) * rounded).astype(dtype)
            assert _values(x * number) == product.tolist()
            assert _values(xp.full((1,), number, dtype=dtype) * x) == product.tolist()


# ------------------------------------------------- extreme constants break or lose their digits

EXTREME = [INF, -INF, NAN, 0.0, -0.0, 0.1, -1 / 3, 5e-324, -2.2250738585072014e-308,
           1.7976931348623157e308, 2.0**-149, 3.4028234663852886e38, 1e22, 123456789.123456789,
           9007199254740993.0]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_reach_the_kernel_with_every_digit(dtype: str) -> None:
    one = np.ones(3, dtype)
    x = xp.asarray(one)
    for number in EXTREME:
        with np.errstate(all="ignore"):
            rounded = np.asarray(number).astype(dtype)
            wanted = [one * rounded, np.minimum(one, rounded), one - rounded, rounded / one]
        got = [x * number, xp.minimum(x, number), x - number, number / x]
        for ours, theirs in zip(got, wanted, strict=True):
            assert_same_bits(np.asarray(ours), theirs)
        assert_same_bits(np.asarray(xp.where(x > 0, number, x)), one * rounded)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_the_ends_of_integer_types_are_constants_too(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = xp.zeros((4,), dtype=dtype)
    for number in (info.min, info.max, info.min + 1, info.max - 1):
        assert _values(x + number) == [number] * 4
        assert _values(xp.maximum(x, number)) == [max(0, number)] * 4
        assert _values(xp.where(x == 0, number, x)) == [number] * 4
    for beyond in (info.min - 1, info.max + 1):
        with pytest.raises(OverflowError, match=str(beyond)):
            x + beyond


def test_constants_are_not_compiled() -> None:
    x = xp.ones((5,))
    _values(x * 1.5 - 2.5)
    before = xp.counters()["kernels_compiled"] + xp.counters()["kernels_from_disk"]
    for number in EXTREME:
        _values(x * number - number)
    assert xp.counters()["kernels_compiled"] + xp.counters()["kernels_from_disk"] == before


# ---------------------------------------------------------------- NaN is dropped by max and min

PLACES = [lambda n: 0, lambda n: n // 2, lambda n: n - 1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 3, 8, 17, 64, 1000])
def test_extremes_propagate_nan_and_find_it(dtype: str, length: int) -> None:
    for place in {place(length) for place in PLACES}:
        values = np.arange(length, dtype="float64") % 100
        values[place] = NAN
        x = xp.asarray(values, dtype=dtype)
        for reduced in (xp.max(x), xp.min(x), xp.max(x[::-1]), xp.sum(x), xp.mean(x)):
            assert np.isnan(float(reduced))
        assert (int(xp.argmax(x)), int(xp.argmin(x))) == (place, place)
        # Along each axis of a matrix, only where it is.
        lanes = xp.stack([xp.zeros_like(x), x], axis=0)
        assert [bool(np.isnan(v)) for v in _values(xp.max(lanes, axis=1))] == [False, True]
        assert int(np.sum(np.isnan(_values(xp.min(lanes, axis=0))))) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_elementwise_extremes_propagate_nan_from_either_side(dtype: str) -> None:
    pairs = np.array(list(itertools.product([NAN, 1.0, -INF, INF, -0.0], repeat=2)))
    a, b = xp.asarray(pairs[:, 0], dtype=dtype), xp.asarray(pairs[:, 1], dtype=dtype)
    either = np.isnan(pairs).any(axis=1).tolist()
    for result in (xp.maximum(a, b), xp.minimum(a, b), xp.clip(a, b, b), xp.maximum(b, a)):
        assert np.isnan(_values(result)).tolist() == either


@pytest.mark.parametrize("dtype", ["bool", *SIGNED, *UNSIGNED, *FLOATS])
def test_the_first_of_equal_elements_is_found(dtype: str) -> None:
    high, low = (1, 0) if dtype == "bool" else (7, 1)
    x = xp.asarray([low + 0, high, high, low] * 300, dtype=dtype)
    assert (int(xp.argmax(x)), int(xp.argmin(x))) == (1, 0)
    lanes = xp.reshape(x, (300, 4))
    assert set(_values(xp.argmax(lanes, axis=1))) == {1}
    assert _values(xp.argmax(lanes, axis=0)) == [0] * 4


# ------------------------------------------------------------- naive sums in the operand's type


def test_sums_of_many_small_numbers_do_not_saturate() -> None:
    count = (1 << 24) + 12346
    ones = xp.ones((count,), dtype=xp.float32)
    assert float(xp.sum(ones)) == count
    assert float(xp.mean(ones)) == 1.0
    assert float(xp.sum(ones * 0.5 + 0.5)) == count


@pytest.mark.parametrize(("dtype", "count"), [("float16", 4099), ("bfloat16", 1027)])
def test_sums_of_16_bit_numbers_are_made_wider(dtype: str, count: int) -> None:
    x = xp.ones((count, 2), dtype=dtype)
    nearest = float(np.asarray(float(count)).astype(dtype))
    assert _values(xp.sum(x, axis=0)) == [nearest] * 2
    assert float(xp.mean(x)) == 1.0
    assert _values(xp.cumulative_sum(x[:, 0]))[-1] == nearest


def test_means_of_numbers_whose_sum_is_out_of_range() -> None:
    large = xp.full((100,), 6e4, dtype=xp.float16)
    for mean in (xp.mean(large), xp.nanmean(large), xp.median(large)):
        assert float(mean) == float(large[0])
    assert float(xp.std(large)) == float(xp.nanstd(large)) == 0.0
    integers = xp.full((5,), 1 << 62, dtype=xp.int64)
    assert float(xp.mean(integers)) == float(xp.nanmean(integers)) == float(1 << 62)


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 2), (1, 2), (0, 1), None])
def test_sums_are_as_accurate_along_every_axis(axes: Any) -> None:
    shape = tuple(3000 if axes in (n, None) or n in np.atleast_1d(axes) else 3 for n in range(3))
    shape = shape if shape.count(3000) < 2 else tuple(70 if n == 3000 else n for n in shape)
    steps = np.asarray([1.0, 0.5, 0.1], dtype="float32")
    plain = np.resize(steps, (*shape[:2], 1)) * np.ones(shape, "float32")
    exact = plain.astype("float64").sum(axis=axes)
    unit = np.finfo("float32").eps
    x = xp.asarray(plain)
    # Any tree of additions has an error of some units: one by one, it would be hundreds.
    np.testing.assert_allclose(_values(xp.sum(x, axis=axes)), exact, rtol=10 * unit)
    mean = plain.astype("float64").mean(axis=axes)
    np.testing.assert_allclose(_values(xp.mean(x, axis=axes)), mean, rtol=10 * unit)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(300, 7), (7, 300), (5, 60, 4), (1, 129)])
def test_sums_have_the_same_bits_in_every_layout(dtype: str, shape: tuple[int, ...]) -> None:
    plain = np.random.default_rng(5).normal(size=shape).astype(dtype)
    order = tuple(range(len(shape)))[::-1]
    viewed = xp.permute_dims(xp.asarray(plain), order)
    strided = xp.asarray(np.repeat(plain.T, 2, axis=0))[::2]
    copied = xp.asarray(plain.T.copy())
    for function in (xp.sum, xp.mean, xp.std, xp.prod, xp.nanmean, xp.logsumexp):
        if function is xp.logsumexp and dtype == "complex64":
            continue
        for axis in (None, *range(len(shape)), (0, -1)):
            bits = np.asarray(function(copied, axis=axis))
            for x in (viewed, strided, viewed * 1, +strided):
                assert_same_bits(np.asarray(function(x, axis=axis)), bits)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_spreads_do_not_cancel(dtype: str) -> None:
    offset = {"float32": 1e4, "float64": 1e8}[dtype]
    for shape in ((3,), (3, 1), (1, 3)):
        x = xp.reshape(xp.asarray([offset, offset + 1, offset + 2], dtype=dtype), shape)
        assert abs(float(xp.var(x)) - 2 / 3) < 1e-6
        assert abs(float(xp.std(x, correction=1)) - 1) < 1e-6
        assert abs(float(xp.nanvar(x)) - 2 / 3) < 1e-6


# --------------------------------------------------- sums of small integers: type and wrapping


@pytest.mark.parametrize("dtype", ["bool", *SIGNED, *UNSIGNED])
@pytest.mark.parametrize("length", [0, 1, 2, 5, 300])
def test_integer_sums_are_64_bits_wide_whatever_the_length(dtype: str, length: int) -> None:
    wide = "uint64" if dtype in UNSIGNED else "int64"
    top = 1 if dtype == "bool" else min(np.iinfo(dtype).max, 1000)
    x = xp.full((length, 2), top, dtype=dtype)
    assert _values(xp.sum(x, axis=0)) == [top * length] * 2
    last = xp.cumulative_sum(x[:, 0], include_initial=True)
    assert _values(last)[-1] == top * length
    made = [xp.sum(x), xp.sum(x, axis=1), xp.prod(x, axis=0), last, xp.cumulative_prod(x[:, 1])]
    assert {str(result.dtype) for result in made} == {wide}
    assert xp.sum(x, dtype=xp.float32).dtype == xp.float32


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_operands_wrap_before_sums_widen(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = xp.full((50,), info.max, dtype=dtype)
    with np.errstate(all="ignore"):
        wrapped = np.full(50, info.max, dtype) * np.asarray(info.max, dtype)
    assert int(xp.sum(x * x)) == int(wrapped.sum())
    assert int(xp.sum(x + 1)) == 50 * info.min
    assert int(xp.sum(xp.astype(x > 3, xp.int8))) == int(xp.count_nonzero(x > 3)) == 50


# ------------------------------------------------------------------------ empty and 0-d arrays

EMPTY = [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)]


@pytest.fixture
def _dirty_pool() -> None:
    """Leave blocks of other values where the next results will lie."""
    junk = [np.asarray(xp.full((n,), 1e30) + 1) for n in (1, 2, 3, 4, 8, 12, 24)]
    del junk


@pytest.mark.usefixtures("_dirty_pool")
@pytest.mark.parametrize("dtype", ["bool", "int16", "uint64", *FLOATS, *COMPLEX])
@pytest.mark.parametrize("shape", EMPTY)
def test_reductions_of_nothing_are_their_neutral_element(dtype: str, shape: Any) -> None:
    x, plain = xp.zeros(shape, dtype=dtype), np.zeros(shape)
    for axis in (None, *range(len(shape))):
        expected = plain.sum(axis=axis)
        assert _values(xp.sum(x, axis=axis)) == expected.tolist()
        assert _values(xp.prod(x, axis=axis)) == plain.prod(axis=axis).tolist()
        assert _values(xp.all(x, axis=axis)) == plain.all(axis=axis).tolist()
        assert _values(xp.any(x, axis=axis)) == plain.any(axis=axis).tolist()
        assert _values(xp.count_nonzero(x, axis=axis)) == expected.tolist()
        if axis is None or shape[axis] == 0:
            for function in (xp.max, xp.min, xp.argmax, xp.nanmin):
                with pytest.raises(ValueError, match=function.__name__):
                    function(x, axis=axis)
        else:
            assert xp.max(x, axis=axis).shape == xp.argmin(x, axis=axis).shape == expected.shape


@pytest.mark.usefixtures("_dirty_pool")
@pytest.mark.parametrize("shape", EMPTY)
def test_shapes_survive_where_there_is_nothing(shape: Any) -> None:
    e = xp.zeros(shape, dtype=xp.float32)
    assert {(e + 1).shape, (e * e).shape, xp.sin(e).shape, (e == 1).shape} == {shape}
    assert (e + xp.ones((1,) * len(shape))).shape == shape
    assert xp.concat([e, e], axis=0).shape == (2 * shape[0], *shape[1:])
    assert xp.permute_dims(e, tuple(range(len(shape)))[::-1]).shape == shape[::-1]
    assert xp.reshape(e, (0, 5)).shape == (0, 5)
    assert e[..., None].shape == (*shape, 1)
    assert xp.sort(e).shape == xp.cumulative_sum(e, axis=0).shape == shape
    product = xp.zeros((2, 0)) @ xp.zeros((0, 3))
    assert _values(product) == [[0.0] * 3] * 2


@pytest.mark.parametrize("dtype", ["bool", *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX])
def test_arrays_without_dimensions_stay_so(dtype: str) -> None:
    s = xp.asarray(1, dtype=dtype)
    same = [s[()], s[...], +s if dtype != "bool" else ~~s, xp.sum(s), xp.max(s), xp.flip(s)]
    assert {result.shape for result in same} == {()}
    assert (s == xp.ones((1,), dtype=dtype)).shape == (1,)
    assert xp.reshape(s, (1, 1)).shape == xp.expand_dims(s, axis=(0, 1)).shape == (1, 1)
    s[()] = 0
    assert complex(s) == 0
    for key in (0, slice(None), (..., 0)):
        with pytest.raises(IndexError):
            s[key]


# ---------------------------------------------------------------------------- assignment


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", *FLOATS, *COMPLEX])
@pytest.mark.parametrize("pending", [False, True])
def test_assignments_reach_their_elements_alone(dtype: str, pending: bool) -> None:
    keys: list[Any] = [
        (1, slice(1, 4), 2, slice(None, None, 2)), (0, ..., 0), (slice(None, None, -2), 1),
        (..., -1), (slice(-2, None), slice(1, -1), [0, 2]), ([1, 0], slice(None), [2, 1], -1),
    ]  # fmt: skip
    for key in keys:
        plain = (np.arange(2 * 5 * 3 * 4) % 50).reshape(2, 5, 3, 4).astype(dtype)
        x = xp.asarray(plain, copy=True)
        x = x + 0 if pending else x
        earlier = x + 0
        value = (np.arange(plain[key].shape[-1]) + 60).astype(dtype)
        x[key] = xp.asarray(value)
        before = plain.copy()
        plain[key] = value
        assert _values(x) == plain.tolist()
        assert _values(earlier) == before.tolist()
        assert x.dtype == dtype


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex128"])
def test_an_assignment_reads_its_own_array_first(dtype: str) -> None:
    plain = np.arange(36).reshape(6, 6).astype(dtype)
    moves: list[tuple[Any, Any]] = [
        (np.s_[1:, :], np.s_[:-1, :]), (np.s_[:-1, :], np.s_[1:, :]), (np.s_[::-1, :], np.s_[:]),
        (np.s_[1:-1, 1:-1], np.s_[2:, :-2]),
    ]  # fmt: skip
    for to, source in moves:
        x, wanted = xp.asarray(plain, copy=True), plain.copy()
        x[to] = x[source] * 10
        wanted[to] = plain[source] * 10
        assert _values(x) == wanted.tolist()


def test_in_place_operators_keep_the_object_and_its_type() -> None:
    for dtype in ("int16", "float32", "complex64"):
        x = xp.arange(6, dtype=dtype)
        same = x
        x += 1
        x[2:] *= 3
        x -= xp.ones((6,), dtype=dtype)
        assert x is same
        assert x.dtype == dtype
        assert _values(x) == [0, 1, 8, 11, 14, 17]
    counts = xp.zeros((3,), dtype=xp.int32)
    for wrong in (lambda: counts.__iadd__(0.5), lambda: counts.__itruediv__(2)):
        with pytest.raises(TypeError):
            wrong()


def test_masks_assign_where_they_hold() -> None:
    draw = np.random.default_rng(3)
    for shape, dtype in itertools.product([(7,), (3, 4), (2, 3, 2)], ["int64", "float64"]):
        plain = draw.integers(-9, 9, shape).astype(dtype)
        for value in (0, plain[plain < 0] * 2):
            x, wanted = xp.asarray(plain, copy=True), plain.copy()
            x[x < 0] = value if isinstance(value, int) else xp.asarray(value)
            wanted[wanted < 0] = value
            assert _values(x) == wanted.tolist()


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (5, 1, IndexError), (-4, 1, IndexError), ((0, 0), 1, IndexError),
        (slice(0, 2), [1, 2, 3], ValueError), ([0, 3], 1, IndexError), (0, 1j, TypeError),
        ([True, False], 1, IndexError), ("a", 1, IndexError), (1.0, 1, IndexError),
    ],
)  # fmt: skip
def test_a_bad_assignment_is_refused_at_once_and_changes_nothing(
    key: Any, value: Any, error: type[Exception]
) -> None:
    for x in (xp.zeros((3,)), xp.zeros((3,)) + 0):
        given = xp.asarray(value) if isinstance(value, list) else value
        with pytest.raises(error):
            x[key] = given
        assert _values(x) == [0.0] * 3


# --------------------------------------------------------------- capsules: access and versions


class _Producer:
    """Hands out an array's capsule as libraries of different ages do."""

    def __init__(self, array: Any, export: Callable[..., Any]) -> None:
        self.array, self.export = array, export

    def __dlpack__(self, *args: Any, **keywords: Any) -> Any:
        return self.export(self.array, *args, **keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, "float16", "float32", *COMPLEX, "bool"])
def test_an_owner_who_forbids_writing_is_never_written_to(dtype: str) -> None:
    owner = (np.arange(6) % 2).reshape(2, 3).astype(dtype)
    before = owner.tolist()
    for view in (owner, owner.T, owner[:, ::2], owner[::-1]):
        shown = view.view()
        shown.flags.writeable = False
        x = xp.from_dlpack(shown)
        assert _values(x) == shown.tolist()
        x[0, 0] = 1
        x[...] = 0
        assert owner.tolist() == before


def test_capsules_are_of_the_version_that_was_asked_for() -> None:
    for made in (lambda: xp.arange(3), lambda: xp.arange(3) * 2, lambda: xp.arange(9)[::3]):
        assert '"dltensor_versioned"' in repr(made().__dlpack__(max_version=(1, 0)))
        assert '"dltensor_versioned"' in repr(made().__dlpack__(max_version=(7, 3)))
        for old in ({}, {"max_version": None}, {"max_version": (0, 8)}):
            assert '"dltensor"' in repr(made().__dlpack__(**old))
        for keywords in ({"dl_device": (2, 0)}, {"dl_device": (10, 1)}, {"stream": 7}):
            with pytest.raises(BufferError):
                made().__dlpack__(**keywords)


def test_producers_that_know_no_keywords_are_understood() -> None:
    exports: list[Callable[..., Any]] = [
        lambda a: a.__dlpack__(),
        lambda a, stream=None: a.__dlpack__(),
        lambda a, *, stream=None, max_version=None: a.__dlpack__(max_version=max_version),
        lambda a, **keywords: a.__dlpack__(**keywords),
    ]
    for export in exports:
        assert _values(xp.from_dlpack(_Producer(np.arange(4), export))) == [0, 1, 2, 3]


# ------------------------------------------------------------- capsules: each is released once


def test_capsules_that_nobody_takes_are_released() -> None:
    def leave(count: int) -> int:
        for index in range(count):
            version = (1, 0) if index % 2 else None
            (xp.ones((50_000,)) * index).__dlpack__(max_version=version)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    first = leave(20)
    # 1500 of them are 600 MB.
    assert leave(1500) - first < 64 * 1024


def test_memory_stays_while_a_consumer_has_it() -> None:
    kept = []
    for size in (1, 5, 1000, 40_000):
        x = xp.arange(size) * 2
        kept.append(np.from_dlpack(x))
        del x
    gc.collect()
    others = [xp.full((size,), -1) + 0 for size in (1, 5, 1000, 40_000) for _ in range(20)]
    xp.materialize(*others)
    assert all((view == np.arange(view.size) * 2).all() for view in kept)


def test_a_producer_may_go_before_what_was_made_of_it() -> None:
    owner = np.arange(1000.0)
    x = xp.from_dlpack(owner)
    later = x + 1
    last = later[-1]
    del owner, x
    gc.collect()
    assert float(last) == 1000.0
    assert float(xp.sum(later)) == 500_500.0


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_is_taken_once(version: Any) -> None:
    capsule = (xp.arange(3) + 1).__dlpack__(max_version=version)
    producer = _Producer(capsule, lambda capsule, **_: capsule)
    first = xp.from_dlpack(producer)
    for _ in range(2):
        with pytest.raises((ValueError, RuntimeError, BufferError)):
            xp.from_dlpack(producer)
    del producer, capsule
    gc.collect()
    assert _values(first + 0) == [1, 2, 3]
