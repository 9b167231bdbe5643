"""docs/numpy-differences.md: every row names a test of NumPy's way and ours, here or beside."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import fklarray as xp
import test_numpy_argument_differences as arguments
from differences import INF, NAN, Difference, assert_difference, bools

pytestmark = pytest.mark.usefixtures("device")

BFLOAT16 = ml_dtypes.bfloat16
IS_2_5 = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
# Where NumPy 2.5 does as we do.
GONE_IN_2_5 = {
    "eigenvalues-of-real-matrices",
    "nextafter-of-float16-zeros",
    "where-with-a-number-out-of-range",
}
DOCUMENT = Path(__file__).parents[1] / "docs" / "numpy-differences.md"


def _complex(m: Any, re_part: float, im_part: float) -> Any:
    return m.asarray([complex(re_part, im_part)])


ROWS: dict[str, Difference] = {
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
    "complex-reciprocal-of-one": (
        lambda m: m.reciprocal(m.asarray([1 + 0j])),
        np.array([complex(1, -0.0)]), np.array([1 + 0j]),
    ),
    "nextafter-of-float16-zeros": (
        lambda m: m.nextafter(m.zeros(1, dtype="float16"), m.asarray([-0.0], dtype="float16")),
        np.zeros(1, "float16"), -np.zeros(1, "float16"),
    ),
    "maximum-of-float16-zeros": (
        lambda m: m.maximum(m.zeros(1, dtype="float16"), m.asarray([-0.0], dtype="float16")),
        np.zeros(1, "float16"), -np.zeros(1, "float16"),
    ),
    "minimum-of-float16-zeros": (
        lambda m: m.minimum(m.asarray([-0.0], dtype="float16"), m.zeros(1, dtype="float16")),
        -np.zeros(1, "float16"), np.zeros(1, "float16"),
    ),
    "clip-of-zeros": (
        lambda m: m.clip(m.asarray([-0.0]), -0.0, 0.0), np.array([-0.0]), np.array([0.0]),
    ),
    "sign-of-bfloat16-zero": (
        lambda m: m.sign(m.asarray([-0.0], dtype=BFLOAT16)),
        -np.zeros(1, BFLOAT16), np.zeros(1, BFLOAT16),
    ),
    "fft-of-float16": (
        lambda m: m.fft.fft(m.ones(3, dtype="float16"), norm="ortho")[0].real > 1.7319,
        np.False_, np.asarray(True),
    ),
    "isin-of-int64-in-uint64": (
        lambda m: m.isin(m.asarray([2**63 - 1] * 9), m.asarray([2**63, 5] * 9, dtype="uint64"))[0],
        np.True_, np.asarray(False),
    ),
    "searchsorted-of-uint64-in-int64": (
        lambda m: m.searchsorted(m.asarray([2**63 - 1]), m.asarray([2**63], dtype="uint64")),
        np.array([0]), np.array([1]),
    ),
    "logical-functions-of-large-integers": (
        lambda m: m.logical_and(m.asarray([1.0]), 2**70), OverflowError, np.array([True]),
    ),
    "pinv-of-nearly-singular-matrices": (
        lambda m: m.linalg.pinv(m.asarray([[1.0, 0.0], [0.0, 8e-16]]))[1, 1] > 0,
        np.False_, np.asarray(True),
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
        lambda m: bools(m) ** 2, np.array([1, 0], "int8"), np.array([1, 0], "int64"),
    ),
    "round-of-bool": (
        lambda m: m.round(bools(m)), np.array([1, 0], "float16"), np.array([True, False]),
    ),
    "clip-of-bool": (
        lambda m: m.clip(bools(m), False, True), np.array([True, False]), TypeError,
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
    "bfloat16-with-numbers": (
        lambda m: m.asarray([1.0], dtype=BFLOAT16) * 1.5,
        np.array([1.5], "float32"), np.array([1.5], BFLOAT16),
    ),
    "eigenvalues-of-real-matrices": (
        lambda m: m.linalg.eig(m.eye(2)).eigenvalues, np.array([1.0, 1.0]), np.array([1 + 0j, 1]),
    ),
    "mean-in-integers": (
        lambda m: m.mean(m.asarray([1, 2]), dtype="int32"), np.asarray(1, "int32"), TypeError,
    ),
    "variance-in-integers": (
        lambda m: m.var(m.asarray([1.0, 4.0]), dtype="int32"), np.asarray(2, "int32"), TypeError,
    ),
    "deviation-in-complex-numbers": (
        lambda m: m.std(m.asarray([1.0, 3.0]), dtype="complex128"),
        np.asarray(1 + 0j), np.asarray(1.0),
    ),
    "sum-of-complex-numbers-in-real-ones": (
        lambda m: m.sum(m.asarray([1 + 1j]), dtype="float64"), np.asarray(1.0), TypeError,
    ),
    "full-of-complex-numbers-in-real-ones": (
        lambda m: m.full((1,), 1j, dtype="float64"), np.array([0.0]), TypeError,
    ),
    "padding-of-complex-numbers-in-real-ones": (
        lambda m: m.pad(m.asarray([1.0]), (0, 1), constant_values=2j), np.array([1.0, 0.0]),
        TypeError,
    ),
    "full-of-NaN-in-integers": (
        lambda m: m.full((1,), NAN, dtype="int64").dtype, np.dtype("int64"), ValueError,
    ),
    "where-with-a-number-out-of-range": (
        lambda m: m.where(bools(m), m.asarray([1], dtype="int8"), 300),
        np.array([1, 44], "int8"), OverflowError,
    ),
    "arange-beyond-int64": (
        lambda m: m.arange(2**63, 2**63 + 2), np.array([2.0**63] * 2), OverflowError,
    ),
    "arange-of-complex-numbers": (
        lambda m: m.arange(2j), np.zeros(0, complex), TypeError,
    ),
    "linspace-of-float32": (
        lambda m: m.linspace(np.float32(0), np.float32(1), 2),
        np.array([0.0, 1.0], "float32"), np.array([0.0, 1.0]),
    ),
    # Objects
    "limits-are-python-numbers": (
        lambda m: type(m.finfo("float32").eps), np.float32, float,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["sync", "off"])
@pytest.mark.parametrize("row", ROWS)
def test_row(row: str, mode: str) -> None:
    use, numpys, ours = ROWS[row]
    assert_difference((use, ours if IS_2_5 and row in GONE_IN_2_5 else numpys, ours), mode)


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


def test_views_of_shared_memory_are_read_only(host: str) -> None:
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
        half = {"dtype": xp.float16}
        assert np.asarray(xp.asarray([1e5], **half)).tolist() == [INF]
        assert np.asarray(xp.arange(0.0, 1e300, 5e299, dtype=xp.float32)).tolist() == [0, INF]
        assert np.asarray(xp.linspace(0, 1e5, 2, **half)).tolist() == [0, INF]


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
    with pytest.raises(TypeError):
        np.sum(np.ones((2, 3)), axis=np.asarray([1]))
    assert xp.sum(xp.ones((2, 3)), axis=xp.asarray([1])).shape == (2,)


def test_special_functions_keep_the_data_type() -> None:
    half = np.asarray([0.5], np.float16)
    assert scipy.special.entr(half).dtype == np.float32
    assert scipy.special.entr(np.asarray([1], np.int8)).dtype == np.float32
    assert xp.special.entr(xp.asarray(half)).dtype == np.float16
    assert xp.special.entr(xp.asarray([1], dtype=xp.int8)).dtype == np.float64


def test_unique_values_are_in_order() -> None:
    values = np.arange(1000)[::-1]
    assert np.unique_values(values).tolist() != sorted(values.tolist())
    assert xp.unique_values(xp.asarray(values)).tolist() == sorted(values.tolist())


def test_sums_do_not_depend_on_the_strides() -> None:
    values = np.random.default_rng(1).random((300, 200), dtype=np.float32)
    columns = np.asfortranarray(values)
    assert np.sum(values, axis=0).tolist() != np.sum(columns, axis=0).tolist()
    ours = [xp.sum(xp.asarray(one), axis=0).tolist() for one in (values, columns)]
    assert ours[0] == ours[1]


def test_inverse_transforms_of_nothing_are_zero() -> None:
    # NumPy reads what happens to be in memory.
    assert np.fft.irfft(np.zeros(0), n=3).shape == (3,)
    assert xp.fft.irfft(xp.zeros(0), n=3).tolist() == [0, 0, 0]


def test_arrays_beyond_memory_fail_when_they_are_computed() -> None:
    for make in (
        lambda m: m.zeros(2**62),
        lambda m: m.tile(m.ones(2), (2**62,)),
        lambda m: m.tile(m.ones(2), (2**64,)),
    ):
        with pytest.raises((ValueError, OverflowError)):
            make(np)
        array = make(xp)
        with pytest.raises(MemoryError, match="allocate"):
            np.asarray(array)


# -------------------------------------------------------------------------------- the document


def _documented() -> list[str]:
    rows = re.findall(r"^\| (?!---|What).* \| `([\w-]+)` \|$", DOCUMENT.read_text("utf-8"), re.M)
    assert rows
    return rows


def test_the_document_and_the_tests_list_the_same() -> None:
    names = {*globals(), *vars(arguments)}
    tests = {name for name in names if name.startswith("test_")}
    others = {"test_row", "test_the_document_and_the_tests_list_the_same", arguments.__name__}
    documented = _documented()
    assert len(documented) == len(set(documented))
    assert not set(ROWS) & set(arguments.ROWS)
    assert set(documented) == set(ROWS) | set(arguments.ROWS) | (tests - others)
