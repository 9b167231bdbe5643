"""Recording: expressions as a structure (`Node`) beside the leaves that it computes on.

A *state* is such a pair, and all that an array is besides its shape. Recording an operation merges
the operands' leaves, the same leaf once, and looks the structure up; it touches no data.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Protocol, TypeAlias

from fklarray_codegen.dtypes import DTYPES, DType, promote
from fklarray_codegen.graph import (
    HOST,
    MAX_LEAVES,
    MAX_OPERATIONS,
    SCALARS,
    Node,
    apply,
    cast,
    leaf_node,
    outputs,
)
from fklarray_codegen.layout import contiguous_strides
from fklarray_codegen.ops import ACCEPTED, OPS, Op

__all__ = [
    "HOST",
    "Leaf",
    "Memory",
    "Scalar",
    "State",
    "Stream",
    "cast_state",
    "combine",
    "combine_outputs",
    "common_dtype",
    "compare_out_of_range",
    "constant_state",
    "is_contiguous",
    "is_stream",
    "merge",
    "on_bool",
    "operand_dtype",
    "scalar_state",
    "stream_of",
    "stream_state",
    "too_large",
    "too_many_leaves",
    "view_state",
    "weak_dtype",
]

# Pending expressions keep their inputs alive: beyond so many arrays, no more bytes than this.
FEW_STREAMS = 8
_MAX_STREAM_BYTES = 512 << 20

# What NumPy makes of bool operands where the standard asks for numbers.
_ON_BOOL = {
    "abs": "", "add": "logical_or", "ceil": "", "floor": "", "maximum": "logical_or",
    "minimum": "logical_and", "multiply": "logical_and", "real": "", "round": "", "trunc": "",
}  # fmt: skip
_BOOL_AS_INT8 = {
    "bitwise_left_shift", "bitwise_right_shift", "conj", "floor_divide", "pow", "remainder",
    "square",
}  # fmt: skip

_FLOAT32_MAX = 3.4028234663852886e38


class Memory(Protocol):
    """A block of memory of the runtime."""

    address: int
    nbytes: int
    readonly: bool

    @property
    def place(self) -> str:
        """Name of the device that it is on."""
        ...

    @property
    def imported(self) -> bool:
        """Whether the memory came from somebody outside this library."""
        ...

    @property
    def shared(self) -> bool:
        """Whether somebody outside this library refers to the block."""
        ...

    def view(self) -> Any:
        """Return the bytes as an object with the buffer protocol, which keeps them alive."""
        ...


class Stream:
    """An array in memory as a kernel reads it. Immutable; its identity is what sharing means.

    Attributes
    ----------
    buffer : Memory
        The block of memory.
    value : int
        Address of the first element.
    strides : tuple of int
        In elements, aligned at the last dimension of the array; 0 along dimensions of one element.
    """

    __slots__ = ("buffer", "strides", "value")

    # Whether the memory is yet to be computed (see `fklarray.deferred`).
    deferred = False

    def __init__(self, buffer: Memory, address: int, strides: tuple[int, ...]) -> None:
        self.buffer = buffer
        self.value = address
        self.strides = strides

    def moved(self, address: int, strides: tuple[int, ...]) -> Stream:
        """Return a stream over the same memory with another start and other strides."""
        return Stream(self.buffer, address, strides)


class Scalar:
    """A number that a kernel gets as a parameter, already of its data type's kind and range."""

    __slots__ = ("value",)

    strides: tuple[int, ...] = ()
    deferred = False

    def __init__(self, value: complex) -> None:
        self.value = value


Leaf: TypeAlias = Stream | Scalar
State: TypeAlias = tuple[Node, tuple[Leaf, ...]]


@cache
def _numbers(start: int, count: int) -> tuple[int, ...]:
    return tuple(range(start, start + count))


def stream_state(buffer: Memory, dtype: DType, shape: tuple[int, ...]) -> State:
    """Return the state of a C-contiguous array that fills a buffer from its start."""
    return view_state(Stream(buffer, buffer.address, contiguous_strides(shape)), dtype)


