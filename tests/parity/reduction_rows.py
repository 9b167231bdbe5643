"""Rows of statistical functions, nan-aware ones and normalisations: sums with a stated bound.

The bound of a sum of n elements is n units of roundoff of the sum of their magnitudes, which any
order of adding keeps; pairwise ones are tested on long sums in test_fault_kinds.py. 16-bit floats
are summed in float32 and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from parity.expectations import SameValues, Within
from parity.operands import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    NARROW,
    REAL,
    UNSIGNED,
    Call,
    Values,
    axes_of,
    axis_of,
    inputs,
    summable_values,
    tame_values,
)
from parity.rows import Row, normal_axis, roundoff, widest

_DTYPES = {"float32": FLOATS, "float64": FLOATS, "complex128": FLOATS + COMPLEX}


@st.composite
def _calls(
    draw: st.DrawFn,
    pool: Any = summable_values,
    axes: Any = axes_of,
    dtypes: tuple[str, ...] = EVERY,
    **keywords: Any,
) -> Call:
    x = draw(inputs(dtypes, pool=pool))
    drawn = {name: draw(values) for name, values in keywords.items()}
    return Call.of(x, axis=draw(axes(len(x.shape))), **drawn)


def _axes(axis: Any, x: Values) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    found = normal_axis(axis, x.ndim)
    return found if isinstance(found, tuple) else (found,)


def _count(x: Values, axes: tuple[int, ...]) -> int:
    return int(np.prod([x.shape[axis] for axis in axes], dtype=int))


def _computed_in(dtype: Any) -> Any:
    return "float32" if np.dtype(dtype).name in NARROW else dtype


# ----------------------------------------------------------------------------- sums and products


def _sum_dtype(x: Values, dtype: Any) -> np.dtype[Any]:
    if dtype is not None:
        return np.dtype(dtype)
    if x.dtype.name in FLOATS + COMPLEX:
        return x.dtype
    return np.dtype("uint64" if x.dtype.name in UNSIGNED else "int64")


def sum_reference(x: Values, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the bounded sum over axes; exact for integers."""
    axes, wanted = _axes(axis, x), _sum_dtype(x, dtype)
    if wanted.name in INTEGERS:
        return np.sum(x, axis=axes, dtype=wanted, keepdims=keepdims)
    values = widest(x.astype(_computed_in(wanted)))
    error = _count(x, axes) * roundoff(_computed_in(wanted))
    return Within(
        np.sum(values, axis=axes, keepdims=keepdims),
        wanted,
        error * _finite_sum(np.abs(values), axes, keepdims),
    )


def _finite_sum(magnitudes: Values, axes: tuple[int, ...], keepdims: bool) -> Values:
    finite = np.where(np.isfinite(magnitudes), magnitudes, 0)
    return np.asarray(np.sum(finite, axis=axes, keepdims=keepdims))


