"""How the index space of a kernel with reductions is walked: along its rows, or across them.

Strides are counted in elements and aligned at the last dimension, as in `fklarray_codegen.layout`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fklarray_codegen.layout import Inner, Period, collapse, inner_class

__all__ = ["Rows", "Walk", "walk"]

Direction = Literal["rows", "columns"]
Strides = tuple[int, ...]

# Rows shorter than this are not worth a pass of their own, nor are fewer neighbours of a row.
_SHORT_ROW = 20
_FEW_ROWS = 16
# Rows so long, and not even so many, leave most of a device idle unless its blocks share them.
_LONG_ROW = 1 << 16
_FEW_LONG_ROWS = 256
# The same of rows across which packs lie: so many elements of so many rows, in fewer columns.
_LARGE = 1 << 20
_MANY_ROWS = 1024
_FEW_COLUMNS = 1 << 17
# The kernels count threads in int.
_MAX_THREADS = 2**31 - 1


class Rows(NamedTuple):
    """What the rows of an index space are: neighbouring axes, walked as one.

    Attributes
    ----------
    first, stop : int
        Axes ``first`` to ``stop - 1`` of the index space.
    """

    first: int
    stop: int

    def length(self, shape: tuple[int, ...]) -> int:
        """Return the number of elements in a row."""
        return math.prod(shape[self.first : self.stop])

    def kept(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return what is left of a shape, or of strides, without these axes."""
        return shape[: self.first] + shape[self.stop :]


@dataclass(frozen=True, slots=True)
class Walk:
    """Index space of one launch and how each stream moves in it.

    Attributes
    ----------
    direction : {"rows", "columns"}
        Whether a pack holds neighbours in a row, or elements of neighbouring rows.
    shape : tuple of int
        Extents, at least two. Rows lie along the last dimension, or along the last but one.
    strides : tuple of tuple of int
        Strides of each stream, one per dimension of `shape`.
    inner : tuple of {"unit", "broadcast", "strided"}
        Class of each stream's stride along the last dimension.
    """

    direction: Direction
    shape: tuple[int, ...]
    strides: tuple[Strides, ...]
    inner: tuple[Inner, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions of the index space."""
        return len(self.shape)

    @property
    def last(self) -> int:
        """Number of elements in the last row of each block of rows: as in the others."""
        return self.shape[-1]

    @property
    def is_narrow(self) -> bool:
        """Whether the rows are too few for a device's blocks to have them each for itself."""
        if self.direction == "rows":
            return self.shape[-1] >= _LONG_ROW and math.prod(self.shape[:-1]) < _FEW_LONG_ROWS
        columns = math.prod(self.shape) // self.shape[-2]
        is_large = math.prod(self.shape) >= _LARGE and self.shape[-2] >= _MANY_ROWS
        return is_large and columns < _FEW_COLUMNS

    @property
    def periods(self) -> tuple[Period, ...]:
        """As in `Layout`: no stream repeats within a row."""
        return ((0, 0),) * len(self.strides)


def walk(shape: tuple[int, ...], rows: Rows, streams: Sequence[Strides]) -> Walk | None:
    """Lay out one launch.

    Parameters
    ----------
    shape : tuple of int
        Index space; no extent is 0.
    rows : Rows
        Its rows.
    streams : sequence of tuple of int
        Strides of all that is read and written, aligned at the last dimension.

    Returns
    -------
    Walk or None
        None if a stream does not walk the axes of a row as one, or there are too many rows.
    """
    padded = [(0,) * (len(shape) - len(strides)) + tuple(strides) for strides in streams]
    steps = [_row_step(shape, rows, strides) for strides in padded]
    if None in steps:
        return None
    # The row's own dimension comes first, before its place is known.
    extents = [rows.length(shape)]
    moves = [[step or 0] for step in steps]
    for part in (slice(0, rows.first), slice(rows.stop, None)):
        if math.prod(shape[part]) != 1:
            more, further = collapse(shape[part], [strides[part] for strides in padded])
            extents += more
            moves = [[*move, *step] for move, step in zip(moves, further, strict=True)]
    inner = _best_inner(extents, moves)
    order = [axis for axis in range(1, len(extents)) if axis != inner]
    order += [0, inner] if inner else [0]
    shape = tuple(extents[axis] for axis in order)
    paths = [tuple(move[axis] for axis in order) for move in moves]
    if len(shape) == 1:
        shape, paths = (1, *shape), [(0, *path) for path in paths]
    if shape[-2] > _MAX_THREADS or math.prod(shape[:-2]) > _MAX_THREADS:
        return None
    return Walk(
        "columns" if inner else "rows",
        shape,
        tuple(paths),
        tuple(inner_class(path[-1], shape[-1]) for path in paths),
    )


def _row_step(shape: tuple[int, ...], rows: Rows, strides: Strides) -> int | None:
    """Return the stride along the axes of a row, None if they are not walked as one."""
    extents, ((*outer, step),) = collapse(
        shape[rows.first : rows.stop], [strides[rows.first : rows.stop]]
    )
    if outer:
        return None
    return step if extents != [1] else 0


def _best_inner(extents: Sequence[int], moves: Sequence[Sequence[int]]) -> int:
    """Return the dimension that packs lie along; 0 is that of the rows."""
    candidates = [axis for axis in range(1, len(extents)) if extents[axis] >= _FEW_ROWS]
    # What has one value for a row is little beside what has one for each element.
    large = [move for move in moves if move[0]] or moves
    units = [sum(move[axis] == 1 for move in large) for axis in range(len(extents))]
    # Of equals, the longest.
    best = max(candidates, key=lambda axis: (units[axis], extents[axis]), default=0)
    return best if extents[0] < _SHORT_ROW or units[0] < units[best] else 0
