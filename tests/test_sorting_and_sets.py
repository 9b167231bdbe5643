"""Sorting, sets and searching: order, stability, NaN, zeros of both signs, exact integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import fklarray as xp

NAN, INF = float("nan"), float("inf")
DTYPES = ["bool", "int8", "uint8", "int64", "uint64", "float16", "bfloat16", "float32", "float64",
          "complex64"]  # fmt: skip


def _numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def _bits(values: Any) -> bytes:
    return np.ascontiguousarray(values).tobytes()


def _list(x: xp.Array) -> Any:
    return np.asarray(x).tolist()


# ----------------------------------------------------------------------------------- sorting


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sort_and_argsort_are_those_of_numpy(dtype: str, axis: int, device: str) -> None:
    least = 0 if dtype.startswith("u") else -5
    values = np.random.default_rng(3).integers(least, 5, (6, 7)).astype(_numpy_dtype(dtype))
    x = xp.asarray(values, device=device)
    order = np.argsort(values.astype("complex128"), axis=axis, stable=True)
    found = xp.argsort(x, axis=axis)
    assert found.dtype == np.int64
    assert _list(found) == order.tolist()
    result = xp.sort(x, axis=axis)
    assert result.dtype == values.dtype
    assert _bits(result) == _bits(np.take_along_axis(values, order, axis))
    assert _bits(xp.sort(x, axis=axis, stable=False)) == _bits(result)


@pytest.mark.parametrize("dtype", DTYPES)
def test_descending_order_keeps_equal_elements_in_their_order(dtype: str, device: str) -> None:
    values = np.asarray([2, 0, 1, 2, 0, 1, 1]).astype(_numpy_dtype(dtype))
    x = xp.asarray(values, device=device)
    wanted = sorted(range(7), key=lambda place: complex(values[place]).real, reverse=True)
    assert _list(xp.argsort(x, descending=True)) == wanted
    assert _bits(xp.sort(x, descending=True)) == _bits(values[wanted])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_extreme_integers_do_not_wrap_in_descending_order(dtype: str, device: str) -> None:
    bounds = np.iinfo(dtype)
    values = np.asarray([bounds.min, bounds.max, 0, bounds.max - 1, bounds.min + 1], dtype)
    found = _list(xp.sort(xp.asarray(values, device=device), descending=True))
    assert found == sorted(values.tolist(), reverse=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_the_greatest_and_zeros_are_equal(dtype: str, device: str) -> None:
    values = np.asarray([3, NAN, 0.0, -INF, -0.0, NAN, INF]).astype(_numpy_dtype(dtype))
    x = xp.asarray(values, device=device)
    assert _list(xp.argsort(x)) == [3, 2, 4, 0, 6, 1, 5]
    assert _list(xp.argsort(x, descending=True)) == [1, 5, 6, 0, 2, 4, 3]
    assert _bits(xp.sort(x)) == _bits(values[[3, 2, 4, 0, 6, 1, 5]])
    assert _bits(xp.sort(x, descending=True)) == _bits(values[[1, 5, 6, 0, 2, 4, 3]])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_is_sorted_to_nothing(shape: tuple[int, ...], device: str) -> None:
    x = xp.zeros(shape, device=device)
    for descending in (False, True):
        assert xp.sort(x, descending=descending).shape == shape
        assert xp.argsort(x, axis=0, descending=descending).shape == shape
        assert np.asarray(xp.argsort(x, descending=descending)).shape == shape


def test_sorting_is_recorded_and_leaves_its_operand_alone(device: str) -> None:
    x = xp.asarray([3, 1, 2], device=device)
    before = xp.counters()["reference_evaluations"]
    result = xp.sort(x * 2) + 1
    assert xp.counters()["reference_evaluations"] == before
    x[0] = 50
    assert _list(result) == [3, 5, 7]
    assert _list(x) == [50, 1, 2]


@pytest.mark.parametrize("function", [xp.sort, xp.argsort])
def test_sorting_refuses_axes_and_operands_at_once(function: Any, device: str) -> None:
    for shape, axis in (((3,), 1), ((3, 2), -3), ((), -1), ((), 0)):
        with pytest.raises(np.exceptions.AxisError):
            function(xp.ones(shape, device=device), axis=axis)
    with pytest.raises(TypeError, match=f"{function.__name__} takes an array"):
        function([3, 1])


# -------------------------------------------------------------------------------------- sets


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_parts_of_unique_all_fit_together(dtype: str, device: str) -> None:
    values = np.random.default_rng(4).integers(0, 4, (3, 5)).astype(_numpy_dtype(dtype))
    x = xp.asarray(values, device=device)
    everything = xp.unique_all(x)
    assert everything._fields == ("values", "indices", "inverse_indices", "counts")
    unique, indices, inverse, counts = map(np.asarray, everything)
    flat = values.ravel().tolist()
    assert unique.dtype == values.dtype
    assert unique.tolist() == sorted(set(flat), key=lambda one: complex(one).real)
    assert indices.tolist() == [flat.index(one) for one in unique.tolist()]
    assert counts.tolist() == [flat.count(one) for one in unique.tolist()]
    assert {indices.dtype, inverse.dtype, counts.dtype} == {np.dtype("int64")}
    assert unique[inverse].tolist() == values.tolist()
    assert _list(xp.unique_values(x)) == unique.tolist()
    assert [_list(part) for part in xp.unique_counts(x)] == [unique.tolist(), counts.tolist()]
    assert [_list(part) for part in xp.unique_inverse(x)] == [unique.tolist(), inverse.tolist()]
    assert xp.unique_counts(x)._fields == ("values", "counts")
    assert xp.unique_inverse(x)._fields == ("values", "inverse_indices")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex128"])
def test_every_nan_is_unique_and_zeros_of_both_signs_are_one(dtype: str, device: str) -> None:
    values = np.asarray([NAN, -0.0, 1, 0.0, NAN]).astype(_numpy_dtype(dtype))
    x = xp.asarray(values, device=device)
    unique, indices, inverse, counts = map(np.asarray, xp.unique_all(x))
    assert _bits(unique) == _bits(values[[1, 2, 0, 4]])
    assert indices.tolist() == [1, 2, 0, 4]
    assert inverse.tolist() == [2, 0, 1, 0, 3]
    assert counts.tolist() == [2, 1, 1, 1]
    assert xp.unique_values(x).size == 4


def test_unique_of_a_complex_number_with_nan_in_one_part(device: str) -> None:
    values = np.asarray([complex(0, NAN), complex(0, NAN), complex(NAN, 0), 0])
    assert xp.unique_values(xp.asarray(values, device=device)).size == 4


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_unique_of_any_shape(shape: tuple[int, ...], device: str) -> None:
    x = xp.ones(shape, device=device)
    found = xp.unique_all(x)
    size = min(1, x.size)
    assert [part.shape for part in found] == [(size,), (size,), shape, (size,)]


@given(
    arrays.arrays(st.sampled_from(["int8", "float32"]), arrays.array_shapes(min_side=0)),
    arrays.arrays(st.sampled_from(["int8", "float64"]), arrays.array_shapes(min_side=0)),
    st.booleans(),
)
def test_isin_compares_every_pair(a: np.ndarray, b: np.ndarray, invert: bool) -> None:
    wanted = (a[..., None] == b.ravel()).any(axis=-1) != invert
    found = xp.isin(xp.asarray(a), xp.asarray(b), invert=invert)
    assert found.dtype == np.bool_
    assert _list(found) == wanted.tolist()


def test_isin_of_scalars(device: str) -> None:
    x = xp.asarray(np.asarray([1, 2, 300], np.int16), device=device)
    assert _list(xp.isin(x, 2)) == [False, True, False]
    assert _list(xp.isin(x, 2, invert=True)) == [True, False, True]
    assert _list(xp.isin(300, x)) is True
    assert xp.isin(7, x).shape == ()
    assert _list(xp.isin(x, 2.5)) == [False, False, False]
    assert _list(xp.isin(xp.asarray([0.1], dtype=xp.float32, device=device), 0.1)) == [True]
    # Beyond the range of int16.
    assert _list(xp.isin(x, 70000)) == [False, False, False]
    assert _list(xp.isin(2**80, x, invert=True)) is True
    with pytest.raises(TypeError, match="isin takes an array"):
        xp.isin(1, 2)
    with pytest.raises(TypeError, match="isin takes an array"):
        xp.isin(x, [1, 2])  # type: ignore[arg-type]


def test_isin_of_nan_zeros_and_neighbours(device: str) -> None:
    x = xp.asarray([NAN, -0.0, 1.0], device=device)
    assert _list(xp.isin(x, xp.asarray([NAN, 0.0], device=device))) == [False, True, False]
    large = 2**63
    signed = xp.asarray([-1, large - 1], device=device)
    unsigned = xp.asarray([large, large - 1, 2**64 - 1], dtype=xp.uint64, device=device)
    assert _list(xp.isin(signed, unsigned)) == [False, True]
    assert _list(xp.isin(unsigned, signed)) == [False, True, False]
    assert _list(xp.isin(unsigned, signed, invert=True)) == [True, False, True]


# --------------------------------------------------------------------------------- searching


def test_nonzero(device: str) -> None:
    values = np.asarray([[0, 1.5, -0.0], [NAN, 0, -1]])
    for array in (values, values.astype("complex64"), values != 0, values[::-1, ::2]):
        found = xp.nonzero(xp.asarray(array, device=device))
        wanted = np.nonzero(array)
        assert [_list(part) for part in found] == [part.tolist() for part in wanted]
        assert {part.dtype for part in found} == {np.dtype("int64")}
    assert [part.shape for part in xp.nonzero(xp.zeros((2, 0, 3), device=device))] == [(0,)] * 3
    with pytest.raises(ValueError, match=r"nonzero.*\(\)"):
        xp.nonzero(xp.asarray(3, device=device))
    with pytest.raises(TypeError, match="nonzero takes an array"):
        xp.nonzero([1, 0])  # type: ignore[arg-type]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "bfloat16", "float64"])
def test_searchsorted_with_and_without_a_sorter(side: Any, dtype: str, device: str) -> None:
    line = np.asarray([5, 1, 3, 3, 9]).astype(_numpy_dtype(dtype))
    elements = np.asarray([[0, 1, 3], [4, 9, 10]]).astype(_numpy_dtype(dtype))
    x, y = xp.asarray(line, device=device), xp.asarray(elements, device=device)
    wanted = np.searchsorted(np.sort(line.astype(float)), elements.astype(float), side)
    for found in (
        xp.searchsorted(xp.sort(x), y, side=side),
        xp.searchsorted(x, y, side=side, sorter=xp.argsort(x)),
        xp.searchsorted(x, y, side=side, sorter=xp.astype(xp.argsort(x), xp.uint8)),
    ):
        assert found.dtype == np.int64
        assert _list(found) == wanted.tolist()


def test_searchsorted_places_nan_last(device: str) -> None:
    line = xp.asarray([1.0, INF, NAN, NAN], device=device)
    elements = xp.asarray([NAN, INF, 2.0], device=device)
    assert _list(xp.searchsorted(line, elements)) == [2, 1, 1]
    assert _list(xp.searchsorted(line, elements, side="right")) == [4, 2, 1]
    narrow = xp.astype(line, xp.bfloat16)
    assert _list(xp.searchsorted(narrow, xp.astype(elements, xp.bfloat16))) == [2, 1, 1]


def test_searchsorted_of_scalars(device: str) -> None:
    line = xp.asarray([10, 20, 20, 30], dtype=xp.uint8, device=device)
    places = {20: (1, 3), 25: (3, 3), 19.5: (1, 1), 300: (4, 4), -1: (0, 0), 2**70: (4, 4)}
    for value, (left, right) in places.items():
        found = xp.searchsorted(line, value), xp.searchsorted(line, value, side="right")
        assert [one.shape for one in found] == [(), ()]
        assert [one.dtype for one in found] == [np.int64] * 2
        assert (_list(found[0]), _list(found[1])) == (left, right)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_compares_integers_of_64_bits_exactly(side: Any, device: str) -> None:
    signed = [-5, 0, 0, 2**62, 2**63 - 1]
    unsigned = [0, 2**62 + 1, 2**63 - 2, 2**63 - 1, 2**63, 2**64 - 1]
    x = xp.asarray(signed, device=device)
    y = xp.asarray(unsigned, dtype=xp.uint64, device=device)
    for line, elements, searched, found in (
        (signed, unsigned, x, xp.searchsorted(x, y, side=side)),
        (unsigned, signed, y, xp.searchsorted(y, x, side=side)),
    ):
        before = (lambda a, b: a < b) if side == "left" else (lambda a, b: a <= b)
        wanted = [sum(before(one, element) for one in line) for element in elements]
        assert searched.size == len(line)
        assert _list(found) == wanted


def test_searchsorted_names_what_is_wrong(device: str) -> None:
    x = xp.asarray([1.0, 2.0], device=device)
    with pytest.raises(ValueError, match=r"searchsorted needs a vector.*\(1, 2\)"):
        xp.searchsorted(x[None], x)
    with pytest.raises(ValueError, match="middle"):
        xp.searchsorted(x, x, side="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"sorter of \(1,\)"):
        xp.searchsorted(x, x, sorter=xp.asarray([0], device=device))
    with pytest.raises(TypeError, match="sorter of integers, not float64"):
        xp.searchsorted(x, x, sorter=x)
    with pytest.raises(ValueError, match="out of bounds"):
        xp.searchsorted(x, x, sorter=xp.asarray([0, 2], device=device))
    with pytest.raises(TypeError, match="searchsorted takes an array"):
        xp.searchsorted([1.0, 2.0], x)  # type: ignore[arg-type]
