"""Running functions of NumPy on arrays, without copies where possible: now, or when needed.

Arrays of a device are handed to CuPy (`on_cupy`) or copied to the host and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from fklarray.array import Array
from fklarray.dtype_rows import DType, dtype_row
from fklarray.evaluation import count, evaluate
from fklarray.interchange import state_of_numpy
from fklarray.on_cupy import on_cupy, state_of_cupy
from fklarray.placement import placed, values_of
from fklarray.recording import State, is_stream, stream_of
from fklarray_codegen.graph import HOST, common_place

__all__ = ["Delegated", "on_numpy", "ordered"]

# A smaller result is copied sooner than it is taken over.
_WORTH_SHARING = 1 << 16


def on_numpy(
    function: Callable[..., Any], *arrays: Array, called: str = "", **keywords: Any
) -> Any:
    """Run a function of NumPy on arrays.

    Parameters
    ----------
    function : callable
        Takes NumPy arrays, read-only ones, or CuPy's if `on_cupy` has a row for it.
    *arrays : Array
        Its arguments, computed now.
    called : str
        The row's name.
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
    place = common_place([array._state[0] for array in arrays]) or HOST
    if place != HOST:
        operands = [(_in_memory(array), array.shape) for array in arrays]
        there = on_cupy(called, function, operands, keywords)
        if there is not None:
            return _wrapped(there, place)
    values = [_read_only(array) for array in arrays]
    with np.errstate(all="ignore"):
        result = function(*values, **keywords)
    count("reference_evaluations")
    return _wrapped(result, place)


def _in_memory(array: Array) -> State:
    # A strided view of memory is computed already.
    state = array._state
    return state if is_stream(state) else array._materialize()


def _read_only(array: Array) -> np.ndarray[Any, Any]:
    values = array._numpy()
    values.flags.writeable = False
    return values


def _wrapped(result: Any, place: str) -> Any:
    if isinstance(result, tuple):
        found = cast("Any", result)
        parts = tuple([_wrapped(part, place) for part in found])
        return found._make(parts) if hasattr(found, "_make") else parts
    if hasattr(result, "__cuda_array_interface__"):
        return Array(result.shape, state_of_cupy(result, dtype_row(result.dtype)))
    values = np.asarray(result)
    return Array(values.shape, _state_of_result(values, dtype_row(values.dtype), place))


class Delegated:
    """Computes a function of NumPy on states, whose result's shape and data type are known.

    Parameters
    ----------
    function, called
        As in `on_numpy`.
    dtype, shape
        Of the result.
    shapes : sequence of tuple of int
        Those of the operands.
    place : str
        Their device.
    """

    __slots__ = ("called", "dtype", "function", "place", "shape", "shapes")

    def __init__(
        self,
        function: Callable[..., Any],
        called: str,
        dtype: DType,
        shape: tuple[int, ...],
        shapes: Sequence[tuple[int, ...]],
        place: str,
    ) -> None:
        self.function = function
        self.called = called
        self.dtype = dtype
        self.shape = shape
        self.shapes = shapes
        self.place = place

    def __call__(self, *states: State) -> State:
        """Return the result in C order."""
        operands = [
            (state if is_stream(state) else evaluate(*state, shape)[0], shape)
            for state, shape in zip(states, self.shapes, strict=True)
        ]
        there = on_cupy(self.called, self.function, operands, {})
        if there is not None:
            assert there.shape == self.shape, (self.called, there.shape, self.shape)
            return state_of_cupy(there, self.dtype)
        with np.errstate(all="ignore"):
            values = self.function(*[_values(*operand) for operand in operands])
        count("reference_evaluations")
        result = np.asarray(values)
        assert result.shape == self.shape, (self.function, result.shape, self.shape)
        return _state_of_result(result, self.dtype, self.place)


def _values(state: State, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    values = values_of(stream_of(state), state[0].dtype, shape)
    values.flags.writeable = False
    return values


def _state_of_result(values: np.ndarray[Any, Any], dtype: DType, place: str) -> State:
    """Return the state of an array that a function of NumPy has made; a large one is taken over."""
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
