"""Recording operations on arrays, and the operators that do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fklarray.dtype_rows import scalar_dtype
from fklarray.evaluation import evaluate
from fklarray.interchange import state_of_numpy
from fklarray.recording import (
    FEW_STREAMS,
    Scalar,
    State,
    cast_state,
    combine,
    common_dtype,
    compare_out_of_range,
    is_contiguous,
    merge,
    operand_dtype,
    scalar_state,
    too_large,
    weak_dtype,
)
from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.graph import Node
from fklarray_codegen.layout import broadcast_shapes
from fklarray_codegen.ops import OPS, Op

if TYPE_CHECKING:
    from fklarray.array import Array

__all__ = ["Number", "Operand", "Operators", "Shortcuts", "record", "record_where", "within_limits"]

Number: TypeAlias = bool | int | float | complex
# What may stand on the other side of an operator.
Operand: TypeAlias = "Array | Number | np.ndarray[Any, Any] | np.generic"


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
    converted = [_operand(op, value) for value in operands]
    if op.name == "pow" and _is_square(*converted):
        # As exact as a product, and what NumPy does.
        return record(OPS["square"], *operands[:1])
    return within_limits(lambda: _recorded(op, converted), converted)


def _is_square(base: Array | Number, exponent: Array | Number) -> bool:
    if not (isinstance(base, Operators) and isinstance(exponent, int | float)):
        return False
    dtype = base._state[0].dtype
    return exponent == 2 and dtype.kind != "bool" and weak_dtype(dtype, exponent) is dtype


def record_where(condition: Operand, x1: Operand, x2: Operand) -> Array:
    """Record a selection; raises as `record` does."""
    op = OPS["where"]
    mask, *values = [_operand(op, value) for value in (condition, x1, x2)]
    if not isinstance(mask, Operators):
        raise TypeError(f"where needs an array as its condition, not {condition!r}")
    dtype = _common(op, values) if any(isinstance(value, Operators) for value in values) else None
    if dtype is None:
        dtype = common_dtype([scalar_dtype(value) for value in values])  # type: ignore[arg-type]

    def recorded() -> Array:
        states = [_state(value, dtype) for value in values]
        shapes = [value._shape for value in (mask, *values) if isinstance(value, Operators)]
        return Operators.array(
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
        for operand in operands:
            if isinstance(operand, Operators):
                operand._materialize()
        result = recorded()
    return result


def _operand(op: Op, value: Any) -> Array | Number:
    foreign: Any = value
    if isinstance(value, Operators.array) or type(value) in _NUMBERS:
        known: Array | Number = foreign
        return known
    if isinstance(value, (np.ndarray, np.generic)):
        array: np.ndarray[Any, Any] = np.asarray(foreign)
        return Operators.array(array.shape, state_of_numpy(array, None))
    if isinstance(value, (int, float, complex)):
        return value
    raise TypeError(f"{op.name} takes arrays and Python scalars, not {type(value).__name__}")


def _common(op: Op, operands: list[Array | Number]) -> DType:
    arrays = [operand for operand in operands if isinstance(operand, Operators)]
    if not arrays:
        raise TypeError(f"{op.name} needs at least one array; got {operands!r}")
    dtype = common_dtype([array._state[0].dtype for array in arrays])
    for operand in operands:
        if not isinstance(operand, Operators):
            dtype = weak_dtype(dtype, operand)
    return operand_dtype(op, dtype)


def _state(operand: Array | Number, dtype: DType) -> State:
    if isinstance(operand, Operators):
        return cast_state(operand._state, dtype)
    return scalar_state(operand, dtype)


def _recorded(op: Op, operands: list[Array | Number]) -> Array:
    dtype = _common(op, operands)
    if op.family == "comparison" and dtype.kind == "real" and _are_integers(operands):
        return _compare_mixed_signs(op, *operands)
    shapes = [operand._shape for operand in operands if isinstance(operand, Operators)]
    shape = shapes[0] if shapes.count(shapes[0]) == len(shapes) else broadcast_shapes(*shapes)
    try:
        states = [_state(operand, dtype) for operand in operands]
    except OverflowError:
        if op.family != "comparison" or dtype.kind not in ("signed", "unsigned"):
            raise
        array_first = isinstance(operands[0], Operators)
        (number,) = [operand for operand in operands if isinstance(operand, int)]
        return Operators.array(shape, compare_out_of_range(op, number, array_first))
    return Operators.array(shape, combine(op, *states))


class Shortcuts:
    """Structures of one operation's most frequent uses, found again without any checking.

    They hold for operands whose data types were checked when they were first met: an array alone,
    a floating-point array with a Python number, or two arrays of one data type.
    """

    __slots__ = ("_known", "_op")

    def __init__(self, op: Op) -> None:
        self._op = op
        self._known: dict[tuple[object, ...], Node] = {}

    def unary(self, x: Any) -> Array:
        """Record the operation on one array."""
        if not isinstance(x, Operators.array):
            return record(self._op, x)
        state = x._state
        key = (state[0],)
        known = self._known.get(key)
        if known is not None:
            return Operators.array(x._shape, (known, state[1]))
        result = record(self._op, x)
        if x._state is state:
            self._learn(key, result)
        return result

    def binary(self, x1: Array, x2: Any) -> Array:
        """Record the operation on an array and anything."""
        if not isinstance(x2, Operators.array):
            return self._with_number(x1, x2, False)
        state, other = x1._state, x2._state
        leaves, more = state[1], other[1]
        if more is leaves or any(map(leaves.__contains__, more)):
            leaves, slot = merge(leaves, more)
            key: tuple[object, ...] = (state[0], other[0], slot)
        else:
            leaves += more
            key = (state[0], other[0])
        known = self._known.get(key)
        if known is not None:
            shape = x1._shape
            if x2._shape != shape:
                shape = broadcast_shapes(shape, x2._shape)
            return Operators.array(shape, (known, leaves))
        result = record(self._op, x1, x2)
        if state[0].dtype is other[0].dtype and x1._state is state and x2._state is other:
            self._learn(key, result)
        return result

    def reflected(self, x2: Array, x1: Any) -> Array:
        """Record the operation on anything but an array, and an array."""
        return self._with_number(x2, x1, True)

    def _with_number(self, array: Array, number: Any, reflected: bool) -> Array:
        state = array._state
        node, leaves = state
        key = (node, reflected, "number")
        # Not a range in which rounding to the array's type could overflow, and no NaN.
        if (type(number) is float or type(number) is int) and -_SAFE < number < _SAFE:
            known = self._known.get(key)
            if known is not None:
                scalar = (Scalar(float(number)),)
                leaves = scalar + leaves if reflected else leaves + scalar
                return Operators.array(array._shape, (known, leaves))
        result = record(self._op, *((number, array) if reflected else (array, number)))
        # A power's structure depends on the exponent, and integers on their range.
        usual = node.dtype.kind == "real" and self._op.name != "pow"
        if usual and type(number) in (float, int) and array._state is state:
            self._learn(key, result)
        return result

    def _learn(self, key: tuple[object, ...], result: Array) -> None:
        """Remember a structure, unless how much memory its operands hold must be looked at.

        The caller has seen that recording left the operands as they were: they had not grown so
        large that they were computed first.
        """
        node = result._state[0]
        if node.streams <= FEW_STREAMS:
            if len(self._known) > _MAX_SHORTCUTS:
                self._known.clear()
            self._known[key] = node


_MAX_SHORTCUTS = 1 << 12
_SAFE = 1e38


def _are_integers(operands: list[Array | Number]) -> bool:
    return all(
        isinstance(operand, Operators) and operand._state[0].dtype.kind in ("signed", "unsigned")
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
    unsigned = Operators.array(first._shape, cast_state(first._state, DTYPES["uint64"]))
    compared = record(op, unsigned, second)
    # A negative number is less than, and not equal to, any unsigned one.
    if op.name in ("less", "less_equal", "not_equal"):
        return record(OPS["logical_or"], negative, compared)
    return record(OPS["logical_and"], record(OPS["logical_not"], negative), compared)


def _operator(name: str) -> Any:
    op = OPS[name]
    binary = Shortcuts(op).binary

    def forward(self: Array, other: Any, /) -> Any:
        return binary(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    forward.__doc__ = op.doc
    return forward


def _reflected(name: str) -> Any:
    op = OPS[name]
    record_reflected = Shortcuts(op).reflected

    def reflected(self: Array, other: Any, /) -> Any:
        return record_reflected(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    reflected.__doc__ = op.doc
    return reflected


def _inplace(name: str) -> Any:
    op = OPS[name]

    def inplace(self: Array, other: Any, /) -> Any:
        if not _is_operand(other):
            return NotImplemented
        result = record(op, self, other)
        if result.dtype != self.dtype:
            raise TypeError(
                f"in-place {name} cannot store dtype {result.dtype} in an array of {self.dtype}"
            )
        if result.shape != self.shape:
            raise ValueError(
                f"in-place {name} cannot store shape {result.shape} in an array of {self.shape}"
            )
        self._state = result._state
        return self

    inplace.__doc__ = op.doc
    return inplace


def _unary(name: str) -> Any:
    op = OPS[name]
    record_unary = Shortcuts(op).unary

    def unary(self: Array, /) -> Array:
        return record_unary(self)

    unary.__doc__ = op.doc
    return unary


def _operators(name: str) -> tuple[Any, Any, Any]:
    return _operator(name), _reflected(name), _inplace(name)


class Operators:
    """A shape and a recorded expression, with the standard's operators on it.

    Parameters
    ----------
    shape : tuple of int
        Shape of the result.
    state : State
        The expression, whose result broadcasts to the shape.
    """

    __slots__ = ("__weakref__", "_shape", "_state")

    # NumPy's arrays and scalars leave operators to this class.
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    _shape: tuple[int, ...]
    _state: State

    # The class of results: the one subclass.
    array: type[Array]

    def __init_subclass__(cls) -> None:
        # A user's subclass of the array does not change what operations return.
        if not hasattr(Operators, "array"):
            Operators.array = cls  # type: ignore[assignment]

    def __init__(self, shape: tuple[int, ...], state: State) -> None:
        self._shape = shape
        self._state = state

    def _materialize(self) -> State:
        """Compute what is pending; return the state, an array that fills its memory in C order."""
        pending = self._state
        if is_contiguous(pending, self._shape):
            return pending
        (state,) = evaluate(*pending, self._shape)
        # An assignment in another thread meanwhile wins.
        if self._state is pending:
            self._state = state
        return state

    __abs__ = _unary("abs")
    __invert__ = _unary("bitwise_invert")
    __neg__ = _unary("negative")
    __pos__ = _unary("positive")
    __add__, __radd__, __iadd__ = _operators("add")
    __sub__, __rsub__, __isub__ = _operators("subtract")
    __mul__, __rmul__, __imul__ = _operators("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operators("divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operators("floor_divide")
    __mod__, __rmod__, __imod__ = _operators("remainder")
    __and__, __rand__, __iand__ = _operators("bitwise_and")
    __or__, __ror__, __ior__ = _operators("bitwise_or")
    __xor__, __rxor__, __ixor__ = _operators("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _operators("bitwise_left_shift")
    __rshift__, __rrshift__, __irshift__ = _operators("bitwise_right_shift")
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")
    __eq__ = _operator("equal")
    __ne__ = _operator("not_equal")
    __pow__, __rpow__, __ipow__ = _operators("pow")

    def __matmul__(self, other: object, /) -> Array:
        """Matrix product.

        Raises
        ------
        NotImplementedError
            Always: matrix products are not there yet.
        """
        raise NotImplementedError("matmul (the operator @) is not implemented yet")

    __rmatmul__ = __imatmul__ = __matmul__


_NUMBERS = (bool, int, float, complex)
_OPERANDS = (Operators, int, float, complex, np.ndarray, np.generic)


def _is_operand(value: object) -> bool:
    return isinstance(value, _OPERANDS)
