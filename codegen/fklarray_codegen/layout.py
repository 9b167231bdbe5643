"""How the index space of a kernel is walked: broadcasting, collapsed dimensions, stride classes.

Strides are counted in elements and aligned at the last dimension. A stream moves by 0 along
dimensions in which it has one element or none, so that broadcasting needs no rewriting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

__all__ = [
    "DEVICE_ROW",
    "ROW",
    "Inner",
    "Layout",
    "Period",
    "broadcast_shapes",
    "collapse",
    "contiguous_strides",
    "has_stride",
    "inner_class",
    "is_tiled",
    "layout",
    "reshape_strides",
]

Inner = Literal["unit", "broadcast", "strided", "across", "interleaved"]
Strides = tuple[int, ...]
Period = tuple[int, int]

# Elements per row when a long run is cut into rows: a few pages, so that threads share them evenly.
ROW = 4096
# On a device, whose blocks of threads share any row evenly: the longest that its threads count.
DEVICE_ROW = 1 << 30
# Repeated elements fill whole packs, so that rows of them are aligned.
_PACK = 16
# Rows shorter than this are worth lengthening.
_SHORT_ROW = 64
# Of those not even so long, and of more than so many rows, always.
_FEW_PACKS = 16
_FEW_ROWS = 1024
# Of a row's neighbours that lie between each other, at most so far apart; of all streams together.
_INTERLEAVED = 16
_ALL_INTERLEAVED = 64
# Streams of which a block of threads has room for a tile.
_ACROSS = 8
# The kernels count threads in int.
_MAX_THREADS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Index space of one launch and how each stream moves in it.

    Attributes
    ----------
    shape : tuple of int
        Extents, at least two: the last is the number of elements in a row.
    last : int
        Number of elements in the last row of each block of rows, at most ``shape[-1]``.
    strides : tuple of tuple of int
        Strides of each stream, in elements, one per dimension of `shape`.
    inner : tuple of {"unit", "broadcast", "strided", "across", "interleaved"}
        Class of each stream's stride within a row. The last two are strided, but neighbours in
        memory are neighbours across the rows: of more than 16 rows, or of all rows, which are few.
    periods : tuple of (int, int)
        (0, 0), or for a stream that repeats within a row: the number of elements after which it
        does, and its stride. Such a stream is to be replaced by one contiguous row of
        ``shape[-1]`` elements that holds the repetitions.
    """

    shape: tuple[int, ...]
    last: int
    strides: tuple[Strides, ...]
    inner: tuple[Inner, ...]
    periods: tuple[Period, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions of the index space."""
        return len(self.shape)


@lru_cache(maxsize=4096)
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that all shapes broadcast to ("Broadcasting" in the standard).

    Raises
    ------
    ValueError
        With the shapes in the text, if two of them do not fit.
    """
    ndim = max(len(shape) for shape in shapes)
    result = [1] * ndim
    for shape in shapes:
        offset = len(result) - len(shape)
        for axis, extent in enumerate(shape):
            if extent != 1 and extent != result[offset + axis]:
                if result[offset + axis] != 1:
                    raise ValueError(
                        "shapes cannot be broadcast together: " + ", ".join(map(str, shapes))
                    )
                result[offset + axis] = extent
    return tuple(result)


@lru_cache(maxsize=4096)
def contiguous_strides(shape: tuple[int, ...]) -> Strides:
    """Return the strides of a C-contiguous array, 0 along dimensions of one element."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step if extent != 1 else 0)
        step *= extent
    return tuple(reversed(strides))


def reshape_strides(
    shape: tuple[int, ...], strides: Strides, target: tuple[int, ...]
) -> Strides | None:
    """Return the strides with which the elements have another shape, or None if there are none.

    Parameters
    ----------
    shape, strides : tuple of int
        Of the stream; as many strides as dimensions.
    target : tuple of int
        Shape with the same number of elements, which is not 0.
    """
    source = [pair for pair in zip(shape, strides, strict=True) if pair[0] != 1]
    result: list[int] = []
    position = 0
    extent, stride = 1, 0  # the run of source dimensions that is being divided, innermost stride
    for wanted in reversed(target):
        if wanted == 1:
            result.append(0)
            continue
        while extent % wanted or extent == 1:
            if position == len(source):
                return None
            position += 1
            outer_extent, outer_stride = source[-position]
            if extent == 1:
                extent, stride = outer_extent, outer_stride
            elif outer_stride == extent * stride:
                extent *= outer_extent
            else:
                return None
        result.append(stride)
        extent //= wanted
        stride *= wanted
    return tuple(reversed(result))


def layout(
    shape: tuple[int, ...],
    streams: Sequence[Strides],
    outputs: Sequence[Strides],
    row: int = ROW,
) -> Layout:
    """Lay out one launch.

    Parameters
    ----------
    shape : tuple of int
        Shape of the results; no extent is 0.
    streams, outputs : sequence of tuple of int
        Strides of what is read and written, aligned at the last dimension.
    row : int
        Elements per row when a long run is cut into rows: `ROW` or `DEVICE_ROW`.

    Returns
    -------
    Layout
        Streams first, then outputs.

    Raises
    ------
    ValueError
        If there are more than 2**31 - 1 rows.
    """
    ndim = len(shape)
    padded = [(0,) * (ndim - len(strides)) + tuple(strides) for strides in (*streams, *outputs)]
    extents, moves = collapse(shape, padded)
    inner: tuple[Inner, ...] = ()
    if row == DEVICE_ROW:
        extents, moves, inner = _in_tiles(extents, moves, len(streams))
    last, periods = extents[-1], ((0, 0),) * len(moves)
    if not inner:
        extents, moves, last, periods = _in_rows(extents, moves, len(streams), row)
        inner = tuple(inner_class(move[-1], extents[-1]) for move in moves)
    if extents[-2] > _MAX_THREADS or math.prod(extents[:-2]) > _MAX_THREADS:
        raise ValueError(f"an array of shape {shape} has too many rows for one kernel")
    return Layout(tuple(extents), last, tuple(tuple(move) for move in moves), inner, periods)


def _is_worth_it(extents: Sequence[int]) -> bool:
    """Return whether short rows cost more than making them long, which takes some 30 us."""
    return extents[-1] < _FEW_PACKS or math.prod(extents[:-1]) > _FEW_ROWS


def inner_class(stride: int, extent: int) -> Inner:
    """Return the class of a stride within a row."""
    # A row of one element is the end of a contiguous one: no class, and no kernel, of its own.
    if stride == 1 or extent == 1:
        return "unit"
    return "strided" if stride else "broadcast"


def collapse(
    shape: tuple[int, ...], strides: Sequence[Strides]
) -> tuple[list[int], list[list[int]]]:
    """Join neighbouring dimensions that every stream walks as one, and drop those of one."""
    extents: list[int] = []
    moves: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        here = [stride[axis] for stride in strides]
        if extents and all(
            move[-1] == step * extent for move, step in zip(moves, here, strict=True)
        ):
            extents[-1] *= extent
            for move, step in zip(moves, here, strict=True):
                move[-1] = step
        else:
            extents.append(extent)
            for move, step in zip(moves, here, strict=True):
                move.append(step)
    if not extents:
        return [1], [[1] for _ in strides]
    return extents, moves


def has_stride(inner: str) -> bool:
    """Return whether the stride within a row is told beside its class."""
    return inner not in ("unit", "broadcast")


def is_tiled(inner: Sequence[Inner]) -> bool:
    """Return whether streams of these classes are walked in tiles."""
    return _tiled_streams(inner) > 0


def _tiled_streams(inner: Sequence[Inner]) -> int:
    return sum(kind in ("across", "interleaved") for kind in inner)


def _in_tiles(
    extents: list[int], moves: list[list[int]], readers: int
) -> tuple[list[int], list[list[int]], tuple[Inner, ...]]:
    """Make the rows of tiles the last dimension but one; no classes where nothing calls for tiles.

    Packs lie along the fast dimension of what is written, or along the longest one if that is
    tiny; rows along the dimension in which most of the other streams have neighbours.
    """
    columns = len(extents) - 1
    if extents[-1] < _FEW_PACKS:
        columns = max(range(len(extents)), key=extents.__getitem__)
    is_short, is_long = extents[columns] < _FEW_PACKS, extents[columns] > DEVICE_ROW
    if is_short or is_long or _periods(extents, moves, readers):
        return extents, moves, ()
    tiles = [
        (axis, _tile_classes(extents, moves, readers, (axis, columns)))
        for axis in range(len(extents))
        if axis != columns
    ]
    rows, inner = max(tiles, key=lambda tile: _tiled_streams(tile[1]), default=(0, ()))
    if not is_tiled(inner):
        return extents, moves, ()
    order = [axis for axis in range(len(extents)) if axis not in (rows, columns)]
    order += [rows, columns]
    return [extents[axis] for axis in order], [[m[axis] for axis in order] for m in moves], inner


def _tile_classes(
    extents: list[int], moves: list[list[int]], readers: int, axes: tuple[int, int]
) -> tuple[Inner, ...]:
    """Return the classes of all streams in tiles of these axes; none where they would not do."""
    rows, columns = axes
    inner: list[Inner] = [inner_class(move[columns], extents[columns]) for move in moves]
    width = across = 0
    for number, move in enumerate(moves):
        stride = abs(move[columns])
        if inner[number] != "strided" or abs(move[rows]) != 1:
            continue
        if number < readers and extents[rows] > _INTERLEAVED and across < _ACROSS:
            inner[number] = "across"
            across += 1
        elif (
            extents[rows] <= stride <= min(_INTERLEAVED, _ALL_INTERLEAVED - width)
            # What is written has to be all that lies there.
            and (number < readers or (move[rows], move[columns]) == (1, extents[rows]))
        ):
            inner[number] = "interleaved"
            width += stride
    return tuple(inner) if "strided" not in inner[readers:] else ()


def _in_rows(
    extents: list[int], moves: list[list[int]], readers: int, row: int
) -> tuple[list[int], list[list[int]], int, tuple[Period, ...]]:
    """Make rows long enough, but not too long; also return the last one's length and periods."""
    periods: tuple[Period, ...] = ()
    if len(extents) > 1 and extents[-1] < _SHORT_ROW and _is_worth_it(extents):
        periods = _periods(extents, moves, readers)
        extents, moves = _lengthen_rows(extents, moves, periods)
    if periods and any(period for period, _ in periods):
        return *_cut_rows(extents, moves, periods, ROW), periods
    periods = ((0, 0),) * len(moves)
    is_long = extents[-1] > 8 * row and math.prod(extents[:-1]) < _SHORT_ROW
    # A device's threads count no further.
    if len(extents) == 1 or is_long or extents[-1] > DEVICE_ROW:
        return *_cut_rows(extents, moves, periods, row), periods
    return extents, moves, extents[-1], periods


def _periods(extents: list[int], moves: list[list[int]], readers: int) -> tuple[Period, ...]:
    """Return what repeats where rows may be joined if small streams do; else nothing."""
    if len(extents) < 2:
        return ()
    inner = extents[-1]
    joined = [move[-2] == move[-1] * inner for move in moves]
    repeated = [
        index < readers and not any(move[:-1]) and not whole
        for index, (move, whole) in enumerate(zip(moves, joined, strict=True))
    ]
    if not all(whole or again for whole, again in zip(joined, repeated, strict=True)):
        return ()
    return tuple(
        (inner, move[-1]) if again else (0, 0) for move, again in zip(moves, repeated, strict=True)
    )


def _lengthen_rows(
    extents: list[int], moves: list[list[int]], periods: tuple[Period, ...]
) -> tuple[list[int], list[list[int]]]:
    """Make short rows long: repeat small streams, or walk along another dimension."""
    inner = extents[-1]
    if periods:
        rows = [
            [*move[:-2], 1 if period else move[-1]]
            for move, (period, _) in zip(moves, periods, strict=True)
        ]
        return [*extents[:-2], extents[-2] * inner], rows
    longest = max(range(len(extents)), key=extents.__getitem__)
    if inner < _FEW_PACKS <= extents[longest]:
        order = [axis for axis in range(len(extents)) if axis != longest] + [longest]
        extents = [extents[axis] for axis in order]
        moves = [[move[axis] for axis in order] for move in moves]
    return extents, moves


def _cut_rows(
    extents: list[int], moves: list[list[int]], periods: tuple[Period, ...], row: int
) -> tuple[list[int], list[list[int]], int]:
    """Cut the last dimension into rows of one length; the last row takes what is left."""
    length = extents[-1]
    period = max(period for period, _ in periods)
    unit = math.lcm(period, _PACK) if period else _SHORT_ROW
    # Rows of about the same length, in whole repetitions of what repeats in them.
    even = -(-length // -(-length // row))
    row = min(length, -(-even // unit) * unit)
    rows = -(-length // row)
    moves = [
        [*move[:-1], 0 if again else move[-1] * row, move[-1]]
        for move, (again, _) in zip(moves, periods, strict=True)
    ]
    return [*extents[:-1], rows, row], moves, length - (rows - 1) * row
