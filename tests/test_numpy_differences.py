"""docs/numpy-differences.md: every row names a test here, which asserts NumPy's way and ours."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import fklarray as xp

DOCUMENT = Path(__file__).parents[1] / "docs" / "numpy-differences.md"
INF, NAN = np.inf, np.nan


def _complex(m: Any, re_part: float, im_part: float) -> Any:
    return m.asarray([complex(re_part, im_part)])


def _bools(m: Any) -> Any:
    return m.asarray([True, False])


def _assigned(m: Any, value: Any) -> Any:
    x = m.asarray([0.0, 0.0])
    x[0] = value
    return x


# Name of a row: what is called in each namespace, NumPy's result or exception, and ours. Results
# are compared with their data types, NaN and the signs of zeros included.
Outcome = Any
ROWS: dict[str, tuple[Callable[[Any], Any], Outcome, Outcome]] = {
    # The standard's values
    "floor_divide-of-infinity": (
        lambda m: m.asarray([INF, -INF]) // 2.0, np.array([NAN, NAN]), np.array([INF, -INF]),
    ),
    "floor_divide-by-infinity": (
        lambda m: m.asarray([1.0, -1.0]) // -INF, np.array([-1.0, 0.0]), np.array([-0.0, 0.0]),
    ),
    "complex-expm1-of-infinity": (
        lambda m: m.expm1(_complex(m, INF, 0)),
        np.array([complex(INF, NAN)]), np.array([complex(INF, 0)]),
    ),
    "complex-expm1-of-zero": (
        lambda m: m.expm1(_complex(m, -0.0, 0)),
        np.array([complex(-0.0, 0)]), np.array([0j]),
    ),
    "complex-log1p-near-zero": (
        lambda m: abs(m.log1p(_complex(m, 1e-10, 1e-10)).real / 1e-10 - 1) < 1e-9,
        np.array([False]), np.array([True]),
    ),
    "complex-tanh-of-infinity": (
        lambda m: m.tanh(_complex(m, INF, 2)),
        np.array([complex(1, -0.0)]), np.array([complex(1, 0)]),
    ),
    "complex-tan-of-infinity": (
        lambda m: m.tan(_complex(m, 2, INF)),
        np.array([complex(-0.0, 1)]), np.array([1j]),
    ),
    "complex-sign-of-nan": (
        lambda m: m.sign(_complex(m, INF, NAN)),
        np.array([1 + 0j]), np.array([complex(NAN, NAN)]),
    ),
    "complex-reciprocal-of-zero": (
        lambda m: m.reciprocal(m.asarray([0j])),
        np.array([complex(NAN, NAN)]), np.array([complex(INF, NAN)]),
    ),
    "nextafter-of-float16-zeros": (
        lambda m: m.nextafter(m.zeros(1, dtype="float16"), m.asarray([-0.0], dtype="float16")),
        np.zeros(1, "float16"), -np.zeros(1, "float16"),
    ),
    # Data types
    "integers-in-floating-point-functions": (
        lambda m: m.sqrt(m.asarray([4], dtype="int8")), np.array([2.0], "float16"), np.array([2.0]),
    ),
    "reciprocal-of-integers": (
        lambda m: m.reciprocal(m.asarray([2])), np.array([0]), np.array([0.5]),
    ),
    "negative-integer-powers": (
        lambda m: m.pow(m.asarray([2, -1, 0]), -1), ValueError, np.array([0, -1, 0]),
    ),
    "square-of-bool": (
        lambda m: _bools(m) ** 2, np.array([1, 0], "int8"), np.array([1, 0], "int64"),
    ),
    "round-of-bool": (
        lambda m: m.round(_bools(m)), np.array([1, 0], "float16"), np.array([True, False]),
    ),
    "clip-of-bool": (
        lambda m: m.clip(_bools(m), False, True), np.array([True, False]), TypeError,
    ),
    "clip-keeps-the-data-type": (
        lambda m: m.clip(m.asarray([1, 5]), 1.5, 3.5), np.array([1.5, 3.5]), TypeError,
    ),
    "clip-bounds-out-of-range": (
        lambda m: m.clip(m.asarray([1], dtype="int8"), 0, 1000), np.array([1], "int8"),
        OverflowError,
    ),
    "imag-of-real-numbers": (
        lambda m: m.imag(m.asarray([1.5])), np.array([0.0]), TypeError,
    ),
    "order-of-complex-numbers": (
        lambda m: m.maximum(m.asarray([1j]), m.asarray([2.0])), np.array([2 + 0j]), TypeError,
    ),
    "comparison-of-complex-numbers": (
        lambda m: m.asarray([1j]) < m.asarray([2j]), np.array([True]), TypeError,
    ),
    "integers-beyond-int64": (
        lambda m: m.asarray(2**63), np.asarray(2**63, "uint64"), OverflowError,
    ),
    "objects-and-text": (
        lambda m: m.asarray(["a"]), np.array(["a"]), TypeError,
    ),
    "longdouble": (
        lambda m: m.asarray(np.longdouble(1)), np.asarray(np.longdouble(1)), TypeError,
    ),
    "no-data-type": (
        lambda m: m.astype(m.asarray([1]), None), np.array([1.0]), TypeError,
    ),
    # Arguments
    "lists-as-operands": (
        lambda m: m.add([1], [2]), np.array([3]), TypeError,
    ),
    "operators-with-lists": (
        lambda m: m.asarray([1, 2]) == [1, 2], np.array([True, True]), TypeError,
    ),
    "comparison-with-other-objects": (
        lambda m: m.asarray([1, 2]) == "a", np.array([False, False]), False,
    ),
    "numbers-alone": (
        lambda m: m.sin(0.0), np.float64(0.0), TypeError,
    ),
    "keywords-of-ufuncs": (
        lambda m: m.add(m.asarray([1]), m.asarray([2]), dtype="float64"), np.array([3.0]),
        TypeError,
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
    "sort-without-axis": (
        lambda m: m.sort(m.asarray([[3, 1], [2, 0]]), axis=None), np.arange(4), TypeError,
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
    # Objects
    "limits-are-python-numbers": (
        lambda m: type(m.finfo("float32").eps), np.float32, float,
    ),
}  # fmt: skip


def _assert_outcome(use: Callable[[Any], Any], m: Any, wanted: Outcome) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        if isinstance(wanted, type) and issubclass(wanted, Exception):
            with pytest.raises(wanted):
                use(m)
            return
        got = use(m)
    if not isinstance(wanted, (np.ndarray, np.generic)):
        assert got is wanted
        return
    values = np.asarray(got)
    assert (values.dtype, values.tolist().__repr__()) == (wanted.dtype, repr(wanted.tolist()))


@pytest.mark.parametrize("mode", ["sync", "off"])
@pytest.mark.parametrize("row", ROWS)
def test_row(row: str, mode: str) -> None:
    use, numpys, ours = ROWS[row]
    _assert_outcome(use, np, numpys)
    with xp.config.override(compile=mode):
        _assert_outcome(use, xp, ours)


# ------------------------------------------------------------ what takes more than one expression


def test_slices_are_copies() -> None:
    theirs, ours = np.zeros(3), xp.zeros(3)
    for x in (theirs, ours):
        x[1:][0] = 5
        x.reshape(3)[2] = 7
    assert theirs.tolist() == [0, 5, 7]
    assert ours.tolist() == [0, 0, 0]


def test_elements_are_arrays() -> None:
    assert type(np.ones(2)[0]) is np.float64
    assert type(np.sum(np.ones(2))) is np.float64
    for element in (xp.ones(2)[0], xp.sum(xp.ones(2))):
        assert type(element) is xp.Array
        assert element.shape == ()


def test_asarray_copies_arrays_that_can_be_written_to() -> None:
    memory = np.zeros(2)
    theirs, ours = np.asarray(memory), xp.asarray(memory)
    memory[0] = 1
    assert theirs.tolist() == [1, 0]
    assert ours.tolist() == [0, 0]


def test_views_of_shared_memory_are_read_only() -> None:
    theirs, ours = np.zeros(2), xp.zeros(2) + 1
    assert np.asarray(ours).flags.writeable
    recorded = [theirs[:], ours * 2]
    assert np.asarray(theirs).flags.writeable
    assert not np.asarray(ours).flags.writeable
    assert np.array(ours).flags.writeable
    assert np.asarray(recorded[1]).tolist() == [2, 2]


def test_nothing_warns() -> None:
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.divide(np.ones(1), np.zeros(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.asarray(xp.divide(xp.ones(1), xp.zeros(1))).tolist() == [INF]
        assert np.isnan(np.asarray(xp.log(xp.asarray([-1.0])))).all()
        assert np.asarray(xp.asarray([1]) // 0).tolist() == [0]


def test_complex_numbers_are_not_cast_to_real_ones() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        assert np.astype(np.asarray([1 + 2j]), np.float64).tolist() == [1.0]
    with pytest.raises(TypeError, match="complex128 to float64"):
        xp.astype(xp.asarray([1 + 2j]), xp.float64)


def test_arrays_of_one_element_convert_to_numbers() -> None:
    """As in NumPy before 2.4, which warned."""
    with pytest.raises((TypeError, DeprecationWarning)):
        float(np.asarray([[1.5]]))
    assert float(xp.asarray([[1.5]])) == 1.5
    with pytest.raises(TypeError):
        range(np.asarray([3]))  # type: ignore[call-overload]
    assert range(xp.asarray([3])) == range(3)


def test_special_functions_keep_the_data_type() -> None:
    half = np.asarray([0.5], np.float16)
    assert scipy.special.entr(half).dtype == np.float32
    assert scipy.special.entr(np.asarray([1], np.int8)).dtype == np.float32
    assert xp.special.entr(xp.asarray(half)).dtype == np.float16
    assert xp.special.entr(xp.asarray([1], dtype=xp.int8)).dtype == np.float64


# -------------------------------------------------------------------------------- the document


def _documented() -> list[str]:
    rows = re.findall(r"^\| (?!---|What).* \| `([\w-]+)` \|$", DOCUMENT.read_text("utf-8"), re.M)
    assert rows
    return rows


def test_the_document_and_the_tests_list_the_same() -> None:
    tests = {name for name in globals() if name.startswith("test_")}
    about_the_document = {"test_row", "test_the_document_and_the_tests_list_the_same"}
    documented = _documented()
    assert len(documented) == len(set(documented))
    assert set(documented) == set(ROWS) | (tests - about_the_document)
