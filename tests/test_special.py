"""Special functions: fused ones within their bounds, all of them with SciPy's values."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
from scipy.special import _support_alternative_backends as hook

import fklarray as xp
from accuracy import assert_same_bits, assert_within, real_by_mpmath
from fklarray_codegen.ops import OPS, Op
from samples import Values

pytestmark = pytest.mark.usefixtures("device")

FUSED = [op for op in OPS.values() if op.family == "special"]
THROUGH_SCIPY = sorted(set(xp.special.__all__) - {op.name for op in FUSED})
FLOATS = ["float32", "float64"]
EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, -2.5, 1e30, -1e30, 5e-40]


def _gammaln(x: Any) -> Any:
    return mpmath.loggamma(x).real if x > 0 else mpmath.log(abs(mpmath.gamma(x)))


def _ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


EXACT = {
    "entr": lambda x: -x * mpmath.log(x),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
    "gammaln": _gammaln,
    "log_ndtr": lambda x: mpmath.log1p(-_ndtr(-x)) if x > 0 else mpmath.log(_ndtr(x)),
    "logit": lambda x: mpmath.log(x / (1 - x)),
    "ndtr": _ndtr,
    "rel_entr": lambda x, y: x * mpmath.log(x / y),
    "xlog1py": lambda x, y: x * mpmath.log1p(y),
    "xlogy": lambda x, y: x * mpmath.log(y),
}


@cache
def _draw(name: str, dtype: str) -> tuple[Values, ...]:
    """Draw operands over everything that the function's domain has in store."""
    random = np.random.default_rng(len(name))
    largest = {"float32": 37.0, "float64": 300.0}[dtype]
    near_zero = random.choice([-1.0, 1.0], 200) * 10 ** random.uniform(-largest, 0, 200)
    positive = np.concatenate(
        [
            random.uniform(0, 4, 300),
            1 + near_zero[near_zero > -1],
            10 ** random.uniform(-largest, largest, 300),
        ]
    )
    inside = {
        "logit": np.concatenate([random.uniform(0, 1, 300), 0.5 + near_zero / 2, abs(near_zero)]),
        "entr": positive,
        "gammaln": np.concatenate([positive, random.uniform(-20, 0, 500), 2 + near_zero]),
    }
    everywhere = np.concatenate(
        [
            random.uniform(-5, 5, 500),
            random.uniform(-760, 760, 500),
            near_zero,
            -(10 ** random.uniform(0, 15, 300)),
        ]
    )
    values = inside.get(name, positive if OPS[name].arity == 2 else everywhere).astype(dtype)
    if name in ("logit", "entr"):
        values = values[(values > 0) & ((values < 1) | (name == "entr")) & (values != 1)]
    if OPS[name].arity == 1:
        return (values,)
    first = np.random.default_rng(5).permutation(positive)[: values.size].astype(dtype)
    # Neighbours, whose quotient is near 1.
    first[:200] = values[:200] * (1 + near_zero / 8).astype(dtype)
    with np.errstate(all="ignore"):
        usual = np.isfinite(first * np.log(first / values)) & (first > 0) & (values > 0)
        usual &= (first != values) & (values != 1)  # exact zeros
    return first[usual], values[usual]


def _compute(name: str, *values: Values) -> Values:
    return np.asarray(getattr(xp.special, name)(*map(xp.asarray, values)))


# ---------------------------------------------------------------------------------- namespace


def test_the_functions_are_those_that_scipy_looks_up() -> None:
    assert set(xp.special.__all__) == {info.name for info in hook._special_funcs}
    for name in xp.special.__all__:
        assert getattr(xp.special, name).__name__ == name


def test_none_is_in_the_main_namespace() -> None:
    assert not {name for name in xp.special.__all__ if hasattr(xp, name)}


@pytest.mark.parametrize("op", FUSED, ids=str)
def test_fused_functions_are_documented_with_their_bound(op: Op) -> None:
    doc = getattr(xp.special, op.name).__doc__
    assert doc.startswith(op.doc)
    assert f"{op.max_ulp} ulp" in doc
    assert f"scipy.special.{op.name}" in doc


SCIPY_CALLS = """
import numpy as np, scipy.special as special
import fklarray as xp
values = np.array([0.25, 0.5, 0.75])
x = xp.asarray(values)
for name in ("erf", "entr", "xlogy", "ndtri", "betainc"):
    function = getattr(special, name)
    operands = 1 if name in ("erf", "entr", "ndtri") else 2 if name == "xlogy" else 3
    got = function(*[x] * operands)
    assert type(got) is xp.Array, (name, type(got))
    assert np.allclose(np.asarray(got), function(*[values] * operands), rtol=1e-14), name
"""


