"""fklarray arrays beside NumPy's: operators, conversions, functions, pickling, copies, text."""

from __future__ import annotations

import copy
import operator
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fklarray as xp

DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    with xp.config.override(compile="off"):
        yield


@pytest.fixture
def x() -> xp.Array:
    return xp.asarray([1.0, 2.0, 3.0]) * 1


def flushes(call: Callable[[], object]) -> int:
    before = xp.counters()["flushes"]
    call()
    return xp.counters()["flushes"] - before


# ----------------------------------------------------- NumPy on either side of an operator

LEFT = [np.float64(2), np.float32(2), np.int64(2), np.asarray(2.0)[()], np.asarray([2.0, 2, 2])]
ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
COMPARISON = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("function", ARITHMETIC + COMPARISON, ids=lambda f: f.__name__)
@pytest.mark.parametrize("other", LEFT, ids=lambda v: f"{type(v).__name__}-{v}")
def test_numpy_beside_an_array_gives_an_array(
    other: Any, function: Callable[..., Any], x: xp.Array
) -> None:
    values = np.asarray(x)
    for result, expected in (
        (function(other, x), function(other, values)),
        (function(x, other), function(values, other)),
    ):
        assert type(result) is xp.Array
        assert result.shape == (3,)
        assert np.asarray(result).tolist() == expected.tolist()


def test_recording_beside_numpy_computes_nothing(x: xp.Array) -> None:
    assert flushes(lambda: np.float64(2) * x + np.ones(3) - x / np.int8(3)) == 0


class Other:
    def __radd__(self, left: object) -> str:
        return f"{type(left).__name__} + other"

    def __rmatmul__(self, left: object) -> str:
        return f"{type(left).__name__} @ other"

    def __eq__(self, right: object) -> Any:
        return "equal"

    __hash__ = None


def test_reflected_operators_of_others_are_reached(x: xp.Array) -> None:
    assert x + Other() == "Array + other"
    assert x @ Other() == "Array @ other"
    assert (x == Other()) == "equal"


def test_comparison_with_a_numpy_array_is_never_pythons_false(x: xp.Array) -> None:
    for result in (np.asarray(x) == x, x == np.asarray(x), np.float64(1) == x):
        assert type(result) is xp.Array
    assert (np.asarray(x) == x).tolist() == [True] * 3
    assert (np.asarray(x) != x).tolist() == [False] * 3
    with pytest.raises(ValueError, match=r"\(4,\)"):
        _ = np.zeros(4) == x


def test_products_with_numpy_matrices(x: xp.Array) -> None:
    matrix = np.arange(9.0).reshape(3, 3)
    for result, expected in (
        (matrix @ x, matrix @ np.asarray(x)),
        (x @ matrix, np.asarray(x) @ matrix),
    ):
        assert type(result) is xp.Array
        assert result.tolist() == expected.tolist()


def test_numpys_own_functions_take_arrays(x: xp.Array) -> None:
    assert np.add(np.ones(3), x).tolist() == [2.0, 3.0, 4.0]
    assert np.concatenate([x, np.zeros(1)]).tolist() == [1.0, 2.0, 3.0, 0.0]
    assert np.sin(x).tolist() == np.sin([1.0, 2.0, 3.0]).tolist()
    table = np.zeros((2, 3))
    table[1] = x
    assert table.tolist() == [[0.0] * 3, [1.0, 2.0, 3.0]]
    assert np.allclose(x, [1.0, 2.0, 3.0])


REDUCTIONS = ["sum", "prod", "mean", "std", "var", "max", "min", "all", "any", "argmax", "argmin"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_numpys_reductions_stay_in_the_namespace(name: str) -> None:
    values = np.asarray([[1.0, 5.0, 2.0], [4.0, 0.0, 6.0]])
    function = getattr(np, name)
    for keywords in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}):
        result = function(xp.asarray(values), **keywords)
        assert type(result) is xp.Array
        np.testing.assert_allclose(result, function(values, **keywords), rtol=1e-15)
    with pytest.raises(TypeError, match="out"):
        getattr(xp.asarray(values), name)(out=np.zeros(()))


