"""Functions of NumPy on arrays of an NVIDIA device: through CuPy, on their memory.

NumPy hands arrays of CuPy over to CuPy's function of the same name, so that a function that calls
NumPy is written once. Which functions may go there is declared below; all others, and operands that
CuPy treats otherwise than NumPy, are computed on the host. What CuPy refuses goes to the host as
well, whose error is the one that is seen.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.linalg import LinAlgError

from fklarray.dtype_rows import DTYPES, NUMPY_DTYPES, DType
from fklarray.evaluation import count
from fklarray.interchange import from_producer
from fklarray.placement import number_of, steps_of, values_of
from fklarray.recording import HOST, State, Stream, stream_of, view_state
from fklarray_runtime import (
    DeviceBuffer,
    allocate_on,
    current_stream,
    device_count,
    device_problem,
    trim_device,
    use_on,
)

__all__ = ["Operands", "cupy_problem", "is_of_cupy", "on_cupy", "state_of_cupy", "where_runs"]

# States in memory, and their shapes.
Operands: TypeAlias = Sequence[tuple[State, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class _Row:
    """What of a function CuPy computes as NumPy does.

    Attributes
    ----------
    kinds : str
        Kinds of the operands' data types, as NumPy has them.
    alike : bool
        Only operands of one data type: CuPy's kernels compare as C++ does.
    numbers : bool
        Only operands without NaN, which CuPy's sorts may put first.
    finite : bool
        Only finite operands, for which LAPACK and cuSOLVER fail in the same cases.
    dimensions : int
        Most dimensions: stacks of matrices go through other routines, which test less.
    moves : bool
        The result has elements of the first operand, which may be of any data type.
    """

    kinds: str
    alike: bool = False
    numbers: bool = False
    finite: bool = False
    dimensions: int = 64
    moves: bool = False

    def takes(self, operands: Operands) -> bool:
        """Return whether data types and shapes are those that CuPy treats as NumPy does."""
        rows = [state[0].dtype for state, _ in operands]
        # Without elements, the libraries differ in what is an error.
        if any(0 in shape or len(shape) > self.dimensions for _, shape in operands):
            return False
        if self.alike and len(set(rows)) > 1:
            return False
        computed = rows[1:] if self.moves else rows
        return all(row.is_standard and NUMPY_DTYPES[row].kind in self.kinds for row in computed)

    def holds(self, values: Sequence[Any]) -> bool:
        """Return whether the elements are such, too; waits for the device if they matter."""
        floats = [one for one in values if one.dtype.kind in "fc"]
        if self.finite:
            return all(bool(np.isfinite(one).all()) for one in floats)
        return not (self.numbers and any(bool(np.isnan(one).any()) for one in floats))


_ANY, _NUMBERS, _REAL, _FLOATS = "biufc", "iufc", "biuf", "fc"
_LAPACK = _Row(_FLOATS, alike=True, finite=True)
_OF_ONE_MATRIX = _Row(_FLOATS, finite=True, dimensions=2)
_GATHER = _Row("iu", moves=True)

# Not here, and so on the host: complex sorts and extremes (order of NaN), eigenvalues of general
# matrices (not in all versions), ranks (one matrix only), weighted counts (sums in any order).
# Products, transforms and decompositions have the accuracy of NVIDIA's libraries, not NumPy's bits,
# and vectors of decompositions may have other signs.
_ROWS: dict[str, _Row] = {
    "argsort": _Row(_REAL),
    "bincount": _Row("iu"),
    "cholesky": _LAPACK,
    "det": _LAPACK,
    "diag": _Row("", moves=True),
    "eigh": _OF_ONE_MATRIX,
    "eigvalsh": _OF_ONE_MATRIX,
    **dict.fromkeys(("fft", "fftn", "hfft", "ifft", "ifftn", "ihfft", "irfft"), _Row(_ANY)),
    "indexing": _GATHER,
    "inv": _LAPACK,
    "isin": _Row(_REAL, alike=True, numbers=True),
    "matmul": _Row(_NUMBERS, alike=True),
    "matrix_power": _LAPACK,
    "nonzero": _Row(_ANY),
    "pinv": _OF_ONE_MATRIX,
    "qr": _LAPACK,
    "rfft": _Row(_REAL),
    "rfftn": _Row(_REAL),
    "searchsorted": _Row(_REAL, alike=True),
    "slogdet": _LAPACK,
    "solve": _LAPACK,
    "sort": _Row(_REAL),
    "svd": _OF_ONE_MATRIX,
    "svdvals": _OF_ONE_MATRIX,
    "take": _GATHER,
    "take_along_axis": _GATHER,
    "tensordot": _Row(_NUMBERS, alike=True),
    **dict.fromkeys(
        ("unique_all", "unique_counts", "unique_inverse", "unique_values"),
        _Row(_REAL, numbers=True),
    ),
}

# What a function may say of its arguments; the host decides whether it is true.
_OF_ARGUMENTS = (
    ArithmeticError,
    IndexError,
    LinAlgError,
    NotImplementedError,
    TypeError,
    ValueError,
)
# Functions that failed for another reason in this process, and what CuPy said.
_failed: dict[str, str] = {}


@cache
def cupy_problem() -> str:
    """Return why CuPy is not used; nothing if it is. It is imported when this is first asked."""
    if not device_count():
        return device_problem()
    try:
        cupy: Any = import_module("cupy")
        import_module("cupyx")
        memory = allocate_on(0, 8, current_stream(0))
        # Another driver than ours, such as one of tests, has other memory.
        if cupy.cuda.runtime.pointerGetAttributes(memory.address).device != memory.device:
            return "it does not know this process' memory of the device"
    except ModuleNotFoundError as error:
        return f"no module {error.name}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def where_runs(called: str, place: str) -> str:
    """Say what runs a function of arrays in memory of a device."""
    if place == HOST:
        return "NumPy"
    if called not in _ROWS:
        return "NumPy, on copies of the host: CuPy does not do as NumPy does"
    why = cupy_problem() or _failed.get(called)
    return f"NumPy, on copies of the host, without CuPy: {why}" if why else "CuPy"


def is_of_cupy(values: object) -> bool:
    """Return whether a function of NumPy was given an array of CuPy's."""
    return not isinstance(values, np.ndarray)


