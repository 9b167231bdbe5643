"""Manipulation functions of the standard whose results are new arrays: joined, rolled, repeated."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fklarray import views
from fklarray.array import Array
from fklarray.conversion import asarray
from fklarray.creation import full
from fklarray.data_type_functions import astype
from fklarray.delegation import on_numpy
from fklarray.device import CPU
from fklarray.dtype_rows import DType
from fklarray.evaluation import evaluate_into
from fklarray.gathers import taken
from fklarray.manipulation import broadcast_to, expand_dims, moveaxis, reshape
from fklarray.placement import empty_state
from fklarray.record import Number, record_deferred
from fklarray.recording import State, cast_state, common_dtype, stream_of
from fklarray.reductions import array_operand, normal_axis
from fklarray_codegen.graph import HOST, common_place

__all__ = ["concat", "pad", "repeat", "roll", "stack", "tile", "unstack"]


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis.

    Parameters
    ----------
    arrays : sequence of Array
        Of equal shapes but for the axis.
    axis : int or None
        Axis to join along; None joins the flattened arrays.

    Returns
    -------
    Array
        Of the data type that the arrays promote to. Each array that is pending is computed
        straight into its part of the result.

    Raises
    ------
    ValueError
        If there is no array, an array has no dimensions, or the shapes do not fit.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Manipulation Functions", ``concat``.
    """
    parts = [array_operand("concat", array) for array in arrays]
    if not parts:
        raise ValueError("concat needs at least one array")
    if axis is None:
        parts = [reshape(part, (-1,)) for part in parts]
    shapes = [part.shape for part in parts]
    if any(not shape for shape in shapes):
        raise ValueError(f"concat needs arrays with dimensions; got shapes {shapes}")
    along = normal_axis(0 if axis is None else axis, parts[0].ndim)
    outside = {(*shape[:along], *shape[along + 1 :]) for shape in shapes}
    if len(outside) > 1 or len({len(shape) for shape in shapes}) > 1:
        raise ValueError(f"concat along axis {along} needs shapes that fit; got {shapes}")
    shape = (*shapes[0][:along], sum(one[along] for one in shapes), *shapes[0][along + 1 :])
    dtype = common_dtype([part._state[0].dtype for part in parts])
    parts = [Array(part.shape, cast_state(part._state, dtype)) for part in parts]
    return record_deferred(
        lambda *states: _joined(states, shapes, dtype, shape, along),
        parts,
        dtype,
        shape,
        fused=True,
    )


def _joined(
    states: Sequence[State],
    shapes: Sequence[tuple[int, ...]],
    dtype: DType,
    shape: tuple[int, ...],
    axis: int,
) -> State:
    """Compute each part into its place."""
    whole = empty_state(dtype, shape, common_place([node for node, _ in states]) or HOST)
    start = 0
    for state, part in zip(states, shapes, strict=True):
        selection = [slice(0, extent, 1) for extent in part]
        selection[axis] = slice(start, part[axis], 1)
        target = views.index(whole, len(shape), selection)
        evaluate_into(*state, part, stream_of(target))
        start += part[axis]
    return whole


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis.

    Raises
    ------
    ValueError
        If there is no array, or the shapes differ.
    numpy.exceptions.AxisError
        If the axis is out of bounds in the result.

    Notes
    -----
    Array API standard 2025.12, "Manipulation Functions", ``stack``.
    """
    parts = [array_operand("stack", array) for array in arrays]
    if len({part.shape for part in parts}) != 1:
        shapes = [part.shape for part in parts]
        raise ValueError(f"stack needs at least one array and equal shapes; got {shapes}")
    along = normal_axis(axis, parts[0].ndim + 1)
    return concat([expand_dims(part, axis=along) for part in parts], axis=along)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into the arrays along an axis.

    Raises
    ------
    ValueError
        If `x` has no dimensions.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Manipulation Functions", ``unstack``.
    """
    x = array_operand("unstack", x)
    if not x.ndim:
        raise ValueError("unstack needs an array with dimensions")
    return tuple(moveaxis(x, normal_axis(axis, x.ndim), 0))


def roll(
    x: Array, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None
) -> Array:
    """Move elements along axes; what falls off one end comes in at the other.

    Parameters
    ----------
    x : Array
        Array of any shape.
    shift : int or tuple of int
        Number of places, one for all axes or one per axis; negative towards the start.
    axis : int or tuple of int, optional
        Axes; by default the flattened array is rolled.

    Raises
    ------
    ValueError
        If there are several shifts and not as many axes.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Manipulation Functions", ``roll``.
    """
    x = array_operand("roll", x)
    if axis is None:
        flat = reshape(x, (-1,))
        shifts = [shift] if not isinstance(shift, Sequence) else list(shift)
        return reshape(_rolled(flat, sum(map(operator.index, shifts)), 0), x.shape)
    axes = [normal_axis(one, x.ndim) for one in (axis if isinstance(axis, Sequence) else [axis])]
    shifts = [shift] * len(axes) if not isinstance(shift, Sequence) else list(shift)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll got {len(shifts)} shifts {shift} for {len(axes)} axes {axis}")
    for one, along in zip(shifts, axes, strict=True):
        x = _rolled(x, operator.index(one), along)
    return x