def test_numpys_keywords_of_variances() -> None:
    values = np.asarray([[1.0, 5.0, 2.0], [4.0, 0.0, 6.0]], np.float32)
    array = xp.asarray(values)
    for function in (np.std, np.var):
        result = function(array, axis=0, ddof=1, dtype=np.float64)
        assert result.dtype == np.float64
        expected = function(values, axis=0, ddof=1, dtype=np.float64)
        np.testing.assert_allclose(result, expected, rtol=1e-15)
    np.testing.assert_allclose(xp.nanvar(array, ddof=1), np.nanvar(values, ddof=1), rtol=1e-6)
    assert xp.mean(array, dtype=xp.float64).dtype == xp.float64
    for clash in (xp.var, xp.std, xp.nanvar, xp.nanstd):
        with pytest.raises(ValueError, match="correction"):
            clash(array, correction=1, ddof=1)


# ---------------------------------------------------------------------- conversion to NumPy


def test_asarray_converts_and_honours_copy(x: xp.Array) -> None:
    assert np.asarray(x, dtype=np.int8).tolist() == [1, 2, 3]
    assert np.asarray(x, dtype=np.int8).dtype == np.int8
    view = np.asarray(x, copy=False)
    assert np.shares_memory(view, np.asarray(x))
    assert not np.shares_memory(view, np.asarray(x, copy=True))
    assert not np.shares_memory(view, np.array(x))
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.int8, copy=False)


def test_memory_that_nobody_else_sees_is_writable() -> None:
    x = xp.asarray([1.0, 2.0]) + 1
    view = np.asarray(x)
    view[0] = 9
    assert x.tolist() == [9.0, 3.0]


@pytest.mark.parametrize("other", ["pending", "view", "copy", "alias", "reduction"])
def test_memory_that_others_see_is_read_only(other: str) -> None:
    x = xp.asarray([1.0, 2.0]) + 1
    x._materialize()
    makers: dict[str, Callable[[], object]] = {
        "pending": lambda: x * 2,
        "view": lambda: x[::-1],
        "copy": lambda: copy.copy(x),
        "alias": lambda: xp.asarray(x, copy=True),
        "reduction": lambda: xp.sum(x),
    }
    seen = makers[other]()
    assert not np.asarray(x).flags.writeable
    assert np.array(x).flags.writeable
    del seen
    assert np.asarray(x).flags.writeable


def test_imported_memory_is_read_only() -> None:
    values = np.ones(3)
    assert not np.asarray(xp.from_dlpack(values)).flags.writeable
    values.flags.writeable = False
    assert not np.asarray(xp.asarray(values)).flags.writeable


def test_what_is_assigned_later_is_not_seen_by_a_view() -> None:
    x = xp.asarray([1.0, 2.0]) + 1
    view = np.asarray(x)
    x[0] = 7
    x += 1
    assert view.tolist() == [2.0, 3.0]
    assert x.tolist() == [8.0, 4.0]


def test_buffer_protocol(x: xp.Array) -> None:
    request = memoryview if sys.version_info >= (3, 12) else lambda array: array.__buffer__(0)
    view = request(x)
    assert np.asarray(view).tolist() == [1.0, 2.0, 3.0]
    view[0] = 5.0
    assert x.tolist() == [5.0, 2.0, 3.0]
    reader = x * 2
    assert request(x).readonly
    assert reader.tolist() == [10.0, 4.0, 6.0]


def test_data_types_are_numpys() -> None:
    assert np.dtype(xp.ones(2, dtype="float32")) == np.float32
    assert np.result_type(xp.ones(2, dtype="int16"), np.float32) == np.float32
    for name in DTYPES:
        dtype = ml_dtypes.bfloat16 if name == "bfloat16" else name
        array = xp.zeros(3, dtype=name)
        assert array.dtype == np.dtype(dtype)
        assert hash(array.dtype) == hash(np.dtype(dtype))
        assert isinstance(array.dtype, np.dtype)
        assert np.asarray(array).dtype == np.dtype(dtype)
        for spelling in (np.dtype(dtype), np.dtype(dtype).type, name):
            assert xp.astype(array, spelling).dtype == array.dtype
        assert pickle.loads(pickle.dumps(array.dtype)) == array.dtype


