"""Views of recorded expressions: other strides on the leaves, no data moved.

An elementwise expression of a view is the view of the expression, so a view of anything pending is
the same structure on leaves that are viewed that way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fklarray.recording import Leaf, State, Stream
from fklarray_codegen.layout import reshape_strides

__all__ = ["diagonal", "expand", "flip", "index", "permute", "reshape"]

# (address, strides of all dimensions, bytes of one element) to (address, strides).
_Change = Callable[[int, tuple[int, ...], int], tuple[int, tuple[int, ...]]]


def _on_streams(state: State, ndim: int, change: _Change) -> State:
    node, leaves = state
    changed: list[Leaf] = []
    for leaf, leaf_node in zip(leaves, node.leaves, strict=True):
        if isinstance(leaf, Stream):
            strides = (0,) * (ndim - len(leaf.strides)) + leaf.strides
            address, strides = change(leaf.value, strides, leaf_node.dtype.itemsize)
            changed.append(leaf.moved(address, strides))
        else:
            changed.append(leaf)
    return node, tuple(changed)


def permute(state: State, ndim: int, axes: Sequence[int]) -> State:
    """Reorder dimensions; those that are left out have one element."""
    return _on_streams(
        state,
        ndim,
        lambda address, strides, _: (address, tuple(strides[axis] for axis in axes)),
    )


def flip(state: State, shape: tuple[int, ...], axes: Sequence[int]) -> State:
    """Reverse dimensions."""

    def change(
        address: int, strides: tuple[int, ...], itemsize: int
    ) -> tuple[int, tuple[int, ...]]:
        moved = list(strides)
        for axis in axes:
            address += max(0, shape[axis] - 1) * strides[axis] * itemsize
            moved[axis] = -strides[axis]
        return address, tuple(moved)

    return _on_streams(state, len(shape), change)


def expand(state: State, ndim: int, axes: Sequence[int]) -> State:
    """Insert dimensions of one element at positions that increase, counted in the result."""

    def change(address: int, strides: tuple[int, ...], _: int) -> tuple[int, tuple[int, ...]]:
        moved = list(strides)
        for axis in axes:
            moved.insert(axis, 0)
        return address, tuple(moved)

    return _on_streams(state, ndim, change)


def index(state: State, ndim: int, items: Sequence[int | slice]) -> State:
    """Apply one integer or slice per dimension.

    Parameters
    ----------
    items : sequence of int or slice
        Integers are not negative; slices are what `slice.indices` gives, with the number of
        elements as their stop.
    """

    def change(
        address: int, strides: tuple[int, ...], itemsize: int
    ) -> tuple[int, tuple[int, ...]]:
        moved: list[int] = []
        for item, stride in zip(items, strides, strict=True):
            if isinstance(item, slice):
                address += item.start * stride * itemsize
                moved.append(stride * item.step if item.stop > 1 else 0)
            else:
                address += item * stride * itemsize
        return address, tuple(moved)

    return _on_streams(state, ndim, change)


def diagonal(state: State, ndim: int, start: tuple[int, int], extent: int) -> State:
    """Walk the last two dimensions at once, from a row and a column on."""

    def change(
        address: int, strides: tuple[int, ...], itemsize: int
    ) -> tuple[int, tuple[int, ...]]:
        *outer, down, across = strides
        address += (start[0] * down + start[1] * across) * itemsize
        return address, (*outer, down + across if extent > 1 else 0)

    return _on_streams(state, ndim, change)


def reshape(state: State, shape: tuple[int, ...], target: tuple[int, ...]) -> State | None:
    """Give another shape with the same, non-zero number of elements.

    Returns
    -------
    State or None
        None when a stream's elements cannot be walked in the new shape without a copy.
    """
    node, leaves = state
    changed: list[Leaf] = []
    for leaf in leaves:
        if isinstance(leaf, Stream):
            full = (0,) * (len(shape) - len(leaf.strides)) + leaf.strides
            strides = reshape_strides(shape, full, target)
            if strides is None:
                return None
            changed.append(leaf.moved(leaf.value, strides))
        else:
            changed.append(leaf)
    return node, tuple(changed)
