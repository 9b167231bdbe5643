"""Arrays behave as values, and mistakes that other array libraries made are not made here."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp

INF, NAN = float("inf"), float("nan")


def _list(x: xp.Array) -> Any:
    return np.asarray(x).tolist()


# ------------------------------------------------------------------ what was recorded stays so

WRITES: dict[str, tuple[Callable[[xp.Array], object], list[int]]] = {
    "element": (lambda x: x.__setitem__(0, 50), [50, 6, 9, 12]),
    "slice": (lambda x: x.__setitem__(slice(1, 3), 0), [3, 0, 0, 12]),
    "everything": (lambda x: x.__setitem__(..., 8), [8, 8, 8, 8]),
    "mask": (lambda x: x.__setitem__(x > 8, 1), [3, 6, 1, 1]),
    "indices": (lambda x: x.__setitem__(np.array([0, 3]), 2), [2, 6, 9, 2]),
    "add": (lambda x: x.__iadd__(10), [13, 16, 19, 22]),
    "square": (lambda x: x.__ipow__(2), [9, 36, 81, 144]),
    "shift": (lambda x: x.__ilshift__(1), [6, 12, 18, 24]),
}
READS: dict[str, tuple[Callable[[xp.Array], xp.Array], list[int]]] = {
    "operation": (lambda x: x * 3 + 1, [10, 19, 28, 37]),
    "view": (lambda x: x[::-1], [12, 9, 6, 3]),
    "copy": (copy.copy, [3, 6, 9, 12]),
    "deepcopy": (copy.deepcopy, [3, 6, 9, 12]),
    "positive": (lambda x: +x, [3, 6, 9, 12]),
    "astype": (lambda x: xp.astype(x, x.dtype), [3, 6, 9, 12]),
    "asarray": (lambda x: xp.asarray(x, copy=True), [3, 6, 9, 12]),
    "clip": (xp.clip, [3, 6, 9, 12]),
    "floor": (xp.floor, [3, 6, 9, 12]),
    "reshape": (lambda x: xp.reshape(xp.reshape(x, (2, 2)), (4,)), [3, 6, 9, 12]),
    "broadcast": (lambda x: xp.broadcast_to(x, (4,)), [3, 6, 9, 12]),
}


@pytest.mark.parametrize("pending", [False, True], ids=["in memory", "pending"])
@pytest.mark.parametrize("writer_first", [False, True], ids=["reader first", "writer first"])
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
def test_a_reader_keeps_the_values_it_was_recorded_with(
    write: str, read: str, writer_first: bool, pending: bool, device: str
) -> None:
    x = xp.asarray(np.array([3, 6, 9, 12]), device=device)
    if pending:
        x = x * 1
    reader = READS[read][0](x)
    WRITES[write][0](x)
    checks = [(reader, READS[read][1]), (x, WRITES[write][1])]
    for array, wanted in reversed(checks) if writer_first else checks:
        assert _list(array) == wanted


def test_crossed_writes(device: str) -> None:
    a, b = (xp.asarray(np.full(3, float(v)), device=device) for v in (1, 10))
    total = a + b
    a[...] = b * 2
    b[...] = total - a
    assert (_list(b), _list(a), _list(total)) == ([-9.0] * 3, [20.0] * 3, [11.0] * 3)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[...], lambda x: x[:, :], lambda x: x[0:3, 0:4], lambda x: x[:2], lambda x: x[0],
        lambda x: x[::2], lambda x: x[None], lambda x: x.T, lambda x: x.mT, lambda x: x[-1:, :],
        xp.flip, lambda x: xp.squeeze(xp.expand_dims(x, 0), 0),
        lambda x: xp.broadcast_arrays(x, x)[0], lambda x: xp.moveaxis(x, 0, 1),
    ],
)  # fmt: skip
def test_no_view_aliases_its_array(view: Callable[[xp.Array], xp.Array], device: str) -> None:
    x = xp.asarray(np.arange(12).reshape(3, 4), device=device)
    part = view(x)
    before = _list(part)
    part[...] = -1
    assert _list(x) == np.arange(12).reshape(3, 4).tolist()
    part = view(x)
    x[...] = 7
    assert _list(part) == before


@pytest.mark.parametrize("size", [1, 3, 63, 64, 1000, 70_000])
@pytest.mark.parametrize("order", [None, True])
def test_numpy_input_is_a_snapshot(size: int, order: bool | None, device: str) -> None:
    """Whatever the size: a later write to the caller's array is not seen."""
    values = np.arange(size + 1, dtype=np.float32)[1:]
    x = xp.asarray(values, copy=order, device=device)
    y = x - 1
    values[...] = -5
    assert np.array_equal(np.asarray(y), np.arange(size))
    assert np.array_equal(np.asarray(x), np.arange(1, size + 1))


