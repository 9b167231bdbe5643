"""Indexing: keys, views by integers and slices, and assignment with value semantics."""

from __future__ import annotations

import operator
import os
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from fklarray import views
from fklarray.device import Device
from fklarray.dtype_rows import DTYPES, NUMPY_DTYPES, DType
from fklarray.evaluation import count, evaluate, evaluate_into
from fklarray.interchange import is_private
from fklarray.placement import placed, values_of, view_of, write_values
from fklarray.record import Recorded, record_where
from fklarray.recording import State, constant_state, is_stream, scalar_state, stream_of
from fklarray_codegen.graph import HOST, common_place

if TYPE_CHECKING:
    from fklarray.array import Array

__all__ = ["assign", "basic_view", "select"]

_Item = int | slice | None

# Assignments of several threads to one array follow each other; none is lost.
_assigning = threading.RLock()


def _renew_lock() -> None:
    global _assigning  # noqa: PLW0603 (a forked child may inherit it locked)
    _assigning = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def _items(key: Any, shape: tuple[int, ...]) -> list[_Item] | None:
    """Normalise a key of integers, slices, None and Ellipsis; None if it has anything else.

    Raises
    ------
    IndexError
        If there are too many indices, several ellipses, or an integer is out of bounds.
    """
    keys: list[Any] = [*key] if isinstance(key, tuple) else [key]
    for position, item in enumerate(keys):
        if item is None or item is Ellipsis or isinstance(item, slice):
            continue
        integer = _integer(item)
        if integer is None:
            return None
        keys[position] = integer
    used = sum(item is not None and item is not Ellipsis for item in keys)
    ellipses = sum(item is Ellipsis for item in keys)
    if ellipses > 1:
        raise IndexError("an index can have only one ellipsis ('...')")
    if used > len(shape):
        raise IndexError(f"too many indices: {used} for an array of shape {shape}")
    fill: list[Any] = [slice(None)] * (len(shape) - used)
    at = next((i for i, item in enumerate(keys) if item is Ellipsis), len(keys))
    keys[at : at + 1] = fill
    axis = 0
    items: list[_Item] = []
    for item in keys:
        items.append(None if item is None else _bounded(item, axis, shape))
        axis += item is not None
    return items


def _integer(item: Any) -> int | None:
    """Return an integer index, or None for masks, index arrays and anything else."""
    if isinstance(item, (bool, np.bool_)):
        return None
    if isinstance(item, int):
        return item
    dtype = getattr(item, "dtype", None)
    # Other libraries' data types have no kind: their 0-d arrays are asked for an index.
    if getattr(item, "ndim", 0) != 0 or getattr(dtype, "kind", "i") not in "iu":
        return None
    try:
        return operator.index(item)
    except TypeError:
        return None


def _bounded(item: int | slice, axis: int, shape: tuple[int, ...]) -> int | slice:
    extent = shape[axis]
    if isinstance(item, slice):
        try:
            start, stop, step = item.indices(extent)
        except TypeError as error:
            raise IndexError(f"{error}: {item}") from None
        count = len(range(start, stop, step))
        return slice(start if count else 0, count, step)
    if not -extent <= item < extent:
        raise IndexError(
            f"index {item} is out of bounds for axis {axis} of an array of shape {shape}"
        )
    return item % extent


def basic_view(
    state: State, shape: tuple[int, ...], key: Any
) -> tuple[tuple[int, ...], State] | None:
    """Return shape and state of a selection by integers, slices, None and Ellipsis.

    Returns
    -------
    tuple or None
        None when the key has a mask or an array of indices.

    Raises
    ------
    IndexError
        If an index is out of bounds or there are too many.
    """
    items = _items(key, shape)
    if items is None:
        return None
    chosen = [item for item in items if item is not None]
    result = [1 if item is None else item.stop for item in items if not isinstance(item, int)]
    new_axes = [
        axis
        for axis, item in enumerate([item for item in items if not isinstance(item, int)])
        if item is None
    ]
    state = views.index(state, len(shape), chosen)
    if new_axes:
        state = views.expand(state, len(result) - len(new_axes), new_axes)
    return tuple(result), state