def on_cupy(
    called: str,
    function: Callable[..., Any],
    operands: Operands,
    keywords: Mapping[str, Any],
    place: str,
) -> Any:
    """Run a function of NumPy on the device of its operands.

    Parameters
    ----------
    called : str
        Its name in this library.
    function : callable
        Takes the operands, which it must not write to.
    operands : Operands
        At least one.
    keywords : mapping
        Passed on as they are.
    place : str
        The device that they are on.

    Returns
    -------
    Any
        What the function returned, queued on the current stream; None if it is for the host.
    """
    row = _ROWS.get(called)
    if row is None or place == HOST or not row.takes(operands):
        return None
    if called in _failed or cupy_problem():
        return None
    cupy: Any = sys.modules["cupy"]
    with cupy.cuda.Device(number_of(place)), sys.modules["cupyx"].errstate(linalg="raise"):
        values = [
            _viewed(cupy, stream_of(state), state[0].dtype, shape) for state, shape in operands
        ]
        try:
            if not row.holds(values):
                return None
            result = _with_memory(lambda: function(*values, **keywords), number_of(place))
        except (MemoryError, *_OF_ARGUMENTS):
            return None
        except Exception as error:
            _failed[called] = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"CuPy cannot run {called} ({_failed[called]}); NumPy does, on copies on the host",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
    count("cupy_evaluations")
    return result


def _with_memory(run: Callable[[], Any], device: int) -> Any:
    """Run; once more with what is kept for reuse given back, if memory is short."""
    try:
        return run()
    except MemoryError:
        trim_device(device)
        return run()


def _viewed(cupy: Any, stream: Stream, dtype: DType, shape: tuple[int, ...]) -> Any:
    """Return an array of CuPy's over a stream's memory, kept alive, or of a copy of the host's."""
    memory = stream.buffer
    if not isinstance(memory, DeviceBuffer):  # a number beside arrays
        return cupy.asarray(values_of(stream, dtype, shape).view(_in_cupy(dtype)))
    use_on(memory, current_stream(memory.device))
    whole = cupy.cuda.UnownedMemory(memory.address, memory.nbytes, memory, memory.device)
    first = cupy.cuda.MemoryPointer(whole, stream.value - memory.address)
    return cupy.ndarray(shape, _in_cupy(dtype), first, steps_of(stream, dtype, shape))


def _in_cupy(dtype: DType) -> np.dtype[Any]:
    """Return a data type that CuPy knows, of the same bits."""
    return NUMPY_DTYPES[dtype if NUMPY_DTYPES[dtype].kind != "V" else DTYPES["uint16"]]


def state_of_cupy(values: Any, dtype: DType) -> State:
    """Take an array of CuPy's over, on the current stream; without a copy if it is in C order."""
    with values.device:
        usual = values.astype(_in_cupy(dtype), order="C", copy=False)
        state, _ = from_producer(usual, copy=None)
    return state if state[0].dtype is dtype else view_state(stream_of(state), dtype)
