"""The fft extension: values and data types of NumPy's transforms, shifts, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp

RANDOM = np.random.default_rng(22)
ALONG_ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
OVER_SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn"]
OF_REAL = ["rfft", "rfftn", "ihfft"]
TO_REAL = ["irfft", "irfftn", "hfft"]


def _values(dtype: str, shape: tuple[int, ...] = (4, 5, 6)) -> np.ndarray:
    values = RANDOM.normal(size=shape) * 4
    return (values + 1j * RANDOM.normal(size=shape) if dtype[0] == "c" else values).astype(dtype)


def _check(found: xp.Array, wanted: np.ndarray) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    tolerance = 1e-4 if found.itemsize == np.dtype(wanted.real.dtype).itemsize == 4 else 1e-5
    if wanted.real.dtype == np.float64:
        tolerance = 1e-11
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ALONG_ONE)
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int16", "bool"]
)
def test_transforms_along_one_axis(name: str, dtype: str, device: str) -> None:
    values = _values(dtype)
    x = xp.asarray(values, device=device)
    ours, numpy = getattr(xp.fft, name), getattr(np.fft, name)
    if name in OF_REAL and dtype[0] == "c":
        with pytest.raises(TypeError, match=f"{name} needs real values, not {dtype}"):
            ours(x)
        return
    precision = np.float32 if dtype in ("float32", "complex64") else np.float64
    wanted = np.dtype(precision) if name in TO_REAL else np.result_type(precision, np.complex64)
    assert ours(x).dtype == wanted
    _check(ours(x), numpy(values))
    _check(ours(x * 2, norm="ortho"), numpy(values * 2, norm="ortho"))
    for keywords in (
        {"n": 4}, {"n": 9, "axis": 0}, {"axis": -2, "norm": "forward"}, {"n": 1, "norm": "backward"}
    ):  # fmt: skip
        _check(ours(x, **keywords), numpy(values, **keywords))


@pytest.mark.parametrize("name", OVER_SEVERAL)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "uint8"])
def test_transforms_over_several_axes(name: str, dtype: str, device: str) -> None:
    values = _values(dtype)
    x = xp.asarray(values, device=device)
    ours, numpy = getattr(xp.fft, name), getattr(np.fft, name)
    if name in OF_REAL and dtype[0] == "c":
        with pytest.raises(TypeError, match=f"{name} needs real values"):
            ours(x)
        return
    _check(ours(x), numpy(values))
    keywords: Any
    for keywords in (
        {"axes": (0, -1)}, {"axes": [1], "norm": "ortho"},
        {"s": (3, 8), "axes": (2, 0), "norm": "forward"}, {"s": (-1, 4), "axes": (0, 1)},
        {"s": (2, 3, 4), "axes": (0, 0, 1)},
    ):  # fmt: skip
        _check(ours(x, **keywords), numpy(values, **keywords))


PAIRS: list[tuple[Callable[..., xp.Array], Callable[..., xp.Array], str]] = [
    (xp.fft.fft, xp.fft.ifft, "complex64"),
    (xp.fft.ifft, xp.fft.fft, "complex128"),
    (xp.fft.rfft, xp.fft.irfft, "float32"),
    (xp.fft.ihfft, xp.fft.hfft, "float64"),
]


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].__name__)
def test_an_inverse_gives_the_values_back(pair: Any, norm: str, device: str) -> None:
    values = _values(pair[2], (3, 8))
    x = xp.asarray(values, device=device)
    _check(pair[1](pair[0](x, norm=norm), norm=norm), values)
    odd = pair[1](pair[0](x[:, :7], norm=norm), n=7, norm=norm)
    _check(odd, values[:, :7])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_are_transformed_in_float32(dtype: str, device: str) -> None:
    x = xp.asarray([1, 2, 4, 8], dtype=getattr(xp, dtype), device=device)
    _check(xp.fft.fft(x), np.fft.fft(np.asarray([1, 2, 4, 8], np.float32)))
    _check(xp.fft.irfft(x), np.fft.irfft(np.asarray([1, 2, 4, 8], np.float32)))


def test_transforms_name_what_is_wrong(device: str) -> None:
    x = xp.ones((2, 3), device=device)
    for name in ALONG_ONE:
        function = getattr(xp.fft, name)
        for axis in (2, -3):
            with pytest.raises(np.exceptions.AxisError):
                function(x, axis=axis)
        with pytest.raises(np.exceptions.AxisError):
            function(xp.asarray(1.0, device=device))
        with pytest.raises(ValueError, match="0"):
            function(x, n=0)
        with pytest.raises(ValueError, match="unitary"):
            function(x, norm="unitary")
        with pytest.raises(TypeError, match=f"{name} takes an array"):
            function([1.0, 2.0])
    for name in OVER_SEVERAL:
        function = getattr(xp.fft, name)
        with pytest.raises(np.exceptions.AxisError):
            function(x, axes=(0, 2))
        with pytest.raises(ValueError, match=f"{name} needs axes"):
            function(x, s=(2, 3))
        for s, axes in (((2, 3, 4), (0, 1)), ((3, 2), (0,)), ((2,), (0, 1))):
            with pytest.raises(ValueError, match="lengths"):
                function(x, s=s, axes=axes)
    with pytest.raises(ValueError, match="0"):
        xp.fft.fft(xp.ones((2, 0), device=device))


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name: str, device: str) -> None:
    ours, numpy = getattr(xp.fft, name), getattr(np.fft, name)
    for count in (1, 2, 7, 8):
        _check(ours(count, device=device), numpy(count))
        _check(ours(count, d=0.25), numpy(count, d=0.25))
        _check(ours(count, dtype=xp.float32), numpy(count).astype(np.float32))
    assert ours(4, dtype=xp.bfloat16).dtype == xp.bfloat16
    for dtype in (xp.int64, xp.complex64, xp.bool):
        with pytest.raises(TypeError, match=f"{name} gives real"):
            ours(4, dtype=dtype)
    with pytest.raises(ValueError, match="integer"):
        ours(2.5)
    with pytest.raises(ValueError, match="nowhere"):
        ours(4, device="nowhere")
    with pytest.raises(ZeroDivisionError):
        ours(0)


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (4, 5), (3, 0, 2)], ids=str)
def test_shifts_and_their_inverses(shape: tuple[int, ...], device: str) -> None:
    values = RANDOM.integers(0, 99, shape)
    x = xp.asarray(values, device=device)
    for axes in (None, 0, -1, tuple({0, len(shape) - 1})):
        shifted = xp.fft.fftshift(x, axes=axes)
        assert np.asarray(shifted).tolist() == np.fft.fftshift(values, axes=axes).tolist()
        back = xp.fft.ifftshift(x, axes=axes)
        assert np.asarray(back).tolist() == np.fft.ifftshift(values, axes=axes).tolist()
        assert np.asarray(xp.fft.ifftshift(shifted, axes=axes)).tolist() == values.tolist()
    with pytest.raises(np.exceptions.AxisError):
        xp.fft.fftshift(x, axes=len(shape))


def test_no_axes_are_shifted_by_nothing(device: str) -> None:
    x = xp.asarray([[1, 2], [3, 4]], device=device)
    assert np.asarray(xp.fft.fftshift(x, axes=())).tolist() == [[1, 2], [3, 4]]
    assert int(xp.fft.ifftshift(x[0, 1])) == 2


def test_shifts_are_recorded(device: str) -> None:
    x = xp.asarray([1, 2, 3, 4], device=device)
    before = xp.counters()
    found = xp.fft.fftshift(x * 2)
    assert xp.counters()["flushes"] == before["flushes"]
    assert np.asarray(found).tolist() == [6, 8, 2, 4]