def view_state(stream: Stream, dtype: DType) -> State:
    """Return the state of an array in memory with any strides."""
    return leaf_node("stream", dtype, stream.buffer.place), (stream,)


def is_stream(state: State) -> bool:
    """Return whether a state is an array in memory, with any strides, and nothing pending."""
    return state[0].op == "stream" and not state[1][0].deferred


def is_contiguous(state: State, shape: tuple[int, ...]) -> bool:
    """Return whether a state is an array that fills its memory from the start in C order."""
    return (
        is_stream(state)
        and state[1][0].strides == contiguous_strides(shape)
        and stream_of(state).value == stream_of(state).buffer.address
    )


def stream_of(state: State) -> Stream:
    """Return the stream of a state that is an array in memory."""
    stream = state[1][0]
    assert isinstance(stream, Stream)
    return stream


def scalar_state(value: complex, dtype: DType) -> State:
    """Return the state of a number.

    Raises
    ------
    OverflowError
        If an integer is outside the range of an integer data type.
    TypeError
        If a complex number would become a real one.
    """
    return SCALARS[dtype], (Scalar(_represent(value, dtype)),)


def constant_state(value: complex, dtype: DType, place: str) -> State:
    """Return the state of an array of one value on a device; raises as `scalar_state` does."""
    return leaf_node("scalar", dtype, place), (Scalar(_represent(value, dtype)),)


def _represent(value: complex, dtype: DType) -> complex:
    kind = dtype.kind
    if kind == "real":
        return _component(float(value), dtype.bits)  # type: ignore[arg-type]
    if kind == "complex":
        bits = dtype.bits // 2
        return complex(_component(value.real, bits), _component(value.imag, bits))
    if kind == "bool":
        return bool(value)
    number: int = int(value)  # type: ignore[call-overload]
    low, high = (-(1 << dtype.bits - 1), 1 << dtype.bits - 1)
    if kind == "unsigned":
        low, high = 0, 1 << dtype.bits
    if not low <= number < high:
        raise OverflowError(f"Python integer {number} is out of bounds for {dtype}")
    return number


def _component(number: float, bits: int) -> float:
    # Out of float32's range but not of float64's: infinite, as the conversion rounds.
    return _round_to_float32(number) if bits == 32 and abs(number) > _FLOAT32_MAX else number


def _round_to_float32(number: float) -> float:
    # Half a unit beyond the largest finite value is where rounding reaches infinity.
    limit = math.inf if abs(number) >= _FLOAT32_MAX * (1 + 2.0**-25) else _FLOAT32_MAX
    return math.copysign(limit, number)


def weak_dtype(dtype: DType, value: complex) -> DType:
    """Return the common data type of an array and a Python scalar, which is weak.

    The scalar takes the array's type where its kind fits into it, and the default type of its kind
    (with the array's precision) where it does not: NumPy's rule since 2.0.
    """
    if isinstance(value, bool):
        return dtype
    if isinstance(value, int):
        return DTYPES["int64"] if dtype.kind == "bool" else dtype
    if isinstance(value, float):
        return dtype if dtype.kind in ("real", "complex") else DTYPES["float64"]
    if dtype.kind == "real":
        return DTYPES[f"complex{max(64, 2 * dtype.bits)}"]
    return dtype if dtype.kind == "complex" else DTYPES["complex128"]


def compare_out_of_range(op: Op, number: int, array_first: bool, place: str) -> State:
    """Return the outcome of comparing integers with a Python integer beyond their range."""
    array_is_less = number > 0
    if op.name in ("equal", "not_equal"):
        outcome = op.name == "not_equal"
    else:
        outcome = (op.name.startswith("less") == array_first) == array_is_less
    return constant_state(outcome, DTYPES["bool"], place)


