"""The array object: attributes, conversions, operators with every kind of operand, protocols."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits

# Functions of the standard 2025.12 outside "Element-wise Functions" and the extensions.
_STANDARD = """
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones
    ones_like tril triu zeros zeros_like
    astype can_cast finfo iinfo isdtype result_type
    broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims
    repeat reshape roll squeeze stack tile unstack
    argmax argmin count_nonzero nonzero searchsorted where argsort sort
    isin unique_all unique_counts unique_inverse unique_values
    cumulative_prod cumulative_sum max mean min prod std sum var all any diff
    matmul matrix_transpose tensordot vecdot take take_along_axis
    __array_namespace_info__
"""
STANDARD = set(_STANDARD.split())
CONSTANTS = {"e": np.e, "inf": np.inf, "nan": np.nan, "pi": np.pi}
_DTYPES = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
complex128
"""
DTYPES = _DTYPES.split()


@pytest.fixture
def x(device: str) -> xp.Array:
    return xp.asarray(np.arange(6.0).reshape(2, 3), device=device)


# ----------------------------------------------------------------------------------- namespace


def test_the_namespace_is_the_standards() -> None:
    assert not {name for name in STANDARD if not callable(getattr(xp, name, None))}
    assert not {name for name in DTYPES if getattr(xp, name) != np.dtype(name)}
    for name, value in CONSTANTS.items():
        assert_same_bits(np.float64(getattr(xp, name)), np.float64(value))
    assert xp.newaxis is None
    assert xp.__array_api_version__ == "2025.12"


def test_inspection() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {
        "real floating": xp.float64, "complex floating": xp.complex128,
        "integral": xp.int64, "indexing": xp.int64,
    }  # fmt: skip
    assert set(info.dtypes()) == set(DTYPES)
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {
        "bool", "complex64", "complex128",
    }  # fmt: skip
    assert set(info.capabilities()) == {
        "boolean indexing", "data-dependent shapes", "max dimensions",
    }  # fmt: skip
    with pytest.raises(ValueError, match="tpu"):
        info.dtypes(device="tpu")


# ---------------------------------------------------------------------------------- attributes


def test_attributes(x: xp.Array, device: str) -> None:
    y = x * 2
    assert (y.dtype, y.shape, y.ndim, y.size, y.itemsize, y.nbytes) == (
        xp.float64, (2, 3), 2, 6, 8, 48,
    )  # fmt: skip
    assert y.device == device
    assert isinstance(y.dtype, np.dtype)
    assert y.T.shape == y.mT.shape == (3, 2)
    assert np.asarray(y.T).tolist() == (np.arange(6.0).reshape(2, 3) * 2).T.tolist()
    stack = xp.reshape(xp.arange(24, device=device), (2, 3, 4))
    assert np.asarray(stack.mT).tolist() == np.arange(24).reshape(2, 3, 4).mT.tolist()
    for bad in (lambda: stack.T, lambda: x[0].T, lambda: x[0].mT):
        with pytest.raises(ValueError, match="dimensions"):
            bad()
    with pytest.raises(AttributeError):
        x.shape = (6,)
    with pytest.raises(TypeError):
        hash(x)


def test_namespace_and_devices(x: xp.Array, device: str) -> None:
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2025.12") is xp
    with pytest.raises(ValueError, match=r"1999\.01"):
        x.__array_namespace__(api_version="1999.01")
    assert x.to_device(device) is x
    for bad in ("gpu:17", "nowhere"):
        with pytest.raises(ValueError, match=bad):
            x.to_device(bad)
        with pytest.raises(ValueError, match=bad):
            xp.zeros((2,), device=bad)
    with pytest.raises(ValueError, match="stream"):
        x.to_device(device, stream=3)


