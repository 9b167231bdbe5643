"""Rows of `linalg`: factorizations, solutions and norms.

They are held against NumPy's results with the bound ``100 n u`` of backward stable algorithms
(n: side of the matrix, u: unit roundoff), times the condition number where it enters; factors that
are not unique are multiplied together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from parity.expectations import Check, Within
from parity.operands import (
    BOOL,
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    NARROW,
    WIDE_FLOATS,
    Call,
    Input,
    Values,
    axes_of,
    inputs,
    tame_values,
)
from parity.rows import Row, roundoff, widest

_FACTORED = WIDE_FLOATS + COMPLEX
_TAKEN = (*_FACTORED, "int32", "uint8", "bool")


def _refused(x: Values) -> Values:
    """Return floating-point matrices, or raise as LAPACK's wrappers in NumPy do."""
    if x.dtype.name in NARROW:
        raise TypeError(x.dtype)
    if x.ndim < 2:
        raise np.linalg.LinAlgError(x.shape)
    return x if x.dtype.name in _FACTORED else x.astype(np.float64)


def _square(x: Values) -> Values:
    x = _refused(x)
    if x.shape[-1] != x.shape[-2]:
        raise np.linalg.LinAlgError(x.shape)
    return x


@st.composite
def matrices(draw: st.DrawFn, dtypes: tuple[str, ...] = _TAKEN, kind: str = "any") -> Input:
    """Draw a stack of matrices: any, square, well conditioned, or Hermitian and positive."""
    dtype = draw(st.sampled_from(dtypes))
    rows, columns = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    if kind != "any":
        columns = rows
    stack = draw(st.sampled_from([(), (), (2,), (0,), (2, 1)]))
    drawn = draw(inputs((dtype,), st.just((*stack, rows, columns)), tame_values))
    values = drawn.numpy.astype(dtype)
    if kind == "well":
        values = values + 30 * np.eye(rows, dtype=dtype)
    elif kind == "positive":
        values = values + np.conj(np.swapaxes(values, -1, -2)) + 99 * np.eye(rows, dtype=dtype)
    order = tuple(range(values.ndim))
    source = "copied" if drawn.source == "misaligned" else drawn.source
    return Input(values.astype(dtype), order, (1,) * values.ndim, values.shape, source)


@st.composite
def _calls(draw: st.DrawFn, kind: str, **keywords: Any) -> Call:
    x = draw(matrices(kind=kind))
    if draw(st.integers(0, 7)) == 7:
        wrong = st.sampled_from([(), (3,), (2, 3), (2, 2)])
        x = draw(inputs((*EVERY,), wrong, tame_values))
    return Call((x,), {name: draw(_strategy(value)) for name, value in keywords.items()})


def _strategy(value: Any) -> Any:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)


def _close(got: Values, wanted: Any, scale: Any) -> None:
    """Assert data type and shape, and values up to the bound times a scale."""
    wanted = np.asarray(wanted)
    unit = 100 * max(1, *wanted.shape[-2:], 4) * roundoff(wanted.dtype)
    Within(widest(wanted), wanted.dtype, unit * np.asarray(scale)).check(np.asarray(got))


def _norm(x: Values) -> float:
    return float(np.max(np.abs(x), initial=0)) * max(1, *x.shape[-2:])


def _bounded(function: Any, checked: Any, power: Any = lambda _x: 1) -> Any:
    """Return the reference of a function with one result, of the size of a power of the matrix."""

    def reference(x: Values, **keywords: Any) -> Any:
        x = checked(x)
        wanted = function(x, **keywords)
        scale = _norm(x) ** power(x)

        def check(got: Values) -> None:
            _close(got, wanted, scale)

        return Check(check)

    return reference


# ------------------------------------------------------------------------------- factorizations


def _product(*factors: Values) -> Values:
    result = factors[0]
    for factor in factors[1:]:
        result = result @ factor
    return result


def _adjoint(x: Values) -> Values:
    return np.conj(np.swapaxes(x, -1, -2))


def _assert_unitary(q: Values) -> None:
    one = np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], *q.shape[-1:] * 2))
    _close(_adjoint(q) @ q, one, 1)


def _qr(x: Values, *, mode: str = "reduced") -> Check:
    x = _refused(x)
    wanted = np.linalg.qr(x, mode)

    def check(got: Any) -> None:
        assert [part.shape for part in got] == [part.shape for part in wanted]
        q, r = got
        assert q.dtype == r.dtype == x.dtype
        _assert_unitary(q)
        np.testing.assert_array_equal(r, np.triu(r))
        _close(q @ r, x, _norm(x))

    return Check(check)


