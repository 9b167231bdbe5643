"""Operands of parity tests: each array twice, from values and memory where mistakes hide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fklarray as xp
from fklarray.device import as_device

Values = np.ndarray[Any, np.dtype[Any]]

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NARROW = ("float16", "bfloat16")
FLOATS = ("float32", "float64", *NARROW)
WIDE_FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
EVERY = BOOL + NUMERIC

# ----------------------------------------------------------------------------------- values

_TAME = (0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 0.1, -0.7, 1.7, -3.3, 12.5, 1e-2)


def limits(dtype: str) -> Any:
    """Return the limits of a real floating-point data type."""
    return ml_dtypes.finfo(dtype) if dtype in NARROW else np.finfo(dtype)


@cache
def extreme_values(dtype: str) -> Values:
    """Return zeros, limits, subnormals, infinities and NaN among everyday values."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        around = [0, 1, 2, 3, 7, 31, 63, 64, 100, info.max, info.max - 1, info.min, info.min + 1]
        return np.array(around + ([-1, -2, -3, -8] if dtype in SIGNED else []), dtype)
    if dtype in COMPLEX:
        parts = [0.0, -0.0, 1.0, -2.5, 0.1, np.inf, -np.inf, np.nan]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    info = limits(dtype)
    tiny = float(info.smallest_subnormal)
    some = [*_TAME, np.inf, float(info.max), tiny, 5 * tiny, float(info.smallest_normal)]
    return np.array([*some, *(-value for value in some), np.nan]).astype(dtype)