def _numpy_key(key: Any) -> Any:
    """Return a key in which arrays of this library are NumPy arrays."""
    if isinstance(key, tuple):
        return tuple(map(_numpy_key, key))  # pyright: ignore[reportUnknownArgumentType]
    return np.asarray(key) if hasattr(key, "__array_namespace__") else key


def assign(array: Array, key: Any, value: Any) -> None:
    """Assign to the elements that a key selects.

    A whole array and a mask with one value are recorded, and so are masks and indices of a pending
    array. Anything else writes through the selection at once, in one kernel that also computes the
    value, into memory that nothing else refers to: a copy is made first where something does.

    Raises
    ------
    IndexError
        If the key does not fit the array.
    ValueError
        If the value's shape cannot be broadcast to the selection, or it is on another device.
    TypeError
        If a complex value is assigned to a real array.
    """
    shape, dtype = array.shape, array._state[0].dtype
    source = _value_of(value, dtype, array.device)
    common_place([array._state[0], source._state[0]])
    mask = _whole_mask(key, shape, array.device)
    if mask is not None and not source.shape:
        array._state = record_where(mask, source, array)._state
        return
    target_shape = _selected_shape(key, shape)
    if target_shape is None:
        _assign_chosen(array, key, source)
        return
    state_value = _fit(source._state, source.shape, target_shape)
    if target_shape == shape and _selects_all(key, shape):
        array._state = state_value
        return
    with _assigning:
        _write_through(array, key, target_shape, state_value)


