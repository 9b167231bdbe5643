"""The standard's operators, and shortcuts for their most frequent uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fklarray.core import in_front
from fklarray.record import Recorded, record
from fklarray.recording import FEW_STREAMS, Leaf, Scalar, cast_state, merge
from fklarray_codegen.graph import Node
from fklarray_codegen.layout import broadcast_shapes
from fklarray_codegen.ops import OPS, Op

if TYPE_CHECKING:
    from fklarray.array import Array

__all__ = ["Operators", "Shortcuts"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


_Structures = dict[object, Node]
# With a float; with an int that becomes a floating-point number; with an int that stays one, and
# that every integer type holds.
_WithNumber = tuple[_Structures, _Structures, _Structures]


class Shortcuts:
    """Structures of one operation's most frequent uses, found again without any checking.

    They hold for operands whose data types were checked when they were first met: an array alone,
    an array with a Python number, or two arrays.
    """

    __slots__ = ("_known", "_op", "_reflected", "_with_number")

    def __init__(self, op: Op) -> None:
        self._op = op
        # By structure; by two structures, and where the leaves of the second are among the joined.
        self._known: _Structures = {}
        self._with_number: _WithNumber = ({}, {}, {})
        self._reflected: _WithNumber = ({}, {}, {})

    def in_front(self, kind: str, function: _Function) -> _Function:
        """Put the compiled core's way to look the structures up in front of a function."""
        numbers = self._reflected if kind == "reflected" else self._with_number
        return in_front(kind, self._known, numbers)(function)

    def unary(self, x: Any) -> Array:
        """Record the operation on one array."""
        if not isinstance(x, Recorded.array):
            return record(self._op, x)
        state = x._state
        node = state[0]
        known = self._known.get(node)
        if known is not None:
            return Recorded.array(x._shape, (known, state[1]))
        result = record(self._op, x)
        if x._state is state:
            _learn(self._known, node, result)
        return result

    def binary(self, x1: Array, x2: Any) -> Array:
        """Record the operation on an array and anything."""
        if not isinstance(x2, Recorded.array):
            return self._number(x1, x2, False)
        state, other = x1._state, x2._state
        leaves, more = state[1], other[1]
        if more is leaves or any(map(leaves.__contains__, more)):
            leaves, slot = merge(leaves, more)
            key: tuple[object, ...] = (state[0], other[0], *slot)
        else:
            leaves += more
            key = (state[0], other[0])
        known = self._known.get(key)
        if known is not None:
            shape = x1._shape
            if x2._shape != shape:
                shape = broadcast_shapes(shape, x2._shape)
            return Recorded.array(shape, (known, leaves))
        result = record(self._op, x1, x2)
        # Not where another number took part, as in comparisons of different signs.
        if x1._state is state and x2._state is other and result._state[1] == leaves:
            _learn(self._known, key, result)
        return result

    def reflected(self, x2: Array, x1: Any) -> Array:
        """Record the operation on anything but an array, and an array."""
        return self._number(x2, x1, True)

    def _number(self, array: Array, number: Any, reflected: bool) -> Array:
        state = array._state
        node, leaves = state
        structures = self._reflected if reflected else self._with_number
        # Not a range in which rounding to the array's type could overflow, and no NaN.
        if (type(number) is float or type(number) is int) and -_SAFE < number < _SAFE:
            value = number
            if type(number) is float:
                known = structures[0].get(node)
            elif (known := structures[1].get(node)) is not None:
                value = float(number)
            elif 0 <= number <= _EVERYWHERE:
                known = structures[2].get(node)
            if known is not None:
                scalar = (Scalar(value),)
                leaves = scalar + leaves if reflected else leaves + scalar
                return Recorded.array(array._shape, (known, leaves))
        result = record(self._op, *((number, array) if reflected else (array, number)))
        # A power's structure depends on the exponent.
        if array._state is state and self._op.name != "pow":
            _learn_number(structures, node, leaves, result, number, reflected)
        return result