def _svd(x: Values, *, full_matrices: bool = True) -> Check:
    x = _refused(x)
    wanted = np.linalg.svd(x, full_matrices)

    def check(got: Any) -> None:
        assert [part.shape for part in got] == [part.shape for part in wanted]
        u, s, vh = got
        assert u.dtype == vh.dtype == x.dtype
        _close(s, wanted[1], _norm(x))
        _assert_unitary(_adjoint(vh) if not full_matrices else vh)
        k = s.shape[-1]
        _close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, _norm(x))

    return Check(check)


def _eigh(x: Values) -> Check:
    x = _square(x)
    # Only the lower triangle counts.
    x = np.tril(x) + _adjoint(np.tril(x, -1))
    wanted = np.linalg.eigh(x)

    def check(got: Any) -> None:
        values, vectors = got
        assert vectors.dtype == x.dtype
        _close(values, wanted[0], _norm(x))
        _assert_unitary(vectors)
        _close(vectors * values[..., None, :], x @ vectors, _norm(x))

    return Check(check)


def _eig(x: Values) -> Check:
    x = _square(x)
    complex_type = np.result_type(x.dtype, np.complex64)

    def check(got: Any) -> None:
        values, vectors = got
        assert values.dtype == vectors.dtype == complex_type
        assert vectors.shape == x.shape
        _close(vectors * values[..., None, :], x.astype(complex_type) @ vectors, _norm(x))

    return Check(check)


def _eigvals(x: Values) -> Check:
    x = _square(x)
    complex_type = np.result_type(x.dtype, np.complex64)

    def check(got: Values) -> None:
        assert got.dtype == complex_type
        assert got.shape == x.shape[:-1]
        _close(got.sum(axis=-1), np.trace(x, 0, -2, -1).astype(complex_type), _norm(x))

    return Check(check)


def _slogdet(x: Values) -> Check:
    x = _square(x)
    sign, logarithm = np.linalg.slogdet(x)

    def check(got: Any) -> None:
        _close(got[0], sign, 1)
        _close(got[1], logarithm, 1 + np.abs(logarithm))

    return Check(check)


# ------------------------------------------------------------------------------------ solutions


def _inv(x: Values) -> Check:
    x = _square(x)
    wanted = np.linalg.inv(x)

    def check(got: Values) -> None:
        _close(got, wanted, _norm(wanted) * _norm(x) * _norm(wanted))

    return Check(check)


def _solve(x1: Values, x2: Values) -> Check:
    dtype = np.result_type(x1, x2) if not {x1.dtype.name, x2.dtype.name} & {*NARROW} else None
    if dtype is None:
        raise TypeError(x1.dtype)
    x1, x2 = _square(x1.astype(dtype)), x2.astype(dtype)
    wanted = np.linalg.solve(x1, x2)

    def check(got: Values) -> None:
        inverse = _norm(np.linalg.inv(x1))
        _close(got, wanted, _norm(x1) * inverse**2 * (1 + np.max(np.abs(x2), initial=0)) * 4)

    return Check(check)


@st.composite
def _solve_calls(draw: st.DrawFn) -> Call:
    x1 = draw(matrices(kind="well"))
    *stack, side, _ = x1.shape
    shape = draw(
        st.sampled_from([(side,), (side, 2), (*stack, side, 3), (side, 0), (side + 1, 1), ()])
    )
    return Call.of(x1, draw(inputs(_TAKEN, st.just(shape), tame_values)))


def _matrix_power(x: Values, n: int) -> Any:
    checked = _square(x)
    if n >= 0 and x.dtype.name in BOOL + INTEGERS:
        return np.linalg.matrix_power(x, n)
    wanted = np.linalg.matrix_power(checked, n)
    inverse = _norm(np.linalg.inv(checked)) if n < 0 else 1.0

    def check(got: Values) -> None:
        scale = (_norm(checked) * inverse**2) ** abs(n) if n < 0 else _norm(checked) ** n
        _close(got, wanted, scale)

    return Check(check)


@st.composite
def _power_calls(draw: st.DrawFn) -> Call:
    call = draw(_calls("well"))
    return Call.of(*call.positional, draw(st.integers(-3, 4)))


def _pinv(x: Values, *, rtol: float | None = None) -> Check:
    x = _refused(x)
    rtol = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if rtol is None else rtol
    wanted = np.linalg.pinv(x, rtol=rtol)

    def check(got: Values) -> None:
        _close(got, wanted, _norm(wanted) ** 2 * _norm(x))

    return Check(check)


