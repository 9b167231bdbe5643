"""What libraries ask of an array that they do not know; with NumPy as the judge."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fklarray as xp


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    with xp.config.override(compile="off"):
        yield


def flushes(call: Callable[[], object]) -> int:
    before = xp.counters()["flushes"]
    call()
    return xp.counters()["flushes"] - before


# --------------------------------------------------------------------- deferred, never lazy


@pytest.mark.parametrize(
    ("convert", "expected"),
    [
        (bool, True),
        (int, 3),
        (float, 3.0),
        (complex, 3 + 0j),
        (np.asarray, 3.0),
        (np.from_dlpack, 3.0),
        (lambda x: range(5)[xp.astype(x, xp.int64)], 3),
        (lambda x: x.item(), 3.0),
        (lambda x: x.tolist(), 3.0),
    ],
)
def test_conversions_of_pending_values_compute_them_once(
    convert: Callable[[Any], Any], expected: Any
) -> None:
    x = xp.sum(xp.asarray([1.0, 2.0])) * 1
    assert flushes(lambda: convert(x)) == 1
    assert convert(x) == expected
    y = xp.asarray(2.0) + 1
    float(y)
    assert flushes(lambda: float(y)) == 0


def test_what_was_computed_is_not_computed_again() -> None:
    x = xp.sin(xp.ones(1000)) + 1
    assert flushes(lambda: np.asarray(x)) == 1
    later = x * 2
    graph = xp.explain(later).graph
    assert "sin" not in graph
    assert "multiply" in graph


def test_shapes_are_known_without_values() -> None:
    def record() -> None:
        x = xp.ones((4, 6)) * 2
        shapes = [
            xp.sum(x, axis=0).shape,
            xp.concat([x, x]).shape,
            (x @ x.T).shape,
            xp.take(x, xp.asarray([0, 2]), axis=1).shape,
            xp.cumulative_sum(x, axis=1).shape,
            x[1:, ::2].shape,
            xp.linalg.vector_norm(x, axis=1).shape,
        ]
        assert shapes == [(6,), (8, 6), (4, 4), (4, 2), (4, 6), (3, 3), (4,)]

    assert flushes(record) == 0


# ------------------------------------------------------------------------ indexing and mutation

VALUES = np.arange(24.0).reshape(4, 6)
KEYS: dict[str, Callable[[Any], Any]] = {
    "integer": lambda m: 1,
    "numpy integer": lambda m: np.int64(-2),
    "slices": lambda m: (slice(1, 3), slice(None, None, -2)),
    "ellipsis": lambda m: (..., 2),
    "new axis": lambda m: (None, 1),
    "mask": lambda m: m.asarray(VALUES % 3 == 0),
    "row mask": lambda m: m.asarray(np.asarray([True, False, True, False])),
    "mask and slice": lambda m: (m.asarray(np.asarray([True, False, True, False])), slice(2, 4)),
    "indices": lambda m: m.asarray(np.asarray([3, 0, -1])),
    "list": lambda m: [0, 2],
    "two index arrays": lambda m: (m.asarray(np.asarray([0, 3])), m.asarray(np.asarray([5, 1]))),
    "mixed": lambda m: (slice(None), m.asarray(np.asarray([[0, 1], [2, 3]]))),
    "integer and indices": lambda m: (1, m.asarray(np.asarray([0, 4]))),
    "array without dimensions": lambda m: m.asarray(np.asarray(2)),
    "empty": lambda m: m.asarray(np.zeros(0, np.int64)),
}


def _array(pending: bool) -> xp.Array:
    x = xp.asarray(VALUES)
    return x + 0 if pending else x


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("name", KEYS)
def test_selections_are_numpys(name: str, pending: bool) -> None:
    expected = VALUES[KEYS[name](np)]
    for keys in (xp, np):
        result = _array(pending)[KEYS[name](keys)]
        assert type(result) is xp.Array
        assert result.shape == expected.shape
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("name", KEYS)
def test_assignments_are_numpys(name: str, pending: bool) -> None:
    selected = VALUES[KEYS[name](np)]
    full = -np.arange(float(selected.size)).reshape(selected.shape)
    for value in (7, 2.5, np.float32(1.5), np.asarray(3.0), full, full.astype(np.int8)):
        for wrap in (np.asarray, xp.asarray, lambda v: v):
            expected = VALUES.copy()
            expected[KEYS[name](np)] = value
            x = same = _array(pending)
            earlier = x + 100
            x[KEYS[name](xp)] = wrap(value)
            assert x is same
            assert x.tolist() == expected.tolist()
            assert earlier.tolist() == (VALUES + 100).tolist()


@pytest.mark.parametrize("pending", [False, True])
def test_bad_keys_and_values_are_refused_at_once(pending: bool) -> None:
    x = _array(pending)
    for key in (xp.asarray([4]), np.ones(3, bool), xp.ones(24, dtype=xp.bool), [0, -5], "a", 1.5):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 0
    for key in (xp.asarray([0, 1]), x > 3, slice(0, 2)):
        with pytest.raises(ValueError, match=r"shape \(5,\)"):
            x[key] = xp.ones(5)
    with pytest.raises(TypeError, match=r"shape \(1, 20\)"):
        x[x > 3] = xp.ones((1, 20))
    assert x.tolist() == VALUES.tolist()


def test_masks_of_a_pending_array_leave_it_pending() -> None:
    x, mask = xp.asarray(VALUES) * 2, xp.asarray(VALUES) > 7
    # The mask's values tell the shape.
    assert flushes(lambda: x[mask]) == 1
    y = xp.asarray(VALUES) * 3

    def assign() -> None:
        y[mask] = x[mask]
        y[~mask] = -1.0

    assert flushes(assign) == 0
    expected = np.where(VALUES > 7, VALUES * 2, -1.0)
    assert y.tolist() == expected.tolist()


def test_a_mask_that_changes_later_does_not_change_a_selection() -> None:
    x, keys = xp.asarray(VALUES) * 2, np.asarray([True, False, True, False])
    mask = xp.asarray(keys)
    selected, other = x[mask], x[keys]
    mask[1] = True
    keys[1] = True
    assert selected.tolist() == other.tolist() == (VALUES[[0, 2]] * 2).tolist()


def test_indices_assign_in_place_where_nobody_else_sees_the_memory() -> None:
    x = xp.asarray(VALUES)
    x._materialize()
    address = x._state[1][0].value
    x[xp.asarray([0, 1])] = 5.0
    assert x._state[1][0].value == address
    reader = x + 1
    x[[2]] = 6.0
    assert x._state[1][0].value != address
    assert reader[2, 0] == VALUES[2, 0] + 1
    itself = xp.asarray([1, 0, 2])
    itself[itself] = xp.asarray([10, 20, 30])
    assert itself.tolist() == [20, 10, 30]


def test_in_place_operators_keep_identity() -> None:
    x = same = xp.asarray([1.0, 2.0])
    x += 1
    x *= np.asarray([2.0, 3.0])
    x -= xp.asarray(1.0)
    assert x is same
    assert x.tolist() == [3.0, 8.0]


# -------------------------------------------------- functions and methods beyond the standard

MATRIX = np.asarray([[1.0, np.nan, 3.0], [0.5, 2.0, -1.0]])
FUNCTIONS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "nansum": ((MATRIX,), {"axis": 0}),
    "nanmean": ((MATRIX,), {"axis": 1}),
    "nanmax": ((MATRIX,), {}),
    "nanmin": ((MATRIX,), {"axis": 0, "keepdims": True}),
    "nanstd": ((MATRIX,), {"axis": 1}),
    "nanvar": ((MATRIX,), {"axis": 1, "ddof": 1}),
    "nancumsum": ((MATRIX,), {"axis": 1}),
    "median": ((VALUES,), {"axis": 1}),
    "pad": ((VALUES, ((1, 0), (2, 1))), {}),
    "transpose": ((np.zeros((2, 3, 4)), (2, 0, 1)), {}),
    "bincount": ((np.asarray([0, 2, 2, 5]),), {"minlength": 8}),
    "logspace": ((0.0, 2.0, 5), {}),
    "full": (((2, 3), np.asarray(1.5)), {}),
    "diff": ((VALUES, 2), {}),
    "take_along_axis": ((VALUES, np.asarray([[1], [0], [5], [2]])), {"axis": 1}),
    "count_nonzero": ((VALUES,), {"axis": 0}),
    "diag": ((np.asarray([1.0, 2.0]), 1), {}),
}


def _ours(value: Any) -> Any:
    return xp.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_beyond_the_standard(name: str) -> None:
    arguments, keywords = FUNCTIONS[name]
    expected = getattr(np, name)(*arguments, **keywords)
    for convert in (_ours, lambda value: value):
        result = getattr(xp, name)(*map(convert, arguments), **keywords)
        assert type(result) is xp.Array
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-15, strict=True)


def test_condition_alone_gives_the_indices() -> None:
    found = xp.where(xp.asarray(VALUES) > 20)
    assert [indices.tolist() for indices in found] == [[3, 3, 3], [3, 4, 5]]
    with pytest.raises(ValueError, match="both"):
        xp.where(xp.asarray([True]), 1.0)


METHODS: dict[str, tuple[Any, ...]] = {
    "sum": (0,),
    "mean": (1,),
    "any": (),
    "all": (0,),
    "min": (1,),
    "max": (),
    "reshape": (3, 8),
    "astype": (np.float32,),
    "copy": (),
    "squeeze": (),
    "view": (np.int64,),
    "transpose": (),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys(name: str) -> None:
    expected = getattr(VALUES, name)(*METHODS[name])
    result = getattr(xp.asarray(VALUES), name)(*METHODS[name])
    assert type(result) is xp.Array
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected, strict=True)


def test_attributes_are_numpys() -> None:
    x = xp.asarray(VALUES)
    for name in ("shape", "ndim", "size", "nbytes", "itemsize", "dtype"):
        assert getattr(x, name) == getattr(VALUES, name)
    assert x.tolist() == VALUES.tolist()
    assert x[1, 2].item() == VALUES[1, 2].item()


def test_views_of_bytes_need_whole_elements() -> None:
    x = xp.asarray(VALUES)
    assert x.view("complex128").shape == (4, 3)
    assert x.view(np.int8).shape == (4, 48)
    for bad in (lambda: x[:, :5].view("complex128"), lambda: x[0, 0].view("int8")):
        with pytest.raises(ValueError, match="view"):
            bad()
    with pytest.raises(TypeError, match="bool"):
        x.view(bool)


# ------------------------------------------------------ data types, devices, capabilities


def test_kinds_mix_as_in_numpy() -> None:
    integers, floats = np.arange(3, dtype=np.int16), np.asarray([0.5, 1.5, 2.5], np.float32)
    for first, second in ((integers, floats), (floats, integers), (integers, floats > 1)):
        result = xp.asarray(first) + xp.asarray(second)
        expected = first + second
        assert result.dtype == expected.dtype
        assert result.tolist() == expected.tolist()
        assert xp.result_type(first, xp.asarray(second)) == expected.dtype


def test_default_data_types_and_capabilities() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.capabilities()["data-dependent shapes"] is True
    assert info.default_device() == "cpu"
    assert info.default_dtypes(device=xp.ones(1).device) == {
        "real floating": np.float64,
        "complex floating": np.complex128,
        "integral": np.int64,
        "indexing": np.int64,
    }
    assert {"float32", "float64"} <= info.dtypes(kind="real floating", device="cpu").keys()
    for name in ("float16", "bfloat16"):
        half = xp.asarray([1.0, 2.0], dtype=getattr(xp, name))
        assert (half / 3).dtype == half.dtype
        assert xp.isdtype(half.dtype, "real floating")


@pytest.mark.parametrize("make", [xp.zeros, xp.ones, xp.empty])
def test_devices_are_taken_by_name_everywhere(make: Callable[..., xp.Array]) -> None:
    for device in ("cpu", xp.ones(1).device, None):
        x = make((2,), device=device)
        assert x.device == "cpu"
        assert x.to_device("cpu").device == "cpu"
        assert xp.astype(x, xp.float32, device=device).device == "cpu"
        assert xp.from_dlpack(np.ones(2), device=device).device == "cpu"
    with pytest.raises(ValueError, match="quantum"):
        make((2,), device="quantum")


# ------------------------------------------------------------------------- threads and memory


def test_threads_that_share_pending_arrays_agree() -> None:
    shared = xp.sin(xp.asarray(VALUES)) + 1
    expected = (np.sin(VALUES) + 1) * np.arange(8.0)[:, None, None]
    results: list[Any] = [None] * 8
    start = threading.Barrier(8)

    def work(index: int) -> None:
        start.wait()
        mine = copy.copy(shared) * float(index)
        results[index] = np.asarray(mine)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(np.stack(results), expected, rtol=1e-15)


def test_fused_intermediates_take_no_memory() -> None:
    with xp.config.override(compile="sync"):
        x = xp.zeros((1 << 20,)) + 1
        np.asarray(x)
        before = xp.counters()["pool_bytes"]
        y = x
        for _ in range(30):
            y = y * 1.5 + 1
        np.asarray(y)
        assert xp.counters()["pool_bytes"] - before <= 2 * x.nbytes
