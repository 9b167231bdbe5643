"""Manipulation functions of the standard that are views: recorded, without copying data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numpy.lib.array_utils import normalize_axis_tuple

from fklarray import views
from fklarray.array import Array
from fklarray.record import in_order, record_deferred
from fklarray.recording import constant_state
from fklarray.reductions import array_operand, normal_axes, normal_shape
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


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to.

    Raises
    ------
    ValueError
        If they do not fit.
    """
    return layout.broadcast_shapes(*map(normal_shape, shapes)) if shapes else ()


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """Broadcast an array to a shape.

    Raises
    ------
    ValueError
        If the array does not broadcast to exactly this shape.
    """
    x = array_operand("broadcast_to", x)
    shape = normal_shape(shape)
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
    operands = [array_operand("broadcast_arrays", array) for array in arrays]
    shape = broadcast_shapes(*[array.shape for array in operands])
    return tuple(Array(shape, array._state) for array in operands)


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
    x = array_operand("permute_dims", x)
    order = _axes(axes, x.ndim)
    if len(order) != x.ndim:
        raise ValueError(f"axes {axes} are not a permutation of {x.ndim} axes")
    shape = tuple(x.shape[axis] for axis in order)
    return Array(shape, views.permute(x._state, x.ndim, order))


def _axes(axes: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return axes counted from the front; unlike NumPy everywhere, bool is no axis."""
    order = normalize_axis_tuple(axes, ndim)
    if bool in map(type, axes if isinstance(axes, Sequence) else (axes,)):
        raise TypeError(f"an axis is an integer, not a bool; got {axes}")
    return order


def moveaxis(x: Array, source: int | Sequence[int], destination: int | Sequence[int], /) -> Array:
    """Move axes to other places; the others keep their order.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If axes repeat, or there are not as many sources as destinations.
    """
    x = array_operand("moveaxis", x)
    froms, tos = _axes(source, x.ndim), _axes(destination, x.ndim)
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
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If axes repeat.
    """
    x = array_operand("expand_dims", x)
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = sorted(_axes(given, x.ndim + len(given)))
    shape = list(x.shape)
    for one in axes:
        shape.insert(one, 1)
    return Array(tuple(shape), views.expand(x._state, x.ndim, axes))


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Remove dimensions of one element.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If a dimension has more or fewer elements than one.
    """
    x = array_operand("squeeze", x)
    axes = normal_axes(axis if isinstance(axis, tuple) else (axis,), x.ndim)
    if any(x.shape[one] != 1 for one in axes):
        raise ValueError(f"cannot squeeze axes {axes} of an array of shape {x.shape}")
    kept = [one for one in range(x.ndim) if one not in axes]
    return Array(tuple(x.shape[one] for one in kept), views.permute(x._state, x.ndim, kept))


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverse the order of the elements along axes (all by default).

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    """
    x = array_operand("flip", x)
    axes = range(x.ndim) if axis is None else _axes(axis, x.ndim)
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
    x = array_operand("reshape", x)
    target = _inferred(x.shape, normal_shape(shape))
    if x.size == 0:
        return Array(target, constant_state(0, x._state[0].dtype, x.device.name))
    state = views.reshape(x._state, x.shape, target)
    if state is None:
        if copy is False:
            raise ValueError(f"reshaping {x.shape} to {target} needs a copy")
        row = x._state[0].dtype
        ordered = record_deferred(in_order(x.shape), [x], row, x.shape, fused=True)
        state = views.reshape(ordered._state, x.shape, target)
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
