"""What a result should be, in a wider type, and how far from it a result is, in ulp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

from fklarray_codegen.ops import Op
from samples import Values


def is_real(dtype: np.dtype[Any]) -> bool:
    """Return whether a data type is a real floating-point one, ml_dtypes' included."""
    return dtype.kind == "f" or dtype == ml_dtypes.bfloat16


def assert_same_bits(got: Values, wanted: Values) -> None:
    """Assert equal data type, shape and bits; any NaN equals any other."""
    wanted = np.asarray(wanted)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind == "c":
        assert_same_bits(got.real.copy(), wanted.real.copy())
        assert_same_bits(got.imag.copy(), wanted.imag.copy())
        return
    differs = got != wanted
    if is_real(wanted.dtype):
        differs = (differs | (np.signbit(got) != np.signbit(wanted))) & ~(
            np.isnan(got) & np.isnan(wanted)
        )
    where = np.argwhere(differs)[:5]
    assert not differs.any(), [
        (tuple(map(int, place)), got[tuple(place)], wanted[tuple(place)]) for place in where
    ]


def _floor_divide(x1: Values, x2: Values) -> Values:
    # Where NumPy has NaN or -1 for an infinity, the standard has what the quotient tends to.
    quotient = np.floor_divide(x1, x2)
    if x1.dtype.kind != "f":
        return quotient
    return np.where(np.isinf(x1) | np.isinf(x2), x1 / x2, quotient).astype(x1.dtype)


def _power(x1: Values, x2: Values) -> Values:
    if x1.dtype.kind != "i":
        return np.pow(x1, x2)
    # NumPy refuses negative exponents; here they are 1 / x1 ** -x2 without its fraction.
    unit = np.abs(x1) == 1
    inverse = np.where(unit, np.where(x2 % 2 == 0, 1, x1), 0)
    return np.where(x2 < 0, inverse, np.pow(x1, np.maximum(x2, 0))).astype(x1.dtype)


def _log2(x: Values) -> Values:
    logarithm = np.log(x)
    result = np.empty_like(logarithm)
    # By parts: a quotient of complex numbers would make NaN of a part that is infinite.
    result.real = logarithm.real / np.log(x.real.dtype.type(2))
    result.imag = logarithm.imag / np.log(x.real.dtype.type(2))
    return result


def _sign(x: Values) -> Values:
    if x.dtype.kind != "c":
        return np.sign(x)
    # NumPy's is that of the infinite part, even beside NaN.
    return np.where(np.isnan(x), x.dtype.type(np.nan), np.sign(x))


_NOT_NUMPY: dict[str, Callable[..., Any]] = {
    "floor_divide": _floor_divide,
    "pow": _power,
    "sign": _sign,
    # NumPy has no function of its own for these data types.
    "reciprocal": lambda x: x.dtype.type(1) / x,
    "log2": lambda x: _log2(x) if x.dtype.kind == "c" else np.log2(x),
}

# NumPy's complex versions cancel near zero, or go through 1 + x.
_COMPLEX_BY_MPMATH = {"log1p": mpmath.log1p, "expm1": mpmath.expm1}


def in_domain(op: Op, *values: Values) -> Values:
    """Tell for which operands a row's bound is promised: all but the angles of huge powers."""
    if op.name != "pow" or values[0].dtype.kind != "c":
        return np.ones(values[0].shape, np.bool_)
    with np.errstate(all="ignore"):
        x1, x2 = (value.astype(np.clongdouble) for value in values)
        return ~(np.abs(x2 * np.log(x1)) > 1000)


def bound(op: Op, dtype: np.dtype[Any]) -> float:
    """Return the row's bound for a data type."""
    if dtype.kind in "biu":
        return 0
    if dtype.itemsize == 2 and op.max_ulp:
        # Computed in float32, which has 13 or 16 digits more, and rounded.
        return 0.5 + op.max_ulp * 2.0**-13
    return op.complex_ulp if dtype.kind == "c" else op.max_ulp


def wanted(op: Op, *values: Values) -> Values:
    """Return NumPy's own result, for operations that must have its bits."""
    function = _NOT_NUMPY.get(op.name) or getattr(np, op.name)
    with np.errstate(all="ignore"):
        return np.asarray(function(*values))


