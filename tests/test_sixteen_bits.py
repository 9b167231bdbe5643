"""float16 and bfloat16: every number, every operation, rounded after each as NumPy rounds."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import fklarray as xp
from accuracy import assert_same_bits, assert_within, bound, scale_of, wanted
from batches import TOGETHER
from fklarray_codegen.dtypes import DTYPES, named, promote
from fklarray_codegen.ops import ACCEPTED, OPS, Op
from samples import Values, random, special

NAMES = ["float16", "bfloat16"]
OPERATIONS = [
    op for op in OPS.values() if op.name != "where" and DTYPES["float16"] in ACCEPTED[op.accepts]
]
UNARY = [op for op in OPERATIONS if op.arity == 1]
BINARY = [op for op in OPERATIONS if op.arity == 2]
# Of equal zeros NumPy's loops for float16 take the first, those for float32 the second, as here.
# ml_dtypes keeps the sign of zero in sign(), and has NaN for quotients by zero.
AS_FLOAT32 = ("maximum", "minimum", "sign", "floor_divide")


@cache
def every(name: str) -> Values:
    """Return all numbers of a type."""
    return np.arange(65536).astype(np.uint16).view(name)


@cache
def pairs(name: str) -> tuple[Values, Values]:
    """Return pairs of extreme numbers, of any numbers, and of everyday ones."""
    draw = np.random.default_rng(16)
    row = DTYPES[name]
    edges = special(row)
    patterns = draw.permutation(np.tile(every(name), 2)), draw.permutation(np.tile(every(name), 2))
    return (
        np.concatenate([np.repeat(edges, edges.size), patterns[0], random(row, 5000, 1)]),
        np.concatenate([np.tile(edges, edges.size), patterns[1], random(row, 5000, 2)]),
    )


def function(op: Op) -> Callable[..., xp.Array]:
    return getattr(xp.special if op.family == "special" else xp, op.name)


@cache
def results(name: str, arity: int, device: str) -> dict[str, Values]:
    """Compute every operation, several in one kernel."""
    values = (every(name),) if arity == 1 else pairs(name)
    arrays = [xp.asarray(value, device=device) for value in values]
    pending = {op.name: function(op)(*arrays) for op in OPERATIONS if op.arity == arity}
    outputs = list(pending.values())
    with xp.config.override(compile="sync"):
        for start in range(0, len(outputs), TOGETHER):
            xp.materialize(*outputs[start : start + TOGETHER])
    return {name: np.asarray(result) for name, result in pending.items()}


def reference(op: Op, *values: Values) -> Values:
    """Return NumPy's result: the number itself for exact operations, else in float64."""
    if op.max_ulp == 0:
        if op.name in AS_FLOAT32:
            single = wanted(op, *(value.astype(np.float32) for value in values))
            return single.astype(values[0].dtype)
        if op.name == "nextafter":
            # Of equal zeros the second, as in C; NumPy's float16 keeps the first.
            return np.where(values[0] == values[1], values[1], np.nextafter(*values))
        return wanted(op, *values)
    wide = [value.astype(np.float64) for value in values]
    if op.family == "special":
        from scipy import special as scipy_special

        return np.asarray(getattr(scipy_special, op.name)(*wide))
    return wanted(op, *wide)


@np.errstate(all="ignore")
def check(op: Op, got: Values, *values: Values) -> None:
    exact = reference(op, *values)
    limit = bound(op, values[0].dtype)
    if limit == 0:
        assert_same_bits(got, exact)
        return
    assert got.dtype == values[0].dtype
    longer = exact.astype(np.longdouble)
    assert_within(limit, got, longer, *values, scale=scale_of(op, *values))


# ------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("op", UNARY, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_every_number(name: str, op: Op, device: str) -> None:
    check(op, results(name, 1, device)[op.name], every(name))