def _matrix_rank(x: Values, *, rtol: float | None = None) -> Values:
    x = _refused(x)
    rtol = max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if rtol is None else rtol
    return np.asarray(np.linalg.matrix_rank(x, rtol=rtol))


# ---------------------------------------------------------------------------------------- norms


def _real(x: Values) -> np.dtype[Any]:
    if x.dtype.name in FLOATS:
        return x.dtype
    return np.empty(0, x.dtype).real.dtype if x.dtype.name in COMPLEX else np.dtype("float64")


def _matrix_norm(x: Values, *, keepdims: bool = False, ord: Any = "fro") -> Within:
    wanted = np.linalg.matrix_norm(widest64(x), keepdims=keepdims, ord=ord)
    unit = 100 * max(x.shape[-2:]) * roundoff(_computed(x))
    return Within(wanted, _real(x), unit * _norm(widest64(x)))


def widest64(x: Values) -> Values:
    """Return values in the widest type that LAPACK knows."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _computed(x: Values) -> Any:
    return "float32" if x.dtype.name in NARROW else _real(x)


@st.composite
def _vector_norm_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs(pool=tame_values))
    orders = st.sampled_from([2, 2, 1, 0, np.inf, -np.inf, 3, 1.5, -1, -2.0, "fro"])
    axis = draw(axes_of(len(x.shape)))
    return Call.of(x, axis=axis, keepdims=draw(st.booleans()), ord=draw(orders))


def _vector_norm(x: Values, *, axis: Any, keepdims: bool, ord: Any) -> Within:
    if isinstance(axis, int):
        axis = (axis,)
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = np.lib.array_utils.normalize_axis_tuple(axes, x.ndim)
    if isinstance(ord, str):
        raise ValueError(ord)
    values = np.abs(widest(x if x.dtype.name != "bool" else x.astype(float)))
    exact = _moduli_norm(values, axes, keepdims, ord)
    # A sum of powers and a root.
    unit = 8 * (x.size + 8) * roundoff(_computed(x))
    finite = np.where(np.isfinite(exact), exact, 0)
    return Within(exact, _real(x), unit * finite)


def _moduli_norm(values: Values, axes: Any, keepdims: bool, order: float) -> Values:
    over = {"axis": axes, "keepdims": keepdims}
    if np.isinf(order):
        # Of nothing: 0 for the greatest, an error for the least.
        return np.max(values, initial=0, **over) if order > 0 else np.min(values, **over)
    if order == 0:
        return np.sum(values != 0, dtype=np.longdouble, **over)
    power = np.longdouble(order)
    return np.sum(values**power, **over) ** (1 / power)


_ORDERS = st.sampled_from(["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf, None, 3, "nic"])

ROWS = [
    Row(
        "linalg.cholesky",
        _calls("positive", upper=st.booleans()),
        _bounded(np.linalg.cholesky, _square),
    ),
    Row("linalg.det", _calls("square"), _bounded(np.linalg.det, _square, lambda x: x.shape[-1])),
    Row("linalg.eig", _calls("positive"), _eig),
    Row("linalg.eigh", _calls("positive"), _eigh),
    Row("linalg.eigvals", _calls("positive"), _eigvals),
    Row("linalg.eigvalsh", _calls("positive"), _bounded(np.linalg.eigvalsh, _square)),
    Row("linalg.inv", _calls("well"), _inv),
    Row("linalg.matrix_norm", _calls("any", ord=_ORDERS, keepdims=st.booleans()), _matrix_norm),
    Row("linalg.matrix_power", _power_calls(), _matrix_power),
    Row(
        "linalg.matrix_rank",
        _calls("any", rtol=st.sampled_from([None, 1e-3])),
        _matrix_rank,
    ),
    Row("linalg.pinv", _calls("well", rtol=st.sampled_from([None, 1e-6])), _pinv),
    Row("linalg.qr", _calls("any", mode=st.sampled_from(["reduced", "complete"])), _qr),
    Row("linalg.slogdet", _calls("well"), _slogdet),
    Row("linalg.solve", _solve_calls(), _solve),
    Row("linalg.svd", _calls("any", full_matrices=st.booleans()), _svd),
    Row("linalg.svdvals", _calls("any"), _bounded(np.linalg.svdvals, _refused)),
    Row("linalg.vector_norm", _vector_norm_calls(), _vector_norm),
]
