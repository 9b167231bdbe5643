"""docs/numpy-differences.md, about arguments: each test asserts NumPy's way and ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from differences import NAN, Difference, assert_difference, bools

pytestmark = pytest.mark.usefixtures("device")


def _assigned(m: Any, value: Any) -> Any:
    x = m.asarray([0.0, 0.0])
    x[0] = value
    return x


ROWS: dict[str, Difference] = {
    "operators-with-lists": (
        lambda m: m.asarray([1, 2]) == [1, 2], np.array([True, True]), TypeError,
    ),
    "comparison-with-other-objects": (
        lambda m: m.asarray([1, 2]) == "a", np.array([False, False]), False,
    ),
    "numbers-alone": (
        lambda m: m.sin(0.0), np.float64(0.0), TypeError,
    ),
    "divmod": (
        lambda m: divmod(m.asarray([5]), 2)[1], np.array([1]), TypeError,
    ),
    "where-with-a-number-as-condition": (
        lambda m: m.where(True, m.asarray([1]), 2), np.array([1]), TypeError,
    ),
    "assignment-of-sequences-to-an-element": (
        lambda m: _assigned(m, [1.0]), ValueError, np.array([1.0, 0.0]),
    ),
    "assignment-of-None": (
        lambda m: _assigned(m, None), np.array([NAN, 0.0]), TypeError,
    ),
    "assignment-of-text": (
        lambda m: _assigned(m, "a"), ValueError, TypeError,
    ),
    "squeeze-without-axis": (
        lambda m: m.squeeze(m.ones((1, 1))), np.asarray(1.0), TypeError,
    ),
    "take-without-axis": (
        lambda m: m.take(m.asarray([[1, 2], [3, 4]]), m.asarray([2])), np.array([3]), ValueError,
    ),
    "take-by-floats": (
        lambda m: m.take(m.asarray([1, 2]), m.asarray([1.0])), TypeError, IndexError,
    ),
    "triangle-of-a-vector": (
        lambda m: m.tril(m.ones(2)), np.array([[1.0, 0.0], [1.0, 1.0]]), ValueError,
    ),
    "meshgrid-of-matrices": (
        lambda m: m.meshgrid(m.ones((1, 2)))[0], np.ones(2), ValueError,
    ),
    "meshgrid-of-numbers": (
        lambda m: m.meshgrid(1)[0], np.array([1]), TypeError,
    ),
    "transpose-of-other-than-matrices": (
        lambda m: m.ones(2).T, np.ones(2), ValueError,
    ),
    "arange-without-a-step": (
        lambda m: m.arange(1, 5, 0), ZeroDivisionError, ValueError,
    ),
    # Axes
    "median-over-a-list-of-axes": (
        lambda m: m.median(m.ones((2, 2)), axis=[0, 1]), np.asarray(1.0), TypeError,
    ),
    "vector_norm-over-a-float": (
        lambda m: m.linalg.vector_norm(m.ones((1, 2)), axis=0.0), np.array([1.0, 1.0]), TypeError,
    ),
    "permute_dims-without-axes": (
        lambda m: m.permute_dims(m.ones((1, 2)), None).shape[0] == 2, True, TypeError,
    ),
    "tensordot-of-negative-axes": (
        lambda m: m.tensordot(m.ones(1), m.ones(1), axes=-1), np.ones((1, 1)), ValueError,
    ),
    "roll-of-a-number-over-no-axes": (
        lambda m: m.roll(m.asarray(1.0), 1, axis=()), ValueError, np.asarray(1.0),
    ),
    "fftshift-of-a-number": (
        lambda m: m.fft.fftshift(m.asarray(1.0)), ValueError, np.asarray(1.0),
    ),
    "fft-of-a-shape-without-axes": (
        lambda m: m.fft.fftn(m.ones(2), s=(1,)), np.array([1 + 0j]), ValueError,
    ),
    "differences-of-order-0": (
        lambda m: m.diff(m.asarray(1.0), n=0), np.asarray(1.0), ValueError,
    ),
    "differences-of-order-0-over-no-axis": (
        lambda m: m.diff(m.ones(1), n=0, axis=5), np.ones(1), IndexError,
    ),
    # Shapes and numbers of repetitions
    "shapes-in-arrays": (
        lambda m: m.zeros(np.asarray([1, 2])), np.zeros((1, 2)), TypeError,
    ),
    "reshape-to-minus-two": (
        lambda m: m.reshape(m.ones(4), (2, -2)), np.ones((2, 2)), ValueError,
    ),
    "reshape-to-None": (
        lambda m: m.reshape(m.ones(2), None), np.ones(2), TypeError,
    ),
    "roll-by-floats": (
        lambda m: m.roll(m.asarray([1, 2]), 1.5), np.array([2, 1]), TypeError,
    ),
    "roll-by-arrays": (
        lambda m: m.roll(m.asarray([1, 2, 3]), m.asarray([1, 1])), np.array([2, 3, 1]), TypeError,
    ),
    "repeat-by-floats": (
        lambda m: m.repeat(m.asarray([1]), 2.5), np.array([1, 1]), TypeError,
    ),
    "repeat-by-lists": (
        lambda m: m.repeat(m.asarray([1, 2]), [1, 2]), np.array([1, 2, 2]), TypeError,
    ),
    "repeat-by-bool": (
        lambda m: m.repeat(m.asarray([1, 2]), bools(m)), np.array([1]), TypeError,
    ),
    "tile-by-arrays": (
        lambda m: m.tile(m.asarray([1]), m.asarray([1, 2])), np.array([[1, 1]]), TypeError,
    ),
    "pad-by-unsigned-integers": (
        lambda m: m.pad(m.asarray([1]), np.uint8(1)), TypeError, np.array([0, 1, 0]),
    ),
    "pad-by-dictionaries": (
        lambda m: m.pad(m.asarray([1]), {0: 1}), np.array([0, 1, 0]), TypeError,
    ),
    # Indices and values
    "take-from-nothing": (
        lambda m: m.take(m.ones((0, 3)), m.asarray([5]), axis=1), np.ones((0, 1)), IndexError,
    ),
    "take-by-bool": (
        lambda m: m.take(m.asarray([1, 2]), bools(m)), np.array([2, 1]), IndexError,
    ),
    "take_along_axis-of-shapes-that-do-not-fit": (
        lambda m: m.take_along_axis(m.ones((2, 3)), m.asarray([[0, 1]]), axis=0), IndexError,
        ValueError,
    ),
    "slices-of-floats": (
        lambda m: m.ones(2)[1.5:], TypeError, IndexError,
    ),
    "item-by-index": (
        lambda m: m.asarray(m.asarray([1, 2]).item(1)), np.asarray(2), TypeError,
    ),
    "clip-without-a-maximum": (
        lambda m: m.clip(m.asarray([1]), 2), TypeError, np.array([2]),
    ),
    "differences-with-numbers": (
        lambda m: m.diff(m.asarray([1]), prepend=0), np.array([1]), TypeError,
    ),
    "full-of-lists": (
        lambda m: m.full((2,), [1, 2]), np.array([1, 2]), TypeError,
    ),
    "full-of-arrays": (
        lambda m: m.full((2,), m.asarray([1, 2])), np.array([1, 2]), ValueError,
    ),
    "stack-of-iterators": (
        lambda m: m.stack(iter([m.asarray([1])])), TypeError, np.array([[1]]),
    ),
    "searchsorted-with-an-index-out-of-bounds": (
        lambda m: m.searchsorted(m.ones(3), m.ones(1), sorter=m.asarray([0, 1, 5])),
        np.array([0]), ValueError,
    ),
    "searchsorted-on-a-side-of-another-type": (
        lambda m: m.searchsorted(m.ones(1), m.ones(1), side=1), TypeError, ValueError,
    ),
    "rank-of-a-vector": (
        lambda m: m.linalg.matrix_rank(m.ones(3)) == 1, np.True_, np.linalg.LinAlgError,
    ),
    "keepdims-of-None": (
        lambda m: m.argmax(m.asarray([1, 2]), keepdims=None), np.asarray(1), TypeError,
    ),
    "norm-of-order-None": (
        lambda m: m.linalg.vector_norm(m.ones(4), ord=None), np.asarray(2.0), ValueError,
    ),
    "modes-of-qr": (
        lambda m: m.linalg.qr(m.ones((1, 1)), mode="r").shape[0] == 1, True, ValueError,
    ),
    # Data types and objects
    "isdtype-of-names": (
        lambda m: m.isdtype("int8", "integral"), TypeError, True,
    ),
    "isdtype-of-other-types": (
        lambda m: m.isdtype(np.dtype("U3"), "integral"), False, TypeError,
    ),
    "limits-of-arrays": (
        lambda m: m.finfo(m.asarray([1.0], dtype="float32")).bits == 32, ValueError, True,
    ),
    "limits-of-numbers": (
        lambda m: m.finfo(1.0).bits == 64, True, TypeError,
    ),
    "limits-of-no-data-type": (
        lambda m: m.iinfo(None), ValueError, TypeError,
    ),
    "from_dlpack-of-other-objects": (
        lambda m: m.from_dlpack([1]), AttributeError, TypeError,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["sync", "off"])
@pytest.mark.parametrize("row", ROWS)
def test_row(row: str, mode: str) -> None:
    assert_difference(ROWS[row], mode)


# ---------------------------------------------------------------------- rules of many functions

Use = Callable[[Any], Any]


def _assert_refused(uses: list[Use], error: type[Exception]) -> None:
    """Assert that NumPy does all of it, and that each is an error here."""
    for use in uses:
        use(np)
        with pytest.raises(error):
            use(xp)


@pytest.mark.parametrize("axis", [0, -1])
def test_numbers_have_no_axes(axis: int) -> None:
    names = "sum prod max min all any argmax argmin count_nonzero nansum nanmax nanmin argsort"
    uses: list[Use] = [
        lambda m, name=name: getattr(m, name)(m.asarray(1.0), axis=axis)  # type: ignore[misc]
        for name in (*names.split(), "squeeze")
    ]
    uses += [
        lambda m: m.repeat(m.asarray(1.0), 2, axis=axis),
        lambda m: m.take(m.asarray(1.0), m.asarray([0]), axis=axis),
    ]
    _assert_refused(uses, np.exceptions.AxisError)


def test_bool_is_no_axis() -> None:
    _assert_refused(
        [
            lambda m: m.sort(m.ones((2, 3)), axis=True),
            lambda m: m.median(m.ones((2, 3)), axis=True),
            lambda m: m.diff(m.ones((2, 3)), axis=True),
            lambda m: m.roll(m.ones((2, 3)), 1, axis=True),
            lambda m: m.stack([m.ones((2, 3))], axis=True),
            lambda m: m.unstack(m.ones((2, 3)), axis=True)[0],
            lambda m: m.expand_dims(m.ones((2, 3)), axis=True),
            lambda m: m.flip(m.ones((2, 3)), axis=True),
            lambda m: m.moveaxis(m.ones((2, 3)), True, 0),
        ],
        TypeError,
    )


def test_one_axis_is_no_tuple() -> None:
    _assert_refused(
        [
            lambda m: m.cumulative_sum(m.ones((2, 3)), axis=(0,)),
            lambda m: m.cumulative_prod(m.ones((2, 3)), axis=(0,)),
            lambda m: m.unstack(m.ones((2, 3)), axis=(0,))[0],
        ],
        TypeError,
    )


def test_sorting_needs_an_axis() -> None:
    _assert_refused(
        [
            lambda m: m.sort(m.asarray([[3, 1], [2, 0]]), axis=None),
            lambda m: m.argsort(m.asarray([[3, 1], [2, 0]]), axis=None),
        ],
        TypeError,
    )


def test_lists_are_no_arrays() -> None:
    names = "abs isnan sum mean max all argmax sort median flip unique_values tril"
    uses: list[Use] = [
        lambda m, name=name: getattr(m, name)([[1.0, 2.0]])  # type: ignore[misc]
        for name in names.split()
    ]
    uses += [
        lambda m: m.add([1], [2]),
        lambda m: m.reshape([1, 2], (2, 1)),
        lambda m: m.concat([[1], [2]]),
        lambda m: m.take(m.asarray([1, 2]), [1]),
        lambda m: m.searchsorted(m.asarray([1, 2]), [1]),
        lambda m: m.matmul([[1]], [[1]]),
        lambda m: m.asarray([1]) * [1],
        lambda m: [1] * m.asarray([1, 2]),
        lambda m: m.linalg.det([[1.0]]),
        lambda m: m.fft.fft([1.0]),
    ]
    _assert_refused(uses, TypeError)


def test_keywords_beyond_the_standard_are_refused() -> None:
    _assert_refused(
        [
            lambda m: m.add(m.ones(1), m.ones(1), dtype="float32"),
            lambda m: m.add(m.ones(1), m.ones(1), out=None),
            lambda m: m.add(m.ones(1), m.ones(1), where=True),
            lambda m: m.sum(m.ones(1), out=None),
            lambda m: m.sum(m.ones(1), where=True),
            lambda m: m.max(m.ones(1), initial=0),
            lambda m: m.round(m.ones(1), decimals=1),
            lambda m: m.sort(m.ones(1), kind="stable"),
            lambda m: m.take(m.ones(1), m.asarray([5]), mode="clip"),
            lambda m: m.asarray([1.0], order="C"),
            lambda m: m.linspace(0, 1, 2, axis=0),
            lambda m: m.linalg.pinv(m.ones((1, 1)), hermitian=True),
        ],
        TypeError,
    )


def test_keywords_of_the_standard_are_not_positions() -> None:
    _assert_refused(
        [
            lambda m: m.sum(m.ones(2), 0),
            lambda m: m.sort(m.ones(2), 0),
            lambda m: m.concat([m.ones(2)], 0),
            lambda m: m.zeros((2,), "float32"),
            lambda m: m.linalg.svd(m.ones((1, 1)), False)[1],
            lambda m: m.fft.fft(m.ones(2), 2),
        ],
        TypeError,
    )


def test_keywords_of_the_standard_that_numpy_lacks() -> None:
    # NumPy 2.5 has the first two.
    uses: list[Use] = [
        lambda m: m.sort(m.asarray([1, 2]), descending=True),
        lambda m: m.argsort(m.asarray([1, 2]), descending=True),
        lambda m: m.fft.fftfreq(2, dtype="float32"),
    ]
    is_2_5 = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
    for number, use in enumerate(uses):
        if is_2_5 and number < 2:
            assert use(np).tolist() == np.asarray(use(xp)).tolist()
        else:
            with pytest.raises(TypeError, match="unexpected keyword"):
                use(np)
        assert use(xp).shape == (2,)