# --------------------------------------------------------------------------------- conversions


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_to_python(dtype: str, shape: tuple[int, ...], device: str) -> None:
    value = np.ones(shape, dtype)
    x = xp.asarray(value, device=device)
    assert bool(x) is True
    assert complex(x) == 1 + 0j
    assert type(x.item()) is type(value.item())
    if value.dtype.kind != "c":
        assert (int(x), float(x)) == (1, 1.0)
    else:
        for convert in (int, float):
            with pytest.raises(TypeError):
                convert(x)
    if value.dtype.kind in "iu":
        assert operator.index(x) == 1
        assert list(range(3))[x] == 1
    else:
        with pytest.raises(TypeError, match=dtype):
            operator.index(x)
    assert not bool(x - x if dtype != "bool" else ~x)


def test_conversions_of_more_than_one_element(x: xp.Array) -> None:
    for convert in (bool, int, float, complex):
        with pytest.raises((TypeError, ValueError), match=r"\(2, 3\)"):
            convert(x)
    with pytest.raises(TypeError):
        operator.index(xp.arange(3))
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        x.item()
    for value in (np.inf, np.nan):
        with pytest.raises((OverflowError, ValueError)):
            int(xp.asarray(value))
    assert int(xp.asarray(-2.9)) == -2


def test_numpy_conversion(x: xp.Array) -> None:
    assert np.asarray(x, dtype=np.int8).dtype == np.int8
    assert np.array(x, copy=True).flags.writeable
    assert np.asarray(x, copy=False).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float32, copy=False)
    assert np.asarray(x[:, ::-1]).flags.c_contiguous
    assert np.asarray(xp.broadcast_to(x[0], (2, 3))).tolist() == [[0, 1, 2]] * 2


def test_length_iteration_and_membership(x: xp.Array) -> None:
    assert len(x) == 2
    assert [np.asarray(row).tolist() for row in x + 1] == [[1, 2, 3], [4, 5, 6]]
    assert [row.shape for row in xp.zeros((3, 0))] == [(0,)] * 3
    for use in (len, iter):
        with pytest.raises(TypeError, match="dimensions"):
            use(xp.asarray(1))


def test_text(x: xp.Array, device: str) -> None:
    rows = "Array([[-1.,  0.,  1.],\n       [ 2.,  3.,  4.]],"
    assert repr(x - 1) == f"{rows} dtype=float64, device={device!r})"
    assert repr(xp.arange(12.0)).endswith(f"11.],\n      dtype=float64, device={device!r})")
    assert str(x) == str(np.arange(6.0).reshape(2, 3))
    assert f"{xp.asarray(2.0) / 3:.3f}" == "0.667"
    assert f"{x!s:>3}" == str(x)
    assert "dtype=int8" in repr(xp.zeros((0, 3), dtype=xp.int8))
    assert f"{xp.asarray(7)}" == "7"
    with pytest.raises(TypeError, match="format"):
        format(x, ".2f")


# ----------------------------------------------------------------------------------- operators

# Which operation is recorded, and with what operands, shows without kernels too.
without_kernels = pytest.mark.usefixtures("off")


@pytest.fixture
def off() -> Iterator[None]:
    with xp.config.override(compile="off"), np.errstate(all="ignore"):
        yield


ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
BITWISE = ["and_", "or_", "xor", "lshift", "rshift"]
COMPARISON = ["lt", "le", "gt", "ge", "eq", "ne"]


def _others(dtype: str) -> list[Any]:
    """List every kind of operand that may stand beside an array of this data type."""
    kind = np.dtype(dtype).type
    scalar = 2 if np.dtype(dtype).kind != "f" else 2.5
    return [scalar, kind(3), np.asarray(3, dtype), np.array([1, 2, 3], dtype), True, np.bool(1)]


