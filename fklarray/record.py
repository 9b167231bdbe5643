"""Recording an operation: operands of any kind, data types, shapes and size limits are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fklarray.core import in_front
from fklarray.deferred import MAX_DEPTH, Deferred, deferred_state, depth
from fklarray.dtype_rows import scalar_dtype
from fklarray.evaluation import count, evaluate, evaluate_deferred, evaluate_reduction
from fklarray.fusion import MAX_PASSES, PendingReduction, outcome, passes_of, reduction_state
from fklarray.interchange import state_of_numpy
from fklarray.pending import admit
from fklarray.recording import (
    State,
    cast_state,
    combine,
    combine_outputs,
    common_dtype,
    compare_out_of_range,
    is_contiguous,
    on_bool,
    operand_dtype,
    scalar_state,
    stream_of,
    too_large,
    too_many_leaves,
    weak_dtype,
)
from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.graph import HOST, MAX_OPERATIONS, common_place
from fklarray_codegen.layout import broadcast_shapes
from fklarray_codegen.ops import OPS, Op, Reduction
from fklarray_codegen.walk import Rows

if TYPE_CHECKING:
    from fklarray.array import Array

__all__ = [
    "Number",
    "Operand",
    "Recorded",
    "compute_together",
    "in_order",
    "promoted",
    "record",
    "record_deferred",
    "record_reduction",
    "record_where",
    "reduce_pending",
    "within_limits",
]

Number: TypeAlias = bool | int | float | complex
# What may stand on the other side of an operator.
Operand: TypeAlias = "Array | Number | np.ndarray[Any, Any] | np.generic"


class Recorded:
    """A shape and a recorded expression.

    Parameters
    ----------
    shape : tuple of int
        Shape of the result.
    state : State
        The expression, whose result broadcasts to the shape.
    """

    __slots__ = ("__weakref__", "_shape", "_state")

    _shape: tuple[int, ...]
    _state: State

    # The class of results, set by the module that defines it.
    array: type[Array]

    def __init__(self, shape: tuple[int, ...], state: State) -> None:
        self._shape = shape
        self._state = state

    @in_front("materialize")
    def _materialize(self) -> State:
        """Compute what is pending; return the state, an array that fills its memory in C order."""
        pending = self._state
        if is_contiguous(pending, self._shape):
            return pending
        # A deferred result may be all that there is to compute.
        state = pending if pending[0].operations else evaluate_deferred(*pending, self._shape)
        if state is pending or not is_contiguous(state, self._shape):
            (state,) = evaluate(*state, self._shape, is_flush=True)
        else:
            count("flushes")
        # An assignment in another thread meanwhile wins.
        if self._state is pending:
            self._state = state
        return state

    def _shared(self) -> State:
        """Return the state for functions that read memory; what is pending has one result then.

        Without it, such a function and a later kernel would both compute the expression.
        """
        pending = self._state
        node = pending[0]
        if node.operations == 0:
            return pending
        # Where it is broadcast, one element stands for all.
        shape = _distinct(pending, self._shape)
        state = deferred_state(in_order(shape), (pending,), node.dtype, shape)
        # An assignment in another thread meanwhile wins.
        if self._state is pending:
            self._state = state
        return state


def _distinct(state: State, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with one element along the axes along which nothing differs."""
    ndim = len(shape)
    moving = {
        axis
        for leaf in state[1]
        for axis, stride in enumerate(leaf.strides, ndim - len(leaf.strides))
        if stride
    }
    return tuple(extent if axis in moving else min(extent, 1) for axis, extent in enumerate(shape))


def record(op: Op, *operands: Operand) -> Array:
    """Record an elementwise operation.

    Raises
    ------
    TypeError
        If the operation does not accept the operands' data types, or no operand is an array.
    ValueError
        If the operands' shapes cannot be broadcast together.
    OverflowError
        If a Python integer is out of the range of the integer data type it meets.
    """
    converted = _operands(op, operands)
    if op.name == "pow" and _is_square(*converted):
        # As exact as a product, and what NumPy does.
        return record(OPS["square"], *operands[:1])
    return within_limits(lambda: _recorded(op, converted), converted)


def _is_square(base: Array | Number, exponent: Array | Number) -> bool:
    if not (isinstance(base, Recorded) and isinstance(exponent, int | float)):
        return False
    dtype = base._state[0].dtype
    return exponent == 2 and dtype.kind != "bool" and weak_dtype(dtype, exponent) is dtype


