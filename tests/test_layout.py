"""Layouts, walked in plain Python over NumPy's memory, visit what broadcasting says."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fklarray_codegen import layout as module
from fklarray_codegen.layout import (
    Layout,
    broadcast_shapes,
    contiguous_strides,
    layout,
    reshape_strides,
)


def _elements(array: np.ndarray) -> tuple[int, ...]:
    """Give an array's strides as layouts want them: in elements, 0 where there is one element."""
    return tuple(
        stride // array.itemsize if extent > 1 else 0
        for stride, extent in zip(array.strides, array.shape, strict=True)
    )


def _rows(laid_out: Layout) -> list[tuple[int, ...]]:
    """List the positions of a walk, row by row, the last of each block of rows cut short."""
    *outer, rows, length = laid_out.shape
    return [
        (*place, row, element)
        for place in itertools.product(*map(range, outer))
        for row in range(rows)
        for element in range(laid_out.last if row == rows - 1 else length)
    ]


def _offsets(laid_out: Layout, stream: int) -> list[int]:
    """List the offsets that one stream reads or writes, in elements from its first one."""
    strides = laid_out.strides[stream]
    period, inner = laid_out.periods[stream]
    result = []
    for place in _rows(laid_out):
        *outer, element = place
        base = sum(index * step for index, step in zip(outer, strides[:-1], strict=True))
        step = strides[-1]
        result.append(base + (element % period * inner if period else element * step))
    return result


def _check(shape: tuple[int, ...], arrays: list[np.ndarray], outputs: int = 1) -> Layout:
    contiguous = contiguous_strides(shape)
    laid_out = layout(shape, [_elements(array) for array in arrays], [contiguous] * outputs)
    assert laid_out.rank == len(laid_out.shape) >= 2
    assert 1 <= laid_out.last <= laid_out.shape[-1]
    count = len(arrays) + outputs
    assert len(laid_out.strides) == len(laid_out.inner) == len(laid_out.periods) == count
    targets = _offsets(laid_out, len(arrays))
    assert sorted(targets) == list(range(math.prod(shape)))
    for stream, array in enumerate(arrays):
        wanted = np.broadcast_to(array, shape).ravel()
        first = array.ravel()[0] if array.size else 0
        got = np.array(_offsets(laid_out, stream)) + first
        assert np.array_equal(wanted[targets], got)
    for stride, kind, period in zip(
        laid_out.strides, laid_out.inner, laid_out.periods, strict=True
    ):
        if kind != "strided" and laid_out.shape[-1] > 1:
            assert stride[-1] == {"unit": 1, "broadcast": 0}[kind]
        assert period == (0, 0) or (laid_out.shape[-1] % period[0] == 0 and kind == "unit")
    return laid_out


