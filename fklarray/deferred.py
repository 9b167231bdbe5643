"""Results that something other than a fused kernel computes, when their values are needed.

A reduction, a concatenation or a gather is recorded like everything else: its result is a leaf
whose memory is not there yet. `resolved` computes such leaves, in an order in which operands come
first, before a kernel reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fklarray.recording import Leaf, State, Stream, stream_of, view_state
from fklarray_codegen.dtypes import DType
from fklarray_codegen.graph import HOST, common_place
from fklarray_codegen.layout import contiguous_strides

__all__ = [
    "MAX_DEPTH",
    "Deferred",
    "DeferredStream",
    "deferred_state",
    "depth",
    "reading",
    "resolved",
    "resolved_leaf",
    "resolved_leaves",
]

# Longest chain of deferred results before the first of them is computed.
MAX_DEPTH = 64

Compute = Callable[..., State]


class Deferred:
    """Memory of a result that is yet to be computed, as far as leaves need to know it.

    Attributes
    ----------
    nbytes : int
        Memory that the result will take and that its operands hold until then, at most.
    result_bytes : int
        Memory that the result will take.
    depth : int
        Length of the longest chain of deferred results that ends here.
    """

    __slots__ = ("__weakref__", "_recipe", "_result", "depth", "nbytes", "result_bytes")

    # What the runtime's blocks have; no address equals this one.
    address = -1
    readonly = True
    imported = False
    shared = True

    def __init__(self, compute: Compute, operands: tuple[State, ...], nbytes: int) -> None:
        self._recipe: tuple[Compute, tuple[State, ...]] | None = (compute, operands)
        self._result: Stream | None = None
        self.depth = 1 + max(map(depth, operands), default=0)
        blocks = {id(leaf.buffer): leaf.buffer.nbytes for leaf in _streams(operands)}
        self.result_bytes = nbytes
        self.nbytes = nbytes + sum(blocks.values())

    @property
    def place(self) -> str:
        """Name of the device that the result will be on.

        Raises
        ------
        ValueError
            If the operands are on different devices.
        """
        recipe = self._recipe
        if recipe is None:
            return self.result().buffer.place
        return common_place([node for node, _ in recipe[1]]) or HOST

    @property
    def is_pending(self) -> bool:
        """Whether the result is yet to be computed."""
        return self._recipe is not None

    @property
    def computes(self) -> Compute | None:
        """What computes the result; None once it is there."""
        recipe = self._recipe
        return None if recipe is None else recipe[0]

    def view(self) -> memoryview:
        """Return the bytes of the result, computed now."""
        return self.result().buffer.view()  # type: ignore[no-any-return]

    def missing(self) -> list[Deferred]:
        """Return the deferred operands that are to be computed first."""
        recipe = self._recipe
        if recipe is None:
            return []
        return [
            leaf.buffer
            for leaf in _streams(recipe[1])
            if isinstance(leaf.buffer, Deferred) and leaf.buffer.is_pending
        ]

    def sources(self) -> list[Stream]:
        """Return what the result is computed from; once it is computed, the result."""
        recipe = self._recipe
        return [self.result()] if recipe is None else _streams(recipe[1])

    def result(self) -> Stream:
        """Return the result in memory, computed once; its operands are let go then."""
        recipe = self._recipe
        if recipe is not None:
            compute, operands = recipe
            result = stream_of(self._run(compute, [resolved(state) for state in operands]))
            # Of two threads that computed the same, one wins: the other's memory is dropped.
            self.settle(result)
        assert self._result is not None
        return self._result

    def _run(self, compute: Compute, operands: Sequence[State]) -> State:
        return compute(*operands)

    def settle(self, result: Stream) -> None:
        """Take a result that was computed, and let the operands go; the first one stays."""
        self._result = self._result or result
        self._recipe = None


class DeferredStream(Stream):
    """A stream over the memory of a deferred result; its address is counted from there."""

    __slots__ = ("_resolved",)

    deferred = True

    def __init__(self, buffer: Deferred, address: int, strides: tuple[int, ...]) -> None:
        super().__init__(buffer, address, strides)
        self._resolved: Stream | None = None

    def moved(self, address: int, strides: tuple[int, ...]) -> Stream:
        """Return a stream over the same memory."""
        assert isinstance(self.buffer, Deferred)
        return DeferredStream(self.buffer, address, strides)

    def resolve(self) -> Stream:
        """Return the stream over the computed result, the same one every time."""
        if self._resolved is None:
            assert isinstance(self.buffer, Deferred)
            whole = self.buffer.result()
            self._resolved = Stream(whole.buffer, whole.value + self.value, self.strides)
        return self._resolved


def _streams(states: Sequence[State]) -> list[Stream]:
    return [leaf for _, leaves in states for leaf in leaves if isinstance(leaf, Stream)]


def depth(state: State) -> int:
    """Return the length of the longest chain of deferred results that a state reads."""
    longest = 0
    for leaf in state[1]:
        if leaf.deferred and isinstance(leaf, Stream) and isinstance(leaf.buffer, Deferred):
            longest = max(longest, leaf.buffer.depth)
    return longest


def deferred_state(
    compute: Compute, operands: tuple[State, ...], dtype: DType, shape: tuple[int, ...]
) -> State:
    """Return the state of a result that is computed when it is needed.

    Parameters
    ----------
    compute : callable
        Takes the operands' states, without deferred leaves, and returns the state of a
        C-contiguous array in memory.
    operands : tuple of State
        Kept until then.
    dtype, shape
        Of the result.
    """
    memory = Deferred(compute, operands, math.prod(shape) * dtype.itemsize)
    return reading(memory, dtype, shape)


def reading(memory: Deferred, dtype: DType, shape: tuple[int, ...]) -> State:
    """Return the state of a deferred result as a whole."""
    return view_state(DeferredStream(memory, 0, contiguous_strides(shape)), dtype)


def resolved(state: State) -> State:
    """Return a state whose leaves are all in memory, computing those that are not."""
    node, leaves = state
    in_memory = resolved_leaves(leaves)
    return state if in_memory is leaves else (node, in_memory)


def resolved_leaf(leaf: Leaf) -> Leaf:
    """Return the same leaf in memory."""
    return resolved_leaves((leaf,))[0]


def resolved_leaves(leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """Return the same leaves in memory, computing those that are not; themselves if all are."""
    for leaf in leaves:
        if leaf.deferred:
            return _resolved_leaves(leaves)
    return leaves


def _resolved_leaves(leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    deferred = [leaf for leaf in leaves if isinstance(leaf, DeferredStream)]
    # A stack of our own: chains may be longer than Python's lets calls be.
    waiting = [leaf.buffer for leaf in deferred if isinstance(leaf.buffer, Deferred)]
    while waiting:
        missing = waiting[-1].missing()
        if missing:
            waiting.extend(missing)
        else:
            waiting.pop().result()
    return tuple(leaf.resolve() if isinstance(leaf, DeferredStream) else leaf for leaf in leaves)
