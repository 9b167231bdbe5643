"""Rows of creation functions and of data type functions."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as np_compat
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from parity.expectations import Check, Within
from parity.operands import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    NARROW,
    NUMERIC,
    SHAPES,
    SIGNED,
    WIDE_FLOATS,
    Call,
    Values,
    call,
    extreme_values,
    inputs,
    limits,
)
from parity.rows import Row, promoted

_DTYPES = st.sampled_from(EVERY).map(np.dtype)
_OPTIONAL_DTYPES = st.one_of(st.none(), _DTYPES)
# Also an extent alone, and shapes that NumPy refuses.
_SHAPES = st.one_of(
    SHAPES, SHAPES.map(list), st.integers(0, 5), st.sampled_from([-1, (2, -1), 2.0, None, ("a",)])
)

# ---------------------------------------------------------------------------------- ranges


def _arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    if step == 0:
        # NumPy raises ZeroDivisionError, or ValueError, as the numbers are integers or not.
        raise ValueError(step)
    first, last = (0, start) if stop is None else (start, stop)
    if dtype is not None and dtype.name in NARROW:
        return np.arange(first, last, step, dtype=np.float32).astype(dtype)
    return np.arange(first, last, step, dtype=dtype)


_REALS = st.one_of(st.integers(-20, 20), st.sampled_from([0.0, 0.1, -2.5, 7.75, 10.0]))
_RANGE_DTYPES = st.one_of(st.none(), st.sampled_from(SIGNED + WIDE_FLOATS + COMPLEX).map(np.dtype))
_ARANGES = st.one_of(
    call(_REALS, dtype=_RANGE_DTYPES),
    call(_REALS, _REALS),
    call(_REALS, _REALS, st.sampled_from([1, 2, -1, -3, 0.5, -0.3, 0]), dtype=_RANGE_DTYPES),
    call(st.integers(0, 9), step=st.integers(1, 3)),
)


def _linspace(start: Any, stop: Any, num: int, *, dtype: Any = None, endpoint: bool = True) -> Any:
    if dtype is not None and dtype.name in NARROW:
        return np.linspace(start, stop, num, endpoint=endpoint).astype(dtype)
    # NumPy has NaN for -0.0 and infinities alike; integers are rounded down.
    return np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)


def _logspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
) -> Within:
    exponents = np.linspace(start, stop, num, endpoint=endpoint)
    exact = np.power(np.longdouble(base), exponents.astype(np.longdouble))
    # The bound of pow in the op table: 4 units in the last place of float64.
    return Within(exact, dtype or np.dtype("float64"), 4 * np.abs(exact) * 2.0**-52)


_ENDS = st.sampled_from([0, 1, -3, 10, 0.1, -2.5, 1e5, -0.0])

# ------------------------------------------------------------------------- filled with a value


def _full(shape: Any, fill_value: Any, *, dtype: Any = None) -> Values:
    return np.full(shape, fill_value, dtype=dtype if dtype is not None else _default(fill_value))


def _default(value: Any) -> np.dtype[Any]:
    return value.dtype if isinstance(value, np.ndarray) else np.asarray(value).dtype


_FILLS = st.one_of(
    st.booleans(),
    st.integers(0, 100),
    st.sampled_from([0.1, -0.0, np.nan, np.inf, 2.5 - 1j, 1e-45]),
    inputs(EVERY, st.just(())),
)


@st.composite
def _full_calls(draw: st.DrawFn) -> Call:
    value = draw(_FILLS)
    kind = np.asarray(getattr(value, "numpy", value)).dtype
    # What loses the imaginary part, or turns 300 or NaN into an integer, is for other tests.
    wider = [name for name in NUMERIC if np.can_cast(kind, name, "safe")]
    dtype = draw(st.one_of(st.none(), st.sampled_from(wider).map(np.dtype)))
    return Call.of(draw(_SHAPES), value, dtype=dtype)


def _full_like(x: Values, fill_value: Any, *, dtype: Any = None) -> Values:
    return np.full(x.shape, fill_value, dtype=dtype or x.dtype)


@st.composite
def _full_like_calls(draw: st.DrawFn) -> Call:
    x = draw(inputs())
    number = st.integers(0, 100)
    if x.memory.dtype.name in FLOATS + COMPLEX:
        number = st.one_of(number, st.sampled_from([0.1, -0.0, np.nan, -np.inf]))
    dtype = draw(st.one_of(st.none(), st.sampled_from(FLOATS + COMPLEX).map(np.dtype)))
    return Call.of(x, draw(number), dtype=dtype)


def _shape_and_dtype(function: Any) -> Any:
    """Return the reference of `empty`: any values, so only shape and data type count."""

    def reference(*args: Any, **kwargs: Any) -> Check:
        wanted = function(*args, **kwargs)

        def check(got: Any) -> None:
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)

        return Check(check)

    return reference


def _eye(n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: Any = None) -> Values:
    return np.eye(n_rows, n_cols, k, dtype=dtype or "float64")


_EXTENTS = st.integers(0, 5)

# ------------------------------------------------------------------------- values from elsewhere

_NESTED = st.recursive(
    st.one_of(st.booleans(), st.integers(-9, 9), st.sampled_from([0.5, -0.0, np.nan, 1 + 2j])),
    lambda inner: st.integers(1, 3).flatmap(lambda n: st.lists(inner, min_size=n, max_size=n)),
    max_leaves=6,
)


def _asarray(obj: Any, *, dtype: Any = None, copy: bool | None = None) -> Values:
    if not isinstance(obj, np.ndarray) and copy is False:
        raise ValueError("nothing to share")
    if dtype is not None and np.asarray(obj).dtype.kind == "c" and dtype.kind in "biuf":
        raise TypeError("complex values are not converted to real ones")
    return np.array(obj, dtype=dtype, copy=True)


_FROM_ARRAYS = st.one_of(call(inputs(), copy=st.sampled_from([None, True])), call(inputs()))


def _from_dlpack(x: Values, *, copy: bool | None = None) -> Values:
    return np.array(x)


def _meshgrid(*arrays: Values, indexing: str = "xy") -> Any:
    return np_compat.meshgrid(*arrays, indexing=indexing)


@st.composite
def _meshgrid_calls(draw: st.DrawFn) -> Call:
    dtype = draw(st.sampled_from(EVERY))
    vectors = hnp.array_shapes(min_dims=1, max_dims=1, min_side=0, max_side=4)
    shapes = draw(st.lists(vectors, max_size=3))
    arrays = [draw(inputs((dtype,), st.just(shape))) for shape in shapes]
    return Call.of(*arrays, indexing=draw(st.sampled_from(["xy", "ij", "ij", "yx"])))


_MATRICES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)


def _triangle(name: str) -> Any:
    def reference(x: Values, *, k: int = 0) -> Values:
        if x.ndim < 2:
            # NumPy makes a matrix of a vector.
            raise ValueError(x.shape)
        return (
            np.where(np.tri(*x.shape[-2:], k, dtype=bool), x, np.zeros((), x.dtype))
            if (name == "tril")
            else np.where(np.tri(*x.shape[-2:], k - 1, dtype=bool), np.zeros((), x.dtype), x)
        )

    return reference


# ---------------------------------------------------------------------------- data type functions


def _astype(x: Values, dtype: np.dtype[Any], *, copy: bool = True) -> Values:
    if x.dtype.kind == "c" and dtype.name not in (*COMPLEX, "bool"):
        # NumPy only warns that it drops the imaginary part.
        raise TypeError(dtype)
    return x.astype(dtype)


def _convertible(source: str, target: str) -> Values:
    """Return values whose conversion is defined: those that are in the target's range."""
    values = extreme_values(source)
    if target not in INTEGERS or source not in FLOATS + COMPLEX:
        return values
    info = np.iinfo(target)
    parts = np.real(values).astype(np.float64)
    # 2.0**63 itself is out of range.
    inside = np.isfinite(parts) & (parts >= info.min) & (parts < float(info.max))
    return values[inside]