@st.composite
def _operand(draw: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Draw a view, whose elements are their own offsets, of a shape that broadcasts to another."""
    keep = shape[draw(st.integers(0, len(shape))) :]
    extents = [1 if draw(st.booleans()) and draw(st.booleans()) else n for n in keep]
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -3])) for _ in keep]
    order = draw(st.permutations(range(len(keep)))) if draw(st.booleans()) else range(len(keep))
    memory = [extents[axis] * abs(steps[axis]) for axis in order]
    array = np.arange(math.prod(memory), dtype=np.int64).reshape(memory)
    back = np.argsort(np.array(order, dtype=int)) if len(keep) else ()
    array = array.transpose(tuple(back))
    return array[tuple(slice(None, None, step) for step in steps)]


EXTENTS = st.one_of(st.integers(1, 5), st.sampled_from([16, 40, 63, 64, 100]))


@settings(max_examples=200)
@given(data=st.data(), shape=st.lists(EXTENTS, max_size=4), count=st.integers(0, 3))
def test_walks(data, shape: list[int], count: int) -> None:
    assume(math.prod(shape) <= 6000)
    arrays = [data.draw(_operand(tuple(shape))) for _ in range(count)]
    _check(tuple(shape), arrays, data.draw(st.integers(1, 2)))


@settings(max_examples=100)
@given(data=st.data(), row=st.integers(1, 40), short=st.integers(1, 70))
def test_walks_with_short_rows_cut(data, row: int, short: int) -> None:
    """The same, with limits at which small arrays are cut into rows."""
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    arrays = [data.draw(_operand(shape)) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROW", row)
        patch.setattr(module, "_SHORT_ROW", short)
        _check(shape, arrays)


@pytest.mark.parametrize(
    ("shape", "operand"),
    [
        ((1000, 3), np.arange(3)),
        ((5, 1000, 3), np.arange(3)),
        ((700, 3, 4), np.arange(12).reshape(3, 4)),
        ((2000, 2), np.arange(2)[::-1]),
        ((10_001,), np.array(0)),
        ((3, 3000), np.arange(3)[:, None]),
        ((3000, 3), np.arange(3000)[:, None]),
        ((10, 4097), np.arange(8194)[::2]),
    ],
)
def test_walks_of_long_runs(shape: tuple[int, ...], operand: np.ndarray) -> None:
    whole = np.arange(math.prod(shape)).reshape(shape)
    laid_out = _check(shape, [whole, operand])
    assert laid_out.inner[0] == laid_out.inner[-1] == "unit" or shape == (3000, 3)


def test_contiguous_dimensions_collapse() -> None:
    shape = (4, 5, 6, 7)
    laid_out = _check(shape, [np.arange(840).reshape(shape)])
    assert laid_out.rank == 2
    assert set(laid_out.inner) == {"unit"}


def test_threads_get_rows_of_about_one_length() -> None:
    for length in (1_000_000, 40_000, 123_457):
        laid_out = layout((length,), [(1,)], [(1,)])
        rows, row = laid_out.shape
        assert rows >= 8
        assert (rows - 1) * row + laid_out.last == length


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(4294967296, 100\)"):
        layout((1 << 32, 100), [(200, 1)], [(100, 1)])


# --------------------------------------------------------------------------- shapes and strides


@given(shapes=hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0))
def test_broadcast_shapes(shapes: Any) -> None:
    assert broadcast_shapes(*shapes.input_shapes) == shapes.result_shape


@given(
    shapes=st.lists(hnp.array_shapes(min_dims=0, min_side=0, max_side=3), min_size=1, max_size=3)
)
def test_broadcast_shapes_refuses_what_numpy_does(shapes: list[tuple[int, ...]]) -> None:
    try:
        wanted = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast") as error:
            broadcast_shapes(*shapes)
        assert all(str(shape) in str(error.value) for shape in shapes)
    else:
        assert broadcast_shapes(*shapes) == wanted


@given(shape=hnp.array_shapes(min_dims=0, max_dims=5))
def test_contiguous_strides(shape: tuple[int, ...]) -> None:
    assert contiguous_strides(shape) == _elements(np.empty(shape, np.int8))


@settings(max_examples=200)
@example(data=None, shape=(4, 6))
@given(data=st.data(), shape=hnp.array_shapes(min_dims=0, max_dims=4, max_side=6))
def test_reshape_strides_as_numpy(data, shape: tuple[int, ...]) -> None:
    if data is None:
        assert reshape_strides((4, 6), (12, 2), (24,)) == (2,)
        assert reshape_strides((4, 6), (7, 1), (24,)) is None
        assert reshape_strides((4, 6), (7, 1), (2, 2, 3, 2)) == (14, 7, 2, 1)
        return
    array = data.draw(_operand(shape))
    target = tuple(data.draw(st.permutations(_split(data.draw, array.size))))
    strides = reshape_strides(array.shape, _elements(array), target)
    try:
        wanted = array.reshape(target, copy=False)
    except ValueError:
        assert strides is None
    else:
        assert strides == _elements(wanted)


def _split(draw: Any, size: int) -> list[int]:
    factors = [1] * draw(st.integers(0, 2))
    divisor = 2
    while size > 1:
        while size % divisor == 0:
            size //= divisor
            if factors and draw(st.booleans()):
                factors[-1] *= divisor
            else:
                factors.append(divisor)
        divisor += 1
    return factors


@pytest.mark.parametrize("shape", [(2, 2**33), (2, 2**32 + 64), (65, 2**31 + 64), (2**33 + 64,)])
@pytest.mark.parametrize("moves", ["unit", "transposed", "apart"])
def test_rows_are_no_longer_than_a_devices_threads_count(
    moves: str, shape: tuple[int, ...]
) -> None:
    strides = {
        "unit": contiguous_strides(shape),
        "transposed": tuple(reversed(contiguous_strides(shape[::-1]))),
        "apart": (*(shape[-1] + 64 for _ in shape[:-1]), 1),
    }[moves]
    found = layout(shape, [strides], [contiguous_strides(shape)], module.DEVICE_ROW)
    assert math.prod(found.shape) >= math.prod(shape)
    assert max(found.shape[-2:]) <= module.DEVICE_ROW
