"""The op table: complete, and every row right for each data type and layout."""

from __future__ import annotations

import inspect
import re
from functools import cache

import mpmath
import numpy as np
import pytest

import fklarray as xp
from accuracy import (
    assert_same_bits,
    assert_within,
    bound,
    by_mpmath,
    in_domain,
    is_real,
    scale_of,
    wanted,
    wide,
)
from batches import LAYOUTS, in_layout, on_samples
from fklarray import elementwise
from fklarray_codegen import INCLUDE
from fklarray_codegen.dtypes import DTYPES
from fklarray_codegen.ops import OPS
from samples import accepted, operands, random, special

# "Element-wise Functions" of the array API standard 2025.12.
_STANDARD = """
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
    bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp
    expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal
    log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum
    multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit
    sin sinh square sqrt subtract tan tanh trunc
"""
STANDARD = set(_STANDARD.split())
CASES = [
    pytest.param(op, row, id=f"{op.name}-{row.name}")
    for op in OPS.values()
    if op.name != "where"
    for row in accepted(op)
]
INEXACT_COMPLEX = [
    op for op in OPS.values() if op.complex_ulp and op.arity == 1 and hasattr(mpmath, op.name)
]

# ------------------------------------------------------------------------------- completeness


def test_the_table_is_the_standards_list() -> None:
    standard = {op.name for op in OPS.values() if op.family != "special"}
    assert standard - {"where"} == STANDARD - {"clip"}


def test_the_functions_are_the_standards_list() -> None:
    assert set(elementwise.__all__) == STANDARD
    assert all(getattr(xp, name) is getattr(elementwise, name) for name in STANDARD)


@pytest.mark.parametrize("name", sorted(STANDARD - {"clip"}))
def test_functions_have_the_rows_name_arity_and_doc(name: str) -> None:
    function = getattr(xp, name)
    parameters = inspect.signature(function).parameters.values()
    assert function.__name__ == name
    assert [parameter.name for parameter in parameters] == (
        ["x"] if OPS[name].arity == 1 else ["x1", "x2"]
    )
    assert all(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters)
    assert function.__doc__.startswith(OPS[name].doc)


@pytest.mark.parametrize("op", OPS.values(), ids=str)
def test_every_row_has_its_functor(op: object) -> None:
    row = OPS[str(op)]
    header = INCLUDE / "fklarray" / "functors" / f"{row.family}.h"
    assert re.search(rf"\bstruct {row.functor}\b", header.read_text("utf-8"))


def test_no_functor_is_without_a_row() -> None:
    headers = (INCLUDE / "fklarray" / "functors").glob("*.h")
    text = "\n".join(header.read_text("utf-8") for header in headers)
    functors = set(re.findall(r"^struct (\w+) : (?:Vector|Lane)\w*Functor", text, re.MULTILINE))
    assert functors <= {op.functor for op in OPS.values()} | {"Cast"}


# ------------------------------------------------------------------------------------- values


def _check(op, got, values) -> None:
    reference = wanted(op, *values)
    assert (got.dtype, got.shape) == (reference.dtype, values[0].shape)
    limit = bound(op, values[0].dtype)
    if limit == 0:
        assert_same_bits(got, reference)
    elif (inside := in_domain(op, *values)).any():
        got, values = got[inside], [value[inside] for value in values]
        assert_within(limit, got, wide(op, *values), *values, scale=scale_of(op, *values))


@pytest.mark.parametrize(("op", "row"), CASES)
def test_values(op, row, device: str) -> None:
    _check(op, on_samples(row, op.arity, device)[op.name], operands(row, op.arity))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("op", "row"), CASES)
def test_layouts(op, row, layout: str, device: str) -> None:
    values, results = in_layout(row.name, layout, op.arity, device)
    _check(op, results[op.name], values)


@pytest.mark.parametrize("op", INEXACT_COMPLEX, ids=str)
@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_values_against_mpmath(op, name: str, device: str) -> None:
    row = DTYPES[name]
    (values,) = operands(row, 1)
    got = on_samples(row, 1, device)[op.name]
    # mpmath has no zero with a sign, hence no side of a branch cut.
    keep = np.flatnonzero((values.real != 0) & (values.imag != 0) & np.isfinite(got))[-300:]
    exact = by_mpmath(getattr(mpmath, op.name), values[keep])
    if got.dtype.kind == "f":
        exact = exact.real
    assert_within(op.complex_ulp, got[keep], exact, values[keep])


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_logaddexp_where_the_sum_is_near_one(name: str, device: str) -> None:
    """The result is small beside the operands, in whose last place the bound counts."""
    near = np.linspace(-3.0, -0.1, 200)
    other = np.log1p(-np.exp(near)) + np.geomspace(1e-6, 1e-1, 200)
    values = near.astype(name), other.astype(name)
    got = np.asarray(xp.logaddexp(*(xp.asarray(value, device=device) for value in values)))
    op = OPS["logaddexp"]
    exact = wide(op, *values)
    assert_within(op.max_ulp, got, exact, *values, scale=scale_of(op, *values))


