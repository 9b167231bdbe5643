"""Running functions of other libraries on arrays: now, on NumPy, without copies where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from fklarray.array import Array
from fklarray.dtype_rows import DType, dtype_row
from fklarray.evaluation import count
from fklarray.interchange import state_of_numpy
from fklarray.placement import placed
from fklarray.recording import State
from fklarray_codegen.graph import HOST, common_place

__all__ = ["on_numpy", "ordered", "state_of_result"]

# A smaller result is copied sooner than it is taken over.
_WORTH_SHARING = 1 << 16


def on_numpy(function: Callable[..., Any], *arrays: Array, **keywords: Any) -> Any:
    """Run a function of NumPy on arrays.

    Parameters
    ----------
    function : callable
        Takes NumPy arrays, read-only ones.
    *arrays : Array
        Its arguments, computed now.
    **keywords
        Passed on as they are.

    Returns
    -------
    Array, or a (named) tuple of them
        As the function's result is. A large result's memory is taken over.

    Notes
    -----
    Exceptions of the function pass through; its floating-point warnings are silenced, as kernels
    have none.
    """
    values = [_read_only(array) for array in arrays]
    place = common_place([array._state[0] for array in arrays]) or HOST
    with np.errstate(all="ignore"):
        result = function(*values, **keywords)
    count("reference_evaluations")
    return _wrapped(result, place)


def _read_only(array: Array) -> np.ndarray[Any, Any]:
    values = array._numpy()
    values.flags.writeable = False
    return values


def _wrapped(result: Any, place: str) -> Any:
    if isinstance(result, tuple):
        found = cast("Any", result)
        parts = tuple([_wrapped(part, place) for part in found])
        return found._make(parts) if hasattr(found, "_make") else parts
    values = np.asarray(result)
    return Array(values.shape, state_of_result(values, dtype_row(values.dtype), place))


def state_of_result(values: np.ndarray[Any, Any], dtype: DType, place: str) -> State:
    """Return the state of an array that a function of NumPy has made; a large one is taken over.

    Parameters
    ----------
    values : numpy.ndarray
        Nobody else keeps it.
    dtype : DType
        Data type to convert to.
    place : str
        Device that it is to be on.
    """
    if (
        place == HOST
        and values.nbytes >= _WORTH_SHARING
        and values.base is None
        and values.flags.c_contiguous
        and dtype_row(values.dtype) is dtype
    ):
        return state_of_numpy(values, copy=False)
    return placed(values, dtype, values.shape, place)


def ordered(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return values whose order NumPy knows: that of bfloat16 leaves NaN anywhere."""
    return values.astype(np.float32) if values.dtype.kind == "V" else values
