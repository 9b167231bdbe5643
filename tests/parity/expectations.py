"""What a result should be: NumPy's bits, or a value and a stated bound of the error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fklarray as xp
from accuracy import assert_same_bits, assert_within, bound, in_domain, scale_of
from fklarray_codegen.ops import Op
from parity.operands import NARROW, Values, limits


class Expected:
    """A result that is checked in its own way."""

    def check(self, got: Values) -> None:
        """Assert that an array is as expected."""
        raise NotImplementedError


@dataclass(frozen=True)
class Within(Expected):
    """Values in a wider type, a data type, and the largest absolute error of each element.

    One unit in the last place of the data type is always allowed on top for the last rounding,
    half of one would be enough.
    """

    exact: Values
    dtype: np.dtype[Any] | str
    error: Any

    def check(self, got: Values) -> None:
        """Assert data type, shape, and every element's error; NaN and infinities exactly."""
        exact, dtype = np.asarray(self.exact), np.dtype(self.dtype)
        assert (got.dtype, got.shape) == (dtype, exact.shape)
        if exact.dtype.kind == "c":
            # The modulus is what errors are measured in.
            last = np.where(np.isfinite(exact), np.abs(exact) * np.finfo(dtype).eps, 0)
            real = np.empty(0, dtype).real.dtype
            Within(exact.real, real, self.error + last).check(got.real)
            Within(exact.imag, real, self.error + last).check(got.imag)
            return
        info = limits(dtype.name)
        wide = got.astype(np.longdouble)
        # An overflow is an infinity on both sides; next to it, rounding decides.
        rounded = exact.astype(dtype).astype(np.longdouble)
        last = np.abs(exact) * float(info.eps) + float(info.smallest_subnormal)
        overflows = np.abs(exact) + self.error + last >= float(info.max)
        right = (np.abs(wide - exact) <= self.error + last) | (wide == rounded)
        right |= np.isnan(wide) & np.isnan(rounded)
        right |= overflows & np.isinf(wide) & (np.sign(wide) == np.sign(exact))
        assert right.all(), (got[~right][:3], exact[~right][:3])


@dataclass(frozen=True)
class SameValues(Expected):
    """Equal values and data type; 0 and -0 are the same."""

    wanted: Values

    def check(self, got: Values) -> None:
        """Assert it."""
        wanted = np.asarray(self.wanted)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        # Adding 0 makes 0 of -0 and changes nothing else.
        assert_equal_bits(got + got.dtype.type(0), wanted + wanted.dtype.type(0))


@dataclass(frozen=True)
class ByOpTable(Expected):
    """The bound of an operation's row in the op table."""

    op: Op
    operands: tuple[Values, ...]
    exact: Values

    def check(self, got: Values) -> None:
        """Assert the bound where it is promised."""
        assert got.shape == self.exact.shape
        promised = in_domain(self.op, *self.operands)
        if self.op.name == "pow" and self.operands[0].dtype.kind == "c":
            # The standard leaves complex powers of infinities and NaN open.
            for value in self.operands:
                promised &= np.isfinite(value)
        operands = [value[promised] for value in self.operands]
        scale = scale_of(self.op, *operands)
        dtype = self.operands[0].dtype
        if got[promised].size:
            assert_within(
                bound(self.op, dtype), got[promised], self.exact[promised], *operands, scale=scale
            )


@dataclass(frozen=True)
class Check(Expected):
    """A property of all results together, where there are several right ones."""

    assertion: Callable[..., None]

    def check(self, got: Any) -> None:
        """Run the assertion on the results."""
        self.assertion(got)


# --------------------------------------------------------------------------------- outcomes


@dataclass(frozen=True)
class Outcome:
    """What a call gave: a result, or an exception."""

    result: Any = None
    error: Exception | None = None


def outcome(function: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]) -> Any:
    """Call a function, then compute what it returns, which must not fail any more."""
    try:
        result = function(*positional, **keywords)
    except Exception as error:  # whatever NumPy raises is compared
        return Outcome(error=error)
    return Outcome(_computed(result))


def numpy_outcome(
    function: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]
) -> Any:
    """Call a reference, in which NumPy may warn of overflows and of means of nothing.

    This library has no warnings: in all tests, one is an error.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return outcome(function, positional, keywords)


def _computed(result: Any) -> Any:
    if isinstance(result, xp.Array):
        values = np.asarray(result)
        assert result.shape == values.shape
        assert result.dtype == values.dtype
        return values
    if isinstance(result, (tuple, list)):
        return tuple(map(_computed, result))
    return result


@np.errstate(all="ignore")
def assert_alike(got: Outcome, wanted: Outcome) -> None:
    """Assert that two calls raised related exceptions, or that the result is as expected."""
    if wanted.error is not None:
        assert got.error is not None, f"NumPy raises {wanted.error!r}; got {got.result!r}"
        theirs, ours = type(wanted.error), type(got.error)
        assert issubclass(ours, theirs) or issubclass(theirs, ours), (wanted.error, got.error)
        assert str(got.error), "the message says nothing"
        return
    if got.error is not None:
        raise got.error
    _compare(got.result, wanted.result)


def _compare(got: Any, wanted: Any) -> None:
    if isinstance(wanted, Check):
        wanted.check(got)
    elif isinstance(wanted, (tuple, list)):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            _compare(one, other)
    elif isinstance(wanted, Expected):
        wanted.check(np.asarray(got))
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert_equal_bits(np.asarray(got), np.asarray(wanted))
    else:
        assert type(got) is type(wanted)
        assert got == wanted


def assert_equal_bits(got: Values, wanted: Values) -> None:
    """Assert equal data type, shape and values to the last bit; any NaN equals any other."""
    if wanted.dtype.name in NARROW:
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        # Exact, and understood by all of NumPy.
        got, wanted = got.astype(np.float32), wanted.astype(np.float32)
    assert_same_bits(got, wanted)
