"""Type promotion: the standard's table, NumPy's rule between kinds, weak Python scalars."""

from __future__ import annotations

import copy
import itertools

import ml_dtypes
import numpy as np
import pytest

import fklarray as xp
from fklarray_codegen.dtypes import DTYPES, can_cast, named, promote

# "Type Promotion Rules", read off row by row: what two data types of one kind become.
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATING = ["float32", "float64"]
SIXTEEN_BITS = ["float16", "bfloat16"]
COMPLEX = ["complex64", "complex128"]
TABLE = {
    ("int8", "uint8"): "int16", ("int8", "uint16"): "int32", ("int8", "uint32"): "int64",
    ("int16", "uint8"): "int16", ("int16", "uint16"): "int32", ("int16", "uint32"): "int64",
    ("int32", "uint8"): "int32", ("int32", "uint16"): "int32", ("int32", "uint32"): "int64",
    ("int64", "uint8"): "int64", ("int64", "uint16"): "int64", ("int64", "uint32"): "int64",
    ("float32", "complex64"): "complex64", ("float32", "complex128"): "complex128",
    ("float64", "complex64"): "complex128", ("float64", "complex128"): "complex128",
    ("bool", "bool"): "bool",
    **{
        (row[i], row[j]): row[max(i, j)]
        for row in (SIGNED, UNSIGNED, FLOATING, COMPLEX)
        for i in range(len(row))
        for j in range(len(row))
    },
}  # fmt: skip
PAIRS = list(itertools.product(DTYPES, DTYPES))


@pytest.mark.parametrize(("pair", "wanted"), TABLE.items())
def test_the_standards_table(pair: tuple[str, str], wanted: str) -> None:
    first, second = pair
    assert promote(named(first), named(second)) is named(wanted)
    assert promote(named(second), named(first)) is named(wanted)


def _numpys(first: str, second: str) -> np.dtype:
    if "bfloat16" not in (first, second):
        return np.promote_types(first, second)
    # NumPy knows no rule for what ml_dtypes adds; its functions do.
    return np.add(np.ones(1, first), np.ones(1, second)).dtype


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_numpys_rule_everywhere(first: str, second: str) -> None:
    wanted = _numpys(first, second)
    assert promote(named(first), named(second)).name == wanted.name
    assert xp.result_type(first, second) == wanted
    assert xp.result_type(xp.zeros((2,), dtype=first), np.dtype(second)) == wanted
    assert xp.can_cast(first, second) == can_cast(named(first), named(second))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_arrays_promote(first: str, second: str, device: str) -> None:
    a, b = (xp.ones((2,), dtype=name, device=device) for name in (first, second))
    for function in ("equal", "add"):
        if function == "add" and first == second == "bool":
            continue
        reference = getattr(np, function)(np.ones(2, first), np.ones(2, second))
        result = getattr(xp, function)(a, b)
        assert result.dtype == reference.dtype
    assert xp.where(a == b, a, b).dtype == _numpys(first, second)


@pytest.mark.parametrize("value", [True, 2, 2.0, 2j])
@pytest.mark.parametrize("dtype", DTYPES)
def test_python_scalars_are_weak(dtype: str, value: complex, device: str) -> None:
    wanted = np.result_type(np.float16 if dtype == "bfloat16" else np.dtype(dtype), value)
    if wanted == np.float16:
        wanted = np.dtype(dtype)
    assert xp.result_type(np.dtype(dtype), value) == wanted
    x = xp.ones((2,), dtype=dtype, device=device)
    assert xp.where(x == 1, x, value).dtype == wanted
    assert xp.where(x == 1, value, x).dtype == wanted
    if not (dtype == "bool" and value is True):
        assert (x * value).dtype == (value * x).dtype == wanted


@pytest.mark.parametrize(("dtype", "wanted"), [("int8", "float64"), ("uint64", "float64")])
def test_integers_become_float64_where_they_must(dtype: str, wanted: str, device: str) -> None:
    x = xp.full((3,), 4, dtype=dtype, device=device)
    for result in (x / 2, 2 / x, xp.sqrt(x), xp.exp(x), xp.atan2(x, x), xp.hypot(x, 3)):
        assert result.dtype == np.dtype(wanted)
    assert np.asarray(xp.sqrt(x) / x).tolist() == [0.5] * 3