# --------------------------------------------------------------- pickling, copies, identity


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", DTYPES)
def test_pickles_restore_values_and_data_type(dtype: str, protocol: int) -> None:
    for array in (xp.astype(xp.arange(6), dtype), xp.zeros((0, 3), dtype=dtype)):
        pending = xp.reshape(array, (array.size // 3, 3))[:, ::-1]
        again = pickle.loads(pickle.dumps(pending, protocol=protocol))
        assert type(again) is xp.Array
        assert (again.dtype, again.shape) == (pending.dtype, pending.shape)
        assert again.tolist() == pending.tolist()
        again[...] = 0
        assert array.tolist() == xp.astype(xp.arange(array.size), dtype).tolist()


def test_pickles_leave_large_memory_out_of_band() -> None:
    x = xp.arange(100_000, dtype="float64")
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(text) < 1000
    assert [len(buffer.raw()) for buffer in buffers] == [800_000]
    again = pickle.loads(text, buffers=[bytes(buffer.raw()) for buffer in buffers])
    assert xp.all(again == x)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, xp.Array.copy])
def test_copies_are_independent(duplicate: Callable[[xp.Array], xp.Array], x: xp.Array) -> None:
    for pending in (x * 2, x[::-1], xp.sum(x, keepdims=True)):
        before = pending.tolist()
        again = duplicate(pending)
        assert again is not pending
        again[0] = 100.0
        assert pending.tolist() == before
        pending[0] = 50.0
        assert again.tolist() == [100.0, *before[1:]]


def test_deep_copies_of_nested_arrays_keep_their_structure(x: xp.Array) -> None:
    nested = {"first": x, "again": x, "other": [x + 1]}
    twin = copy.deepcopy(nested)
    assert twin["first"] is twin["again"]
    twin["first"][0] = 9.0
    assert nested["first"].tolist() == [1.0, 2.0, 3.0]


def test_devices_compare_pickle_and_print(x: xp.Array) -> None:
    assert x.device == "cpu"
    assert x.device != "cuda:0"
    assert pickle.loads(pickle.dumps(x.device)) == x.device
    assert copy.deepcopy(x.device) == x.device
    assert hash(x.device) == hash(xp.ones(1).device)
    assert str(x.device) == "cpu"
    assert repr(x.device) == "Device('cpu')"


def test_arrays_have_no_hash_but_weak_references(x: xp.Array) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    reference = weakref.ref(x)
    assert reference() is x
    del x


# -------------------------------------------------------------------------- lengths and text


def test_length_and_iteration(x: xp.Array) -> None:
    assert len(x) == 3
    assert [float(item) for item in x + 1] == [2.0, 3.0, 4.0]
    first, *_ = xp.reshape(xp.arange(6), (2, 3))
    assert first.tolist() == [0, 1, 2]
    assert 2.0 in x
    assert flushes(lambda: list(x * 2)) == 1
    for use in (len, iter):
        with pytest.raises(TypeError, match="dimensions"):
            use(xp.asarray(1.0))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(40),
        np.asarray(2.5),
        np.asarray([True, False]),
        np.asarray([1 + 2j, np.nan]),
        np.arange(12, dtype=np.float32),
        np.arange(10_000),
        np.zeros((0, 3)),
    ],
    ids=lambda v: f"{v.dtype}-{v.shape}",
)
def test_text_reads_as_numpys(values: np.ndarray) -> None:
    array = xp.asarray(values)
    assert str(array) == str(values)
    assert f"{array}" == f"{values}"
    ours = " ".join(repr(array).split())
    # NumPy leaves the default data types out, and indents by one less.
    body = np.array2string(values, separator=", ", prefix="Array(", suffix=",")
    shape = "" if values.size else "shape=(0, 3), "
    expected = f"Array({body}, {shape}dtype={values.dtype}, device='cpu')"
    assert ours == " ".join(expected.split())
    width = np.get_printoptions()["linewidth"]
    assert all(len(line) <= width for line in repr(array).splitlines())


def test_only_text_of_a_pending_array_computes(x: xp.Array) -> None:
    pending = x * 2
    attributes = "shape ndim size dtype device nbytes itemsize T mT"
    assert flushes(lambda: [getattr(pending[None], name) for name in attributes.split()]) == 0
    assert flushes(lambda: repr(pending)) == 1
    assert flushes(lambda: repr(pending)) == 0


def test_formats_of_one_element() -> None:
    assert f"{xp.asarray(2.0) / 3:.3f}" == "0.667"
    assert f"{xp.asarray(7) + 1:04d}" == "0008"
    with pytest.raises(TypeError, match=r"\.2f.*\(2,\)"):
        format(xp.ones(2), ".2f")