def record_where(condition: Operand, x1: Operand, x2: Operand) -> Array:
    """Record a selection; raises as `record` does."""
    op = OPS["where"]
    mask, *values = _operands(op, (condition, x1, x2))
    if not isinstance(mask, Recorded):
        raise TypeError(f"where needs an array as its condition, not {condition!r}")
    dtype = _common(op, values) if any(isinstance(value, Recorded) for value in values) else None
    if dtype is None:
        dtype = common_dtype([scalar_dtype(value) for value in values])  # type: ignore[arg-type]

    def recorded() -> Array:
        states = [_state(value, dtype) for value in values]
        shapes = [value._shape for value in (mask, *values) if isinstance(value, Recorded)]
        return Recorded.array(
            broadcast_shapes(*shapes),
            combine(op, cast_state(mask._state, DTYPES["bool"]), *states),
        )

    return within_limits(recorded, [mask, *values])


def within_limits(recorded: Callable[[], Array], operands: Sequence[Array | Number]) -> Array:
    """Record; an expression that has grown too large starts anew from its operands' values.

    Parameters
    ----------
    recorded : callable
        Records on the operands as they are.
    operands : sequence
        Operands; scalars among them are passed over.
    """
    result = recorded()
    if too_large(result._state):
        compute_together([operand for operand in operands if isinstance(operand, Recorded)])
        result = recorded()
    return result


def in_order(shape: tuple[int, ...]) -> Callable[[State], State]:
    """Return what computes an expression into memory of its own, in C order."""

    def compute(state: State) -> State:
        (computed,) = evaluate(*state, shape)
        return computed

    return compute


def record_deferred(
    compute: Callable[..., State],
    operands: Sequence[Recorded],
    dtype: DType,
    shape: tuple[int, ...],
    *,
    fused: bool = False,
) -> Array:
    """Record something other than an elementwise operation.

    Parameters
    ----------
    compute : callable
        Takes the operands' states and returns the state of a C-contiguous array in memory.
    operands : sequence of Recorded
        Each is computed at most once, whoever reads it besides, unless they are `fused`.
    dtype, shape
        Of the result.
    fused : bool
        Whether `compute` runs pending operands as part of kernels of its own.
    """
    for operand in operands:
        if depth(operand._state) >= MAX_DEPTH:
            operand._materialize()
    states = tuple(operand._state if fused else operand._shared() for operand in operands)
    state = deferred_state(compute, states, dtype, shape)
    return _admitted(shape, state)


def record_reduction(reduction: Reduction, operand: Recorded, rows: Rows) -> Array:
    """Record a reduction of neighbouring axes, none of them empty; they are left out, or scanned.

    Parameters
    ----------
    reduction : Reduction
        Row of the table of reductions, which accepts the data type of the operand.
    operand : Recorded
        What is reduced; it need not be computed for itself.
    rows : Rows
        The axes.
    """
    deep = depth(operand._state)
    if deep >= MAX_DEPTH:
        operand._materialize()
    is_long = deep >= MAX_PASSES and passes_of(operand._state) >= MAX_PASSES
    reduced = operand._shared() if is_long else operand._state
    state = reduction_state(reduce_pending, reduction, reduced, operand._shape, rows)
    _, shape, _ = outcome(reduction, reduced[0].dtype, operand._shape, rows)
    return _admitted(shape, state)


def reduce_pending(memory: PendingReduction, operand: State) -> State:
    """Compute a pending reduction of an operand without deferred leaves."""
    return evaluate_reduction(memory.reduction, operand, memory.shape, memory.rows)


def _admitted(shape: tuple[int, ...], state: State) -> Array:
    memory = stream_of(state).buffer
    assert isinstance(memory, Deferred)
    admit(memory)
    return Recorded.array(shape, state)


def compute_together(arrays: Sequence[Recorded]) -> None:
    """Compute pending arrays; those of one shape as one kernel that writes them all."""
    if len(arrays) == 1:
        arrays[0]._materialize()
        return
    pending: dict[tuple[int, ...], list[Recorded]] = {}
    for array in arrays:
        if not is_contiguous(array._state, array._shape):
            pending.setdefault(array._shape, []).append(array)
    for shape, group in pending.items():
        states = tuple(array._state for array in group)
        joined = combine_outputs(states)
        if len(group) == 1 or joined[0].operations > _MAX_TOGETHER or too_many_leaves(joined):
            for array in group:
                array._materialize()
            continue
        computed = evaluate(*joined, shape, is_flush=True)
        for array, before, state in zip(group, states, computed, strict=True):
            # An assignment in another thread meanwhile wins.
            if array._state is before:
                array._state = state


