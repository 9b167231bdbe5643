"""Matrix products: shapes, data types, strides, and mistakes that other libraries made."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fklarray as xp
from accuracy import assert_same_bits

RANDOM = np.random.default_rng(20)


def _check(found: xp.Array, wanted: Any, rtol: float = 1e-12) -> None:
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=rtol)


SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((4, 3), (3,)),
    ((4, 3), (3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 4, 3), (3,)),
    ((5, 4, 3), (3, 2)),
    ((4, 3), (5, 3, 2)),
    ((6, 1, 4, 3), (5, 3, 2)),
    ((0, 4, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((4, 2, 0), (4, 0, 3)),
    ((2, 0, 3), (2, 3, 5)),
    ((0,), (0,)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int8", "uint64", "bool"])
def test_products_are_those_of_numpy(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str, device: str
) -> None:
    a, b = (RANDOM.integers(-90, 90, shape).astype(dtype) for shape in shapes)
    x, y = (xp.asarray(values, device=device) for values in (a, b))
    for found in (xp.matmul(x, y), x @ y, xp.linalg.matmul(x, y), a @ y, x @ b):
        _check(found, a @ b)


@pytest.mark.parametrize(
    "pair",
    [("float32", "float64"), ("int32", "float32"), ("int8", "uint8"), ("int64", "uint64"),
     ("float64", "complex64"), ("bool", "int16")],
    ids=str,
)  # fmt: skip
def test_data_types_are_promoted_first(pair: tuple[str, str], device: str) -> None:
    a, b = (RANDOM.integers(0, 100, (3, 3)).astype(dtype) for dtype in pair)
    x, y = (xp.asarray(values, device=device) for values in (a, b))
    _check(x @ y, a @ b)
    _check(xp.tensordot(x, y), np.tensordot(a, b))
    _check(xp.vecdot(x, y), np.vecdot(a, b))


def test_nothing_of_dirty_memory_is_in_a_product_over_no_elements(device: str) -> None:
    for _ in range(4):
        xp.materialize(*[xp.full((3, 4), 7e11, device=device) for _ in range(4)])
        product = xp.ones((3, 0), device=device) @ xp.ones((0, 4), device=device)
        assert np.asarray(product).tolist() == [[0.0] * 4] * 3
        assert not np.asarray(xp.vecdot(xp.ones((12, 0)), xp.ones((12, 0)))).any()
        assert not np.asarray(xp.tensordot(xp.ones((3, 0)), xp.ones((0, 4)), axes=1)).any()


def test_operands_with_any_strides(device: str) -> None:
    a, b = RANDOM.normal(size=(4, 3, 6)), RANDOM.normal(size=(4, 6, 5))
    x, y = xp.asarray(a, device=device), xp.asarray(b, device=device)
    stored = xp.asarray(np.ascontiguousarray(a.swapaxes(1, 2)), device=device)
    _check(xp.matrix_transpose(stored) @ y, a @ b)
    _check(x[::-1, ::2] @ y[2:3], a[::-1, ::2] @ b[2:3])
    _check(x[..., ::-2] @ y[:, ::-2], a[..., ::-2] @ b[:, ::-2])
    first, second = xp.broadcast_to(x[1], (4, 3, 6)), xp.broadcast_to(y[1], (4, 6, 5))
    _check(first @ y, a[1] @ b)
    _check(x @ second, a @ b[1])
    _check(first @ second, np.broadcast_to(a[1] @ b[1], (4, 3, 5)))
    _check(x.mT @ x, a.swapaxes(1, 2) @ a)


def _in_other_layouts(values: np.ndarray) -> list[xp.Array]:
    """Return the values by rows in every other way: padded, with steps, backwards."""
    padded = np.zeros((*values.shape[:-1], values.shape[-1] + 3), values.dtype)
    padded[..., : values.shape[-1]] = values
    steps = (slice(None, None, 2),) * values.ndim
    apart = np.zeros(tuple(2 * extent for extent in values.shape), values.dtype)
    apart[steps] = values
    back = (slice(None, None, -1),) * values.ndim
    return [
        xp.asarray(padded)[..., : values.shape[-1]],
        xp.asarray(apart)[steps],
        xp.asarray(values[back].copy())[back],
        xp.asarray(values[..., ::-1].copy())[..., ::-1],
    ]


# Extents of 1 and vectors are what NumPy hands to other routines.
LONG_SHAPES = [
    ((700,), (700,)),
    ((64, 300), (300,)),
    ((300,), (300, 64)),
    ((33, 300), (300, 1)),
    ((1, 300), (300, 33)),
    ((1, 300), (300, 1)),
    ((50, 1), (1, 60)),
    ((90, 300), (300, 70)),
    ((3, 40, 300), (300,)),
    ((300,), (3, 300, 40)),
]
BIT_TYPES = ["float16", "float32", "float64", "complex64", "int32"]


def _draw(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    real, imag = RANDOM.normal(size=(2, *shape)) * 9
    return (real + 1j * imag if dtype == "complex64" else real).astype(dtype)


@pytest.mark.parametrize("dtype", BIT_TYPES)
@pytest.mark.parametrize("shapes", LONG_SHAPES, ids=str)
def test_matmul_has_the_same_bits_in_every_layout_by_rows(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str
) -> None:
    a, b = (_draw(shape, dtype) for shape in shapes)
    x, y = xp.asarray(a), xp.asarray(b)
    wanted = np.asarray(x @ y)
    for first, second in itertools.product([x, *_in_other_layouts(a)], [y, *_in_other_layouts(b)]):
        assert_same_bits(np.asarray(first @ second), wanted)


@pytest.mark.parametrize("dtype", BIT_TYPES)
@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        (((700,), (700,)), 1),
        (((64, 300), (300,)), 1),
        (((300, 64), (300,)), ((0,), (0,))),
        (((300,), (64, 300)), ((0,), (1,))),
        (((30, 40, 5), (30,)), ((0,), (0,))),
        (((30,), (6, 30, 5)), ((0,), (1,))),
        (((20, 30, 7), (30, 20)), ((0, 1), (1, 0))),
    ],
    ids=str,
)
def test_tensordot_has_the_same_bits_in_every_layout_by_rows(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], axes: Any, dtype: str
) -> None:
    a, b = (_draw(shape, dtype) for shape in shapes)
    x, y = xp.asarray(a), xp.asarray(b)
    wanted = np.asarray(xp.tensordot(x, y, axes=axes))
    for first, second in itertools.product([x, *_in_other_layouts(a)], [y, *_in_other_layouts(b)]):
        assert_same_bits(np.asarray(xp.tensordot(first, second, axes=axes)), wanted)


@pytest.mark.parametrize("dtype", BIT_TYPES)
@pytest.mark.parametrize("axis", [-1, -2])
def test_vecdot_has_the_same_bits_in_every_layout(axis: int, dtype: str) -> None:
    a, b = _draw((3, 200, 30), dtype), _draw((200, 30), dtype)
    x, y = xp.asarray(a), xp.asarray(b)
    wanted = np.asarray(xp.vecdot(x, y, axis=axis))
    by_columns = xp.asarray(a.T.copy()), xp.asarray(b.T.copy()).T
    columns = xp.permute_dims(by_columns[0], (2, 1, 0)), by_columns[1]
    for first, second in itertools.product(
        [columns[0], *_in_other_layouts(a)], [columns[1], *_in_other_layouts(b)]
    ):
        assert_same_bits(np.asarray(xp.vecdot(first, second, axis=axis)), wanted)


@pytest.mark.parametrize("dtype", BIT_TYPES)
@pytest.mark.parametrize("shapes", [*LONG_SHAPES, ((60, 300), (300, 60))], ids=str)
def test_transposes_give_other_bits_within_rounding(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str
) -> None:
    a, b = (_draw(shape, dtype) for shape in shapes)
    b = a.T.copy() if shapes[1] == (300, 60) else b
    x, y = xp.asarray(a), xp.asarray(b)
    columns = [v if v.ndim < 2 else xp.asarray(np.asarray(v).mT.copy()).mT for v in (x, y)]
    products = [columns[0] @ y, x @ columns[1], columns[0] @ columns[1]]
    products += [x @ x.mT] if shapes[1] == (300, 60) else []
    unit = 0 if dtype == "int32" else float(np.finfo(dtype).eps)
    wanted = np.asarray(x @ y)
    limit = 20 * unit * (np.abs(a).astype("float64") @ np.abs(b).astype("float64"))
    for found in products:
        assert found.dtype == dtype
        assert np.all(np.abs(np.asarray(found) - wanted) <= limit)


def test_heads_of_attention_lie_between_batch_and_time(device: str) -> None:
    values = RANDOM.normal(size=(2, 7, 3, 4))
    heads = xp.permute_dims(xp.asarray(values, device=device), (0, 2, 1, 3))
    wanted = np.einsum("bihd,bjhd->bhij", values, values)
    _check(heads @ xp.matrix_transpose(heads), wanted)


def test_pending_operands_and_products_are_computed_when_needed(device: str) -> None:
    a, b = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(4, 2))
    x, y = xp.asarray(a, device=device), xp.asarray(b, device=device)
    before = xp.counters()
    result = ((x + 1) @ (y * 2)) - 3
    assert xp.counters() == before
    x[...] = 0
    _check(result, (a + 1) @ (b * 2) - 3)
    elsewhere = ("reference_evaluations", "cupy_evaluations")
    assert sum(xp.counters()[name] - before[name] for name in elsewhere) >= 1


def test_a_large_product_is_taken_over_and_behaves_as_a_value(device: str) -> None:
    x = xp.ones((200, 200), device=device)
    product = x @ x
    above = product + 1
    part = product[1:]
    product[0, 0] = 5
    assert [float(one[0, 0]) for one in (product, above, part)] == [5, 201, 200]
    assert (np.asarray(x) == 1).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_are_summed_in_float32_and_rounded_once(dtype: str, device: str) -> None:
    narrow = np.dtype(getattr(ml_dtypes, dtype, dtype))
    # The sum in 16 bits would stop growing where 1 is less than half a unit.
    values = np.ones((2, 5000), narrow)
    x = xp.asarray(values, device=device)
    wanted = np.full((2, 2), 5000).astype(narrow)
    for found in (x @ x.mT, xp.tensordot(x, x.mT, axes=1)):
        assert found.dtype == narrow
        assert np.asarray(found).tolist() == wanted.tolist()
    assert np.asarray(xp.vecdot(x, x)).tolist() == wanted[0].tolist()


def test_integers_do_not_pass_through_floating_point(device: str) -> None:
    large = 2**53 + 1
    x = xp.asarray(np.asarray([[large]]), device=device)
    assert int((x @ xp.asarray([[1]]))[0, 0]) == large
    assert int(xp.vecdot(x[0], xp.asarray([1]))) == large
    small = xp.asarray(np.full((2, 2), 100, np.int8), device=device)
    assert np.asarray(small @ small).tolist() == [[32, 32], [32, 32]]


BAD_SHAPES = [((), (3,)), ((3,), ()), ((3,), (4,)), ((3,), (4, 3)), ((2, 3), (2, 3)),
              ((2, 3), (2,)), ((2, 4, 3), (3, 3, 2))]  # fmt: skip


@pytest.mark.parametrize("shapes", BAD_SHAPES, ids=str)
def test_shapes_that_do_not_fit_are_named_at_once(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], device: str
) -> None:
    x, y = (xp.ones(shape, device=device) for shape in shapes)
    with pytest.raises(ValueError, match=r"\(.*\)"):
        xp.matmul(x, y)
    with pytest.raises(ValueError, match="shape"):
        x @ y


def test_scalars_are_no_operands(device: str) -> None:
    x = xp.ones((2, 2), device=device)
    for wrong in (3, 2.5, 1j, True, np.float32(2), np.asarray(3)):
        with pytest.raises(ValueError, match="matmul needs arrays with dimensions"):
            x @ wrong
        with pytest.raises(ValueError, match="matmul needs arrays with dimensions"):
            wrong @ x
        with pytest.raises(ValueError, match="matmul needs arrays with dimensions"):
            xp.matmul(x, wrong)
    for other in (None, "x", [[1.0, 2], [3, 4]]):
        with pytest.raises(TypeError, match="matmul takes an array"):
            xp.matmul(x, other)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="unsupported operand"):
            x @ other


def test_in_place(device: str) -> None:
    x = xp.asarray([[1.0, 2], [3, 4]], device=device)
    same, reader = x, x + 0
    x @= xp.asarray([[0.0, 1], [1, 0]], device=device)
    assert same is x
    assert np.asarray(x).tolist() == [[2, 1], [4, 3]]
    assert np.asarray(reader).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="in-place matmul"):
        x @= xp.ones((2, 3), device=device)
    with pytest.raises(TypeError, match="in-place matmul"):
        x @= xp.ones((2, 2), dtype=xp.complex128, device=device)
    assert np.asarray(x).tolist() == [[2, 1], [4, 3]]


def test_bmm_broadcasts_nothing(device: str) -> None:
    a, b = RANDOM.normal(size=(4, 3, 6)), RANDOM.normal(size=(4, 6, 5))
    _check(xp.bmm(xp.asarray(a, device=device), xp.asarray(b, device=device)), a @ b)
    for wrong in (b[:1], b[0], b[:, :5], b[None]):
        with pytest.raises(ValueError, match="bmm needs shapes"):
            xp.bmm(xp.asarray(a, device=device), xp.asarray(wrong, device=device))


def test_matrix_transpose_is_a_view_of_what_is_pending(device: str) -> None:
    values = RANDOM.normal(size=(2, 3, 4))
    before = xp.counters()
    found = xp.matrix_transpose(xp.asarray(values, device=device) * 2)
    assert xp.counters()["flushes"] == before["flushes"]
    _check(found, values.swapaxes(1, 2) * 2)
    with pytest.raises(ValueError, match="matrix_transpose"):
        xp.matrix_transpose(xp.ones(3, device=device))


@given(st.data())
def test_tensordot_is_that_of_numpy(data: st.DataObject) -> None:
    extents = data.draw(st.lists(st.integers(0, 4), max_size=2))
    outside = [data.draw(st.lists(st.integers(0, 3), max_size=2)) for _ in range(2)]
    a = RANDOM.normal(size=(*outside[0], *extents))
    b = RANDOM.normal(size=(*extents, *outside[1]))
    count = len(extents)
    x, y = xp.asarray(a), xp.asarray(b)
    _check(xp.tensordot(x, y, axes=count), np.tensordot(a, b, axes=count))
    order = data.draw(st.permutations(range(count)))
    axes = [axis - count for axis in order], list(order)
    _check(xp.tensordot(x, y, axes=axes), np.tensordot(a, b, axes=axes))


def test_tensordot_names_what_does_not_fit(device: str) -> None:
    x, y = xp.ones((2, 3), device=device), xp.ones((3, 2), device=device)
    for axes in (2, ((1,), (1,)), ((0, 1), (0,)), ((0, 0), (1, 1)), -1):
        with pytest.raises(ValueError, match=r"tensordot|repeated"):
            xp.tensordot(x, y, axes=axes)  # type: ignore[arg-type]
    for axes in (3, ((2,), (0,)), ((1,), (-3,))):
        with pytest.raises(np.exceptions.AxisError):
            xp.tensordot(x, y, axes=axes)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tensordot takes an array"):
        xp.tensordot(x, [[1.0]])  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int16", "bool"])
def test_vecdot_conjugates_its_first_operand(dtype: str, device: str) -> None:
    a, b = (RANDOM.normal(size=shape).astype(dtype) for shape in ((4, 1, 3), (5, 3)))
    if dtype == "complex128":
        a, b = a * (1 + 2j), b - 1j
    x, y = xp.asarray(a, device=device), xp.asarray(b, device=device)
    _check(xp.vecdot(x, y), np.vecdot(a, b), 1e-6)
    _check(xp.linalg.vecdot(y, x), np.vecdot(b, a), 1e-6)
    _check(xp.vecdot(x[:, 0], x[:, 0], axis=0), np.vecdot(a[:, 0], a[:, 0], axis=0), 1e-6)
    _check(xp.vecdot(x, x[0], axis=-2), np.vecdot(a, a[0], axis=-2), 1e-6)


def test_vecdot_does_not_broadcast_the_vectors(device: str) -> None:
    x = xp.ones((2, 3), device=device)
    for other, axis in ((xp.ones(1), -1), (xp.ones((1, 3)), -2), (xp.ones((3, 3)), -1)):
        with pytest.raises(ValueError, match=r"\(2, 3\)"):
            xp.vecdot(x, xp.asarray(other, device=device), axis=axis)
    for other, axis in ((xp.ones(3), -2), (xp.ones(()), -1), (x, 2)):
        with pytest.raises(np.exceptions.AxisError):
            xp.vecdot(x, xp.asarray(other, device=device), axis=axis)