def _learn_number(
    structures: _WithNumber,
    node: Node,
    leaves: tuple[Leaf, ...],
    result: Array,
    number: Any,
    reflected: bool,
) -> None:
    found = result._state[1]
    scalar, rest = (found[0], found[1:]) if reflected else (found[-1], found[:-1])
    if rest != leaves:
        return
    value: object = scalar.value
    if type(number) is float and type(value) is float:
        _learn(structures[0], node, result)
    elif type(number) is int and type(value) is float:
        _learn(structures[1], node, result)
    elif type(number) is int and type(value) is int and 0 <= number <= _EVERYWHERE:
        _learn(structures[2], node, result)


def _learn(structures: _Structures, key: object, result: Array) -> None:
    """Remember a structure, unless how much memory its operands hold must be looked at.

    The caller has seen that recording left the operands as they were: they had not grown so
    large that they were computed first.
    """
    node = result._state[0]
    if node.streams <= FEW_STREAMS:
        if len(structures) > _MAX_SHORTCUTS:
            structures.clear()
        structures[key] = node


_MAX_SHORTCUTS = 1 << 12
_SAFE = 1e38
_EVERYWHERE = 127


def _operator(name: str) -> Any:
    op = OPS[name]
    shortcuts = Shortcuts(op)
    binary = shortcuts.binary

    def forward(self: Array, other: Any, /) -> Any:
        if isinstance(other, _OPERANDS):
            return binary(self, other)
        if type(other) in (list, tuple):  # a comparison would be False otherwise
            raise TypeError(f"{name} takes arrays and Python scalars, not {type(other).__name__}")
        return NotImplemented

    forward.__doc__ = op.doc
    return shortcuts.in_front("binary", forward)


def _reflected(name: str) -> Any:
    op = OPS[name]
    shortcuts = Shortcuts(op)
    record_reflected = shortcuts.reflected

    def reflected(self: Array, other: Any, /) -> Any:
        return record_reflected(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    reflected.__doc__ = op.doc
    return shortcuts.in_front("reflected", reflected)


def _inplace(name: str, forward: Any) -> Any:
    def inplace(self: Array, other: Any, /) -> Any:
        return _stored(name, self, forward(self, other)) if _is_operand(other) else NotImplemented

    inplace.__doc__ = forward.__doc__
    return inplace


def _stored(name: str, array: Array, result: Array) -> Array:
    """Give an array the values of an in-place operation's result."""
    dtype = array._state[0].dtype
    if result._state[0].dtype is not dtype and not np.can_cast(
        result.dtype, array.dtype, "same_kind"
    ):
        raise TypeError(
            f"in-place {name} cannot store dtype {result.dtype} in an array of {array.dtype}"
        )
    if result._shape != array._shape:
        raise ValueError(
            f"in-place {name} cannot store shape {result.shape} in an array of {array.shape}"
        )
    array._state = cast_state(result._state, dtype)
    return array


def _matmul(self: Array, other: Any, /) -> Any:
    """Return the matrix product; see `fklarray.matmul`."""
    from fklarray.linear_algebra import matmul

    return matmul(self, other) if _is_operand(other) else NotImplemented


def _reflected_matmul(self: Array, other: Any, /) -> Any:
    """Return the matrix product of something else with the array."""
    return _matmul(other, self) if _is_operand(other) else NotImplemented


def _inplace_matmul(self: Array, other: Any, /) -> Any:
    """Replace the array by its matrix product, which must have its shape."""
    return _stored("matmul", self, _matmul(self, other)) if _is_operand(other) else NotImplemented


def _unary(name: str) -> Any:
    op = OPS[name]
    shortcuts = Shortcuts(op)
    record_unary = shortcuts.unary

    def unary(self: Array, /) -> Array:
        return record_unary(self)

    unary.__doc__ = op.doc
    return shortcuts.in_front("unary", unary)


def _operators(name: str) -> tuple[Any, Any, Any]:
    forward = _operator(name)
    return forward, _reflected(name), _inplace(name, forward)


class Operators(Recorded):
    """The standard's operators, recorded."""

    __slots__ = ()

    # NumPy's arrays and scalars leave operators to this class.
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

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

    __matmul__ = _matmul
    __rmatmul__ = _reflected_matmul
    __imatmul__ = _inplace_matmul


_OPERANDS = (Recorded, int, float, complex, np.ndarray, np.generic)


def _is_operand(value: object) -> bool:
    return isinstance(value, _OPERANDS)