@pytest.mark.parametrize("op", BINARY, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_pairs(name: str, op: Op, device: str) -> None:
    check(op, results(name, 2, device)[op.name], *pairs(name))


@pytest.mark.parametrize("name", NAMES)
def test_clip_where_and_square(name: str, device: str) -> None:
    a, b = pairs(name)
    mask = random(DTYPES["bool"], a.size, 3)
    x, y, m = (xp.asarray(values, device=device) for values in (a, b, mask))
    got = [xp.clip(x, -1, 2.5), xp.where(m, x, y), x**2, xp.where(m, x, -0.1)]
    xp.materialize(*got)
    low, high, tenth = (np.asarray(value, name) for value in (-1, 2.5, -0.1))
    with np.errstate(all="ignore"):
        clipped = np.where(a < low, low, np.where(a > high, high, a))
        wanted_values = [clipped, np.where(mask, a, b), a * a, np.where(mask, a, tenth)]
        for ours, theirs in zip(got, wanted_values, strict=True):
            assert_same_bits(np.asarray(ours), theirs)
        # A selection moves numbers as they are, whatever kind of NaN they are.
        assert np.array_equal(np.asarray(got[1]).view("u2"), np.where(mask, a, b).view("u2"))


# ------------------------------------------------------------------------------------- casts


@pytest.mark.parametrize("name", NAMES)
def test_casts_of_every_number(name: str, device: str) -> None:
    values = every(name)
    x = xp.asarray(values, device=device)
    results = {target: xp.astype(x, target) for target in DTYPES if target != name}
    xp.materialize(*results.values())
    for target, result in results.items():
        inside = np.ones(values.shape, np.bool_)
        with np.errstate(all="ignore"):
            if DTYPES[target].kind in ("signed", "unsigned"):
                info, real = np.iinfo(target), values.astype(np.float64)
                inside = (real > float(info.min) - 1) & (real < float(info.max))
            assert_same_bits(np.asarray(result)[inside], values[inside].astype(target))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_rounding_around_every_tie(name: str, source: str, device: str) -> None:
    """float64 becomes float16 in one rounding; bfloat16 in two, as by ml_dtypes."""
    numbers = every(name)[: 0x7C01 if name == "float16" else 0x7F81].astype(np.float64)
    numbers[-1] = 2 * numbers[-2] - numbers[-3]
    ties = ((numbers[:-1] + numbers[1:]) / 2).astype(source)
    values = [numbers[:-1].astype(source), ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf)]
    values.append(np.array([1e-30, 1e30, 1e300 if source == "float64" else 3e38, np.inf], source))
    both = np.concatenate([*values, *(-value for value in values)])
    got = np.asarray(xp.astype(xp.asarray(both, device=device), name))
    with np.errstate(over="ignore"):
        assert_same_bits(got, both.astype(name))


@pytest.mark.parametrize("source", ["int8", "uint16", "int32", "int64", "uint64"])
def test_casts_of_integers(source: str, device: str) -> None:
    row = DTYPES[source]
    values = np.concatenate([special(row), random(row, 3000, 4), np.arange(127).astype(source)])
    x = xp.asarray(values, device=device)
    results = [xp.astype(x, name) for name in NAMES]
    xp.materialize(*results)
    for name, result in zip(NAMES, results, strict=True):
        with np.errstate(over="ignore"):
            assert_same_bits(np.asarray(result), values.astype(name))


# -------------------------------------------------------------------------- whole expressions


def _expression(x: Any, y: Any, n: Any) -> Any:
    return n.sqrt(n.abs(x * y + x)) / y - x


_VIEWS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "whole": (lambda a, _: a, lambda a, _: a),
    "steps": (lambda a, _: a[:, ::3], lambda a, _: a[:, 1:41]),
    "reversed": (lambda a, _: a[::-1, ::-1], lambda a, _: a),
    "transposed": (lambda a, _: a.T, lambda a, _: a.T),
    "row": (lambda a, _: a[0], lambda a, _: a),
    "column": (lambda a, n: n.broadcast_to(a[:, :1], (30, 120)), lambda a, _: a),
    "short rows": (lambda a, _: a[:, :3], lambda a, _: a[0, :3]),
    "short run": (lambda a, _: a[0, :5], lambda a, _: a[1, 2:7]),
    "0-d": (lambda a, _: a[2, 3, ...], lambda a, _: a[0, 5, ...]),
    "empty": (lambda a, _: a[:0], lambda a, _: a[:0]),
}