def test_scipy_hands_its_calls_over() -> None:
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCIPY_CALLS]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# -------------------------------------------------------------------------------- fused values


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", FUSED, ids=str)
def test_values_within_the_bound(op: Op, dtype: str) -> None:
    values = _draw(op.name, dtype)
    assert values[0].size > 300
    got = _compute(op.name, *values)
    assert got.dtype == np.dtype(dtype)
    assert_within(op.max_ulp, got, real_by_mpmath(EXACT[op.name], *values), *values)


@pytest.mark.parametrize("mode", ["sync", "off"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", FUSED, ids=str)
def test_values_at_the_edges_are_scipys(op: Op, dtype: str, mode: str) -> None:
    points = list(product(EDGES, repeat=op.arity))
    values = [np.array([point[i] for point in points], dtype) for i in range(op.arity)]
    with np.errstate(all="ignore"):
        wanted = getattr(scipy.special, op.name)(*values)
    with xp.config.override(compile=mode):
        got = _compute(op.name, *values)
    exactly = ~np.isfinite(wanted) | (wanted == 0)
    assert_same_bits(got[exactly], wanted[exactly])
    assert np.allclose(got[~exactly], wanted[~exactly], rtol=2e-6 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", FUSED, ids=str)
def test_values_without_a_compiler_agree(op: Op, dtype: str) -> None:
    values = _draw(op.name, dtype)
    compiled = _compute(op.name, *values)
    with xp.config.override(compile="off"):
        plain = _compute(op.name, *values)
    assert plain.dtype == compiled.dtype
    info = np.finfo(dtype)
    # Python's own function is not as good around its zeros.
    absolute = 1e-14 if op.name == "gammaln" else info.tiny
    relative = 1e-5 if dtype == "float32" else 1e-12
    assert np.allclose(plain, compiled, rtol=relative, atol=absolute)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", FUSED, ids=str)
def test_a_value_does_not_depend_on_its_place(op: Op, dtype: str) -> None:
    values = [value[:37] for value in _draw(op.name, dtype)]
    together = _compute(op.name, *values)
    alone = [
        _compute(op.name, *(value[i : i + 1] for value in values))[0] for i in range(36, 24, -1)
    ]
    assert_same_bits(np.array(alone), together[:24:-1])


def test_functions_fuse_with_other_operations() -> None:
    x = xp.asarray(np.linspace(0.1, 0.9, 1000))
    special = xp.special
    before = xp.counters()
    y = special.xlogy(x, special.ndtr(x)) + special.entr(x) * special.expit(special.gammaln(x) - 1)
    assert xp.counters()["flushes"] == before["flushes"]
    values = np.asarray(y)
    after = xp.counters()
    assert after["kernels_launched"] == before["kernels_launched"] + 1
    assert after["ops_fused"] == before["ops_fused"] + 8
    assert after["reference_evaluations"] == before["reference_evaluations"]
    v, s = np.linspace(0.1, 0.9, 1000), scipy.special
    wanted = s.xlogy(v, s.ndtr(v)) + s.entr(v) * s.expit(s.gammaln(v) - 1)
    assert np.allclose(values, wanted, rtol=1e-14)


# -------------------------------------------------------------------------- data types, mistakes


def test_data_types_of_fused_functions() -> None:
    for dtype in ("int8", "uint64", "bool"):
        assert xp.special.expit(xp.asarray([1], dtype=dtype)).dtype == xp.float64
    x = xp.asarray([0.5], dtype=xp.float32)
    assert xp.special.xlogy(x, 2).dtype == xp.special.xlogy(2.5, x).dtype == xp.float32
    assert xp.special.xlogy(x, xp.asarray([0.5])).dtype == xp.float64
    assert xp.special.erf(xp.astype(x, "float16")).dtype == np.dtype("float16")


@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr", "log_ndtr"])
def test_complex_operands_go_through_scipy(name: str) -> None:
    values = np.array([0.5 + 1j, -2j])
    assert_same_bits(_compute(name, values), getattr(scipy.special, name)(values))


def test_a_complex_second_operand_goes_through_scipy() -> None:
    x = np.array([0.0, 2.0])
    for other in (1j, np.array([1j, 2.0])):
        got = xp.special.xlogy(xp.asarray(x), other)
        assert_same_bits(np.asarray(got), scipy.special.xlogy(x, np.asarray(other)))


@pytest.mark.parametrize("name", ["entr", "logit", "expit", "gammaln", "ndtri", "i0"])
def test_complex_operands_are_refused_where_scipy_refuses_them(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        getattr(xp.special, name)(xp.asarray([1j]))


@pytest.mark.parametrize("name", ["erf", "xlogy", "ndtri", "betainc"])
def test_numbers_alone_and_wrong_counts_are_refused(name: str) -> None:
    function = getattr(xp.special, name)
    with pytest.raises(TypeError, match=r"array|operand|argument"):
        function(*[0.5] * {"xlogy": 2, "betainc": 3}.get(name, 1))
    with pytest.raises(TypeError, match=r"argument"):
        function(*[xp.asarray([0.5])] * 4)


# -------------------------------------------------------------------------------- through SciPy


def _operands(name: str) -> list[Any]:
    """Return operands on which the function is defined; integers where it wants some."""
    info = next(info for info in hook._special_funcs if info.name == name)
    whole = info.int_only or info.python_int_only or (False,) * info.n_args
    floats = iter([np.array([0.3, 0.55, 0.7]), np.array([0.8, 0.25, 0.5]), np.array([0.4] * 3)])
    operands = [np.array([1, 2, 3]) if is_whole else next(floats) for is_whole in whole]
    if name == "multigammaln":
        return [operands[0] + 3, 2]
    if name in ("zeta", "lpmv"):
        operands[0] = np.array([2.0, 1.0, 3.0]) + (name == "zeta")
    return operands


def _as_arrays(values: list[Any], dtype: str | None = None) -> list[Any]:
    return [
        xp.asarray(v.astype(dtype) if dtype and v.dtype.kind == "f" else v)
        if isinstance(v, np.ndarray)
        else v
        for v in values
    ]


@pytest.mark.parametrize("name", THROUGH_SCIPY)
def test_functions_through_scipy_have_its_values(name: str) -> None:
    values = _operands(name)
    before = xp.counters()
    got = getattr(xp.special, name)(*_as_arrays(values))
    after = xp.counters()
    assert type(got) is xp.Array
    assert after["reference_evaluations"] == before["reference_evaluations"] + 1
    wanted = getattr(scipy.special, name)(*values)
    assert np.isfinite(wanted).all()
    assert_same_bits(np.asarray(got), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["ndtri", "i1e", "gammainc", "stdtr"])
def test_functions_through_scipy_keep_the_data_type(name: str, dtype: str) -> None:
    values = [xp.astype(value, dtype) for value in _as_arrays(_operands(name))]
    got = getattr(xp.special, name)(*values)
    assert got.dtype == values[0].dtype
    plain = [np.asarray(xp.astype(value, xp.float32)) for value in values]
    wanted = getattr(scipy.special, name)(*plain).astype(got.dtype)
    assert np.asarray(got).tolist() == wanted.tolist()


def test_functions_through_scipy_take_numbers_integers_and_numpys_arrays() -> None:
    special = xp.special
    x = xp.asarray([0.25, 0.5], dtype=xp.float32)
    for got in (special.betainc(x, 0.5, x), special.betainc(2, x, np.asarray(x)), special.i0(x)):
        assert got.dtype == xp.float32
    assert special.betainc(x, np.float64(0.5), x).dtype == xp.float64
    integers = xp.asarray([1, 2], dtype=xp.int8)
    got = special.psi(integers)
    assert_same_bits(np.asarray(got), scipy.special.psi(np.array([1, 2], np.int64)))
    assert special.psi(xp.asarray([True])).dtype == xp.float64


def test_operands_of_functions_through_scipy_broadcast() -> None:
    a, b = np.array([[0.5], [1.5]]), np.array([0.25, 0.75, 2.0])
    got = xp.special.gammainc(xp.asarray(a), xp.asarray(b))
    assert_same_bits(np.asarray(got), scipy.special.gammainc(a, b))
    with pytest.raises(ValueError, match="broadcast"):
        xp.special.gammainc(xp.asarray([1.0, 2.0]), xp.asarray(b))


def test_without_scipy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    x = xp.asarray([0.5])
    with pytest.raises(ImportError, match=r"ndtri.*fklarray\[scipy\]"):
        xp.special.ndtri(x)
    assert float(xp.special.erf(x)[0]) == pytest.approx(0.5204998778130465)
