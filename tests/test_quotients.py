"""Quotients by a number round correctly, whichever way a processor divides."""

from __future__ import annotations

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits

INTEGERS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
# Within the exponents for which there is a short way, at their ends, and beyond.
DIVISORS = (
    *(255.0, 2.5, -3.0, 1 / 3, 1.0, 2.0**-60, -(2.0**60), 2.0**59 * 1.9999998, 2.0**-61),
    *(1e-40, -1e-45, 3e38, -0.0, 0.0, np.inf, -np.inf, np.nan),
)


def _floats() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Every exponent with a few significands, both signs; and any bits."""
    rng = np.random.default_rng(5)
    exponents = np.arange(256, dtype=np.uint32) << 23
    ends = np.array([0, 1, 2, 0x400000, 0x7FFFFE, 0x7FFFFF], np.uint32)
    positive = (exponents[:, None] | ends).ravel()
    bits = np.concatenate([positive, positive | np.uint32(1 << 31)])
    return np.concatenate([bits, rng.integers(0, 1 << 32, 20_000, np.uint32)]).view(np.float32)


@pytest.mark.parametrize("divisor", DIVISORS)
def test_floats(divisor: float, device: str) -> None:
    values = _floats()
    with np.errstate(all="ignore"):
        wanted = values / np.float32(divisor)
    assert_same_bits(np.asarray(xp.asarray(values, device=device) / divisor), wanted)


def test_dividends_near_each_other(device: str) -> None:
    """Zeros between other numbers, which take the long way with them."""
    values = np.zeros(1000, np.float32)
    values[::7] = np.linspace(-3, 3, 143, dtype=np.float32)
    values[5] = -0.0
    got = np.asarray(xp.asarray(values, device=device) / -1.7)
    assert_same_bits(got, values / np.float32(-1.7))


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str, device: str) -> None:
    rng = np.random.default_rng(6)
    dtype = np.dtype(name)
    bits = rng.integers(0, 256, 1000 * dtype.itemsize, np.uint8)
    integers = np.append(bits > 127 if name == "bool" else bits.view(dtype), np.zeros(9, dtype))
    array = xp.asarray(integers, device=device)
    for divisor in DIVISORS:
        with np.errstate(all="ignore"):
            wanted = integers.astype(np.float32) / np.float32(divisor)
        assert_same_bits(np.asarray(xp.astype(array, xp.float32) / divisor), wanted)
