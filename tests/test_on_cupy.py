"""Functions that run on CuPy: on real devices the real one, elsewhere one that is none."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fake_cupy
import fklarray as xp
from accuracy import assert_same_bits
from counting import counted
from fklarray import on_cupy
from fklarray_runtime import describe_device

CUDA = "cuda:0"
IS_REAL = "cuda" in os.environ.get("FKLARRAY_TEST_DEVICES", "cpu").split(",")
COUNTS = ("cupy_evaluations", "reference_evaluations")
_random = np.random.default_rng(5)
VALUES = _random.standard_normal((3, 4, 5)).astype(np.float32)
INTEGERS = _random.integers(-9, 9, (4, 6))
SQUARE = _random.standard_normal((4, 4)) + 4 * np.eye(4)
STACK = _random.standard_normal((2, 3, 4, 4)) + 4 * np.eye(4)
SPECTRUM = (VALUES + 1j * VALUES[::-1]).astype(np.complex64)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the fake CuPy, or None where the real one is used; that one must be there."""
    fake = None if IS_REAL else fake_cupy.install(monkeypatch)
    assert on_cupy.cupy_problem() == ""
    yield fake
    monkeypatch.undo()
    fake_cupy.forget()


@pytest.fixture
def fake(cupy: Any) -> Any:
    if cupy is None:
        pytest.skip("looks into the CuPy of the emulated device, which this is not")
    return cupy


def _there(*values: Any) -> list[xp.Array]:
    return [xp.asarray(one, device=CUDA) for one in values]


