"""Reductions fuse with what is before and after them, in an order that the shape alone decides."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from counting import counted
from fklarray.fusion import MAX_PASSES

RNG = np.random.default_rng(20)
KERNELS = ("kernels_launched", "reference_evaluations")


def _standardised(x: Any, axis: int) -> Any:
    mean = xp.mean(x, axis=axis, keepdims=True)
    return (x - mean) / (xp.std(x, axis=axis, keepdims=True) + 1e-3)


def _layer_norm(x: Any) -> Any:
    mean = xp.mean(x, axis=-1)[:, None]
    variance = xp.mean(xp.square(x - mean), axis=-1)[:, None]
    scale = xp.arange(x.shape[-1], dtype=x.dtype)
    return (x - mean) / xp.sqrt(variance + 1e-3) * scale + 1


# An expression, and NumPy's in float64.
FUSED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "prologue": (lambda x: xp.sum(xp.exp(x) * 2, axis=1), lambda n: (np.exp(n) * 2).sum(1)),
    "across": (lambda x: xp.sum(xp.exp(x) * 2, axis=0), lambda n: (np.exp(n) * 2).sum(0)),
    "epilogue": (
        lambda x: xp.sqrt(xp.sum(x * x, axis=1)) + 1,
        lambda n: np.sqrt((n * n).sum(1)) + 1,
    ),
    "several": (
        lambda x: xp.max(x, axis=1) - xp.min(x, axis=1) + xp.sum(x, axis=1),
        lambda n: n.max(1) - n.min(1) + n.sum(1),
    ),
    "variance": (lambda x: xp.var(x, axis=1), lambda n: n.var(1)),
    "standardised rows": (
        lambda x: _standardised(x, 1),
        lambda n: (n - n.mean(1, keepdims=True)) / (n.std(1, keepdims=True) + 1e-3),
    ),
    "standardised columns": (
        lambda x: _standardised(x, 0),
        lambda n: (n - n.mean(0)) / (n.std(0) + 1e-3),
    ),
    "layer norm": (
        _layer_norm,
        lambda n: (n - n.mean(1, keepdims=True))
        / np.sqrt(n.var(1, keepdims=True) + 1e-3)
        * np.arange(n.shape[1])
        + 1,
    ),
    "softmax": (
        lambda x: xp.nn.softmax(x, axis=1),
        lambda n: np.exp(n) / np.exp(n).sum(1, keepdims=True),
    ),
    "log_softmax": (
        lambda x: xp.nn.log_softmax(x, axis=0),
        lambda n: n - np.log(np.exp(n).sum(0)),
    ),
    "logsumexp": (lambda x: xp.logsumexp(x, axis=1), lambda n: np.log(np.exp(n).sum(1))),
    "places": (lambda x: xp.argmax(xp.sin(x), axis=1), lambda n: np.sin(n).argmax(1)),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(40, 300), (300, 40), (1, 700), (33, 129), (5, 3), (2, 1)])
@pytest.mark.parametrize("name", FUSED)
def test_one_kernel_computes_the_whole(name: str, shape: tuple[int, int], device: str) -> None:
    function, wanted = FUSED[name]
    values = RNG.standard_normal(shape)
    x = xp.asarray(values, device=device)
    with counted(*KERNELS) as change:
        result = np.asarray(function(x))
    assert change["reference_evaluations"] == 0
    assert change["kernels_launched"] == 1
    np.testing.assert_allclose(result, wanted(values), rtol=1e-12, atol=1e-12)


def test_results_on_the_way_are_not_computed_again(device: str) -> None:
    x = xp.asarray(RNG.standard_normal((50, 200)), device=device)
    total = xp.sum(x, axis=1)
    np.asarray(x - total[:, None])
    with counted(*KERNELS) as change:
        np.testing.assert_allclose(np.asarray(total), np.asarray(x).sum(1), rtol=1e-12)
    assert change["kernels_launched"] == 0


def test_several_arrays_of_one_shape_are_one_pass(device: str) -> None:
    x = xp.asarray(RNG.standard_normal((50, 200)), device=device)
    found = xp.mean(x, axis=1), xp.std(x, axis=1), xp.max(x, axis=1)
    with counted(*KERNELS) as change:
        xp.materialize(*found)
    assert change["kernels_launched"] == 1
    n = np.asarray(x)
    for result, wanted in zip(found, (n.mean(1), n.std(1), n.max(1)), strict=True):
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-12)


LAYOUTS: dict[str, Callable[[Any], xp.Array]] = {
    "C": xp.asarray,
    "F": lambda n: xp.asarray(np.ascontiguousarray(n.T)).T,
    "reversed": lambda n: xp.flip(xp.asarray(np.ascontiguousarray(n[::-1, ::-1]))),
    "slices": lambda n: xp.asarray(np.repeat(np.repeat(n, 2, 0), 3, 1))[::2, ::3],
    "pending": lambda n: xp.asarray(n * 2) / 2,
}


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "max", "argmin", "any"])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("shape", [(100, 300), (1000, 20), (3, 5000), (700, 600)])
def test_bits_depend_on_the_shape_alone(
    name: str, axis: int | None, shape: tuple[int, int], device: str
) -> None:
    values = (RNG.standard_normal(shape) + (1 if name == "prod" else 0)).astype(np.float32)
    reduction = getattr(xp, name)
    first, *others = [np.asarray(reduction(make(values), axis=axis)) for make in LAYOUTS.values()]
    for other in others:
        np.testing.assert_array_equal(other, first)


def _rounded_product(a: Any, b: Any) -> Any:
    real = a.real * b.real - a.imag * b.imag
    return real + 1j * (a.real * b.imag + a.imag * b.real)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("axis", [0, 1])
def test_products_of_complex_numbers_are_rounded_one_by_one(axis: int, dtype: str) -> None:
    """Compilers may fuse what is computed of single numbers, though they are told not to."""
    parts = RNG.standard_normal((2, 64, 32))
    wanted = values = (parts[0] + 1j * parts[1]).astype(dtype)
    while wanted.shape[1] > 1:  # 32 elements are 32 partial values, which are folded in halves
        half = wanted.shape[1] // 2
        wanted = _rounded_product(wanted[:, :half], wanted[:, half:]).astype(dtype)
    found = xp.prod(xp.asarray(values if axis else values.T.copy()), axis=axis)
    np.testing.assert_array_equal(np.asarray(found), wanted[:, 0])


@pytest.mark.parametrize("width", [2879, 2881, 2887, 2888, 2889, 4320 + 1])
def test_tiles_of_columns_do_not_touch_each_others_elements(width: int, device: str) -> None:
    """The last pack of a row is moved back, and may lie in a tile of its own."""
    values = RNG.standard_normal((50, width)).astype(np.float32)
    exponential = np.exp(values - values.max(0))
    for threads in (1, 2):
        with xp.config.override(threads=threads):
            found = np.asarray(xp.nn.softmax(xp.asarray(values, device=device), axis=0))
            np.testing.assert_allclose(found, exponential / exponential.sum(0), rtol=1e-4)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_do_not_depend_on_the_threads(axis: int | None, dtype: str, device: str) -> None:
    for shape in ((3, 300_001), (300_001, 3), (900, 1000), (40_000, 20)):
        values = RNG.standard_normal(shape).astype(dtype)
        results = []
        for threads in (1, 2, 3, 7):
            with xp.config.override(threads=threads):
                x = xp.asarray(values, device=device)
                results.append(np.asarray(xp.sum(xp.exp(x), axis=axis)))
        for other in results[1:]:
            np.testing.assert_array_equal(other, results[0])


def test_a_sum_over_two_axes_is_a_sum_of_sums(device: str) -> None:
    values = RNG.standard_normal((1000, 900)).astype(np.float32)
    x = xp.asarray(values, device=device)
    np.testing.assert_array_equal(
        np.asarray(xp.sum(x)), np.asarray(xp.sum(xp.sum(x, axis=1), axis=0))
    )


# Sums whose terms cancel, grow, or differ by many orders of magnitude.
ADVERSARIAL: dict[str, Callable[[int], Any]] = {
    "equal": lambda n: np.full(n, 0.1),
    "growing": lambda n: np.linspace(0, 1, n) ** 8 * 1e6,
    "cancelling": lambda n: np.resize([1e6, 1.0, -1e6, 1e-3], n),
    "random": lambda n: RNG.standard_normal(n) * 10.0 ** RNG.integers(-4, 4, n),
    "one large": lambda n: np.r_[1e7, np.full(n - 1, 0.01)],
}


@pytest.mark.parametrize("kind", ADVERSARIAL)
@pytest.mark.parametrize("count", [1000, 33_333, 1_000_003])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_are_no_worse_than_pairwise_ones(
    kind: str, count: int, axis: int, device: str
) -> None:
    values = ADVERSARIAL[kind](count).astype(np.float32)
    exact = math.fsum(values.tolist())
    magnitude = math.fsum(np.abs(values).tolist())
    matrix = np.stack([values] * 17, axis=1 - axis)
    results = np.asarray(xp.sum(xp.asarray(matrix, device=device), axis=axis), dtype=np.float64)
    # The bound of the order in which elements are combined: 16 steps in a chunk, 5 to fold it, and
    # one for each doubling of the chunks.
    steps = 16 + 5 + max(0, math.ceil(math.log2(count / 512)))
    assert np.abs(results - exact).max() <= steps * 2.0**-24 * magnitude + abs(exact) * 2.0**-24
    pairwise = abs(float(np.sum(values)) - exact)
    assert np.abs(results - exact).max() <= pairwise + 6 * 2.0**-24 * magnitude


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64", "int32", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_are_the_first_ones(dtype: str, axis: int, device: str) -> None:
    for shape in ((400, 37), (37, 400), (3, 5), (1, 1), (130, 130)):
        values = RNG.integers(0, 3, shape).astype(dtype)
        x = xp.asarray(values, device=device)
        for name in ("argmax", "argmin"):
            found = np.asarray(getattr(xp, name)(x, axis=axis))
            np.testing.assert_array_equal(found, getattr(values, name)(axis=axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_and_their_places_agree_on_nan(axis: int, device: str) -> None:
    values = RNG.standard_normal((260, 270))
    values[RNG.random(values.shape) < 0.003] = np.nan
    values[7] = -np.inf
    values[:, 9] = np.nan
    x = xp.asarray(values, device=device)
    for extreme, place in (("max", "argmax"), ("min", "argmin")):
        greatest = np.asarray(getattr(xp, extreme)(x, axis=axis))
        index = np.asarray(getattr(xp, place)(x, axis=axis))
        np.testing.assert_array_equal(greatest, getattr(values, extreme)(axis=axis))
        np.testing.assert_array_equal(index, getattr(values, place)(axis=axis))


@pytest.mark.parametrize("count", [*range(1, 37), 127, 129, 511, 512, 513, 1024, 1025, 1537, 32769])
def test_every_length_is_reduced_whole(count: int, device: str) -> None:
    values = RNG.integers(-1000, 1000, (3, count))
    for matrix, axis in ((values, 1), (np.ascontiguousarray(values.T), 0)):
        for dtype in ("float32", "float64", "int16", "int64"):
            x = xp.asarray(matrix.astype(dtype), device=device)
            np.testing.assert_array_equal(np.asarray(xp.sum(x, axis=axis)), matrix.sum(axis))
            np.testing.assert_array_equal(np.asarray(xp.max(x, axis=axis)), matrix.max(axis))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_of_equal_zeros_every_layout_takes_the_same(dtype: str, device: str) -> None:
    for count in (*range(1, 70, 3), 80, 112, 120, 513, 600):
        values = np.where(RNG.random((21, count)) < 0.5, -0.0, 0.0).astype(dtype)
        along = xp.asarray(values, device=device)
        across = xp.asarray(np.ascontiguousarray(values.T), device=device)
        back = xp.asarray(np.ascontiguousarray(values[:, ::-1]), device=device)[:, ::-1]
        for extreme in (xp.max, xp.min):
            signs = np.signbit(np.asarray(extreme(along, axis=1)))
            np.testing.assert_array_equal(np.signbit(np.asarray(extreme(across, axis=0))), signs)
            np.testing.assert_array_equal(np.signbit(np.asarray(extreme(back, axis=1))), signs)


def test_what_is_too_long_to_fuse_is_computed_once_for_all(device: str) -> None:
    x = xp.asarray(RNG.random((30, 40)), device=device)
    for _ in range(MAX_PASSES):
        x = xp.exp(x - xp.mean(x, axis=1, keepdims=True))
    total = xp.sum(x, axis=1)
    assert x._state[0].operations == 0  # a result that both read
    np.testing.assert_allclose(np.asarray(total), np.asarray(x).sum(1), rtol=1e-13)


def test_zeros_keep_their_sign(device: str) -> None:
    for count in (1, 3, 200):
        x = xp.asarray(np.full((2, count), -0.0), device=device)
        assert np.signbit(np.asarray(xp.sum(x, axis=1))).all()
    assert not np.signbit(np.asarray(xp.sum(xp.zeros((2, 0)), axis=1))).any()


@pytest.mark.parametrize("shape", [(4, 5, 6), (2, 600, 3), (600, 2, 2), (1, 7, 1, 9)])
def test_any_axes_of_any_shape(shape: tuple[int, ...], device: str) -> None:
    values = RNG.standard_normal(shape)
    x = xp.asarray(values, device=device)
    turned = xp.permute_dims(xp.asarray(values.transpose()), tuple(range(len(shape)))[::-1])
    axes = range(len(shape))
    for chosen in ((), *[(a,) for a in axes], *[(a, b) for a in axes for b in axes if a < b], None):
        for operand in (x, turned, x * 1.0):
            result = xp.sum(operand, axis=chosen, keepdims=True)
            wanted = values.sum(chosen, keepdims=True)
            np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-12, atol=1e-12)


def test_a_chain_of_reductions_is_cut_where_it_grows_too_long(device: str) -> None:
    values = RNG.standard_normal((20, 30))
    x, wanted = xp.asarray(values, device=device), values
    for _ in range(40):
        x = x - xp.mean(x, axis=1, keepdims=True) + xp.max(x, axis=1, keepdims=True)
        wanted = wanted - wanted.mean(1, keepdims=True) + wanted.max(1, keepdims=True)
    np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-9)


def test_many_threads_reduce_at_once(device: str) -> None:
    x = xp.asarray(RNG.standard_normal((300, 400)), device=device)
    wanted = np.asarray(x).var(1)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                np.testing.assert_allclose(np.asarray(xp.var(x, axis=1)), wanted, rtol=1e-10)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_of_one_pending_reduction_agree(device: str) -> None:
    x = xp.asarray(RNG.standard_normal((300, 400)), device=device)
    total = xp.sum(x, axis=1)
    centred = x - total[:, None]
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda array=array: found.append(np.asarray(array).sum()))
        for array in (total, centred, total * 2, centred + 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4


def test_a_forked_child_reduces(device: str) -> None:
    script = """
import os, numpy as np, fklarray as xp
x = xp.asarray(np.ones((2000, 500)))
assert float(xp.sum(xp.sum(x, axis=1))) == 1e6
pid = os.fork()
if not pid:
    os._exit(0 if float(xp.sum(xp.sum(x + 1, axis=0))) == 2e6 else 1)
assert os.waitpid(pid, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", script], check=True)