def test_copy_false_shares_or_refuses(host: str) -> None:
    x = xp.asarray(np.array([1.5, 2.5]), device=host)
    assert xp.asarray(x, copy=False) is x
    values = np.array([3.0, 4.0])
    shared = xp.asarray(values, copy=False, device=host)
    values[0] = 30
    assert _list(shared) == [30.0, 4.0]
    for bad in (
        lambda: xp.asarray([1.0], copy=False),
        lambda: xp.asarray(2, copy=False),
        lambda: xp.asarray(x, dtype=xp.float32, copy=False),
        lambda: xp.asarray(values, dtype=xp.float32, copy=False),
        lambda: xp.asarray(values.astype(">f8"), copy=False),
    ):
        with pytest.raises(ValueError, match="copy"):
            bad()


def test_memory_is_not_reused_while_somebody_reads_it(host: str) -> None:
    x = xp.asarray(np.arange(64.0), device=host) * 2
    outside = np.from_dlpack(x)
    numpy = np.asarray(x)
    reader, other = xp.sqrt(x), x
    x = x - x
    _ = [np.asarray(xp.ones((64,), device=host) * k) for k in range(20)]
    for array in (outside, numpy, other):
        assert np.asarray(array).tolist() == [2.0 * k for k in range(64)]
    assert not np.asarray(x).any()
    assert np.array_equal(np.asarray(reader), np.sqrt(2.0 * np.arange(64)))


def test_assignment_never_reaches_memory_that_was_given_away(host: str) -> None:
    for give in (np.asarray, np.from_dlpack, lambda x: np.asarray(memoryview(give_numpy(x)))):
        x = xp.asarray(np.zeros(9), device=host) + 1
        given = give(x)
        x[2:5] = 100
        x += 1
        assert given.tolist() == [1.0] * 9
        assert _list(x) == [2.0, 2.0, 101.0, 101.0, 101.0, 2.0, 2.0, 2.0, 2.0]


def give_numpy(x: xp.Array) -> np.ndarray:
    return np.asarray(x)


def test_in_place_keeps_identity_type_and_shape(device: str) -> None:
    x = xp.asarray(np.array([1, 2], np.int16), device=device)
    alias = x
    x += 1
    x *= 3
    x[0] = 100
    assert alias is x
    assert (_list(alias), alias.dtype) == ([100, 9], xp.int16)
    with pytest.raises(TypeError, match=r"float64.*int16|int16.*float64"):
        x /= 2
    x -= np.array([0, 1], np.int64)  # wider, but of the same kind
    assert (_list(alias), alias.dtype) == ([100, 8], xp.int16)
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        x += xp.ones((3, 2), dtype=xp.int16, device=device)
    assert _list(x) == [100, 8]


def test_self_reference_in_assignment(device: str) -> None:
    reference = np.arange(16.0).reshape(4, 4)
    x = xp.asarray(reference, device=device)
    for array in (reference, x):
        array[1:-1, 1:-1] = array[1:-1, 1:-1] * 10
        array[:, 0] = array[0, :] + array[::-1, 3]
        array[...] = array[::-1].copy() if array is reference else array[::-1]
        array[::2, ::-1] += array[1::2, ::-1]
        array[0] -= 1
    assert _list(x) == reference.tolist()


# --------------------------------------------------------------------------- every way to look