def _prod(x: Values, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes, wanted = _axes(axis, x), _sum_dtype(x, dtype)
    if wanted.name in INTEGERS:
        return np.prod(x, axis=axes, dtype=wanted, keepdims=keepdims)
    exact = np.prod(widest(x.astype(_computed_in(wanted))), axis=axes, keepdims=keepdims)
    # A complex product is a sum of two.
    error = 4 * _count(x, axes) * roundoff(_computed_in(wanted)) * np.abs(exact)
    return Within(exact, wanted, np.where(np.isfinite(error), error, 0))


_WIDER = st.sampled_from([None, None, "float32", "float64", "complex128", "int64", "uint32"])


@st.composite
def _sum_calls(draw: st.DrawFn, pool: Any) -> Call:
    dtype = draw(_WIDER)
    # Converting to a lower kind is `astype`'s affair.
    dtypes = EVERY if dtype is None else ("bool", *(_DTYPES.get(dtype, ()) or INTEGERS))
    return draw(
        _calls(
            # The parts of infinite complex products depend on the order.
            tame_values if dtype == "complex128" else pool,
            dtypes=dtypes,
            dtype=st.just(dtype and np.dtype(dtype)),
            keepdims=st.booleans(),
        )
    )


def _cumulative(name: str) -> Any:
    def reference(
        x: Values, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Any:
        if axis is None and x.ndim > 1:
            raise ValueError(x.shape)
        # Without dimensions, there is one element.
        x = np.atleast_1d(x)
        along, wanted = normal_axis(axis or 0, x.ndim), _sum_dtype(x, dtype)
        accumulate = {"axis": along, "include_initial": include_initial}
        if wanted.name in INTEGERS:
            return getattr(np, name)(x, dtype=wanted, **accumulate)
        values = widest(x.astype(_computed_in(wanted)))
        exact = getattr(np, name)(values, **accumulate)
        finite = np.where(np.isfinite(values), np.abs(values), 0)
        scale = np.cumulative_sum(finite, **accumulate) if name == "cumulative_sum" else exact
        scale = np.where(np.isfinite(scale), np.abs(scale), 0)
        unit = roundoff(_computed_in(wanted)) * x.shape[along]
        return Within(exact, wanted, (1 if name == "cumulative_sum" else 4) * unit * scale)

    return reference


@st.composite
def _cumulative_calls(draw: st.DrawFn, pool: Any) -> Call:
    drawn = draw(_sum_calls(pool))
    x = drawn.positional[0]
    axis = draw(axis_of(len(x.shape)))
    keywords = {"dtype": drawn.keywords["dtype"], "include_initial": draw(st.booleans())}
    if len(x.shape) == 1 or draw(st.booleans()):
        axis = draw(st.sampled_from([axis, None]))
    return Call.of(x, axis=axis, **keywords)


# ------------------------------------------------------------------------------ means and spreads


def _floating(x: Values) -> Values:
    return x if x.dtype.name in FLOATS + COMPLEX else x.astype(np.float64)


def _mean(x: Values, *, axis: Any = None, keepdims: bool = False) -> Within:
    axes, x = _axes(axis, x), _floating(x)
    values = widest(x)
    # One more rounding, by the division.
    error = (_count(x, axes) + 1) * roundoff(_computed_in(x.dtype))
    magnitudes = _finite_sum(np.abs(values), axes, keepdims) / max(1, _count(x, axes))
    return Within(np.mean(values, axis=axes, keepdims=keepdims), x.dtype, error * magnitudes)


def _variance(
    x: Values, axes: tuple[int, ...], correction: float, keepdims: bool
) -> tuple[Values, Values]:
    """Return the variance and the bound of a computation in two passes."""
    values, count = widest(x), _count(x, axes)
    exact = np.var(values, axis=axes, keepdims=keepdims, correction=correction)
    finite = np.where(np.isfinite(values), np.abs(values), 0)
    largest = np.max(finite, axis=axes, keepdims=keepdims, initial=0)
    unit = roundoff(_computed_in(x.dtype))
    # Roundings of n squares and sums, and the square of the mean's error.
    error = (2 * count + 10) * unit * np.abs(exact) + count * (4 * count * unit * largest) ** 2
    return exact, np.where(np.isfinite(error), error, 0)


def _real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _var(x: Values, *, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Within:
    axes, x = _axes(axis, x), _floating(x)
    exact, error = _variance(x, axes, correction, keepdims)
    return Within(exact, _real_of(x.dtype), error)


def _std(x: Values, *, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Within:
    axes, x = _axes(axis, x), _floating(x)
    exact, error = _variance(x, axes, correction, keepdims)
    root = np.sqrt(exact)
    # |a - b| is both at most |a*a - b*b| / a and its root.
    least = np.sqrt(error)
    bound = np.minimum(least, error / np.where(root > 0, root, 1))
    return Within(root, _real_of(x.dtype), np.where(root > 0, bound, least))


# --------------------------------------------------------------------------------- extreme values


def _comparable(x: Values) -> Values:
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def _extreme(name: str) -> Any:
    def reference(x: Values, *, axis: Any = None, keepdims: bool = False) -> Any:
        result = getattr(np, name)(_comparable(x), axis=_axes(axis, x), keepdims=keepdims)
        # Which zero of 0 and -0 is the greater one is open.
        return SameValues(np.asarray(result).astype(x.dtype))

    return reference


def _position(name: str) -> Any:
    def reference(x: Values, *, axis: Any = None, keepdims: bool = False) -> Any:
        axis = normal_axis(axis, x.ndim)
        return np.asarray(getattr(np, name)(_comparable(x), axis=axis, keepdims=keepdims))

    return reference


def _count_nonzero(x: Values, *, axis: Any = None, keepdims: bool = False) -> Any:
    return np.asarray(np.count_nonzero(x.astype(bool), axis=_axes(axis, x), keepdims=keepdims))


# ------------------------------------------------------------------------------- nan-aware versions


def _without_nan(x: Values) -> Values:
    return np.where(np.isnan(x), np.zeros((), x.dtype), x) if x.dtype.kind not in "biu" else x


def _nansum(x: Values, **keywords: Any) -> Any:
    return sum_reference(_without_nan(x), **keywords)


def _nancumsum(x: Values, *, axis: int | None = None, dtype: Any = None) -> Any:
    values = _without_nan(x)
    # NumPy flattens without an axis; the standard's cumulative_sum refuses to.
    values, axis = (values.reshape(-1), 0) if axis is None else (values, axis)
    return _cumulative("cumulative_sum")(values, axis=axis, dtype=dtype)


def _of_lanes(name: str) -> Any:
    """Return the reference of a nan-aware mean or spread: NumPy's own, in the widest type."""

    def reference(x: Values, *, axis: Any = None, **keywords: Any) -> Within:
        axes, x = _axes(axis, x), _floating(x)
        values = widest(x)
        if "correction" in keywords:
            keywords["ddof"] = keywords.pop("correction")
        function = getattr(np, name)
        exact = (
            function(values.reshape(x.shape), axis=axes, **keywords)
            if x.ndim
            else (
                np.asarray(function(values.reshape(1), axis=0, **{**keywords, "keepdims": False}))
            )
        )
        finite = np.where(np.isfinite(values), np.abs(values), 0)
        largest = np.max(finite, axis=axes, keepdims=keywords["keepdims"], initial=0)
        unit = (4 * _count(x, axes) + 10) * roundoff(_computed_in(x.dtype))
        power = {"nanmean": 1, "nanvar": 2, "nanstd": 1}[name]
        # A spread's error may be all of it where its elements nearly agree.
        error = unit * largest**power if name != "nanstd" else np.sqrt(unit) * largest
        dtype = x.dtype if name == "nanmean" else _real_of(x.dtype)
        return Within(exact, dtype, error)

    return reference


def _median(x: Values, *, axis: Any = None, keepdims: bool = False) -> Within:
    axes, x = _axes(axis, x), _floating(x)
    # NumPy does not get along with no axis at all.
    exact = np.median(widest(x), axis=axes, keepdims=keepdims) if axes else widest(x)
    return Within(exact, x.dtype, roundoff(_computed_in(x.dtype)) * np.abs(_finite(exact)))


def _finite(values: Any) -> Values:
    return np.where(np.isfinite(values), values, 0)


_KEEP = {"keepdims": st.booleans()}
_CORRECTION = st.sampled_from([0, 1, 0.5, 2, 5.0])
_NOT_COMPLEX = ("bool", *REAL)

ROWS = [
    Row("sum", _sum_calls(summable_values), sum_reference),
    Row("prod", _sum_calls(summable_values), _prod),
    Row("cumulative_sum", _cumulative_calls(summable_values), _cumulative("cumulative_sum")),
    Row("cumulative_prod", _cumulative_calls(tame_values), _cumulative("cumulative_prod")),
    Row("mean", _calls(**_KEEP), _mean),
    Row("var", _calls(correction=_CORRECTION, **_KEEP), _var),
    Row("std", _calls(correction=_CORRECTION, **_KEEP), _std),
    Row("max", _calls(**_KEEP), _extreme("max")),
    Row("min", _calls(**_KEEP), _extreme("min")),
    Row(
        "argmax",
        _calls(axes=lambda n: st.one_of(st.none(), axis_of(n)), **_KEEP),
        _position("argmax"),
    ),
    Row(
        "argmin",
        _calls(axes=lambda n: st.one_of(st.none(), axis_of(n)), **_KEEP),
        _position("argmin"),
    ),
    Row("count_nonzero", _calls(**_KEEP), _count_nonzero),
    Row("nansum", _calls(**_KEEP), _nansum),
    Row("nancumsum", _calls(axes=lambda n: st.one_of(st.none(), axis_of(n))), _nancumsum),
    Row("nanmean", _calls(**_KEEP), _of_lanes("nanmean")),
    Row(
        "nanvar", _calls(dtypes=_NOT_COMPLEX, correction=_CORRECTION, **_KEEP), _of_lanes("nanvar")
    ),
    Row(
        "nanstd", _calls(dtypes=_NOT_COMPLEX, correction=_CORRECTION, **_KEEP), _of_lanes("nanstd")
    ),
    Row("nanmax", _calls(**_KEEP), _extreme("nanmax")),
    Row("nanmin", _calls(**_KEEP), _extreme("nanmin")),
    Row("median", _calls(**_KEEP, dtypes=_NOT_COMPLEX), _median),
]