def wide(op: Op, *values: Values) -> Values:
    """Return the result computed with at least eleven more bits."""
    complex_function = _COMPLEX_BY_MPMATH.get(op.name)
    if values[0].dtype.kind == "c" and complex_function is not None:
        result = by_mpmath(complex_function, *values)
        # mpmath has no zero with a sign, which tells the side of a branch cut.
        zero = values[0].imag == 0
        result.imag[zero] = np.copysign(result.imag, values[0].imag)[zero]
        return result
    longer = np.clongdouble if values[0].dtype.kind == "c" else np.longdouble
    return wanted(op, *(value.astype(longer) for value in values))


def by_mpmath(function: Callable[..., Any], *values: Values) -> Values:
    """Apply a function of mpmath with 120 bits; NaN where it has no value."""
    result = np.empty(values[0].shape, np.clongdouble)
    with mpmath.workprec(120):
        for place in np.ndindex(result.shape):
            point = [mpmath.mpmathify(complex(value[place])) for value in values]
            exact = mpmath.mpc(function(*point))
            # By parts: a product with 1j would make NaN of infinities.
            result.real[place] = _longdouble(exact.real)
            result.imag[place] = _longdouble(exact.imag)
    return result


def real_by_mpmath(function: Callable[..., Any], *values: Values) -> Values:
    """Apply a function of mpmath that takes real numbers, with 160 bits."""
    result = np.empty(values[0].shape, np.longdouble)
    with mpmath.workprec(160):
        for place in np.ndindex(result.shape):
            result[place] = _longdouble(function(*(mpmath.mpf(float(v[place])) for v in values)))
    return result


def _longdouble(value: Any) -> np.longdouble:
    if 0 < abs(value) < 1e-320:  # of which mpmath makes no float
        return np.longdouble(-0.0 if value < 0 else 0.0)
    high = np.longdouble(float(value))
    if not np.isfinite(high):
        return high
    return high + np.longdouble(float(value - mpmath.mpf(float(value))))


def scale_of(op: Op, *values: Values) -> Values | None:
    """Return whose last place a row's bound counts in, where it is not the result's alone."""
    if op.name != "logaddexp":
        return None
    # The result crosses zero between operands that do not.
    with np.errstate(all="ignore"):
        return np.maximum(*(np.abs(value.astype(np.longdouble)) for value in values))


def ulp_errors(got: Values, exact: Values, scale: Values | None = None) -> Values:
    """Return each element's error in units in the last place of the exact value, or of a scale.

    Zeros, infinities and NaN must be met exactly; an overflow counts as the next power of two.
    """
    info = ml_dtypes.finfo(got.dtype)
    got, exact = np.atleast_1d(got, exact)
    with np.errstate(all="ignore"):
        if got.dtype.kind == "c":
            error = np.abs(got.astype(exact.dtype) - exact) / _unit(np.abs(exact), info)
            # Which part is an infinity and which a NaN is for other tests to say.
            infinite = ~np.isfinite(exact)
            error[infinite] = np.where(np.isfinite(got), np.inf, 0)[infinite]
            error[~infinite & (np.abs(exact) > info.max / 2)] = 0
            return error
        limit = np.ldexp(np.longdouble(1), info.maxexp)
        clipped = np.clip(exact, -limit, limit)
        error = np.abs(np.clip(got.astype(exact.dtype), -limit, limit) - clipped)
        larger = clipped if scale is None else np.fmax(np.abs(clipped), np.fmin(scale, limit))
        error = error / _unit(larger, info)
        error[np.isnan(got) & np.isnan(exact)] = 0
        error[np.isnan(got) != np.isnan(exact)] = np.inf
        error[np.isinf(exact) & (got != exact)] = np.inf
        if scale is None:
            error[(exact == 0) & ((got != 0) | (np.signbit(got) != np.signbit(exact)))] = np.inf
        return error


def _unit(exact: Values, info: Any) -> Values:
    exponent = np.frexp(exact.real)[1] - 1
    exponent = np.clip(exponent, info.minexp, info.maxexp - 1) - info.nmant
    return np.ldexp(np.longdouble(1), exponent)


def assert_within(
    bound: float, got: Values, exact: Values, *values: Values, scale: Values | None = None
) -> None:
    """Assert that no element's error is above a bound; name the worst."""
    errors = ulp_errors(got, exact, scale)
    worst = int(np.argmax(np.where(np.isnan(errors), np.inf, errors)))
    inputs = [value.ravel()[worst] for value in values]
    assert errors.ravel()[worst] <= bound, (
        f"{errors.ravel()[worst]} ulp at {inputs}: {got.ravel()[worst]!r} "
        f"for {exact.ravel()[worst]!r}; {np.sum(~(errors <= bound))} of {errors.size} are off"
    )
