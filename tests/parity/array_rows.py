"""Rows of the array object: operators, attributes, methods, conversions and indexing."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fklarray as xp
from fklarray.device import as_device
from fklarray_codegen.ops import OPS
from parity.elementwise_rows import elementwise_reference, operands_of, with_scalar
from parity.expectations import Check, Expected
from parity.manipulation_rows import ROWS as MANIPULATION
from parity.matrix_rows import ROWS as MATRICES
from parity.operands import (
    BOOL,
    COMPLEX,
    EVERY,
    INTEGERS,
    NARROW,
    Call,
    Input,
    Values,
    broadcastable,
    call,
    inputs,
    tame_values,
)
from parity.reduction_rows import ROWS as REDUCTIONS
from parity.rows import Row

_CHAPTERS = {row.name: row for row in [*MANIPULATION, *MATRICES, *REDUCTIONS]}

# ------------------------------------------------------------------------------- operators

_UNARY = {"abs": "abs", "invert": "bitwise_invert", "neg": "negative", "pos": "positive"}
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}  # fmt: skip
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    "pow": "pow",
}  # fmt: skip


def _reflected_operands() -> st.SearchStrategy[Call]:
    # Python reflects an operator if the left operand does not know it.
    return with_scalar().filter(lambda drawn: not isinstance(drawn.positional[0], Input))


@st.composite
def _stored_operands(draw: st.DrawFn, name: str) -> Call:
    """Draw operands of which mostly the first one can take the result."""
    dtype = draw(st.sampled_from(EVERY))
    small, large = draw(broadcastable(2))
    shape = np.broadcast_shapes(small, large) if draw(st.integers(0, 5)) else large
    other = inputs(EVERY if draw(st.booleans()) else (dtype,), st.just(small))
    first = draw(inputs((dtype,), st.just(shape)))
    return Call.of(first, draw(st.one_of(other, other, st.sampled_from([0, 3, True, 0.5, 1j]))))


def _stored(reference: Any) -> Any:
    """Return the reference of an in-place operator: its result fits the array's kind and shape."""

    def stored(x: Values, other: Any) -> Any:
        result = reference(x, other)
        if isinstance(result, Expected):
            return _cast(x, result)
        if not np.can_cast(result.dtype, x.dtype, "same_kind"):
            raise TypeError(result.dtype)
        if result.shape != x.shape:
            raise ValueError(result.shape)
        return result.astype(x.dtype)

    return stored


def _cast(x: Values, result: Any) -> Any:
    dtype = getattr(result, "dtype", None) or result.operands[0].dtype
    if not np.can_cast(dtype, x.dtype, "same_kind"):
        raise TypeError(dtype)
    if result.exact.shape != x.shape:
        raise ValueError(result.exact.shape)

    def check(got: Values) -> None:
        assert (got.dtype, got.shape) == (x.dtype, x.shape)
        if dtype == x.dtype:
            result.check(got)

    return Check(check)


def _inplace(name: str) -> Callable[..., Any]:
    run = getattr(operator, f"i{name}")

    def inplace(x: xp.Array, other: Any) -> Any:
        same = x
        x = run(x, other)
        assert x is same
        return x

    return inplace


def _operator_rows() -> list[Row]:
    rows = [
        Row(f"Array.__{name}__", operands_of(op), elementwise_reference(op), _function(name))
        for name, op in ((n, OPS[f]) for n, f in _UNARY.items())
    ]
    for name, function in {**_BINARY, **_COMPARISONS}.items():
        op = OPS[function]
        reference, run = elementwise_reference(op), _function(name)
        rows.append(Row(f"Array.__{name}__", operands_of(op), reference, run))
        if name in _BINARY:
            rows.append(Row(f"Array.__r{name}__", _reflected_operands(), reference, run))
            stored = _stored(reference)
            rows.append(Row(f"Array.__i{name}__", _stored_operands(name), stored, _inplace(name)))
    product = _CHAPTERS["matmul"]
    rows.append(Row("Array.__matmul__", product.calls, product.reference, operator.matmul))
    return rows


def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(operator, f"{name}_" if name in ("and", "or") else name)
    return function


# ------------------------------------------------------------------------- attributes, methods


