"""Rows beyond the standard: softmax and the like, bincount, and SciPy's special functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special
from hypothesis import strategies as st

import fklarray as xp
from fklarray_codegen.ops import OPS
from parity.expectations import Within
from parity.operands import (
    COMPLEX,
    EVERY,
    FLOATS,
    NARROW,
    WIDE_FLOATS,
    Call,
    Values,
    axes_of,
    broadcastable,
    inputs,
    summable_values,
    tame_values,
)
from parity.rows import Row, normal_axis, promoted, roundoff

# ----------------------------------------------------------------------------- normalisations


def _real(x: Values) -> tuple[Values, np.dtype[Any]]:
    """Return values in float64, and the data type of a result in floating-point numbers."""
    if x.dtype.name in COMPLEX:
        raise TypeError(x.dtype)
    return x.astype(np.float64), x.dtype if x.dtype.name in FLOATS else np.dtype("float64")


def _axes(axis: Any, ndim: int) -> Any:
    return normal_axis(axis, ndim)


def _unit(x: Values, dtype: np.dtype[Any]) -> float:
    # Exponentials of some units in the last place, and the roundings of a sum.
    return (x.size + 16) * roundoff("float32" if dtype.name in NARROW else dtype)


def _softmax(x: Values, *, axis: Any = -1) -> Within:
    values, dtype = _real(x)
    axes = _axes(axis, x.ndim)
    exact = scipy.special.softmax(values, axis=axes) if x.size else values
    return Within(exact, dtype, _unit(x, dtype) * 32 * np.nan_to_num(exact))


def _log_softmax(x: Values, *, axis: Any = -1) -> Within:
    values, dtype = _real(x)
    axes = _axes(axis, x.ndim)
    if not x.size:
        return Within(values, dtype, 0)
    shifted = values - np.max(values, axis=axes, keepdims=True)
    exact = shifted - np.log(np.sum(np.exp(shifted), axis=axes, keepdims=True))
    finite = np.where(np.isfinite(exact), np.abs(exact), 0)
    return Within(exact, dtype, _unit(x, dtype) * (1 + finite))


def _logsumexp(x: Values, *, axis: Any = None, keepdims: bool = False) -> Within:
    values, dtype = _real(x)
    axes = _axes(axis, x.ndim)
    over = {"axis": axes, "keepdims": True}
    greatest = np.max(values, initial=-np.inf, **over)
    shift = np.where(np.isfinite(greatest), greatest, 0)
    exact = np.log(np.sum(np.exp(values - shift), **over)) + shift
    if not keepdims:
        exact = np.squeeze(exact, axes)
    finite = np.where(np.isfinite(exact), np.abs(exact), 0)
    return Within(exact, dtype, _unit(x, dtype) * (1 + finite))


@st.composite
def _normalised(draw: st.DrawFn, **keywords: Any) -> Call:
    x = draw(inputs(EVERY, pool=summable_values))
    drawn = {name: draw(values) for name, values in keywords.items()}
    return Call.of(x, axis=draw(axes_of(len(x.shape))), **drawn)


# ------------------------------------------------------------------------------------- vectors


def _counts(dtype: str) -> Values:
    return np.array([0, 1, 2, 2, 5, 7], dtype)


@st.composite
def _bincount_calls(draw: st.DrawFn) -> Call:
    shapes = st.sampled_from([(0,), (1,), (5,), (8,), (2, 2), ()])
    shape = draw(shapes)
    pool = draw(st.sampled_from([_counts, _counts, _counts, tame_values]))
    x = draw(inputs(("int64", "int8", "uint8", "uint32", "bool", "float64"), st.just(shape), pool))
    keywords: dict[str, Any] = {"minlength": draw(st.sampled_from([0, 0, 3, 10]))}
    if draw(st.booleans()):
        weights = draw(st.sampled_from([shape, shape, (3,)]))
        keywords["weights"] = draw(inputs(("float64", "int32"), st.just(weights), tame_values))
    return Call((x,), keywords)


def _bincount(x: Values, weights: Values | None = None, minlength: int = 0) -> Values:
    return np.bincount(x, weights, minlength)


@st.composite
def _diag_calls(draw: st.DrawFn) -> Call:
    shape = draw(st.sampled_from([(0,), (3,), (2, 3), (4, 2), (0, 2), (), (1, 2, 2)]))
    return Call.of(draw(inputs(EVERY, st.just(shape), tame_values)), draw(st.integers(-4, 4)))


# ---------------------------------------------------------------------------- special functions

# Of these functions some operands are orders or counts, which SciPy wants as integers.
_ORDERS = {
    "bdtr": (1,), "bdtrc": (1,), "bdtri": (1,), "expn": (0,), "lpmv": (0, 1), "nbdtr": (0, 1),
    "nbdtrc": (0, 1), "nbdtri": (0, 1), "pdtri": (0,), "polygamma": (0,), "yn": (0,),
}  # fmt: skip
# Beside the bound: these cross zero, where only the absolute error is bounded.
_SCALES = {"gammaln", "entr", "rel_entr", "xlogy", "xlog1py", "logit", "log_ndtr"}


def _special_values(dtype: str) -> Values:
    if dtype not in FLOATS + COMPLEX:
        return np.array([0, 1, 2, 3, 5, 7], dtype)
    some = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 7.5, -0.25, -1.5, 30.0, np.inf, np.nan]
    return np.array(some).astype(dtype)


def _finite_values(dtype: str) -> Values:
    values = _special_values(dtype)
    return values[np.isfinite(values)]


def _whole_values(dtype: str) -> Values:
    return np.array([1, 2, 3]).astype(dtype)


def _arity(name: str) -> int:
    if name in OPS:
        return OPS[name].arity
    function = getattr(scipy.special, name)
    if isinstance(function, np.ufunc):
        return int(function.nin)
    return 1 if name == "sinc" else 2


@st.composite
def _special_calls(draw: st.DrawFn, name: str) -> Call:
    dtype = draw(st.sampled_from([*FLOATS, *WIDE_FLOATS, "int64", "uint8"]))
    shapes = draw(broadcastable(_arity(name)))
    if name == "multigammaln":
        x = draw(inputs((dtype,), st.just(shapes[0]), lambda d: np.array([4, 5, 7]).astype(d)))
        return Call.of(x, draw(st.integers(1, 3)))
    orders = _ORDERS.get(name, ())
    # SciPy's hyp1f1(-1.5, b, inf) never returns.
    values = _finite_values if name == "hyp1f1" else _special_values
    operands = [
        inputs(("int64", "int8"), st.just(shape), _whole_values)
        if place in orders
        else inputs((dtype,), st.just(shape), values)
        for place, shape in enumerate(shapes)
    ]
    return Call.of(*map(draw, operands))


def _special(name: str) -> Any:
    function = getattr(scipy.special, name)

    def reference(*operands: Any) -> Any:
        arrays = [value for value in operands if isinstance(value, np.ndarray)]
        dtype = promoted(*arrays)
        dtype = dtype if dtype.name in FLOATS else np.dtype("float64")
        computed = np.dtype("float32") if dtype.name in NARROW else dtype
        if name in OPS:
            computed = np.dtype("float64")
        # Integers stay: SciPy's orders; but not small ones, for which it computes in float32.
        values = [
            value.astype("int64" if value.dtype.kind in "biu" else computed)
            if isinstance(value, np.ndarray)
            else value
            for value in operands
        ]
        exact = np.asarray(function(*values))
        if name not in OPS:
            return exact.astype(dtype)
        finite = np.where(np.isfinite(exact), np.abs(exact), 0)
        unit = 16 * roundoff("float32" if dtype.name in NARROW else dtype)
        return Within(exact, dtype, unit * (finite + (name in _SCALES)))

    return reference


ROWS = [
    Row("nn.softmax", _normalised(), _softmax),
    Row("nn.log_softmax", _normalised(), _log_softmax),
    Row("logsumexp", _normalised(keepdims=st.booleans()), _logsumexp),
    Row("bincount", _bincount_calls(), _bincount),
    Row("diag", _diag_calls(), np.diag),
    *(Row(f"special.{name}", _special_calls(name), _special(name)) for name in xp.special.__all__),
]