def operand_dtype(op: Op, dtype: DType) -> DType:
    """Return the data type that an operation computes in.

    Integers become float64 where an operation is defined for floating-point numbers only, and
    anything becomes bool where it is defined for bool only. Where an operation is defined for
    numbers, bool stays (`on_bool` has what it means then) or becomes int8, as in NumPy.

    Raises
    ------
    TypeError
        If the operation does not accept the data type.
    """
    if dtype in ACCEPTED[op.accepts]:
        return dtype
    if dtype.kind == "bool" and op.name in _ON_BOOL:
        return dtype
    asks = op.result == "bool" and op.accepts.endswith("numeric")
    if dtype.kind == "bool" and (asks or op.name in _BOOL_AS_INT8):
        return DTYPES["int8"]
    if op.accepts == "boolean":
        return DTYPES["bool"]
    if op.accepts in ("floating-point", "real floating-point") and dtype.kind != "complex":
        return DTYPES["float64"]
    raise TypeError(f"{op.name} accepts {op.accepts} data types, not {dtype}")


def on_bool(op: Op) -> Op | None:
    """Return the operation that does another one's work on bool; None if nothing is to be done."""
    name = _ON_BOOL.get(op.name, op.name)
    return OPS[name] if name else None


def cast_state(state: State, dtype: DType) -> State:
    """Return the state converted to a data type."""
    node, leaves = state
    return state if node.dtype is dtype else (cast(node, dtype), leaves)


def combine(op: Op, *states: State) -> State:
    """Record an operation on operands whose data types are right already."""
    nodes, slots, leaves = _join(states)
    return apply(op, nodes, slots), leaves


def combine_outputs(states: tuple[State, ...]) -> State:
    """Return the state of a kernel that computes several results over one index space."""
    nodes, slots, leaves = _join(states)
    return outputs(nodes, slots), leaves


def _join(
    states: tuple[State, ...],
) -> tuple[tuple[Node, ...], tuple[tuple[int, ...], ...], tuple[Leaf, ...]]:
    """Merge the operands' leaves, the same leaf once."""
    node, leaves = states[0]
    nodes = [node]
    slots = [_numbers(0, len(leaves))]
    for operand, more in states[1:]:
        nodes.append(operand)
        if more is leaves:
            slots.append(_numbers(0, len(leaves)))
        elif any(leaf in leaves for leaf in more):
            leaves, slot = merge(leaves, more)
            slots.append(slot)
        else:
            slots.append(_numbers(len(leaves), len(more)))
            leaves += more
    return tuple(nodes), tuple(slots), leaves


def merge(
    leaves: tuple[Leaf, ...], more: tuple[Leaf, ...]
) -> tuple[tuple[Leaf, ...], tuple[int, ...]]:
    """Add the leaves of a further operand; return all, and the numbers of the operand's."""
    # Leaves are compared by identity; each is among the operand's leaves once.
    places = dict(zip(leaves, _numbers(0, len(leaves)), strict=True))
    merged = list(leaves)
    slot: list[int] = []
    for leaf in more:
        place = places.get(leaf)
        if place is None:
            place = len(merged)
            merged.append(leaf)
        slot.append(place)
    return tuple(merged), tuple(slot)


def too_large(state: State) -> bool:
    """Return whether a pending expression has outgrown what one kernel should do."""
    return state[0].operations > MAX_OPERATIONS or too_many_leaves(state)


def too_many_leaves(state: State) -> bool:
    """Return whether a pending expression reads too many numbers, or keeps too much memory."""
    node, leaves = state
    if len(leaves) > MAX_LEAVES:
        return True
    if node.streams <= FEW_STREAMS:
        return False
    blocks = {id(leaf.buffer): leaf.buffer for leaf in leaves if isinstance(leaf, Stream)}
    return (
        len(blocks) > FEW_STREAMS
        and sum(block.nbytes for block in blocks.values()) > _MAX_STREAM_BYTES
    )


def common_dtype(dtypes: list[DType]) -> DType:
    """Return the data type that all of the given ones promote to."""
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    return result