def _rolled(x: Array, shift: int, axis: int) -> Array:
    extent = x.shape[axis]
    shift = shift % extent if extent else 0
    if not shift:
        return Array(x.shape, x._state)
    before = (slice(None),) * axis
    return concat(
        [x[(*before, slice(extent - shift, None))], x[(*before, slice(0, extent - shift))]],
        axis=axis,
    )


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Repeat each element.

    Parameters
    ----------
    x : Array
        Array of any shape.
    repeats : int or Array
        How often, for all elements along the axis or for each one. The values of an array are
        needed at once, since the shape of the result depends on them.
    axis : int, optional
        Axis to repeat along; by default the flattened array is repeated.

    Raises
    ------
    ValueError
        If a number of repetitions is negative, or there are not as many as elements.
    TypeError
        If `repeats` does not hold integers.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    Array API standard 2025.12, "Manipulation Functions", ``repeat``.
    """
    x = array_operand("repeat", x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    along = normal_axis(axis, x.ndim)
    if isinstance(repeats, (Array, np.ndarray)) and np.ndim(repeats):
        counts = array_operand("repeat", repeats)
        if counts.dtype.kind not in "iu":
            raise TypeError(f"repeat needs integer repeats, not {counts.dtype}")
        counts = astype(counts, np.intp, copy=False)
        if x.device != CPU:
            return taken(x, _repeated_places(x, counts, along), along)
        repeated: Array = on_numpy(np.repeat, x, counts, axis=along)
        return repeated
    count = operator.index(repeats)
    if count < 0:
        raise ValueError(f"repeat cannot repeat elements {count} times")
    shape = x.shape
    spread = expand_dims(x, axis=along + 1)
    spread = broadcast_to(spread, (*shape[: along + 1], count, *shape[along + 1 :]))
    return reshape(spread, (*shape[:along], shape[along] * count, *shape[along + 1 :]))


def _repeated_places(x: Array, counts: Array, axis: int) -> Array:
    common_place([x._state[0], counts._state[0]])
    places = np.repeat(np.arange(x.shape[axis]), counts._numpy())
    return asarray(places, device=x.device)


def tile(x: Array, repetitions: int | Sequence[int], /) -> Array:
    """Repeat a whole array along its axes.

    Parameters
    ----------
    x : Array
        Array of any shape.
    repetitions : tuple of int
        Number of repetitions per axis, aligned at the last one.

    Raises
    ------
    ValueError
        If a number of repetitions is negative.

    Notes
    -----
    Array API standard 2025.12, "Manipulation Functions", ``tile``.
    """
    x = array_operand("tile", x)
    counts = repetitions if isinstance(repetitions, Sequence) else (repetitions,)
    times = tuple(map(operator.index, counts))
    if min(times, default=0) < 0:
        raise ValueError(f"tile cannot repeat an array {times} times")
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    extents = (1,) * (ndim - x.ndim) + x.shape
    spread = reshape(x, tuple(one for extent in extents for one in (1, extent)))
    pairs = tuple(zip(times, extents, strict=True))
    spread = broadcast_to(spread, tuple(one for pair in pairs for one in pair))
    return reshape(spread, tuple(count * extent for count, extent in pairs))


def pad(
    array: Array,
    pad_width: int | Sequence[Any],
    mode: str = "constant",
    *,
    constant_values: Number | Sequence[Any] = 0,
    **keywords: Any,
) -> Array:
    """Pad an array along its axes, as `numpy.pad` does (an extension of the standard).

    Parameters
    ----------
    array : Array
        Array of any shape.
    pad_width : int, pair, or sequence of pairs of int
        Number of elements before and after, for all axes or for each one.
    mode : str
        ``"constant"`` is recorded; every other mode of `numpy.pad` runs at once on NumPy.
    constant_values : scalar, or as `pad_width`
        Values of mode ``"constant"``.
    **keywords
        Those of `numpy.pad` for the other modes.

    Raises
    ------
    ValueError
        If a width is negative or does not fit the dimensions, or the mode is unknown.
    TypeError
        If a width is not an integer, or a value is complex and the array is not.
    OverflowError
        If an integer value is out of the range of an integer data type.
    """
    x = array_operand("pad", array)
    if mode in _GATHERING and x.device != CPU and x.size and not keywords:
        return _gathered(x, pad_width, mode)
    if mode != "constant":
        padded: Array = on_numpy(np.pad, x, pad_width=pad_width, mode=mode, **keywords)
        return padded
    if keywords:
        raise ValueError(f"pad in mode 'constant' does not take {', '.join(keywords)}")
    given: Any = np.asarray(pad_width)
    if given.dtype.kind not in "iu":
        raise TypeError(f"pad needs integer widths, not {pad_width!r}")
    if (given < 0).any():
        raise ValueError(f"pad cannot pad by negative widths: {pad_width!r}")
    widths: Any = np.broadcast_to(given, (x.ndim, 2))
    values: Any = np.broadcast_to(np.asarray(constant_values), (x.ndim, 2))
    for axis, (extents, edges) in enumerate(zip(widths.tolist(), values, strict=True)):
        parts = [x]
        for position, extent, edge in zip((0, 2), extents, edges, strict=True):
            shape = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
            if extent:
                margin = full(shape, edge.item(), dtype=x.dtype, device=x.device)
                parts.insert(position, margin)
        x = concat(parts, axis=axis) if len(parts) > 1 else x
    return Array(x.shape, x._state)


# Modes of `pad` in which every element is one of the array's.
_GATHERING = ("edge", "reflect", "symmetric", "wrap")


def _gathered(x: Array, pad_width: Any, mode: str) -> Array:
    """Pad by the places of elements, which NumPy knows."""
    given: Any = np.asarray(pad_width)
    widths: Any = np.broadcast_to(given, (x.ndim, 2))
    for axis, width in enumerate(widths.tolist()):
        places = np.pad(np.arange(x.shape[axis]), width, mode)  # type: ignore[call-overload]
        x = taken(x, asarray(places, device=x.device), axis) if any(width) else x
    return Array(x.shape, x._state)
