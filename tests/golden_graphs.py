"""Representative expressions, whose C++ text is kept in ``golden/``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import fklarray as xp

FOLDER = Path(__file__).parent / "golden"


def _array(*shape: int, dtype: str = "float32") -> xp.Array:
    return xp.asarray(np.ones(shape, dtype))


def _six_operations() -> tuple[xp.Array, ...]:
    x = _array(64, 100)
    return (xp.sqrt(xp.abs(x * 2.0 + 1.0)) / 3.0 - x,)


def _row_and_exponential() -> tuple[xp.Array, ...]:
    a, b, c = _array(64, 100), _array(100), _array(64, 100)
    return (a * b + xp.exp(2 * c),)


def _where_with_casts() -> tuple[xp.Array, ...]:
    pixels, gain = _array(64, 100, dtype="uint8"), _array(64, 1, dtype="float64")
    level = xp.astype(pixels, xp.float32) / 255
    return (xp.where(level > 0.5, xp.astype(gain, xp.float32), level - 1),)


def _two_results() -> tuple[xp.Array, ...]:
    x, y = _array(64, 100, dtype="float64"), _array(64, 100, dtype="float64")
    radius = xp.hypot(x, y)
    return x / radius, xp.astype(xp.floor(radius), xp.int64)


def _complex_and_strided() -> tuple[xp.Array, ...]:
    signal, window = _array(64, 200, dtype="complex64"), _array(64, 100)
    return ((1j - signal[:, ::-2]) * window[:, ::-1],)


GRAPHS: dict[str, Callable[[], tuple[xp.Array, ...]]] = {
    "six_operations": _six_operations,
    "row_and_exponential": _row_and_exponential,
    "where_with_casts": _where_with_casts,
    "two_results": _two_results,
    "complex_and_strided": _complex_and_strided,
}


def _standardised_rows() -> tuple[xp.Array, ...]:
    x = _array(64, 100)
    spread = xp.std(x, axis=1, keepdims=True) + 1e-5
    return ((x - xp.mean(x, axis=1, keepdims=True)) / spread,)


def _softmax_of_columns() -> tuple[xp.Array, ...]:
    return (xp.nn.softmax(_array(64, 100, dtype="float64"), axis=0),)


def _several_reductions() -> tuple[xp.Array, ...]:
    x = _array(64, 100, dtype="int16")
    return xp.argmax(x, axis=1), xp.sum(x, axis=1, dtype=xp.int64)


def _shares_up_to_each() -> tuple[xp.Array, ...]:
    x = _array(64, 100)
    return (xp.cumulative_sum(x, axis=1) / xp.sum(x, axis=1, keepdims=True),)


STAGED: dict[str, Callable[[], tuple[xp.Array, ...]]] = {
    "standardised_rows": _standardised_rows,
    "softmax_of_columns": _softmax_of_columns,
    "several_reductions": _several_reductions,
    "shares_up_to_each": _shares_up_to_each,
}


def _pixels_to_planes() -> tuple[xp.Array, ...]:
    pixels = _array(2, 30, 40, 3, dtype="uint8").to_device("cuda")
    return (xp.permute_dims(xp.astype(pixels, xp.float32) / 255, (0, 3, 1, 2)),)


def _planes_to_pixels() -> tuple[xp.Array, ...]:
    planes = _array(2, 3, 30, 40).to_device("cuda")
    return (xp.permute_dims(planes * 0.5, (0, 2, 3, 1)),)


def _sum_with_transposed() -> tuple[xp.Array, ...]:
    x, y, z = (_array(*shape).to_device("cuda") for shape in ((64, 100), (100, 64), (64, 1)))
    return (x.T + y * z.T,)


# Of arrays on a device, where some streams are read or written in tiles.
TILED: dict[str, Callable[[], tuple[xp.Array, ...]]] = {
    "pixels_to_planes": _pixels_to_planes,
    "planes_to_pixels": _planes_to_pixels,
    "sum_with_transposed": _sum_with_transposed,
}


def _softmax_of_long_rows() -> tuple[xp.Array, ...]:
    return (xp.nn.softmax(_array(3, 70_000).to_device("cuda"), axis=1),)


def _tall_columns_up_to_each() -> tuple[xp.Array, ...]:
    x = _array(2000, 600).to_device("cuda")
    return (xp.cumulative_sum(x, axis=0) / xp.sum(x, axis=0),)


# Of arrays on a device, whose rows or columns are few: blocks share them.
SHARED: dict[str, Callable[[], tuple[xp.Array, ...]]] = {
    "softmax_of_long_rows": _softmax_of_long_rows,
    "tall_columns_up_to_each": _tall_columns_up_to_each,
}

ALL = GRAPHS | STAGED | TILED | SHARED


def source(name: str) -> str:
    """Return today's C++ text of one of the expressions."""
    return xp.explain(*ALL[name]()).source
