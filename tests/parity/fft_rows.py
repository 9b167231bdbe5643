"""Rows of `fft`: NumPy's transforms, up to ``4 log2(n)`` units of roundoff of the sum of moduli."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from parity.expectations import Within
from parity.operands import (
    COMPLEX,
    EVERY,
    FLOATS,
    NARROW,
    SOLID_SHAPES,
    Call,
    Values,
    axes_of,
    axis_of,
    call,
    inputs,
    tame_values,
)
from parity.rows import Row, normal_axis, roundoff, widest

_REAL_ONLY = ("rfft", "rfftn", "ihfft")
_NORMS = st.sampled_from(["backward", "backward", "ortho", "forward", "sideways"])


def _operand(name: str, x: Values) -> Values:
    if x.dtype.name in COMPLEX and name in _REAL_ONLY:
        raise TypeError(x.dtype)
    # NumPy's own computes float16 in float16, and does not know bfloat16.
    return x.astype(np.float32) if x.dtype.name in NARROW else x


def _transform(name: str) -> Any:
    function = getattr(np.fft, name)

    def reference(x: Values, **keywords: Any) -> Within:
        x = _operand(name, x)
        if keywords.get("s") is not None and keywords.get("axes") is None:
            # NumPy deprecates it.
            raise ValueError(keywords)
        if keywords.get("n") and 0 in x.shape:
            # NumPy's inverse transforms of real values read elements that are not there.
            axis = normal_axis(keywords["axis"], x.ndim)
            x = np.zeros([n or int(place == axis) for place, n in enumerate(x.shape)], x.dtype)
        # Errors, data type and shape are those of the data type itself.
        plain = function(x, **keywords)
        exact = function(widest(x), **keywords)
        unit = 4 * np.log2(2 + plain.size + x.size) * roundoff(plain.dtype)
        # No output is larger than the sum of all moduli, whatever the normalisation.
        return Within(exact, plain.dtype, unit * np.sum(np.abs(widest(x))))

    return reference


@st.composite
def _along_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs(EVERY, st.one_of(SOLID_SHAPES, st.just(()), st.just((2, 0))), tame_values))
    n = draw(st.sampled_from([None, None, 1, 3, 6, 0]))
    return Call.of(x, n=n, axis=draw(axis_of(len(x.shape))), norm=draw(_NORMS))


@st.composite
def _over_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs(EVERY, SOLID_SHAPES, tame_values))
    ndim = len(x.shape)
    count = draw(st.integers(1, ndim))
    axes = draw(st.one_of(st.none(), st.permutations(range(-ndim, 0)).map(lambda p: p[:count])))
    if draw(st.integers(0, 7)) == 7:
        axes = [draw(st.integers(-ndim - 2, ndim + 1))]
    s = None
    if draw(st.booleans()):
        s = [draw(st.integers(1, 5)) for _ in axes or x.shape]
    return Call.of(x, s=s, axes=axes, norm=draw(_NORMS))


def _frequencies(name: str) -> Any:
    function = getattr(np.fft, name)

    def reference(n: int, *, d: float = 1.0, dtype: Any = None) -> Values:
        if dtype is not None and dtype.name not in FLOATS:
            raise TypeError(dtype)
        return function(n, d=d).astype(dtype or "float64")

    return reference


_FREQUENCIES = call(
    st.integers(-1, 9),
    d=st.sampled_from([1.0, 0.25, 3, 0.1]),
    dtype=st.one_of(st.none(), st.sampled_from([*FLOATS, "int8"]).map(np.dtype)),
)


@st.composite
def _shift_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    return Call.of(x, axes=draw(axes_of(len(x.shape))))


def _shifted(name: str) -> Any:
    function = getattr(np.fft, name)

    def reference(x: Values, *, axes: Any = None) -> Values:
        if axes is not None:
            each = axes if isinstance(axes, tuple) else (axes,)
            axes = [np.lib.array_utils.normalize_axis_index(axis, x.ndim) for axis in each]
        # NumPy cannot roll along no axis.
        return function(x, axes) if axes or (axes is None and x.ndim) else x

    return reference


_ALONG = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_OVER = ("fftn", "ifftn", "rfftn", "irfftn")

ROWS = [
    *(Row(f"fft.{name}", _along_calls(), _transform(name)) for name in _ALONG),
    *(Row(f"fft.{name}", _over_calls(), _transform(name)) for name in _OVER),
    *(Row(f"fft.{name}", _FREQUENCIES, _frequencies(name)) for name in ("fftfreq", "rfftfreq")),
    *(Row(f"fft.{name}", _shift_calls(), _shifted(name)) for name in ("fftshift", "ifftshift")),
]
