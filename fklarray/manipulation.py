"""Manipulation functions of the standard that are views: recorded, without copying data."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from fklarray import views
from fklarray.array import Array
from fklarray.recording import scalar_state
from fklarray_codegen import layout

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "reshape",
    "squeeze",
]

_Axes = int | Sequence[int]


def _axes(axis: _Axes, ndim: int, what: str) -> tuple[int, ...]:
    axes = tuple(map(operator.index, axis if isinstance(axis, Sequence) else (axis,)))
    for one in axes:
        if not -ndim <= one < ndim:
            raise IndexError(f"axis {one} is out of bounds for {what} {ndim} dimensions")
    normal = tuple(one % ndim for one in axes)
    if len(set(normal)) < len(normal):
        raise ValueError(f"repeated axes in {axes}")
    return normal


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to.

    Raises
    ------
    ValueError
        If they do not fit.
    """
    return layout.broadcast_shapes(*shapes) if shapes else ()


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """Broadcast an array to a shape.

    Raises
    ------
    ValueError
        If the array does not broadcast to exactly this shape.
    """
    shape = tuple(operator.index(extent) for extent in shape)
    if min(shape, default=0) < 0 or layout.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"shape {x.shape} cannot be broadcast to {shape}")
    return Array(shape, x._state)


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Broadcast arrays against each other.

    Raises
    ------
    ValueError
        If their shapes do not fit.
    """
    shape = broadcast_shapes(*[array.shape for array in arrays])
    return tuple(Array(shape, array._state) for array in arrays)


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """Reorder the dimensions.

    Parameters
    ----------
    x : Array
        Array of any shape.
    axes : tuple of int
        A permutation of its axes.

    Raises
    ------
    ValueError
        If `axes` is not one.
    """
    order = _axes(axes, x.ndim, "an array of")
    if len(order) != x.ndim:
        raise ValueError(f"axes {tuple(axes)} are not a permutation of {x.ndim} axes")
    shape = tuple(x.shape[axis] for axis in order)
    return Array(shape, views.permute(x._state, x.ndim, order))


def moveaxis(x: Array, source: _Axes, destination: _Axes, /) -> Array:
    """Move axes to other places; the others keep their order.

    Raises
    ------
    IndexError
        If an axis is out of bounds.
    ValueError
        If axes repeat, or there are not as many sources as destinations.
    """
    froms = _axes(source, x.ndim, "an array of")
    tos = _axes(destination, x.ndim, "an array of")
    if len(froms) != len(tos):
        raise ValueError(f"{len(froms)} source axes for {len(tos)} destination axes")
    order = [axis for axis in range(x.ndim) if axis not in froms]
    for to, axis in sorted(zip(tos, froms, strict=True)):
        order.insert(to, axis)
    return permute_dims(x, tuple(order))


def expand_dims(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Insert dimensions of one element.

    Parameters
    ----------
    x : Array
        Array of any shape.
    axis : int or tuple of int
        Their positions in the result.

    Raises
    ------
    IndexError
        If an axis is out of bounds.
    ValueError
        If axes repeat.
    """
    count = len(axis) if isinstance(axis, Sequence) else 1
    axes = sorted(_axes(axis, x.ndim + count, "a result of"))
    shape = list(x.shape)
    for one in axes:
        shape.insert(one, 1)
    return Array(tuple(shape), views.expand(x._state, x.ndim, axes))


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Remove dimensions of one element.

    Raises
    ------
    IndexError
        If an axis is out of bounds.
    ValueError
        If a dimension has more or fewer elements than one.
    """
    axes = _axes(axis, x.ndim, "an array of")
    if any(x.shape[one] != 1 for one in axes):
        raise ValueError(f"cannot squeeze axes {axes} of an array of shape {x.shape}")
    kept = [one for one in range(x.ndim) if one not in axes]
    return Array(tuple(x.shape[one] for one in kept), views.permute(x._state, x.ndim, kept))


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverse the order of the elements along axes (all by default).

    Raises
    ------
    IndexError
        If an axis is out of bounds.
    """
    axes = range(x.ndim) if axis is None else _axes(axis, x.ndim, "an array of")
    return Array(x.shape, views.flip(x._state, x.shape, axes))


def reshape(x: Array, /, shape: int | tuple[int, ...], *, copy: bool | None = None) -> Array:
    """Give the elements another shape, in C order.

    Parameters
    ----------
    x : Array
        Array of any shape.
    shape : tuple of int
        New shape with the same number of elements; one extent may be -1 to be inferred.
    copy : bool, optional
        Arrays are values here, so True and None are the same; False fails where the elements
        cannot be walked in the new shape.

    Raises
    ------
    ValueError
        If the number of elements differs, or `copy` is False and a copy is needed.
    """
    extents = shape if isinstance(shape, Sequence) else (shape,)
    target = _inferred(x.shape, tuple(map(operator.index, extents)))
    if x.size == 0:
        return Array(target, scalar_state(0, x._state[0].dtype))
    state = views.reshape(x._state, x.shape, target)
    if state is None:
        if copy is False:
            raise ValueError(f"reshaping {x.shape} to {target} needs a copy")
        state = views.reshape(x._materialize(), x.shape, target)
        assert state is not None
    return Array(target, state)


def _inferred(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    size = math.prod(shape)
    if -1 in target:
        known = -math.prod(target)
        if target.count(-1) == 1 and known > 0 and size % known == 0:
            target = tuple(size // known if extent == -1 else extent for extent in target)
    if math.prod(target) != size or any(extent < 0 for extent in target):
        raise ValueError(f"cannot reshape an array of shape {shape} to {target}")
    return target