SINKS: dict[str, Callable[[xp.Array], object]] = {
    "asarray": lambda a: np.asarray(a).tolist(),
    "asarray dtype": lambda a: np.asarray(a, dtype=np.int16).tolist(),
    "array copy": lambda a: np.array(a, copy=True).tolist(),
    "dlpack": lambda a: np.from_dlpack(a, device=None if a.device == "cpu" else "cpu").tolist(),
    "tolist": lambda a: a.tolist(),
    "float": lambda a: [float(a[i]) for i in range(4)],
    "item": lambda a: [a[i].item() for i in range(-4, 0)],
    "iter": lambda a: [float(v) for v in a],
    "unpack": lambda a: [float(v) for v in [*a]],
    "complex": lambda a: [complex(v).real for v in a],
    "index": lambda a: [[5.0, 2.0, -1.0, -4.0][int(xp.astype((5 - v) / 3, xp.int32))] for v in a],
    "bool": lambda a: [float(v) for v in a if bool(v != 100)],
    "copy": lambda a: np.asarray(copy.copy(a)).tolist(),
    "deepcopy": lambda a: np.asarray(copy.deepcopy([a])[0]).tolist(),
    "pickle": lambda a: np.asarray(pickle.loads(pickle.dumps(a))).tolist(),
    "mask": lambda a: np.asarray(a[a < 100]).tolist(),
    "format": lambda a: [float(f"{v:.2f}") for v in a],
    "numpy function": lambda a: list(np.sort(np.asarray(a))[::-1]),
    "repr": lambda a: eval(repr(a).removeprefix("Array(").split("]")[0] + "]"),
    "str": lambda a: [float(v) for v in str(a).strip("[]").split()],
}


@pytest.mark.parametrize("sink", SINKS)
def test_every_sink_computes_what_is_pending(sink: str, device: str) -> None:
    pending = 5 - xp.asarray(np.arange(4.0), device=device) * 3
    assert SINKS[sink](pending) == [5.0, 2.0, -1.0, -4.0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol: int, device: str) -> None:
    x = xp.asarray(np.arange(6, dtype=np.uint8).reshape(2, 3), device=device)[:, ::-1] + 1
    back = pickle.loads(pickle.dumps(x, protocol=protocol))
    assert type(back) is type(x)
    assert (back.dtype, _list(back)) == (xp.uint8, [[3, 2, 1], [6, 5, 4]])
    back[0, 0] = 9
    assert _list(x)[0] == [3, 2, 1]


# ------------------------------------------------------------------------- IEEE 754 and integers


def test_nothing_is_simplified_that_is_wrong_for_nan_and_infinity(device: str) -> None:
    x = xp.asarray(np.array([2.0, NAN, INF, -INF]), device=device)
    assert _list(xp.isnan(x - x)) == [False, True, True, True]
    assert _list(xp.isnan(0 * x)) == [False, True, True, True]
    assert _list(xp.isnan(x / x)) == [False, True, True, True]
    same = x
    assert _list(x == same) == [True, False, True, True]
    assert _list(~(x < 1) & ~(x >= 1)) == [False, True, False, False]
    assert _list(xp.where(xp.isfinite(x), x, -1.0)) == [2.0, -1.0, -1.0, -1.0]
    assert _list(xp.isinf(xp.isnan(x) * 1.0)) == [False] * 4
    assert _list(xp.maximum(x, 3.0))[0::2] == [3.0, INF]
    assert _list(xp.isnan(xp.minimum(3.0, x))) == [False, True, False, False]
    assert _list(xp.isnan(xp.clip(x, 0.0, 1.0))) == [False, True, False, False]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_sign_of_zero_is_kept(dtype: str, device: str) -> None:
    zero = xp.ceil(xp.asarray(np.array([-0.5, -0.1], dtype), device=device))
    kept = [
        zero,
        zero - 0.0,
        zero * 1.0,
        zero * 7,
        zero + zero,
        xp.negative(-zero),
        zero / 3,
        +zero,
    ]
    lost = [zero + 0.0, 0.0 + zero, 0.0 - zero, zero - zero, zero * -1, xp.abs(zero), -zero]
    xp.materialize(*kept, *lost)
    assert all(np.signbit(np.asarray(value)).all() for value in kept)
    assert not any(np.signbit(np.asarray(value)).any() for value in lost)
    assert _list(1 / zero) == [-INF, -INF]
    assert _list(1 / (zero + xp.zeros_like(zero))) == [INF, INF]
    assert _list(xp.signbit(zero * 0)) == [True, True]