@st.composite
def _astype_calls(draw: st.DrawFn) -> Call:
    source, target = draw(st.sampled_from(EVERY)), draw(st.sampled_from(EVERY))
    x = draw(inputs((source,), pool=lambda _: _convertible(source, target)))
    return Call.of(x, np.dtype(target), copy=draw(st.booleans()))


def _can_cast(from_: Any, to: np.dtype[Any]) -> bool:
    source = from_.dtype if isinstance(from_, np.ndarray) else from_
    return bool(promoted(source, to) == to)


def _info(name: str) -> Any:
    fields = ("bits", "max", "min") if name == "iinfo" else (
        "bits", "eps", "max", "min", "smallest_normal", "dtype"
    )  # fmt: skip

    def reference(kind: Any) -> Check:
        dtype = kind.dtype if isinstance(kind, np.ndarray) else kind
        if name == "iinfo":
            wanted = np.iinfo(dtype)
        elif dtype.name in COMPLEX:
            wanted = np.finfo(dtype)
        else:
            wanted = limits(dtype.name) if dtype.name in FLOATS else np.finfo(dtype)

        def check(got: Any) -> None:
            for field in fields:
                assert getattr(got, field) == getattr(wanted, field)

        return Check(check)

    return reference


_KINDS = st.sampled_from(
    [
        "bool", "signed integer", "unsigned integer", "integral", "real floating",
        "complex floating", "numeric", "quaternion",
    ]
)  # fmt: skip


