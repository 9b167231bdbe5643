"""Cumulative sums and products are kernels, with NumPy's bits, that fuse as reductions do."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits
from counting import counted

RNG = np.random.default_rng(30)
KERNELS = ("kernels_launched", "reference_evaluations")
DTYPES = ("bool", "int8", "uint16", "int32", "int64", "uint64", "float32", "float64")
SCANS: dict[str, tuple[Callable[..., xp.Array], Callable[..., Any]]] = {
    "sum": (xp.cumulative_sum, np.cumulative_sum),
    "prod": (xp.cumulative_prod, np.cumulative_prod),
}


def _values(shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "bool":
        return RNG.random(shape) < 0.6
    if dtype.startswith("float"):
        return (RNG.standard_normal(shape) * 1.5).astype(dtype)
    return RNG.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scans_have_numpys_bits_along_every_axis(name: str, dtype: str, device: str) -> None:
    ours, numpys = SCANS[name]
    for shape in ((1,), (37,), (1000,), (5, 33), (33, 5), (130, 70), (4, 5, 6), (2, 600, 3)):
        plain = _values(shape, dtype)
        x = xp.asarray(plain, device=device)
        for axis in range(len(shape)):
            assert_same_bits(np.asarray(ours(x, axis=axis)), numpys(plain, axis=axis))


@pytest.mark.parametrize("count", [*range(1, 36), 63, 64, 65, 1025])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_every_length_is_scanned_whole(count: int, dtype: str, device: str) -> None:
    plain = _values((19, count), dtype)
    for values, axis in ((plain, 1), (np.ascontiguousarray(plain.T), 0)):
        x = xp.asarray(values, device=device)
        found = np.asarray(xp.cumulative_sum(x, axis=axis, dtype=dtype))
        assert_same_bits(found, np.cumulative_sum(values, axis=axis, dtype=dtype))


@pytest.mark.parametrize("name", SCANS)
def test_strides_do_not_matter(name: str, device: str) -> None:
    ours, numpys = SCANS[name]
    plain = _values((24, 70, 9), "float32")
    x = xp.asarray(plain, device=device)
    views: list[Callable[[Any], Any]] = [
        lambda a: a[::-1, ::2],
        lambda a: a[:, 5:60:3, ::-1],
        lambda a: xp.transpose(a) if isinstance(a, xp.Array) else np.transpose(a),
        lambda a: (xp if isinstance(a, xp.Array) else np).broadcast_to(a[:1], (6, 70, 9)),
    ]
    for view, axis in itertools.product(views, range(3)):
        assert_same_bits(np.asarray(ours(view(x), axis=axis)), numpys(view(plain), axis=axis))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_are_rounded_once_for_each_element(dtype: str, device: str) -> None:
    x = xp.astype(xp.asarray(_values((40, 50), "float32"), device=device), dtype)
    wide = np.cumulative_sum(np.asarray(x).astype(np.float32), axis=1)
    assert_same_bits(np.asarray(xp.cumulative_sum(x, axis=1)), wide.astype(x.dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", SCANS)
def test_complex_scans(name: str, dtype: str, device: str) -> None:
    ours, numpys = SCANS[name]
    plain = (RNG.standard_normal((30, 41)) + 1j * RNG.standard_normal((30, 41))).astype(dtype)
    x = xp.asarray(plain, device=device)
    for axis in (0, 1):
        tolerance = 1e-4 if dtype == "complex64" else 1e-12
        np.testing.assert_allclose(ours(x, axis=axis), numpys(plain, axis=axis), rtol=tolerance)


def test_special_values_go_on(device: str) -> None:
    plain = np.array(
        [[-0.0, -0.0, 1, np.inf, 2, -np.inf, 3], [-0.0, 0, np.nan, 1, np.inf, 0, -0.0]]
    )
    for values, axis in ((plain, 1), (plain.T.copy(), 0)):
        x = xp.asarray(values, device=device)
        for ours, numpys in SCANS.values():
            with np.errstate(invalid="ignore"):
                wanted = numpys(values, axis=axis)
            assert_same_bits(np.asarray(ours(x, axis=axis)), wanted)


def test_a_first_element_is_taken_as_it_is(device: str) -> None:
    x = xp.asarray(np.array([complex(np.inf, np.nan), 1 + 1j]), device=device)
    found = np.asarray(xp.cumulative_prod(x))
    assert found[0].real == np.inf
    assert np.isnan(found[0].imag)


# An expression, and NumPy's.
FUSED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "prologue": (lambda x: xp.cumulative_sum(x * x + 1, axis=1), lambda n: (n * n + 1).cumsum(1)),
    "epilogue": (lambda x: xp.sqrt(xp.cumulative_sum(x * x, axis=0)) / 2,
                 lambda n: np.sqrt((n * n).cumsum(0)) / 2),
    "with its sum": (
        lambda x: xp.cumulative_sum(x * x, axis=1) / xp.sum(x * x, axis=1, keepdims=True),
        lambda n: (n * n).cumsum(1) / (n * n).sum(1, keepdims=True)),
    "then reduced": (lambda x: xp.max(xp.cumulative_sum(x, axis=1), axis=1),
                     lambda n: n.cumsum(1).max(1)),
    "of a distance": (lambda x: xp.cumulative_sum(x - xp.mean(x, axis=0), axis=0),
                      lambda n: (n - n.mean(0)).cumsum(0)),
    "two": (lambda x: xp.cumulative_sum(x, axis=1) + xp.cumulative_prod(x, axis=1),
            lambda n: n.cumsum(1) + n.cumprod(1)),
    "of a scan": (lambda x: xp.cumulative_sum(xp.cumulative_sum(x, axis=1) * 2, axis=1),
                  lambda n: (n.cumsum(1) * 2).cumsum(1)),
    "with a row": (lambda x: xp.cumulative_sum(x * xp.arange(70.0), axis=1) - x[0],
                   lambda n: (n * np.arange(70.0)).cumsum(1) - n[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_scans_are_one_kernel_with_what_is_around_them(name: str, device: str) -> None:
    expression, numpys = FUSED[name]
    plain = RNG.random((60, 70)) + 0.5
    x = xp.asarray(plain, device=device)
    for _ in range(2):
        with counted(*KERNELS) as counts:
            found = np.asarray(expression(x))
        assert counts == {"kernels_launched": 1, "reference_evaluations": 0}
        np.testing.assert_allclose(found, numpys(plain), rtol=1e-12, atol=1e-12)


def test_scans_along_different_axes_are_two_kernels(device: str) -> None:
    plain = RNG.random((60, 70))
    x = xp.asarray(plain, device=device)
    with counted(*KERNELS) as counts:
        found = np.asarray(xp.cumulative_sum(xp.cumulative_sum(x, axis=0), axis=1))
    assert counts == {"kernels_launched": 2, "reference_evaluations": 0}
    assert_same_bits(found, plain.cumsum(0).cumsum(1))


def test_a_scan_on_the_way_is_there_for_whoever_asks_later(device: str) -> None:
    plain = RNG.random((9, 40))
    x = xp.asarray(plain, device=device)
    for _ in range(2):
        scan = xp.cumulative_sum(x, axis=1)
        np.asarray(scan * 2 + 1)
        with counted("kernels_launched") as counts:
            found = np.asarray(scan + 0)
        assert_same_bits(found, plain.cumsum(1))
        assert counts == {"kernels_launched": 1}


@pytest.mark.parametrize("include_initial", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64", "complex64"])
def test_the_initial_value_may_come_first(include_initial: bool, dtype: str, device: str) -> None:
    for shape in ((), (0,), (4,), (0, 3), (3, 0), (4, 5)):
        plain = np.ones(shape, dtype)
        x = xp.asarray(plain, device=device)
        for (ours, numpys), axis in itertools.product(SCANS.values(), range(max(len(shape), 1))):
            wanted = numpys(np.atleast_1d(plain), axis=axis, include_initial=include_initial)
            found = ours(x, axis=axis, include_initial=include_initial)
            assert found.shape == wanted.shape
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("mode", ["sync", "background", "off"])
def test_all_compile_modes_have_the_same_bits(mode: str, device: str) -> None:
    plain = {dtype: _values((70, 90), dtype) for dtype in DTYPES}
    for values in plain.values():
        with xp.config.override(compile=mode):
            x = xp.asarray(values, device=device)
            for (ours, numpys), axis in itertools.product(SCANS.values(), (0, 1)):
                found = np.asarray(ours(x + x, axis=axis))
                assert_same_bits(found, numpys(values + values, axis=axis))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_share_rows_and_columns(threads: int, device: str) -> None:
    plain = _values((400, 1100), "float32")
    x = xp.asarray(plain, device=device)
    with xp.config.override(threads=threads):
        for axis in (0, 1):
            assert_same_bits(np.asarray(xp.cumulative_sum(x, axis=axis)), plain.cumsum(axis))
        flat = xp.reshape(x, (-1,))
        assert_same_bits(np.asarray(xp.cumulative_sum(flat)), plain.cumsum())
        halved = np.asarray(xp.cumulative_sum(flat) / 2)
        assert_same_bits(halved, plain.cumsum() / np.float32(2))