_INFINITE = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -2.5]


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_classification_of_complex_values(name: str, device: str) -> None:
    values = np.array([complex(re, im) for re in _INFINITE for im in _INFINITE], name)
    x = xp.asarray(values, device=device)
    for function in ("isnan", "isinf", "isfinite", "real", "imag", "conj", "negative", "abs"):
        got = np.asarray(getattr(xp, function)(x))
        assert_same_bits(got, getattr(np, function)(values))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
@pytest.mark.parametrize("function", ["sqrt", "exp", "log", "sin", "cosh", "tanh", "asinh", "acos"])
def test_complex_functions_of_infinities(function: str, name: str, device: str) -> None:
    values = np.array([complex(re, im) for re in _INFINITE for im in _INFINITE], name)
    got = np.asarray(getattr(xp, function)(xp.asarray(values, device=device)))
    with np.errstate(all="ignore"):
        reference = getattr(np, function)(values)
    for part in ("real", "imag"):
        ours, theirs = getattr(got, part), getattr(reference, part)
        assert np.isnan(ours).tolist() == np.isnan(theirs).tolist(), (part, values, got)
        assert np.isinf(ours).tolist() == np.isinf(theirs).tolist(), (part, values, got)


# ----------------------------------------------------------------------- casts, where and clip


@cache
def _casts(source: str, device: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Convert sample values to every data type, in one kernel."""
    row = DTYPES[source]
    values = np.concatenate([special(row), random(row, 400, 5)])
    x = xp.asarray(values, device=device)[::-1]
    targets = [name for name, to in DTYPES.items() if _is_castable(source, name) or to is row]
    results = [xp.astype(x, name) for name in targets]
    xp.materialize(*results)
    return values[::-1], dict(zip(targets, map(np.asarray, results), strict=True))


def _is_castable(source: str, target: str) -> bool:
    return DTYPES[source].kind != "complex" or DTYPES[target].kind in ("complex", "bool")


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_casts(source: str, target: str, device: str) -> None:
    if not _is_castable(source, target):
        with pytest.raises(TypeError, match=f"{source} to {target}"):
            xp.astype(xp.ones((2,), dtype=source, device=device), target)
        return
    values, results = _casts(source, device)
    inside = np.ones(values.shape, np.bool_)
    if is_real(values.dtype) and np.dtype(target).kind in "iu":
        # Conversion out of range has no defined result.
        info, real = np.iinfo(target), values.astype(np.float64)
        inside = (real > float(info.min) - 1) & (real < float(info.max))
    with np.errstate(all="ignore"):
        reference = values[inside].astype(target)
    assert_same_bits(results[target][inside], reference)


@pytest.mark.parametrize("name", DTYPES)
def test_where_and_clip(name: str, device: str) -> None:
    a, b = operands(DTYPES[name], 2)
    mask = random(DTYPES["bool"], a.size, 9)
    x, y, m = (xp.asarray(value, device=device) for value in (a, b, mask))
    got = [xp.where(m, x, y), xp.where(m[::-1], x[::-1], y[0])]
    wanted_values = [np.where(mask, a, b), np.where(mask[::-1], a[::-1], b[0])]
    if np.dtype(name).kind in "iuf" and DTYPES[name].is_standard:
        low, high = (a.dtype.type(value) for value in (1, 5))
        for limits in (
            {"min": low},
            {"max": high},
            {"min": low, "max": high},
            {"min": 2, "max": 9},
        ):
            got.append(xp.clip(x, **limits))
            wanted_values.append(np.clip(a, **limits))
        got += [xp.clip(x), xp.clip(x, y, high)]
        wanted_values += [a, np.clip(a, b, high)]
    xp.materialize(*got)
    for ours, theirs in zip(got, wanted_values, strict=True):
        assert_same_bits(np.asarray(ours), theirs)


def test_clip_keeps_the_data_type_or_refuses(device: str) -> None:
    x = xp.asarray(np.array([1, 5, 9], np.int8), device=device)
    assert xp.clip(x, 2, 6).dtype == xp.int8
    assert np.asarray(xp.clip(x, 6, 2)).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="int8"):
        xp.clip(x, 1.5)
    with pytest.raises(OverflowError, match="1000"):
        xp.clip(x, 0, 1000)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("sin", "complex64"), ("exp", "float32"), ("maximum", "int16"), ("remainder", "float64")],
)
def test_single_operations(name: str, dtype: str, device: str) -> None:
    op, row = OPS[name], DTYPES[dtype]
    values = operands(row, op.arity)
    arrays = [xp.asarray(value, device=device) for value in values]
    together = on_samples(row, op.arity, device)[name]
    assert_same_bits(np.asarray(getattr(xp, name)(*arrays)), together)