@without_kernels
@pytest.mark.parametrize("dtype", ["int16", "uint8", "float32", "float64"])
@pytest.mark.parametrize("name", ARITHMETIC + COMPARISON)
def test_operators_with_all_operands(name: str, dtype: str, device: str) -> None:
    values = np.array([1, 5, 3], dtype)
    x = xp.asarray(values, device=device)
    function = getattr(operator, name)
    for other in [*_others(dtype), xp.asarray(values[::-1], device=device)]:
        plain = np.asarray(other) if isinstance(other, xp.Array) else other
        pairs = [(function(x, other), function(values, plain))]
        pairs.append((function(other, x), function(plain, values)))
        for got, wanted in pairs:
            assert type(got) is xp.Array, (other, type(got))
            assert got.dtype == wanted.dtype, other
            if name == "pow" and wanted.dtype.kind == "f":
                np.testing.assert_allclose(np.asarray(got), wanted, rtol=4 * np.finfo(dtype).eps)
            else:
                assert_same_bits(np.asarray(got), wanted)


@without_kernels
@pytest.mark.parametrize("dtype", ["bool", "int32", "uint64"])
@pytest.mark.parametrize("name", BITWISE)
def test_bitwise_operators(name: str, dtype: str, device: str) -> None:
    values = np.array([1, 0, 1] if dtype == "bool" else [1, 6, 12], dtype)
    x = xp.asarray(values, device=device)
    function = getattr(operator, name)
    for other in [True if dtype == "bool" else 2, values.dtype.type(1), values[::-1]]:
        assert_same_bits(np.asarray(function(x, other)), function(values, other))
        assert_same_bits(np.asarray(function(other, x)), function(other, values))


@without_kernels
@pytest.mark.parametrize("name", [*ARITHMETIC, *BITWISE])
def test_in_place_operators(name: str, device: str) -> None:
    dtype = "int64" if name.strip("_") in ("and", "or", "xor", "lshift", "rshift") else "float64"
    values = np.array([2, 5, 3], dtype)
    function = getattr(operator, "i" + name.strip("_"))
    for other in (
        3,
        values.dtype.type(3),
        np.array([1, 2, 3], dtype),
        xp.asarray(values, device=device),
    ):
        x = xp.asarray(values, device=device)
        reference = values.copy()
        same = function(x, other)
        reference = function(reference, np.asarray(other))
        assert same is x
        assert_same_bits(np.asarray(x), reference)


def test_in_place_operators_cast_within_a_kind_as_numpy_does(device: str) -> None:
    x = xp.asarray([1, 2], dtype=xp.int32, device=device)
    y = x
    x += xp.asarray([1, 1], dtype=xp.int64, device=device)
    assert x is y
    assert x.dtype == xp.int32
    assert x.tolist() == [2, 3]
    for other in (1.5, np.float32(1), xp.asarray(1j, device=device)):
        with pytest.raises(TypeError, match="int32"):
            x += other
    assert x.tolist() == [2, 3]


def test_unary_operators(device: str) -> None:
    values = np.array([-3, 4], np.int8)
    x = xp.asarray(values, device=device)
    for function in (operator.neg, operator.pos, operator.abs, operator.invert):
        assert_same_bits(np.asarray(function(x)), function(values))
    with pytest.raises(TypeError, match="float64"):
        ~xp.asarray([1.0], device=device)
    with pytest.raises(TypeError, match="bool"):
        -xp.asarray([True], device=device)


class Foreign:
    """Knows the other side of every operator."""

    def _answer(self, _other: object) -> str:
        return "foreign"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __rand__ = __rlshift__ = _answer
    __rmod__ = __rfloordiv__ = __gt__ = __le__ = __lt__ = __ge__ = _answer


