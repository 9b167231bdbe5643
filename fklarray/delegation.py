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
from fklarray.on_cupy import Operands, is_of_cupy, on_cupy, state_of_cupy
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
    operands = [(array._in_memory(), array.shape) for array in arrays]
    return _wrapped(_run(function, called, operands, keywords, place), place)


def _run(
    function: Callable[..., Any],
    called: str,
    operands: Operands,
    keywords: dict[str, Any],
    place: str,
) -> Any:
    """Run a function on CuPy's arrays, or else on NumPy's."""
    there = on_cupy(called, function, operands, keywords, place)
    if there is not None:
        return there
    with np.errstate(all="ignore"):
        result = function(*[_values(*operand) for operand in operands], **keywords)
    count("reference_evaluations")
    return result


def _wrapped(result: Any, place: str) -> Any:
    if isinstance(result, tuple):
        found = cast("Any", result)
        parts = tuple([_wrapped(part, place) for part in found])
        return found._make(parts) if hasattr(found, "_make") else parts
    values = _as_array(result)
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
        values = _as_array(_run(self.function, self.called, operands, {}, self.place))
        assert values.shape == self.shape, (self.called, self.function, values.shape, self.shape)
        return _state_of_result(values, self.dtype, self.place)


def _values(state: State, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    values = values_of(stream_of(state), state[0].dtype, shape)
    values.flags.writeable = False
    return values


def _as_array(result: Any) -> Any:
    """Return CuPy's array, or NumPy's array or number as an array."""
    return result if hasattr(result, "__cuda_array_interface__") else np.asarray(result)


def _state_of_result(values: Any, dtype: DType, place: str) -> State:
    """Return the state of an array that a function has made; a large one is taken over."""
    if is_of_cupy(values):
        return state_of_cupy(values, dtype)
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