def test_several_arguments() -> None:
    assert xp.result_type(xp.int8, xp.uint8, 1.0) == xp.float64
    assert xp.result_type(1, 2.0) == xp.float64
    assert xp.result_type(xp.float32, 1, 2.5, True) == xp.float32
    assert xp.result_type(xp.ones((2,), dtype=xp.int16), xp.int8, 1) == xp.int16
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type()
    assert xp.result_type(xp.bfloat16, 2, 2.5, True) == xp.bfloat16
    assert xp.result_type(xp.float16, xp.bfloat16) == xp.float32
    with pytest.raises(TypeError, match="U3"):
        xp.result_type("U3")


# -------------------------------------------------------------------------- data type functions


def test_limits(device: str) -> None:
    for dtype in (xp.float32, xp.float64, xp.complex64, xp.complex128):
        for source in (dtype, xp.ones((2,), dtype=dtype, device=device)):
            ours, theirs = xp.finfo(source), np.finfo(dtype)
            names = ("bits", "eps", "max", "min", "smallest_normal", "dtype")
            assert [getattr(ours, name) for name in names] == [
                getattr(theirs, name) for name in names
            ]
    for dtype in (xp.float16, xp.bfloat16):
        ours, theirs = xp.finfo(dtype), ml_dtypes.finfo(dtype)
        names = ("bits", "eps", "max", "min", "smallest_normal", "dtype")
        assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names]
        assert all(type(getattr(ours, name)) is float for name in ("eps", "max", "tiny"))
        assert (type(ours.bits), repr(ours)) == (int, repr(theirs))
        assert copy.copy(ours).max == ours.max
        assert {"eps", "smallest_normal"} <= set(dir(ours))
        with pytest.raises(AttributeError, match="largest"):
            _ = ours.largest
    with pytest.raises(ValueError, match="int8"):
        xp.finfo(xp.int8)
    for name in SIGNED + UNSIGNED:
        ours, theirs = xp.iinfo(name), np.iinfo(name)
        assert (ours.bits, ours.min, ours.max) == (theirs.bits, theirs.min, theirs.max)
        assert xp.iinfo(xp.ones((1,), dtype=name)).max == theirs.max


@pytest.mark.parametrize("dtype", DTYPES)
def test_kinds(dtype: str) -> None:
    kinds = {
        "bool": ["bool"], "signed integer": SIGNED, "unsigned integer": UNSIGNED,
        "integral": SIGNED + UNSIGNED, "real floating": SIXTEEN_BITS + FLOATING,
        "complex floating": COMPLEX,
        "numeric": SIGNED + UNSIGNED + SIXTEEN_BITS + FLOATING + COMPLEX,
    }  # fmt: skip
    row = np.dtype(dtype)
    for kind, names in kinds.items():
        assert xp.isdtype(row, kind) is (dtype in names)
        assert xp.isdtype(row, (kind, row)) is True
    assert xp.isdtype(row, xp.int16) is (dtype == "int16")
    with pytest.raises(ValueError, match="quaternion"):
        xp.isdtype(row, ("numeric", "quaternion"))
    for kind in (None, float):
        with pytest.raises(TypeError, match="isdtype"):
            xp.isdtype(row, kind)


def test_astype(device: str) -> None:
    x = xp.asarray([1.5, -2.5], device=device)
    assert xp.astype(x, xp.float64, copy=False) is x
    assert xp.astype(x, xp.float64) is not x
    assert xp.astype(x, xp.int8, copy=False).dtype == xp.int8
    with pytest.raises(TypeError, match="None"):
        xp.astype(x, None)
    with pytest.raises(TypeError, match=r"longdouble|float128"):
        xp.astype(x, np.longdouble)
    with pytest.raises(ValueError, match="mars"):
        xp.astype(x, xp.int8, device="mars")


def test_data_types_are_numpys() -> None:
    for name in DTYPES:
        dtype = getattr(xp, name)
        assert dtype is np.dtype(name).type
        assert dtype != None  # noqa: E711 - a numpy.dtype of float64 says that it is None
        x = xp.ones((1,), dtype=dtype)
        assert x.dtype == dtype
        assert isinstance(x.dtype, np.dtype)
        assert (x + dtype(1)).dtype == dtype


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod", "mean"])
def test_complex_numbers_are_not_reduced_as_real_ones(name: str) -> None:
    reduction = getattr(xp, name)
    x = xp.asarray([1 + 1j, 1j])
    assert reduction(x, dtype=xp.complex64).dtype == xp.complex64
    with pytest.raises(TypeError, match="complex128 to float32"):
        reduction(x, dtype=xp.float32)
