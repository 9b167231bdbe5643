"""Elements chosen by arrays of integers, where the chosen array is."""

from __future__ import annotations

from typing import Any

import numpy as np

from fklarray.array import Array
from fklarray.conversion import asarray
from fklarray.data_type_functions import astype
from fklarray.delegation import on_numpy
from fklarray.device import CPU
from fklarray.folds import extreme
from fklarray.on_cupy import where_runs
from fklarray.placement import Values
from fklarray.record import compute_together
from fklarray.reductions import deferred_on_numpy

__all__ = ["check_bounds", "gathered", "signed", "taken"]

# Fewer bytes are sooner here than a kernel of a device has run.
_BRIEF = 1 << 16


def check_bounds(function: str, indices: Array, extent: int, axis: int) -> None:
    """Refuse indices that are out of bounds now, not when the result is needed.

    Raises
    ------
    IndexError
        Naming the index.
    """
    if not indices.size:
        return
    if indices.device == CPU or indices.nbytes <= _BRIEF:
        values = indices._numpy()
        extremes = [int(values.min()), int(values.max())]
    else:
        found = [extreme(name, indices, None, False) for name in ("min", "max")]
        compute_together(found)
        extremes = [int(one) for one in found]
    for index in extremes:
        if not -extent <= index < extent:
            raise IndexError(
                f"{function}: index {index} is out of bounds for axis {axis} of size {extent}"
            )


def signed(indices: Values) -> Values:
    """Return indices in bounds as NumPy takes them: not of uint64."""
    return indices.astype(np.intp, copy=False)


def taken(x: Array, indices: Array, axis: int) -> Array:
    """Record a selection along an axis by indices that are in bounds."""
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return deferred_on_numpy(
        lambda values, where: np.take(values, signed(where), axis),
        [x, indices],
        x._state[0].dtype,
        shape,
        "take",
    )


def gathered(array: Array, key: Any) -> Array | None:
    """Record a selection by arrays of integers and masks, on a device.

    Parameters
    ----------
    array : Array
        Array on a device.
    key : index
        Has an array among its items.

    Returns
    -------
    Array or None
        None where the host is to select, or to say what is wrong with the key.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    """
    if not array.size or where_runs("indexing", array.device.name) != "CuPy":
        return None
    items = _items(array, [*key] if isinstance(key, tuple) else [key])
    if items is None:
        return None
    try:
        shape = _shape(items, array.shape)
    except ValueError:  # they do not broadcast
        return None
    chosen: list[Array] = []
    for axis, item in enumerate(item for item in items if item is not None):
        if isinstance(item, Array):
            check_bounds("indexing", item, array.shape[axis], axis)
            chosen.append(astype(item, np.int64, copy=False))

    def select(values: Any, *indices: Any) -> Any:
        following = iter(indices)
        return values[
            tuple([next(following) if isinstance(item, Array) else item for item in items])
        ]

    return deferred_on_numpy(
        select, [array, *chosen], array._state[0].dtype, shape, called="indexing"
    )


def _items(array: Array, keys: list[Any]) -> list[Any] | None:
    """Return integers, slices, None and arrays of integers, one for each dimension (but None)."""
    items: list[Any] = []
    for key in keys:
        if key is None or key is Ellipsis or isinstance(key, slice):
            items.append(key)
            continue
        item = _of_device(array, key)
        if item is None:
            return None
        items += item
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > array.ndim or sum(item is Ellipsis for item in items) > 1:
        return None
    place = next((at for at, item in enumerate(items) if item is Ellipsis), len(items))
    items[place : place + 1] = [slice(None)] * (array.ndim - used)
    return items if _fit(array, items, keys) else None


def _of_device(array: Array, key: Any) -> list[Any] | None:
    """Return an integer, an array of integers, or those of a mask; None for anything else."""
    values: Any = key if isinstance(key, Array) else np.asarray(key)
    if values.dtype.kind not in "iub" or (values.dtype.kind == "b" and not values.ndim):
        return None
    if not values.ndim:
        return [int(values)]
    if not values.size:
        return None
    there = asarray(values, device=None if isinstance(key, Array) else array.device)
    if there.device != array.device:
        return None
    return [there] if values.dtype.kind != "b" else [*on_numpy(np.nonzero, there, called="nonzero")]


def _fit(array: Array, items: list[Any], keys: list[Any]) -> bool:
    """Return whether integers are in bounds, and masks of the extents of their dimensions."""
    axes = [item for item in items if item is not None]
    in_bounds = all(
        -extent <= item < extent
        for item, extent in zip(axes, array.shape, strict=True)
        if isinstance(item, int)
    )
    masks = [key for key in keys if getattr(getattr(key, "dtype", None), "kind", "") == "b"]
    if not masks:
        return in_bounds
    # Several, or beside others: NumPy says where they are.
    return len(keys) == 1 and masks[0].shape == array.shape[: masks[0].ndim]


def _shape(items: list[Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a selection; arrays that are no neighbours come first."""
    result: list[int] = []
    places: list[tuple[int, int]] = []
    axis = 0
    for place, item in enumerate(items):
        if item is None:
            result.append(1)
            continue
        if isinstance(item, slice):
            result.append(len(range(*item.indices(shape[axis]))))
        else:
            places.append((place, len(result)))
        axis += 1
    common = np.broadcast_shapes(*[item.shape for item in items if isinstance(item, Array)])
    are_neighbours = places[-1][0] - places[0][0] == len(places) - 1
    at = places[0][1] if are_neighbours else 0
    return (*result[:at], *common, *result[at:])