def test_unknown_operands_are_asked(x: xp.Array) -> None:
    other = Foreign()
    got = [x + other, x - other, x * other, x / other, x**other, x % other, x // other]
    assert [*got, x < other, x >= other, x > other, x <= other] == ["foreign"] * 11
    for bad in (None, "text", [1, 2], object()):
        with pytest.raises(TypeError):
            x + bad
        with pytest.raises(TypeError):
            bad * x
    assert (x == "text") is False
    assert (x != None) is True  # noqa: E711


def test_numpy_on_the_left_gives_this_librarys_array(x: xp.Array) -> None:
    for left in (np.float64(2), np.float32(2), np.int64(2), np.array([1.0, 2.0, 3.0])):
        for name in [*ARITHMETIC, *COMPARISON]:
            result = getattr(operator, name)(left, x)
            assert type(result) is xp.Array
            assert result.shape == (2, 3)
    table = np.arange(3.0)
    table_before = table
    table = table + x
    assert type(table) is xp.Array
    assert table_before.tolist() == [0.0, 1.0, 2.0]
    assert np.asarray(np.float64(1) < x).tolist() == [[False, False, True], [True] * 3]


# -------------------------------------------------------------------------------------- errors


def test_shape_errors_come_from_the_recording_call(x: xp.Array) -> None:
    y = x + 1
    other = xp.ones((4, 2), device=x.device)
    for bad in (
        lambda: y + other,
        lambda: other * y,
        lambda: xp.maximum(y, other),
        lambda: xp.where(y > 0, y, other),
        lambda: y < other,
        lambda: xp.broadcast_arrays(y, other),
        lambda: y + np.ones((4, 2)),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match=r"(?s)\(2, 3\).*\(4, 2\)|\(4, 2\).*\(2, 3\)"):
                bad()
    assert np.asarray(y).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.asarray(other).tolist() == [[1, 1]] * 4


def test_type_errors_come_from_the_recording_call(device: str) -> None:
    c = xp.asarray([1j], device=device)
    for name in ("floor", "sign_bit", "atan2", "less", "bitwise_and", "maximum")[:1]:
        with pytest.raises(TypeError, match=rf"{name}.*complex128"):
            getattr(xp, name)(c)
    for use, text in (
        (lambda: xp.atan2(c, c), "atan2.*complex128"),
        (lambda: c < c * 2, "less.*complex128"),
        (lambda: xp.maximum(c, 1), "maximum.*complex128"),
        (lambda: xp.asarray([1.0]) & 1, "bitwise_and.*float64"),
        (lambda: xp.imag(xp.asarray([1.0])), "imag.*float64"),
        (lambda: xp.sign(xp.asarray([True])), "sign.*bool"),
        (lambda: xp.asarray([1.0]) == [1.0], "equal.*list"),
        (lambda: xp.asarray([1.0]) != (1.0,), "not_equal.*tuple"),
        (lambda: xp.add(1, 2), "add"),
        (lambda: xp.sin(3.0), "sin"),
        (lambda: xp.sin("x"), "str"),
        (lambda: xp.where(True, c, c), "where"),
        (lambda: xp.asarray(["a"]), "dtype"),
        (lambda: xp.asarray(np.array([object()])), "object"),
        (lambda: xp.materialize([1, 2]), "list"),
    ):
        with pytest.raises(TypeError, match=text):
            use()


def test_memory_that_cannot_be_had(device: str) -> None:
    x = xp.asarray(np.array([1.0, 2.0]), device=device)
    for _ in range(2):
        with pytest.raises(MemoryError, match=str(8 << 50)):
            np.asarray(xp.ones((1 << 30, 1 << 20), device=device) * 2)
        assert np.asarray(x * 2).tolist() == [2.0, 4.0]
    kept = xp.broadcast_to(x, (1 << 50, 2))
    with pytest.raises(MemoryError):
        float((kept + 1)[0, 0] * 0 + xp.materialize(kept + 1))
    assert np.asarray(kept[5] - 1).tolist() == [0.0, 1.0]


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert xp.config.compile == "sync"
    monkeypatch.delenv("FKLARRAY_COMPILE")
    assert type(xp.config)().compile == "background"
    with pytest.raises(ValueError, match="sometimes"):
        xp.config.compile = "sometimes"
    with pytest.raises(TypeError, match="colour"), xp.config.override(colour=1):
        raise AssertionError
    threads = xp.config.threads
    with pytest.raises(ZeroDivisionError), xp.config.override(compile="off", threads=1):
        _ = 1 / (xp.config.threads - 1 + (xp.config.compile != "off"))
    assert (xp.config.compile, xp.config.threads) == ("sync", threads)
    with pytest.raises(ValueError, match="0"):
        xp.config.threads = 0
    assert "compile='sync'" in repr(xp.config)