def _close(got: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            _close(one, other)
        return
    assert (got.device, got.dtype, got.shape) == (CUDA, wanted.dtype, wanted.shape)
    one, other = np.asarray(got), np.asarray(wanted)
    if wanted.dtype.kind in "biu":
        assert_same_bits(one, other)
    else:
        fine = 2e-5 if wanted.dtype in (np.float32, np.complex64) else 1e-11
        np.testing.assert_allclose(one, other, rtol=fine, atol=fine)


# A function and its operands.
Call = tuple[Callable[..., Any], list[Any]]
CALLS: dict[str, Call] = {
    "argsort": (xp.argsort, [VALUES]),
    "argsort of a vector": (lambda x: xp.argsort(x, descending=True), [VALUES[0, 0]]),
    "bincount": (lambda x: xp.bincount(x, minlength=3), [np.abs(INTEGERS[0])]),
    "cholesky": (xp.linalg.cholesky, [SQUARE @ SQUARE.T]),
    "cholesky, upper": (lambda x: xp.linalg.cholesky(x, upper=True), [STACK @ STACK.mT]),
    "det": (xp.linalg.det, [STACK]),
    "det of a matrix": (xp.linalg.det, [SQUARE]),
    "diag": (lambda x: xp.diag(x, 1), [VALUES[0]]),
    "diag of a vector": (xp.diag, [VALUES[0, 0]]),
    "eigvalsh": (xp.linalg.eigvalsh, [SQUARE + SQUARE.T]),
    "fft": (xp.fft.fft, [SPECTRUM]),
    "fft of integers": (lambda x: xp.fft.fft(x, n=9, axis=0, norm="ortho"), [INTEGERS]),
    "fftn": (lambda x: xp.fft.fftn(x, s=(2, 6), axes=(2, 1)), [SPECTRUM]),
    "fftn of a usual length": (lambda x: xp.fft.fftn(x, s=(-1, 6), axes=(0, 1)), [SPECTRUM]),
    "hfft": (lambda x: xp.fft.hfft(x, n=7), [SPECTRUM]),
    "ifft": (xp.fft.ifft, [SPECTRUM]),
    "ifftn": (xp.fft.ifftn, [SPECTRUM]),
    "ihfft": (xp.fft.ihfft, [VALUES]),
    "indexing by a mask": (lambda x: x[x > 0.25], [VALUES]),
    "indexing by a list": (lambda x: x[:, [2, 0, -1]], [VALUES]),
    "indexing apart": (lambda x: x[[0, 2, 1], ..., None, [4, 0, 1]], [VALUES]),
    "indexing beside": (lambda x, i: x[..., i, 1], [VALUES, np.array([[1, 3], [0, -4]])]),
    "indexing of rows": (lambda x, i: x[i[:, 0] > 0], [INTEGERS, INTEGERS]),
    "inv": (xp.linalg.inv, [SQUARE.astype(np.complex64)]),
    "inv of a stack": (xp.linalg.inv, [STACK]),
    "irfft": (xp.fft.irfft, [SPECTRUM]),
    "irfft, odd": (lambda x: xp.fft.irfft(x, n=7, axis=1), [SPECTRUM]),
    "irfftn": (xp.fft.irfftn, [SPECTRUM]),
    "isin": (xp.isin, [INTEGERS, INTEGERS[0]]),
    "isin a number": (lambda x: xp.isin(x, 2), [INTEGERS]),
    "isin, inverted": (lambda x, y: xp.isin(x, y, invert=True), [VALUES, VALUES[1]]),
    "matmul": (xp.matmul, [VALUES, VALUES.mT]),
    "matmul of int": (xp.matmul, [INTEGERS, INTEGERS[0]]),
    "matmul of float16": (xp.matmul, [VALUES[0].astype(np.float16)] * 1 + [VALUES[0, 0]]),
    "matrix_power": (lambda x: xp.linalg.matrix_power(x, -3), [STACK]),
    "matrix_rank": (xp.linalg.matrix_rank, [VALUES[0]]),
    "nonzero": (xp.nonzero, [INTEGERS]),
    "nonzero of NaN": (xp.nonzero, [np.array([[0, np.nan], [-0.0, 1]])]),
    "pad": (lambda x: xp.pad(x, ((1, 2), (0, 0), (7, 3)), mode="reflect"), [VALUES]),
    "pinv": (xp.linalg.pinv, [VALUES[0].astype(np.float64)]),
    "qr": (lambda x: xp.matmul(*xp.linalg.qr(x)), [STACK]),
    "repeat": (lambda x, n: xp.repeat(x, n, axis=1), [VALUES, np.array([2, 0, 1, 3])]),
    "rfft": (xp.fft.rfft, [VALUES]),
    "rfftn": (lambda x: xp.fft.rfftn(x, axes=(0, 1)), [VALUES]),
    "searchsorted": (xp.searchsorted, [np.sort(VALUES[0, 0]), VALUES]),
    "searchsorted of a number": (lambda x: xp.searchsorted(x, 0.5), [np.sort(VALUES[0, 0])]),
    "searchsorted, right": (
        lambda x, y: xp.searchsorted(x, y, side="right"),
        [np.array([-1, 0, 0, 2, np.nan]), np.array([[0.0, np.nan, -0.0], [3, -3, 2]])],
    ),
    "slogdet": (lambda x: tuple(xp.linalg.slogdet(x)), [STACK - 4 * np.eye(4)]),
    "solve": (xp.linalg.solve, [STACK, STACK[:, :1, :, :2]]),
    "solve of a vector": (xp.linalg.solve, [STACK, SQUARE[0]]),
    "sort": (lambda x: xp.sort(x, axis=1, descending=True), [INTEGERS]),
    "sort of bool": (xp.sort, [INTEGERS > 0]),
    "svdvals": (xp.linalg.svdvals, [SQUARE]),
    "take": (lambda x, i: xp.take(x, i, axis=1), [VALUES, np.array([[3, -1], [0, 0]], np.int8)]),
    "take_along_axis": (xp.take_along_axis, [VALUES, np.array([[[4, -5]]])]),
    "tensordot": (lambda x, y: xp.tensordot(x, y, axes=((0, 1), (0, 1))), [VALUES, VALUES]),
    "unique_all": (lambda x: tuple(xp.unique_all(x)), [INTEGERS]),
    "unique_all of one": (lambda x: tuple(xp.unique_all(x)), [np.array(3)]),
    "unique_counts": (lambda x: tuple(xp.unique_counts(x)), [INTEGERS]),
    "unique_inverse": (lambda x: tuple(xp.unique_inverse(x)), [np.round(VALUES)]),
    "unique_values": (xp.unique_values, [np.round(VALUES)]),
}  # fmt: skip


def _turned(x: Any) -> Any:
    return x[(slice(None, None, -1),) * x.ndim]


HOW: dict[str, Callable[[Any], Any]] = {
    "in memory": lambda x: x,
    "pending": lambda x: xp.where(xp.asarray(True, device=CUDA), x, x),
    "strided": lambda x: _turned(xp.asarray(_turned(np.asarray(x)), device=CUDA)),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", CALLS)
def test_on_cupy_as_on_numpy(name: str, how: str, cupy: Any) -> None:
    function, operands = CALLS[name]
    there, here = list(map(HOW[how], _there(*operands))), [xp.asarray(one) for one in operands]
    wanted = function(*here)
    with counted(*COUNTS) as change:
        got = function(*there)
        xp.materialize(*(got if isinstance(got, tuple) else (got,)))
    assert change["cupy_evaluations"] > 0
    assert change["reference_evaluations"] == 0
    _close(got, wanted)
    for one, other in zip(there, here, strict=True):
        assert_same_bits(np.asarray(one), np.asarray(other))


def test_every_row_is_tried() -> None:
    tried = {name.partition(" ")[0].rstrip(",") for name in CALLS} | {"eigh", "svd"}
    assert tried >= set(on_cupy._ROWS)


def test_decompositions_give_the_matrix_back(cupy: Any) -> None:
    (x,) = _there(SQUARE + SQUARE.T)
    with counted(*COUNTS) as change:
        left, lengths, right = xp.linalg.svd(x)
        values, vectors = xp.linalg.eigh(x)
        products = left * lengths @ right, vectors * values @ vectors.mT
        xp.materialize(*products)
    assert change == {"cupy_evaluations": 4, "reference_evaluations": 0}
    for product in products:
        np.testing.assert_allclose(np.asarray(product), SQUARE + SQUARE.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [7, 300, 5000])
@pytest.mark.parametrize("ndim", [1, 2])
def test_order_of_what_compares_as_equal(ndim: int, size: int, cupy: Any) -> None:
    values = np.random.default_rng(3).choice([0.0, -0.0, 1, -1, np.nan, -np.nan, np.inf], size)
    values = values.astype(np.float32).reshape((1,) * (ndim - 1) + (size,))
    x, y = xp.asarray(values, device=CUDA), xp.asarray(values)
    for descending in (False, True):
        got, wanted = (xp.argsort(one, descending=descending) for one in (x, y))
        assert_same_bits(np.asarray(got), np.asarray(wanted))
        got, wanted = (xp.sort(one, descending=descending) for one in (x, y))
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)],
                                      np.signbit(wanted)[~np.isnan(wanted)])  # fmt: skip
        np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
    for one, other in zip(xp.unique_all(x), xp.unique_all(y), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


# What CuPy does otherwise, or not at all.
ON_THE_HOST: dict[str, Call] = {
    "complex sort": (xp.sort, [SPECTRUM]),
    "complex max": (xp.max, [SPECTRUM]),
    "bfloat16 sort": (lambda x: xp.sort(xp.astype(x, xp.bfloat16)), [VALUES]),
    "weights": (xp.bincount, [np.abs(INTEGERS[0]), VALUES.ravel()[:6]]),
    "eig": (lambda x: xp.linalg.eig(x)[0], [SQUARE]),
    "no elements": (lambda x: xp.sort(x[:0]), [VALUES]),
    "two data types": (xp.isin, [INTEGERS, VALUES]),
    "NaN": (xp.unique_values, [np.array([1, np.nan, -np.nan])]),
    "NaN among": (xp.isin, [VALUES, np.array([1, np.nan], np.float32)]),
    "infinite": (lambda x: xp.linalg.inv(x / 0), [SQUARE]),
    "a stack": (xp.linalg.svdvals, [STACK]),
    "scipy": (xp.special.gamma, [VALUES]),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_THE_HOST)
def test_what_cupy_does_otherwise_runs_on_the_host(name: str, cupy: Any) -> None:
    function, operands = ON_THE_HOST[name]
    with counted(*COUNTS) as change:
        got = function(*_there(*operands))
        xp.materialize(got)
    assert change["cupy_evaluations"] == 0
    assert change["reference_evaluations"] > 0
    wanted = np.asarray(function(*map(xp.asarray, operands)))
    assert got.device == CUDA
    np.testing.assert_array_equal(np.asarray(got), wanted)


@pytest.mark.parametrize(
    ("fails", "error", "text"),
    [
        (lambda x: xp.linalg.inv(x * 0), np.linalg.LinAlgError, r"inv of shape \(4, 4\): Singular"),
        (lambda x: xp.linalg.solve(x * 0, x), np.linalg.LinAlgError, "Singular"),
        (lambda x: xp.linalg.cholesky(-x), np.linalg.LinAlgError, "positive definite"),
        (lambda x: xp.linalg.cholesky(0 * STACK[0] - x), np.linalg.LinAlgError, "positive"),
        (lambda x: xp.linalg.matrix_power(x * 0, -1), np.linalg.LinAlgError, "Singular"),
        (lambda x: xp.linalg.inv(xp.stack([x, x * 0])), np.linalg.LinAlgError, "Singular"),
        (lambda x: x[[0, 4]], IndexError, "index 4 is out of bounds"),
        (lambda x: xp.take(x, xp.asarray([-5], device=CUDA), axis=0), IndexError, "index -5"),
        (lambda x: x[:, :, [0]], IndexError, "too many indices"),
        (lambda x: x[x[0] > 0, :, [1]], IndexError, "too many indices"),
        (lambda x: x[[0, 1], [0, 1, 2]], IndexError, "broadcast"),
        (lambda x: x[xp.ones(3, dtype=xp.bool, device=CUDA)], IndexError, "mask|boolean"),
        (lambda x: xp.bincount(xp.asarray([1, -1], device=CUDA)), ValueError, "negative"),
        (lambda x: xp.fft.fft(x, norm="none"), ValueError, "none"),
    ],
)  # fmt: skip
def test_errors_are_numpys(fails: Any, error: type[Exception], text: str, cupy: Any) -> None:
    (x,) = _there(SQUARE @ SQUARE.T)
    with pytest.raises(error, match=text):
        fails(x)
    assert_same_bits(np.asarray(x), SQUARE @ SQUARE.T)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex128", "bool", "uint8"])
def test_gathers_take_any_data_type(dtype: str, cupy: Any) -> None:
    here = xp.astype(xp.asarray(INTEGERS) % 5, getattr(xp, dtype))
    there = here.to_device(CUDA)
    with counted(*COUNTS) as change:
        got = [there[[2, 0], ::2], xp.take(there, *_there([1, 1]), axis=1), there[there != 2]]
        xp.materialize(*got)
    assert change["reference_evaluations"] == 0
    wanted = [here[[2, 0], ::2], xp.take(here, xp.asarray([1, 1]), axis=1), here[here != 2]]
    for one, other in zip(got, wanted, strict=True):
        assert_same_bits(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_of_sixteen_bits(dtype: str, cupy: Any) -> None:
    here = xp.astype(xp.asarray(VALUES), getattr(xp, dtype))
    with counted(*COUNTS) as change:
        got = np.asarray(here.to_device(CUDA) @ here.mT.to_device(CUDA))
    assert change == {"cupy_evaluations": 1, "reference_evaluations": 0}
    fine = 2**-7 if dtype == "bfloat16" else 2**-10
    wanted = np.asarray(here @ here.mT)
    np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=fine, atol=1e-6)


def test_results_are_values_in_shared_memory(cupy: Any) -> None:
    (x,) = _there(VALUES)
    view = on_cupy.on_cupy("sort", lambda values: values, [(x._state, x.shape)], {}, x.device.name)
    y = xp.Array(x.shape, on_cupy.state_of_cupy(view, x._state[0].dtype))
    assert y.__cuda_array_interface__["data"][0] == x.__cuda_array_interface__["data"][0]
    del view
    x[0] = 7
    assert_same_bits(np.asarray(y), VALUES)
    y[1] = 9
    assert np.asarray(x[1]).tolist() == VALUES[1].tolist()
    del x
    gc.collect()
    assert_same_bits(np.asarray(y[2]), VALUES[2])


def test_memory_goes_back(cupy: Any) -> None:
    (x,) = _there(VALUES)
    xp.materialize(xp.sort(x))
    gc.collect()
    before = describe_device(0).pool
    for _ in range(200):
        xp.materialize(xp.sort(x))
    gc.collect()
    assert describe_device(0).pool <= before + (32 << 20)


# ------------------------------------------------------------- how it is called, on the fake


def test_calls_are_queued_on_the_current_stream(fake: Any) -> None:
    (x,) = _there(VALUES)
    fake.stream = SimpleNamespace(ptr=77)
    xp.materialize(xp.sort(x + 1, axis=0))
    assert fake.calls == ["sort", "__dlpack__"]
    assert set(fake.streams) == {77}


def test_errors_of_lapack_are_asked_for(fake: Any) -> None:
    seen: list[str] = []
    (x,) = _there(SQUARE)
    function: Callable[..., Any] = lambda values: seen.append(fake.linalg) or values  # noqa: E731
    on_cupy.on_cupy("inv", function, [(x._state, x.shape)], {}, x.device.name)
    assert (seen, fake.linalg) == (["raise"], "ignore")


def test_what_fails_is_said_once_and_runs_on_the_host(fake: Any) -> None:
    (x,) = _there(VALUES)
    fake.failing["sort"] = [RuntimeError("no such library"), RuntimeError("once is enough")]
    with pytest.warns(RuntimeWarning, match=r"CuPy cannot run sort \(RuntimeError: no such lib"):
        got = np.asarray(xp.sort(x))
    assert_same_bits(got, np.sort(VALUES))
    assert_same_bits(np.asarray(xp.sort(-x)), np.sort(-VALUES))
    assert len(fake.failing["sort"]) == 2 - 1
    assert "no such library" in "".join(xp.explain(xp.sort(x) + 1).reasons)


def test_memory_that_is_short_is_trimmed_for(fake: Any) -> None:
    (x,) = _there(VALUES)
    fake.failing["sort"] = [MemoryError("the pool")]
    with counted(*COUNTS) as change:
        np.asarray(xp.sort(x))
    assert change == {"cupy_evaluations": 1, "reference_evaluations": 0}
    fake.failing["sort"] = [MemoryError("the pool"), MemoryError("the device")]
    with counted(*COUNTS) as change:
        assert_same_bits(np.asarray(xp.sort(-x)), np.sort(-VALUES))
    assert change == {"cupy_evaluations": 0, "reference_evaluations": 1}


def test_explain_and_doctor_tell(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from fklarray.doctor import run

    (x,) = _there(VALUES)
    assert "sort runs on CuPy" in xp.explain(xp.sort(x) * 2).reasons
    reasons = "".join(xp.explain(xp.max(xp.astype(x, xp.complex64))[None] * 2).reasons)
    assert "NumPy, on copies of the host" in reasons
    run()
    assert "runs on CuPy" in " ".join(capsys.readouterr().out.split())


def test_another_drivers_memory_is_not_touched(fake: Any) -> None:
    import cupy

    cupy.cuda.runtime.pointerGetAttributes = lambda address: SimpleNamespace(device=-2)
    on_cupy.cupy_problem.cache_clear()
    assert "does not know this process' memory" in on_cupy.cupy_problem()
    (x,) = _there(VALUES)
    with counted(*COUNTS) as change:
        assert_same_bits(np.asarray(xp.sort(x)), np.sort(VALUES))
    assert change == {"cupy_evaluations": 0, "reference_evaluations": 1}