def _selected_shape(key: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    selected = basic_view(scalar_state(0, DTYPES["bool"]), shape, key)
    return None if selected is None else selected[0]


def _write_through(array: Array, key: Any, target_shape: tuple[int, ...], value: State) -> None:
    state = _own_memory(array)
    selected = basic_view(state, array.shape, key)
    assert selected is not None
    count("flushes")
    evaluate_into(*value, target_shape, stream_of(selected[1]))
    array._state = state


def _own_memory(array: Array) -> State:
    """Return the array's state, or that of a copy where somebody else sees the memory."""
    state = array._materialize()
    # It counts references: this function must not hold any but `state`.
    if not is_private(state) or _is_seen_outside(state):
        (state,) = evaluate(*state, array.shape)
    return state


def _is_seen_outside(state: State) -> bool:
    memory = stream_of(state).buffer
    return memory.shared or memory.readonly or memory.imported


def select(array: Array, key: Any) -> Array:
    """Select elements by masks or arrays of indices.

    The key's values are needed now, to know the result's shape and that indices are in bounds; an
    array that is pending stays so.

    Raises
    ------
    IndexError
        If the key does not fit the array.
    """
    from fklarray.gathers import gathered
    from fklarray.reductions import deferred_on_numpy

    if array._state[0].place not in ("", HOST):
        there = gathered(array, key)
        if there is not None:
            return there
    dtype = array._state[0].dtype
    if is_stream(array._state):
        values = array._numpy()[_numpy_key(key)]
        place = array._state[0].place
        return Recorded.array(values.shape, placed(values, dtype, values.shape, place))
    known = _frozen_key(key)
    shape = _chosen_shape(known, array.shape)
    return deferred_on_numpy(lambda values: values[known], [array], dtype, shape)


def _frozen_key(key: Any) -> Any:
    """Return a key of NumPy's that nobody else can change."""
    if isinstance(key, tuple):
        return tuple(map(_frozen_key, key))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(key, (list, np.ndarray)):
        frozen: Any = np.array(key)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        # As NumPy has it, an empty list has indices that are integers.
        is_empty = isinstance(key, list) and not frozen.size
        return frozen.astype(np.intp) if is_empty else frozen
    return _numpy_key(key)


def _chosen_shape(known: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    chosen: tuple[int, ...] = np.broadcast_to(np.False_, shape)[known].shape
    return chosen


def _assign_chosen(array: Array, key: Any, source: Array) -> None:
    """Assign to elements selected by masks or arrays of indices.

    A pending array stays so. One in memory is written now, in place where nobody else sees it.
    """
    from fklarray.reductions import deferred_on_numpy

    if is_stream(array._state):
        known = _numpy_key(key)
        try:
            _write_chosen(array, known, source._numpy())
        except (TypeError, ValueError):
            _fitting(array, known, source)  # says why, with the shapes
            raise
        return
    known = _frozen_key(key)
    fitting = _fitting(array, known, source)

    def assigned(values: np.ndarray[Any, Any], new: np.ndarray[Any, Any]) -> Any:
        result = np.array(values)
        result[known] = new
        return result

    result = deferred_on_numpy(assigned, [array, fitting], array._state[0].dtype, array.shape)
    array._state = result._state


def _fitting(array: Array, known: Any, source: Array) -> Array:
    """Return values that broadcast to a selection.

    Raises
    ------
    IndexError
        If the key does not fit the array.
    TypeError
        If the values for a mask over the whole array have more than one dimension.
    ValueError
        If the values do not fit the selection.
    """
    target = _chosen_shape(known, array.shape)
    state = _fit(source._state, source.shape, target)
    if getattr(known, "dtype", None) == np.bool and known.ndim == array.ndim and source.ndim > 1:
        raise TypeError(
            f"cannot assign values of shape {source.shape} through a mask: only vectors"
        )
    return Recorded.array(source.shape[max(0, source.ndim - len(target)) :], state)


def _write_chosen(array: Array, known: Any, values: np.ndarray[Any, Any]) -> None:
    with _assigning:
        state = _own_memory(array)
        stream, dtype = stream_of(state), state[0].dtype
        if state[0].place == HOST:
            view_of(stream, dtype, array.shape)[known] = values
        else:
            changed = values_of(stream, dtype, array.shape).copy()
            changed[known] = values
            write_values(stream, dtype, array.shape, changed)
        array._state = state


def _value_of(value: Any, dtype: DType, device: Device) -> Array:
    """Return an assigned value as an array of the data type."""
    from fklarray.conversion import asarray
    from fklarray.data_type_functions import astype

    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        if isinstance(value, complex) and dtype.kind != "complex":
            raise TypeError(f"cannot assign the complex number {value} to an array of {dtype}")
        if isinstance(value, float) and dtype.kind in ("signed", "unsigned"):
            value = int(value)
        return Recorded.array((), constant_state(value, dtype, device.name))
    if isinstance(value, (list, tuple)) and dtype.kind in ("signed", "unsigned"):
        # Python integers that do not fit are refused, as NumPy does.
        return asarray(value, dtype=NUMPY_DTYPES[dtype], device=device)
    source = asarray(value, device=None if isinstance(value, Recorded) else device)
    if source.dtype.kind == "c" and dtype.kind != "complex":
        raise TypeError(f"cannot assign values of {source.dtype} to an array of {dtype}")
    return astype(source, NUMPY_DTYPES[dtype], copy=False)


def _whole_mask(key: Any, shape: tuple[int, ...], device: Device) -> Array | None:
    """Return a mask over the whole array, or over its first dimensions."""
    from fklarray.conversion import asarray

    if getattr(getattr(key, "dtype", None), "kind", "") != "b":
        return None
    mask = asarray(key, device=None if isinstance(key, Recorded) else device)
    if mask.shape != shape[: mask.ndim]:
        raise IndexError(f"a mask of shape {mask.shape} does not fit an array of shape {shape}")
    state = views.expand(mask._state, mask.ndim, range(mask.ndim, len(shape)))
    return Recorded.array(mask.shape + (1,) * (len(shape) - mask.ndim), state)


def _fit(value: State, shape: tuple[int, ...], target: tuple[int, ...]) -> State:
    """Drop leading dimensions of one element beyond the target's, and check the others."""
    extra = len(shape) - len(target)
    kept = shape[max(0, extra) :]
    fits = all(
        extent in (1, wanted)
        for extent, wanted in zip(reversed(kept), reversed(target), strict=False)
    )
    if not fits or any(extent != 1 for extent in shape[: max(0, extra)]):
        raise ValueError(f"cannot assign values of shape {shape} to a selection of shape {target}")
    if extra > 0:
        return views.permute(value, len(shape), range(extra, len(shape)))
    return value


def _selects_all(key: Any, shape: tuple[int, ...]) -> bool:
    items = _items(key, shape)
    return (
        items is not None
        and all(
            isinstance(item, slice) and (item.start, item.stop, item.step) == (0, extent, 1)
            for item, extent in zip(items, shape, strict=False)
        )
        and len(items) == len(shape)
    )