def _attribute(name: str) -> Callable[..., Any]:
    return operator.attrgetter(name)


def _transpose(x: Values) -> Values:
    if x.ndim != 2:
        # NumPy reverses all dimensions.
        raise ValueError(x.shape)
    return x.T


def _stacks_transposed(x: Values) -> Values:
    return x.mT


def _equals(value: Any) -> Callable[[Values], Check]:
    def reference(x: Values) -> Check:
        def check(got: Any) -> None:
            assert got == value(x)

        return Check(check)

    return reference


def _method(name: str, function: str | None = None) -> Row:
    """Return a row that calls a method as the function of the same name is called."""
    row = _CHAPTERS[function or name]

    def run(x: xp.Array, *args: Any, **keywords: Any) -> Any:
        return getattr(x, name)(*args, **keywords)

    return Row(f"Array.{name}", row.calls, row.reference, run)


_METHODS = ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "argmax", "argmin",
            "squeeze", "transpose"]  # fmt: skip

# ------------------------------------------------------------------------------- conversions

_ONE = st.sampled_from([(), (), (), (1,), (1, 1), (2,), (0,)])


def _scalar(convert: Callable[[Any], Any], dtypes: tuple[str, ...]) -> Any:
    """Return the reference of a conversion to a Python scalar, which takes one element."""

    def reference(x: Values) -> Any:
        if x.size != 1 or x.dtype.name not in dtypes:
            raise ValueError(x) if convert is bool else TypeError(x)
        return convert(x.reshape(())[()].item())

    return reference


def _converted(convert: Callable[[Any], Any]) -> Callable[..., Any]:
    # The texts tell NaN and the sign of zero.
    return lambda *args: repr(convert(*args))


_NOT_COMPLEX = tuple(name for name in EVERY if name not in COMPLEX)


def _conversion(name: str, convert: Callable[[Any], Any], dtypes: tuple[str, ...]) -> Row:
    reference = _scalar(convert, dtypes)
    pool = tame_values if convert in (int, operator.index) else None
    calls = call(inputs(EVERY, _ONE, pool) if pool else inputs(EVERY, _ONE))
    return Row(f"Array.__{name}__", calls, _converted(reference), _converted(convert))


# ------------------------------------------------------------------------------------ indexing


@st.composite
def _keyed(draw: st.DrawFn, **keywords: Any) -> tuple[Input, Any]:
    x = draw(inputs(**keywords))
    basic = hnp.basic_indices(x.shape, allow_newaxis=True, allow_ellipsis=True)
    choices = [basic, basic, _careless(), _masks(x.shape)]
    if x.shape:
        choices += [_advanced(x.shape), _advanced(x.shape)]
    return x, draw(st.one_of(choices))


def _careless() -> st.SearchStrategy[Any]:
    one = st.one_of(
        st.integers(-5, 5), st.none(), st.just(...), st.builds(slice, st.integers(-9, 9))
    )
    wrong = st.sampled_from([1.0, "a", (0, 0, 0, 0, 0), (..., ...), slice(None, None, 0), True])
    return st.one_of(st.lists(one, max_size=4).map(tuple), wrong)