def _operands(op: Op, operands: Sequence[Operand]) -> list[Array | Number]:
    """Return operands as arrays and numbers; arrays of NumPy are taken to where the others are."""
    place = common_place([one._state[0] for one in operands if isinstance(one, Recorded)])
    return [_operand(op, value, place or HOST) for value in operands]


def _operand(op: Op, value: Any, place: str) -> Array | Number:
    foreign: Any = value
    if isinstance(value, Recorded.array) or type(value) in _NUMBERS:
        known: Array | Number = foreign
        return known
    if isinstance(value, (np.ndarray, np.generic)):
        array: np.ndarray[Any, Any] = np.asarray(foreign)
        return Recorded.array(array.shape, state_of_numpy(array, None, place))
    if isinstance(value, (int, float, complex)):
        return value
    raise TypeError(f"{op.name} takes arrays and Python scalars, not {type(value).__name__}")


def _common(op: Op, operands: list[Array | Number]) -> DType:
    return operand_dtype(op, promoted(op.name, operands))


def promoted(function: str, operands: Sequence[Array | Number]) -> DType:
    """Return the data type that arrays and Python scalars promote to.

    Raises
    ------
    TypeError
        If there is no array.
    """
    arrays = [operand for operand in operands if isinstance(operand, Recorded)]
    if not arrays:
        raise TypeError(f"{function} needs at least one array; got {operands!r}")
    dtype = common_dtype([array._state[0].dtype for array in arrays])
    for operand in operands:
        if not isinstance(operand, Recorded):
            dtype = weak_dtype(dtype, operand)
    return dtype


def _state(operand: Array | Number, dtype: DType) -> State:
    if isinstance(operand, Recorded):
        return cast_state(operand._state, dtype)
    return scalar_state(operand, dtype)


def _recorded(op: Op, operands: list[Array | Number]) -> Array:
    dtype = _common(op, operands)
    if op.family == "comparison" and dtype.kind == "real" and _are_integers(operands):
        return _compare_mixed_signs(op, *operands)
    shapes = [operand._shape for operand in operands if isinstance(operand, Recorded)]
    shape = shapes[0] if shapes.count(shapes[0]) == len(shapes) else broadcast_shapes(*shapes)
    try:
        states = [_state(operand, dtype) for operand in operands]
    except OverflowError:
        if op.family != "comparison" or dtype.kind not in ("signed", "unsigned"):
            raise
        array_first = isinstance(operands[0], Recorded)
        (place,) = [one._state[0].place for one in operands if isinstance(one, Recorded)]
        (number,) = [operand for operand in operands if isinstance(operand, int)]
        return Recorded.array(shape, compare_out_of_range(op, number, array_first, place))
    done = on_bool(op) if dtype.kind == "bool" else op
    return Recorded.array(shape, states[0] if done is None else combine(done, *states))


def _are_integers(operands: list[Array | Number]) -> bool:
    return all(
        isinstance(operand, Recorded) and operand._state[0].dtype.kind in ("signed", "unsigned")
        for operand in operands
    )


def _compare_mixed_signs(op: Op, first: Any, second: Any) -> Array:
    """Compare int64 with uint64 exactly, as NumPy does, though no type holds both."""
    if first._state[0].dtype.kind == "unsigned":
        mirrored = {"less": "greater", "greater": "less"}
        name = op.name
        for word, other in mirrored.items():
            if op.name.startswith(word):
                name = op.name.replace(word, other)
        return _compare_mixed_signs(OPS[name], second, first)
    negative = record(OPS["less"], first, 0)
    unsigned = Recorded.array(first._shape, cast_state(first._state, DTYPES["uint64"]))
    compared = record(op, unsigned, second)
    # A negative number is less than, and not equal to, any unsigned one.
    if op.name in ("less", "less_equal", "not_equal"):
        return record(OPS["logical_or"], negative, compared)
    return record(OPS["logical_and"], record(OPS["logical_not"], negative), compared)


# Operands of an expression that has grown too large share most of it: a few more are let pass.
_MAX_TOGETHER = MAX_OPERATIONS + 16

_NUMBERS = (bool, int, float, complex)