def _isdtype(dtype: np.dtype[Any], kind: Any) -> bool:
    def plain(one: Any) -> Any:
        return np.dtype("float16") if one == "bfloat16" else one

    # NumPy's own function says no to bfloat16 but for the type itself.
    if isinstance(kind, tuple):
        found = [_isdtype(dtype, one) for one in kind]  # all are looked at
        return any(found)
    if isinstance(kind, str):
        return np_compat.isdtype(plain(dtype), kind)
    return bool(dtype == kind)


def _result_type(*values: Any) -> np.dtype[Any]:
    if not any(isinstance(value, np.ndarray | np.dtype) for value in values):
        # NumPy takes values without any data type, and raises ValueError for nothing at all.
        return np.result_type(*values)
    return promoted(*values)


_TYPES_AND_VALUES = st.lists(
    st.one_of(_DTYPES, _DTYPES, inputs(), st.sampled_from([True, 1, 0.5, 1j])),
    min_size=1,
    max_size=3,
)


def _creation(name: str) -> Any:
    function = getattr(np, name)
    return lambda shape, *, dtype=None: function(shape, dtype=dtype or "float64")


def _like(name: str) -> Any:
    function = getattr(np, name)
    return lambda x, *, dtype=None: function(x, dtype=dtype, order="C")


ROWS = [
    Row("arange", _ARANGES, _arange),
    Row("asarray", st.one_of(_FROM_ARRAYS, call(_NESTED)), _asarray),
    Row("empty", call(_SHAPES, dtype=_OPTIONAL_DTYPES), _shape_and_dtype(_creation("empty"))),
    Row("empty_like", call(inputs(), dtype=_OPTIONAL_DTYPES), _shape_and_dtype(np.empty_like)),
    Row(
        "eye",
        call(_EXTENTS, st.one_of(st.none(), _EXTENTS), k=st.integers(-4, 4), dtype=_DTYPES),
        _eye,
    ),
    Row("from_dlpack", call(inputs(), copy=st.sampled_from([None, True])), _from_dlpack),
    Row("full", _full_calls(), _full),
    Row("full_like", _full_like_calls(), _full_like),
    Row(
        "linspace",
        call(
            _ENDS,
            _ENDS,
            st.integers(-1, 9),
            dtype=st.one_of(st.none(), st.sampled_from(FLOATS).map(np.dtype)),
            endpoint=st.booleans(),
        ),
        _linspace,
    ),
    Row(
        "logspace",
        st.one_of(
            call(_ENDS.map(lambda n: n % 40), _ENDS.map(lambda n: n % 40), st.integers(-1, 9)),
            call(-2, 2.5, 7, base=st.sampled_from([2.0, 10.0]), endpoint=st.booleans()),
            call(0, 3, 5, dtype=st.sampled_from(WIDE_FLOATS).map(np.dtype)),
        ),
        _logspace,
    ),
    Row("meshgrid", _meshgrid_calls(), _meshgrid),
    Row("ones", call(_SHAPES, dtype=_OPTIONAL_DTYPES), _creation("ones")),
    Row("ones_like", call(inputs(), dtype=_OPTIONAL_DTYPES), _like("ones_like")),
    Row("tril", call(inputs(shapes=_MATRICES), k=st.integers(-5, 5)), _triangle("tril")),
    Row("triu", call(inputs(shapes=_MATRICES), k=st.integers(-5, 5)), _triangle("triu")),
    Row("zeros", call(_SHAPES, dtype=_OPTIONAL_DTYPES), _creation("zeros")),
    Row("zeros_like", call(inputs(), dtype=_OPTIONAL_DTYPES), _like("zeros_like")),
    Row("astype", _astype_calls(), _astype),
    Row("can_cast", call(st.one_of(_DTYPES, inputs()), _DTYPES), _can_cast),
    Row("finfo", call(st.one_of(_DTYPES, inputs())), _info("finfo")),
    Row("iinfo", call(st.one_of(_DTYPES, inputs())), _info("iinfo")),
    Row(
        "isdtype",
        call(_DTYPES, st.one_of(_DTYPES, _KINDS, st.tuples(_DTYPES, _KINDS))),
        _isdtype,
    ),
    Row("result_type", _TYPES_AND_VALUES.map(lambda drawn: Call.of(*drawn)), _result_type),
]