@pytest.mark.parametrize("view", _VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_layouts(name: str, view: str, device: str) -> None:
    plain = [random(DTYPES[name], 3600, seed).reshape(30, 120) for seed in (7, 8)]
    ours = [xp.asarray(values, device=device) for values in plain]
    first, second = _VIEWS[view]
    got = _expression(first(ours[0], xp), second(ours[1], xp), xp)
    with np.errstate(all="ignore"):
        reference = _expression(first(plain[0], np), second(plain[1], np), np)
    assert_same_bits(np.asarray(got), np.ascontiguousarray(reference).reshape(reference.shape))


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_depend_on_the_place(name: str, device: str) -> None:
    x, y = (xp.asarray(random(DTYPES[name], 200, seed), device=device) for seed in (1, 2))

    def curve(x: xp.Array, y: xp.Array) -> xp.Array:
        return xp.exp(xp.sin(x)) * xp.pow(xp.abs(y), 0.3) + xp.atan2(x, y)

    whole = np.asarray(curve(x, y))
    for key in [*(slice(3, 3 + n) for n in range(1, 34)), slice(None, None, -3), slice(7, 90, 11)]:
        assert_same_bits(np.asarray(curve(x[key], y[key])), whole[key])
    # Beside float64 and int64 a pack has half as many lanes.
    beside = curve(x, y), xp.astype(x, xp.float64) / 3, xp.astype(xp.abs(x) < 1, xp.int64)
    xp.materialize(*beside)
    assert_same_bits(np.asarray(beside[0]), whole)


@pytest.mark.parametrize("mode", ["sync", "off"])
def test_mixed_data_types_round_after_each_operation(mode: str, device: str) -> None:
    rows = ("float16", "bfloat16", "float32", "int8", "bool", "complex64")
    plain = [random(DTYPES[name], 1000, seed) for seed, name in enumerate(rows)]
    half, brain, single, small, mask, number = plain
    a, b, c, i, m, z = (xp.asarray(values, device=device) for values in plain)
    with xp.config.override(compile=mode), np.errstate(all="ignore"):
        got = [xp.where(m, a * 2.1 + i, a)]
        got += [got[0] + b, xp.astype(got[0] / 3, xp.bfloat16) * b - 0.1]
        got += [got[2] + c, got[2] * z, got[2] < a, xp.astype(got[1], xp.float16)]
        xp.materialize(*got)
        two, tenth = np.float16(2.1), np.asarray(0.1, "bfloat16")
        steps = [np.where(mask, half * two + small.astype("f2"), half)]
        steps += [steps[0].astype("f4") + brain.astype("f4")]
        steps += [(steps[0] / np.float16(3)).astype("bfloat16") * brain - tenth]
        steps += [steps[2].astype("f4") + single, np.multiply(steps[2].astype("f4"), number)]
        steps += [steps[2].astype("f4") < half.astype("f4"), steps[1].astype("f2")]
    for place, (ours, theirs) in enumerate(zip(got, steps, strict=True)):
        if place == 4:  # complex products are not NumPy's to the last bit
            assert ours.dtype == theirs.dtype == xp.complex64
        else:
            assert_same_bits(np.asarray(ours), theirs)


@pytest.mark.parametrize("op", [op for op in OPERATIONS if op.max_ulp == 0], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_without_a_compiler_exact_operations_have_the_same_bits(
    name: str, op: Op, device: str
) -> None:
    values = (every(name),) if op.arity == 1 else pairs(name)
    with xp.config.override(compile="off"), np.errstate(all="ignore"):
        got = np.asarray(function(op)(*(xp.asarray(value, device=device) for value in values)))
        assert_same_bits(got, results(name, op.arity, device)[op.name])


# ------------------------------------------------------------------------------------ scalars


@pytest.mark.parametrize("mode", ["sync", "off"])
@pytest.mark.parametrize("name", NAMES)
def test_python_numbers_are_rounded_once(name: str, mode: str, device: str) -> None:
    ulp = float(ml_dtypes.finfo(name).eps)
    numbers = [0.1, 3, -0.0, 65519.99, 65520.0, 1e39, -1e300, 1e-8, math.inf, math.nan]
    numbers += [1 + ulp / 2 + 2.0**-40, 1 + ulp / 2, 1 + 3 * ulp / 2, 5e-324, True]
    x = xp.asarray(np.array([1.0, 0.0], name), device=device)
    with xp.config.override(compile=mode), np.errstate(all="ignore"):
        for number in numbers:
            theirs = np.array([1.0, 0.0], name) + np.asarray(number).astype(name)
            for got in (x + number, number + x, xp.where(x == 5, x, number)[0] + x):
                assert_same_bits(np.asarray(got), theirs)
            filled = xp.full((3,), number, dtype=name, device=device)
            assert_same_bits(np.asarray(filled), np.full(3, float(number)).astype(name))
    with pytest.raises(OverflowError):
        x + 10**400


# ---------------------------------------------------------------------- promotion and namespace


def test_promotion_is_numpys_and_both_meet_in_float32() -> None:
    table = {
        ("float16", "bfloat16"): "float32",
        **{(name, other): name for name in NAMES for other in ("bool", "int8", "uint8", name)},
        **{(name, other): "float32" for name in NAMES for other in ("int16", "uint16", "float32")},
        **{
            (name, other): "float64"
            for name in NAMES
            for other in ("int32", "int64", "uint32", "uint64", "float64")
        },
        **{(name, other): other for name in NAMES for other in ("complex64", "complex128")},
    }
    assert len(table) == 2 * (len(DTYPES) - 2) + 3
    for (first, second), result in table.items():
        assert promote(named(first), named(second)).name == result
        assert promote(named(second), named(first)).name == result


def test_the_data_types_are_numpys_and_not_among_the_standards(device: str) -> None:
    assert xp.float16 is np.float16
    assert xp.bfloat16 is ml_dtypes.bfloat16
    info = xp.__array_namespace_info__()
    for kind in (None, "real floating", ("numeric", "bool")):
        assert not set(info.dtypes(kind=kind)) & set(NAMES)


def test_kernels_without_them_do_not_include_them(device: str) -> None:
    x = xp.asarray(np.ones(3, np.float32), device=device)
    assert "float16.h" not in xp.explain(x + 1).source
    for name in NAMES:
        assert xp.explain(xp.astype(x, name)).source.count("float16.h") == 1


# -------------------------------------------------------------------------------- array object


@pytest.mark.parametrize("name", NAMES)
def test_conversions_and_copies(name: str, device: str) -> None:
    values = random(DTYPES[name], 12, 5).reshape(3, 4)
    x = xp.asarray(values, device=device)
    assert (x.dtype, x.itemsize, x.nbytes) == (np.dtype(name), 2, 24)
    for same in (
        x + 0.0, pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x),
        xp.asarray(values.tolist(), dtype=name, device=device), xp.asarray(x, copy=True),
        xp.asarray(values[::-1], device=device)[::-1], xp.stack([x, x])[1], xp.flip(xp.flip(x)),
    ):  # fmt: skip
        assert_same_bits(np.asarray(same), values)
    assert_same_bits(np.asarray(x, dtype=np.float32), values.astype(np.float32))
    assert isinstance(x.tolist()[0][0], float)
    assert x.tolist() == values.astype(np.float64).tolist()
    assert float(x[1, 2]) == x[1, 2].item() == float(values[1, 2])
    assert bool(x[0, 0]) is bool(values[0, 0])
    assert f"dtype={name}" in repr(x)
    x[1, :] = 2.5
    x[xp.asarray(values, device=device) < 0] = 0.1
    expected = values.copy()
    expected[1] = 2.5
    expected[values < 0] = 0.1
    assert_same_bits(np.asarray(x), expected)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_memory_is_shared(name: str, host: str) -> None:
    values = np.arange(10.0).astype(name)
    shared = xp.asarray(values, copy=False, device=host)
    assert np.asarray(shared).ctypes.data == values.ctypes.data
    values.flags.writeable = False
    constant = xp.asarray(values, device=host)
    assert np.asarray(constant).ctypes.data == values.ctypes.data
    assert_same_bits(np.asarray(constant * 2), values * values.dtype.type(2))


@pytest.mark.parametrize("name", NAMES)
def test_round_trip_through_torch(name: str, host: str) -> None:
    x = xp.asarray(np.arange(6.0).astype(name), device=host) / 3
    tensor = torch.from_dlpack(x)
    assert tensor.dtype == getattr(torch, name)
    back = xp.from_dlpack(tensor * 2)
    assert_same_bits(np.asarray(back), np.asarray(x * 2))
    assert torch.equal(torch.from_dlpack(back), tensor * 2)


@pytest.mark.parametrize("name", NAMES)
def test_creation(name: str, device: str) -> None:
    options: dict[str, Any] = {"dtype": name, "device": device}
    assert np.asarray(xp.ones((2, 2), **options)).tolist() == [[1.0, 1.0]] * 2
    assert np.asarray(xp.arange(5, **options)).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert np.asarray(xp.linspace(0, 1, 5, **options)).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert np.asarray(xp.eye(2, **options)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert xp.zeros_like(xp.ones((3,), **options)).dtype == np.dtype(name)