@cache
def tame_values(dtype: str) -> Values:
    """Return values of which no sum or product of a few overflows, or comes near 0."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        return np.array([0, 1, 2, 3, 5] + ([-1, -2, -4] if dtype in SIGNED else []), dtype)
    if dtype in COMPLEX:
        return np.array([complex(a, b) for a in _TAME[:9] for b in _TAME[:9]], dtype)
    return np.array(_TAME).astype(dtype)


@cache
def summable_values(dtype: str) -> Values:
    """Return tame values, infinities and NaN."""
    tame = tame_values(dtype)
    if dtype in FLOATS:
        return np.concatenate([tame, np.array([np.inf, -np.inf, np.nan, -0.0]).astype(dtype)])
    return tame


# ----------------------------------------------------------------------------------- memory

SOURCES = ("copied", "shared", "imported", "viewed", "pending", "misaligned")


@dataclass(frozen=True, eq=False)
class Input:
    """An array of NumPy and the same one of this library.

    Attributes
    ----------
    memory : numpy.ndarray
        What the array is a view of.
    order : tuple of int
        Axes of the memory in the order of the array's.
    steps : tuple of int
        Step along each axis of the array; 0 broadcasts one element.
    shape : tuple of int
        Shape of the array.
    source : str
        How this library gets the array: copied from NumPy's view, shared with a read-only view,
        imported by DLPack, viewed by this library, pending, or copied from misaligned memory.
    """

    memory: Values
    order: tuple[int, ...]
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    source: str

    def _view(self, array: Any, namespace: Any) -> Any:
        array = namespace.permute_dims(array, self.order)
        array = array[(..., *(slice(None, None, step or 1) for step in self.steps))]
        return namespace.broadcast_to(array, self.shape) if 0 in self.steps else array

    @cached_property
    def numpy(self) -> Values:
        """NumPy's array, read-only."""
        values: Values = self._view(self.memory, np)
        values.flags.writeable = False
        return values

    @cached_property
    def ours(self) -> xp.Array:
        """This library's array, on the device that is the default when this is first asked."""
        if self.source == "viewed":
            return self._view(xp.asarray(self.memory), xp)
        if self.source == "imported" and self.memory.dtype != "bfloat16":
            theirs = np.broadcast_to(self.numpy, self.shape)
            return xp.from_dlpack(theirs, device=as_device(None))
        if self.source == "shared":
            return xp.asarray(self.numpy, copy=False if as_device(None) == "cpu" else None)
        if self.source == "misaligned":
            return xp.asarray(_misaligned(self.numpy))
        copied = xp.asarray(self.numpy, copy=True)
        return xp.where(xp.asarray(True), copied, copied) if self.source == "pending" else copied

    def __repr__(self) -> str:
        strides = tuple(s // self.memory.itemsize for s in self.numpy.strides)
        values = f"{self.numpy.tolist()}, {self.memory.dtype}"
        return f"Input({values}, shape={self.shape}, strides={strides}, {self.source})"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


def _misaligned(values: Values) -> Values:
    memory = np.empty(values.nbytes + 1, np.uint8)
    shifted = memory[1:].view(values.dtype).reshape(values.shape)
    shifted[...] = values
    shifted.flags.writeable = False
    return shifted


SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
SOLID_SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


@st.composite
def inputs(
    draw: st.DrawFn,
    dtypes: tuple[str, ...] = EVERY,
    shapes: st.SearchStrategy[tuple[int, ...]] = SHAPES,
    pool: Any = extreme_values,
) -> Input:
    """Draw an array of one of the data types, with values of a pool."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(shapes)
    plain = draw(st.booleans())
    steps = tuple(1 if plain else draw(st.sampled_from([1, 1, 2, -1, -2, 0])) for _ in shape)
    order = tuple(range(len(shape)) if plain else draw(st.permutations(range(len(shape)))))
    extents = [
        1 if step == 0 and n else n * abs(step or 1) for n, step in zip(shape, steps, strict=True)
    ]
    memory_shape = [0] * len(shape)
    for place, axis in enumerate(order):
        memory_shape[axis] = extents[place]
    size = int(np.prod(memory_shape, dtype=int))
    values = pool(dtype)
    places = draw(st.lists(st.integers(0, len(values) - 1), min_size=size, max_size=size))
    memory = values[np.array(places, np.intp)].reshape(memory_shape)
    return Input(memory, order, steps, shape, draw(st.sampled_from(SOURCES)))


# ------------------------------------------------------------------------------------ calls


@dataclass(frozen=True)
class Call:
    """Arguments of a call, with `Input` where arrays stand."""

    positional: tuple[Any, ...]
    keywords: dict[str, Any]

    @classmethod
    def of(cls, *positional: Any, **keywords: Any) -> Call:
        """Make a call of its arguments."""
        return cls(positional, keywords)

    def with_arrays(self, which: str) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with the arrays of NumPy (``"numpy"``) or ours (``"ours"``)."""
        return (
            [_chosen(value, which) for value in self.positional],
            {name: _chosen(value, which) for name, value in self.keywords.items()},
        )


def _chosen(value: Any, which: str) -> Any:
    if isinstance(value, Input):
        return getattr(value, which)
    if type(value) in (list, tuple):
        return type(value)(_chosen(item, which) for item in value)
    return value


def call(*positional: Any, **keywords: Any) -> st.SearchStrategy[Call]:
    """Draw a call: strategies among the arguments are drawn, anything else stays as it is."""
    drawn = [_strategy(value) for value in positional]
    named = {name: _strategy(value) for name, value in keywords.items()}
    return st.builds(Call, st.tuples(*drawn), st.fixed_dictionaries(named))


def _strategy(value: Any) -> st.SearchStrategy[Any]:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)


def broadcastable(count: int) -> st.SearchStrategy[tuple[tuple[int, ...], ...]]:
    """Draw shapes that broadcast together."""
    shapes = hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, min_side=0, max_side=4)
    return shapes.map(lambda drawn: drawn.input_shapes)


def axes_of(ndim: int) -> st.SearchStrategy[Any]:
    """Draw None, an axis, or several; sometimes one that is out of bounds or given twice."""
    one = st.integers(-ndim, ndim - 1) if ndim else st.nothing()
    several = st.lists(one, max_size=ndim, unique_by=lambda a: a % ndim) if ndim else st.just([])
    careless = st.one_of(
        st.integers(-ndim - 2, ndim + 1), st.lists(st.integers(-ndim, ndim), max_size=2).map(tuple)
    )
    return st.one_of(st.none(), one, several.map(tuple), one, several.map(tuple), careless)


def axis_of(ndim: int) -> st.SearchStrategy[int]:
    """Draw an axis; sometimes one that is out of bounds."""
    if ndim == 0:
        return st.integers(-1, 1)
    one = st.integers(-ndim, ndim - 1)
    return st.one_of(one, one, one, st.integers(-ndim - 2, ndim + 1))
