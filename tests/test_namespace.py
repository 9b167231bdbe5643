"""Nothing public is without a parity test, and nothing of the standard is missing."""

from __future__ import annotations

import ast
import os
import types
from pathlib import Path

import numpy as np

import fklarray as xp
from parity.table import ROWS

MODULES = {
    "": xp,
    "fft.": xp.fft,
    "linalg.": xp.linalg,
    "nn.": xp.nn,
    "special.": xp.special,
}
# They take no array apart, or give none: each has tests of its own.
NOT_FUNCTIONS_OF_ARRAYS = {
    "Array",
    "Device",
    "Explanation",
    "clear_pool",
    "counters",
    "default_device",
    "explain",
    "linalg.LinAlgError",
    "materialize",
}
# The same object in a second place.
ALIASES = {"nn.logsumexp": "logsumexp"}

# The functions of the standard and its extensions, and what its array object has.
STANDARD = """
    abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2
    atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    broadcast_arrays broadcast_shapes broadcast_to can_cast ceil clip concat conj copysign cos cosh
    count_nonzero cumulative_prod cumulative_sum diff divide empty empty_like equal exp expand_dims
    expm1 eye fft.fft fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifftn fft.ifftshift
    fft.ihfft fft.irfft fft.irfftn fft.rfft fft.rfftfreq fft.rfftn finfo flip floor floor_divide
    from_dlpack full full_like greater greater_equal hypot iinfo imag isdtype isfinite isin isinf
    isnan less less_equal linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh
    linalg.eigvalsh linalg.inv linalg.matmul linalg.matrix_norm linalg.matrix_power
    linalg.matrix_rank linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr linalg.slogdet
    linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot
    linalg.vector_norm linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or
    logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply
    negative nextafter nonzero not_equal ones ones_like permute_dims positive pow prod real
    reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh
    sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile
    tril triu trunc unique_all unique_counts unique_inverse unique_values unstack var vecdot where
    zeros zeros_like
"""
ARRAY_OBJECT = """
    Array.T Array.__abs__ Array.__add__ Array.__and__ Array.__array_namespace__ Array.__bool__
    Array.__complex__ Array.__dlpack__ Array.__dlpack_device__ Array.__eq__ Array.__float__
    Array.__floordiv__ Array.__ge__ Array.__getitem__ Array.__gt__ Array.__index__ Array.__int__
    Array.__invert__ Array.__le__ Array.__lshift__ Array.__lt__ Array.__matmul__ Array.__mod__
    Array.__mul__ Array.__ne__ Array.__neg__ Array.__or__ Array.__pos__ Array.__pow__
    Array.__rshift__ Array.__setitem__ Array.__sub__ Array.__truediv__ Array.__xor__ Array.device
    Array.dtype Array.mT Array.ndim Array.shape Array.size Array.to_device
"""


def _stubs() -> Path:
    """Return the standard's own list, where the official suite is at hand."""
    named = os.environ.get("FKLARRAY_ARRAY_API_TESTS")
    suite = Path(named) if named else Path(__file__).parents[2] / "shared" / "array-api-tests"
    return suite / "array-api" / "src" / "array_api_stubs" / "_2025_12"


def _names_in_stubs(stubs: Path) -> tuple[set[str], set[str]]:
    """Return the names of functions, and of what the array object has, without importing."""
    functions: set[str] = set()
    for chapter in [*stubs.glob("*_functions.py"), stubs / "fft.py", stubs / "linalg.py"]:
        prefix = "" if chapter.stem.endswith("_functions") else f"{chapter.stem}."
        for node in ast.parse(chapter.read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                functions |= {prefix + name for name in ast.literal_eval(node.value)}
    tree = ast.parse((stubs / "array_object.py").read_text("utf-8"))
    (array,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    members = [node for node in array.body if isinstance(node, ast.FunctionDef)]
    # The class of the stubs is called otherwise, and has a constructor that the standard has not.
    return functions, {f"Array.{node.name}" for node in members if node.name != "__init__"}


def _public() -> set[str]:
    names = set()
    for prefix, module in MODULES.items():
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            is_dtype = isinstance(value, type) and issubclass(value, np.generic)
            if callable(value) and not is_dtype and not name.startswith("_"):
                assert not isinstance(value, types.ModuleType)
                names.add(prefix + name)
    return names


def test_every_function_has_a_parity_test() -> None:
    tested = {row.name for row in ROWS if not row.name.startswith("Array.")}
    for alias, name in ALIASES.items():
        module, _, attribute = alias.rpartition(".")
        assert getattr(MODULES[f"{module}."], attribute) is getattr(xp, name)
    assert _public() - NOT_FUNCTIONS_OF_ARRAYS - set(ALIASES) == tested
    assert len(ROWS) == len({row.name for row in ROWS})


def test_the_standard_is_there() -> None:
    assert not set(STANDARD.split()) - _public()
    tested = {row.name for row in ROWS}
    assert not set(ARRAY_OBJECT.split()) - tested
    assert not {
        name for name in ARRAY_OBJECT.split() if not hasattr(xp.Array, name.partition(".")[2])
    }


def test_the_lists_are_those_of_the_stubs() -> None:
    stubs = _stubs()
    # A clone elsewhere has the committed lists alone; CI has the stubs.
    assert stubs.is_dir() or "FKLARRAY_ARRAY_API_TESTS" not in os.environ
    if stubs.is_dir():
        assert _names_in_stubs(stubs) == (set(STANDARD.split()), set(ARRAY_OBJECT.split()))
