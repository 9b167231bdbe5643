"""NumPy's version of the special functions that kernels have, for machines without a compiler."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["SPECIAL_FUNCTIONS"]

_Values = np.ndarray[Any, np.dtype[Any]]


def _log_gamma(x: float) -> float:
    if x == -math.inf:
        return x
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # a pole, or beyond the range
        return math.inf


_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])
_gammaln = np.vectorize(_log_gamma, otypes=[np.float64])


def _expit(x: _Values) -> _Values:
    exponential = np.exp(-np.abs(x))
    numerator = np.where(x < 0, exponential, np.where(np.isnan(x), x, 1))
    return np.asarray(numerator / (1 + exponential))


def _logit(x: _Values) -> _Values:
    x = x.astype(np.float64)
    middle = 2 * x - 1
    inner: _Values = 2 * np.arctanh(middle)
    return np.where(np.abs(middle) < 0.5, inner, np.log(x / (1 - x)))


def _ndtr(x: _Values) -> _Values:
    return np.asarray(0.5 * _erfc(-x.astype(np.float64) * math.sqrt(0.5)))


def _log_ndtr(x: _Values) -> _Values:
    x = x.astype(np.float64)
    tail = _ndtr(-np.abs(x))
    inverse = 1 / (x * x)
    series = inverse * (inverse * (inverse * (inverse * (105 - 945 * inverse) - 15) + 3) - 1)
    half_log_two_pi = 0.5 * math.log(2 * math.pi)
    far = np.log1p(series) - np.log(np.abs(x)) - half_log_two_pi - x * x / 2
    return np.where(x < 0, np.where(x < -30, far, np.log(tail)), np.log1p(-tail))


def _entr(x: _Values) -> _Values:
    return np.where(x == 0, 0, np.where(x < 0, -np.inf, -x * np.log(x)))


def _xlog1py(x1: _Values, x2: _Values) -> _Values:
    return np.where((x1 == 0) & ~np.isnan(x2), 0, x1 * np.log1p(x2))


def _xlogy(x1: _Values, x2: _Values) -> _Values:
    return np.where((x1 == 0) & ~np.isnan(x2), 0, x1 * np.log(x2))


def _rel_entr(x1: _Values, x2: _Values) -> _Values:
    ratio = x1.astype(np.float64) / x2
    near = (ratio > 0.5) & (ratio < 2)
    lost = (ratio < 2.0**-1000) | (ratio > 2.0**1000)
    logarithm = np.where(
        near,
        np.log1p((x1 - x2) / x2, dtype=np.float64),
        np.where(lost, np.log(x1) - np.log(x2), np.log(ratio)),
    )
    outside = np.where((x1 == 0) & (x2 >= 0), 0, np.inf)
    result = np.where((x1 > 0) & (x2 > 0), x1 * logarithm, outside)
    return np.where(np.isnan(x1) | np.isnan(x2), np.nan, result)


SPECIAL_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "entr": _entr,
    "erf": _erf,
    "erfc": _erfc,
    "expit": _expit,
    "gammaln": _gammaln,
    "log_ndtr": _log_ndtr,
    "logit": _logit,
    "ndtr": _ndtr,
    "rel_entr": _rel_entr,
    "xlog1py": _xlog1py,
    "xlogy": _xlogy,
}