def test_narrow_integers_wrap_at_every_step(device: str) -> None:
    u = xp.asarray(np.array([200, 255, 7], np.uint8), device=device)
    assert _list(xp.astype(u + u, xp.int32)) == [144, 254, 14]
    assert _list((u + u) >> 2) == [36, 63, 3]
    assert _list((u + u) < u) == [True, True, False]
    assert _list(xp.astype(-u, xp.float64) / 2) == [28.0, 0.5, 124.5]
    assert _list(xp.astype(~u, xp.int64) * 2) == [110, 0, 496]
    assert _list((u * u) // 3) == [21, 0, 16]
    assert _list((u - 201) % 10) == [5, 4, 2]
    i = xp.asarray(np.array([127, -128, -3], np.int8), device=device)
    assert _list(xp.astype(i * i, xp.int16)) == [1, 0, 9]
    assert _list(i + i > 0) == [False, False, False]
    assert _list(xp.abs(i) < 0) == [False, True, False]
    assert _list(xp.astype(-i, xp.int64)) == [-127, -128, 3]
    w = xp.asarray(np.array([65535, 300], np.uint16), device=device)
    assert _list(w * w) == [1, 24464]
    n = xp.asarray(np.array([2**31 - 1], np.int32), device=device)
    assert _list((n + 1) < n) == [True]
    for function in (xp.floor, xp.ceil, xp.trunc, xp.round, xp.sign, xp.square, xp.abs):
        assert function(i).dtype == xp.int8


@pytest.mark.parametrize("size", [1, 4, 31, 1001])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_integer_division_by_zero_is_zero(dtype: str, size: int, device: str) -> None:
    x = xp.full((size,), 9, dtype=dtype, device=device)
    zero = xp.zeros((size,), dtype=dtype, device=device)
    results = [x // zero, x % zero, x // 0, x % 0, 9 // zero, 9 % zero]
    xp.materialize(*results)
    for result in results:
        assert result.dtype == np.dtype(dtype)
        assert not np.asarray(result).any()
    if np.dtype(dtype).kind == "i":
        lowest = xp.full((size,), xp.iinfo(dtype).min, dtype=dtype, device=device)
        assert not np.asarray(lowest % -1).any()
        assert np.array_equal(np.asarray(lowest // -1), np.asarray(lowest))


def test_floor_division_is_exact(device: str) -> None:
    a = xp.asarray(np.array([-9, 9, -9, 9]), device=device)
    b = xp.asarray(np.array([4, -4, -4, 4]), device=device)
    assert (_list(a // b), _list(a % b)) == ([-3, -3, 2, 2], [3, -3, -1, 1])
    big = xp.asarray(np.array([36028797018963971, -36028797018963971]), device=device)
    assert _list(big // 4) == [9007199254740992, -9007199254740993]
    for x, y in ((0.7, 0.1), (1.0, 0.1), (6.0, 0.6), (-5.0, 3.0), (5.0, -3.0), (1e300, 3e-10)):
        ours = xp.asarray(np.array([x]), device=device)
        assert (float(ours // y), float(ours % y)) == (x // y, x % y)


# ----------------------------------------------------------------------------- Python scalars


def test_python_scalars_take_the_arrays_type(device: str) -> None:
    f = xp.asarray(np.array([1.5, 2.0], np.float32), device=device)
    for result in (f * 2.5, 3 - f, f**3, f**0.5, 1 / f, xp.where(f > 1, f, 0), xp.maximum(f, 7)):
        assert result.dtype == xp.float32
    i = xp.asarray(np.array([1, 2], np.int8), device=device)
    for result in (i + 1, 3 - i, i // 2, 5 % i, i & 3, i << 1, xp.where(i > 1, 0, i), True + i):
        assert result.dtype == xp.int8
    c = xp.asarray(np.array([2j], np.complex64), device=device)
    for result in (c * 2, c - 0.5, f + 2j, 1j / c):
        assert result.dtype == xp.complex64
    assert float((f * 0.1)[0]) == float(np.float32(1.5) * np.float32(0.1))
    assert (i * 1.5).dtype == xp.float64
    assert (i + 1j).dtype == xp.complex128


@pytest.mark.parametrize(
    "value",
    [INF, -INF, NAN, 0.3, 2 / 3, 5e-324, -3e-310, 1.7976931348623157e308, -0.0, 1e23, 987654.321],
)
def test_any_scalar_arrives_unchanged(value: float, device: str) -> None:
    one = xp.ones((3,), device=device)
    for result in (
        one * value,
        value * one,
        xp.where(one > 0, value, one),
        xp.full((3,), value, device=device),
    ):
        got = np.asarray(result)
        assert got.tolist() == [value] * 3 or (np.isnan(value) and np.isnan(got).all())
        assert (np.signbit(got) == np.signbit(value)).all() or np.isnan(value)
    pair = np.asarray(xp.ones((2,), dtype=xp.complex128, device=device) * complex(0.0, 1.0) * 1)
    assert pair.tolist() == [1j, 1j]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int8", 128), ("uint8", -1), ("uint16", 65536), ("int64", 2**63), ("uint64", -5)],
)
def test_a_python_integer_out_of_range(dtype: str, value: int, device: str) -> None:
    x = xp.asarray(np.array([1, 2], dtype), device=device)
    for bad in (
        lambda: x + value,
        lambda: value - x,
        lambda: xp.where(x > 1, x, value),
        lambda: x.__setitem__(0, value),
        lambda: x.__imul__(value),
        lambda: xp.full((2,), value, dtype=dtype),
        lambda: xp.asarray(value, dtype=dtype),
        lambda: xp.asarray([value], dtype=dtype),
    ):
        with pytest.raises(OverflowError, match=str(value)):
            bad()
    assert _list(x) == [1, 2]
    assert _list(x < value) == [value > 0] * 2
    assert _list(x == value) == [False] * 2
    assert _list(value != x) == [True] * 2
    assert _list(value >= x) == [value > 0] * 2


# ------------------------------------------------------------------------- empty, 0-d, lifetime


def test_empty_and_zero_dimensional_arrays(device: str) -> None:
    e = xp.zeros((0, 3), device=device)
    assert (
        (e + xp.ones((1, 3), device=device)).shape
        == (e * e).shape
        == np.asarray(xp.sin(e)).shape
        == (0, 3)
    )
    assert (e[:, 0].shape, e[0:0, None].shape, e.T.shape) == ((0,), (0, 1, 3), (3, 0))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(e)
    with pytest.raises(IndexError):
        e[0]
    s = xp.asarray(2.5, device=device)
    assert (s * s).shape == s[()].shape == s[...].shape == (-s).shape == ()
    assert float(s * s) == 6.25
    assert (s + xp.ones((1,), device=device)).shape == (1,)
    s[()] = 4
    s += 1
    assert float(s) == 5.0
    s[...] = 6
    assert float(s) == 6.0
    for bad in (lambda: float(xp.ones((2,))), lambda: bool(xp.ones((2, 1))), lambda: s[0]):
        with pytest.raises((TypeError, ValueError, IndexError)):
            bad()


def test_different_expressions_never_share_a_result(device: str) -> None:
    a, b, c = (
        xp.asarray(np.array(v), device=device) for v in ([6.0, 9.0], [4.0, 3.0], [1.0, 20.0])
    )
    i = xp.asarray(np.array([6, 9]), device=device)
    got = [
        _list(value)
        for value in (
            a - b, b - a, a * b - c, a * (b - c), a - b - c, a - (b - c), a * a, a * b, a / b,
            b / a, xp.where(a > c, a, c), xp.where(a > c, c, a), 2 - a, a - 2, a[::-1] - b,
            a - b[::-1], i * 2, i // 2, i % 4, a * xp.asarray(np.array([6.0, 9.0]), device=device),
            xp.astype(a, xp.int32) - i, xp.asarray([True], device=device) | True, i | 1,
        )
    ]  # fmt: skip
    assert got == [
        [2, 6], [-2, -6], [23, 7], [18, -153], [1, -14], [3, 26], [36, 81], [24, 27], [1.5, 3],
        [4 / 6, 3 / 9], [6, 20], [1, 9], [-4, -7], [4, 7], [5, 3], [3, 5], [12, 18], [3, 4],
        [2, 1], [36, 81], [0, 0], [True], [7, 9],
    ]  # fmt: skip
    x, y = a + b, a - b
    z = x / y
    xp.materialize(z, y, x)
    assert [_list(v) for v in (z, x, y)] == [[5.0, 2.0], [10.0, 12.0], [2.0, 6.0]]


def test_arrays_and_their_memory_are_freed(device: str) -> None:
    x = xp.ones((1 << 20,), device=device) * 2
    for _ in range(5):
        x = x + 1
        np.asarray(x)
    gc.collect()
    before = xp.counters()["pool_bytes"]
    for _ in range(100):
        x = x + 1
        np.asarray(x)
    assert xp.counters()["pool_bytes"] <= before + (1 << 24)