def _masks(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    fitting = st.integers(0, len(shape)).map(lambda n: shape[:n])
    return st.one_of(
        inputs(BOOL, fitting), inputs(BOOL, st.just((2,))), inputs(BOOL, st.just(shape))
    )


@st.composite
def _advanced(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Draw a key with arrays of integers, lists of them, or a mask, among basic items."""
    ndim = draw(st.integers(1, len(shape)))
    key: list[Any] = []
    common = draw(st.sampled_from([(2,), (3,), (2, 2), (1,), ()]))
    for extent in shape[:ndim]:
        pool = np.arange(-extent, extent + 1 - bool(draw(st.integers(0, 9))))
        pool = pool if pool.size else np.zeros(1, np.int64)
        dtype = draw(st.sampled_from([name for name in INTEGERS if name[0] != "u"]))
        array = inputs((dtype,), st.just(common), pool.astype)
        items = [array, array, st.builds(slice, st.integers(-3, 3), st.integers(-3, 3))]
        items += [inputs(BOOL, st.just((extent,))), st.integers(-extent, max(0, extent - 1))]
        key.append(draw(st.one_of(items)))
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), draw(st.sampled_from([None, ...])))
    return tuple(key) if len(key) > 1 or draw(st.booleans()) else key[0]


def _getitem(x: Values, key: Any) -> Values:
    return np.asarray(x[key])


def _set(x: Any, key: Any, value: Any) -> Any:
    x = xp.asarray(x, copy=True) if isinstance(x, xp.Array) else np.array(x)
    x[key] = value
    return x


def _setitem(x: Values, key: Any, value: Any) -> Values:
    if np.asarray(value).dtype.name in COMPLEX and x.dtype.name not in COMPLEX:
        raise TypeError(value)
    if np.ndim(value) and not np.ndim(x[key]):
        # One element takes an array of one, as any selection does; NumPy takes it for a sequence.
        value = np.broadcast_to(value, (1,) * np.ndim(value)).reshape(())
    return _set(x, key, value)  # type: ignore[no-any-return]


@st.composite
def _assignments(draw: st.DrawFn) -> Call:
    x, key = draw(_keyed(pool=tame_values))
    # As a key for assignment, NumPy takes True for a mask of a vector.
    key = ... if key is True else key
    try:
        selected = x.numpy[_numpy_key(key)].shape
    except (IndexError, TypeError, ValueError):
        selected = ()
    shape = draw(st.sampled_from([selected, selected, selected[1:], (1, *selected), (), (2,)]))
    same = (x.memory.dtype.name,)
    dtypes = draw(st.sampled_from([same, same, EVERY]))
    number = st.sampled_from([0, 1, True, 1j] + ([0.5] if same[0] not in INTEGERS else []))
    value = st.one_of(inputs(dtypes, st.just(shape), _small), number)
    return Call.of(x, key, draw(value))


def _small(dtype: str) -> Values:
    # What an unsigned 8-bit integer, too, can hold.
    return np.array([0, 1]).astype(dtype)


def _numpy_key(key: Any) -> Any:
    return Call.of(key).with_arrays("numpy")[0][0]


def _here(_x: Values) -> str:
    """Return where this library's arrays of a test are."""
    return as_device(None).name


def _there_and_back(x: xp.Array) -> xp.Array:
    return x.to_device("cpu").to_device(x.device)


def _taken_by_numpy(x: xp.Array) -> Values:
    return np.from_dlpack(x, device="cpu")


_NOT_NARROW = tuple(name for name in EVERY if name not in NARROW)

ROWS = [
    *_operator_rows(),
    *map(_method, _METHODS),
    Row("Array.T", call(inputs()), _transpose, _attribute("T")),
    Row("Array.mT", call(inputs()), _stacks_transposed, _attribute("mT")),
    Row("Array.dtype", call(inputs()), _equals(lambda x: x.dtype), _attribute("dtype")),
    Row("Array.ndim", call(inputs()), _equals(lambda x: x.ndim), _attribute("ndim")),
    Row("Array.shape", call(inputs()), _equals(lambda x: x.shape), _attribute("shape")),
    Row("Array.size", call(inputs()), _equals(lambda x: x.size), _attribute("size")),
    Row("Array.device", call(inputs()), _equals(_here), _attribute("device")),
    Row("Array.to_device", call(inputs()), np.array, _there_and_back),
    Row(
        "Array.__array_namespace__",
        call(inputs()),
        _equals(lambda _x: xp),
        xp.Array.__array_namespace__,
    ),
    Row("Array.__dlpack__", call(inputs(_NOT_NARROW)), np.array, _taken_by_numpy),
    Row(
        "Array.__dlpack_device__",
        call(inputs()),
        _equals(lambda x: (1, 0) if _here(x) == "cpu" else (2, 0)),
        xp.Array.__dlpack_device__,
    ),
    _conversion("bool", bool, EVERY),
    _conversion("int", int, _NOT_COMPLEX),
    _conversion("float", float, _NOT_COMPLEX),
    _conversion("complex", complex, EVERY),
    _conversion("index", operator.index, INTEGERS),
    Row(
        "Array.__getitem__", _keyed().map(lambda drawn: Call(drawn, {})), _getitem, operator.getitem
    ),
    Row("Array.__setitem__", _assignments(), _setitem, _set),
]
