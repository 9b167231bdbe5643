"""Methods of arrays that the standard does not have but users of NumPy expect.

Each is the function of the same name, found when it is called: the functions' modules import the
array class.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fklarray.dtype_rows import DtypeLike, dtype_row
from fklarray.operators import Operators
from fklarray.recording import stream_of, view_state
from fklarray_codegen.layout import contiguous_strides

if TYPE_CHECKING:
    from fklarray.array import Array

__all__ = ["Methods"]

_Axes = int | Sequence[int] | None


class Methods(Operators):
    """Shorthands for functions of the namespace."""

    __slots__ = ()

    def _call(self, name: str, **keywords: Any) -> Array:
        import fklarray

        result: Array = getattr(fklarray, name)(self, **keywords)
        return result

    def _reduce(self, name: str, out: None, **keywords: Any) -> Array:
        if out is not None:
            raise TypeError(f"{name} gives a new array; it cannot write into out={type(out)}")
        return self._call(name, **keywords)

    # `axis`, `dtype`, `out` and `ddof` are what NumPy's functions pass on: np.sum(x) is x.sum().

    def sum(
        self,
        axis: _Axes = None,
        dtype: DtypeLike | None = None,
        out: None = None,
        *,
        keepdims: builtins.bool = False,
    ) -> Array:
        """Return the sum over axes; see `fklarray.sum`."""
        return self._reduce("sum", out, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(
        self,
        axis: _Axes = None,
        dtype: DtypeLike | None = None,
        out: None = None,
        *,
        keepdims: builtins.bool = False,
    ) -> Array:
        """Return the product over axes; see `fklarray.prod`."""
        return self._reduce("prod", out, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(
        self,
        axis: _Axes = None,
        dtype: DtypeLike | None = None,
        out: None = None,
        *,
        keepdims: builtins.bool = False,
    ) -> Array:
        """Return the mean over axes; see `fklarray.mean`."""
        return self._reduce("mean", out, axis=axis, dtype=dtype, keepdims=keepdims)

    def var(
        self,
        axis: _Axes = None,
        dtype: DtypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        *,
        keepdims: builtins.bool = False,
        correction: float = 0.0,
    ) -> Array:
        """Return the variance over axes; see `fklarray.var`."""
        spread = {"correction": correction, "ddof": ddof or None}
        return self._reduce("var", out, axis=axis, dtype=dtype, keepdims=keepdims, **spread)

    def std(
        self,
        axis: _Axes = None,
        dtype: DtypeLike | None = None,
        out: None = None,
        ddof: float = 0,
        *,
        keepdims: builtins.bool = False,
        correction: float = 0.0,
    ) -> Array:
        """Return the standard deviation over axes; see `fklarray.std`."""
        spread = {"correction": correction, "ddof": ddof or None}
        return self._reduce("std", out, axis=axis, dtype=dtype, keepdims=keepdims, **spread)

    def max(
        self, axis: _Axes = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Array:
        """Return the greatest element over axes; see `fklarray.max`."""
        return self._reduce("max", out, axis=axis, keepdims=keepdims)

    def min(
        self, axis: _Axes = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Array:
        """Return the least element over axes; see `fklarray.min`."""
        return self._reduce("min", out, axis=axis, keepdims=keepdims)

    def all(
        self, axis: _Axes = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Array:
        """Return whether all elements are true; see `fklarray.all`."""
        return self._reduce("all", out, axis=axis, keepdims=keepdims)

    def any(
        self, axis: _Axes = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Array:
        """Return whether any element is true; see `fklarray.any`."""
        return self._reduce("any", out, axis=axis, keepdims=keepdims)

    def argmax(
        self, axis: int | None = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Array:
        """Return the index of the greatest element; see `fklarray.argmax`."""
        return self._reduce("argmax", out, axis=axis, keepdims=keepdims)

    def argmin(
        self, axis: int | None = None, out: None = None, *, keepdims: builtins.bool = False
    ) -> Array:
        """Return the index of the least element; see `fklarray.argmin`."""
        return self._reduce("argmin", out, axis=axis, keepdims=keepdims)

    def __contains__(self, value: Any) -> builtins.bool:
        """Return whether any element equals a value, as `numpy.ndarray` does."""
        found: Any = self == value
        return found if isinstance(found, builtins.bool) else builtins.bool(found.any())

    def reshape(self, *shape: int | Sequence[int], copy: builtins.bool | None = None) -> Array:
        """Give the elements another shape: ``reshape(2, 3)`` or ``reshape((2, 3))``."""
        extents: Any = shape[0] if len(shape) == 1 else shape
        return self._call("reshape", shape=extents, copy=copy)

    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """Reorder the dimensions, reverse them by default; see `fklarray.transpose`."""
        order: Any = axes[0] if len(axes) == 1 else axes or None
        return self._call("transpose", axes=order)

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """Remove dimensions of one element, all of them by default."""
        if axis is None:
            axis = tuple(one for one, extent in enumerate(self._shape) if extent == 1)
        return self._call("squeeze", axis=axis)

    def flatten(self) -> Array:
        """Return the elements in one dimension."""
        return self._call("reshape", shape=(-1,))

    def astype(self, dtype: DtypeLike, *, copy: builtins.bool = True) -> Array:
        """Convert the elements to another data type; see `fklarray.astype`."""
        import fklarray

        return fklarray.astype(self, dtype, copy=copy)  # type: ignore[arg-type]

    def view(self, dtype: DtypeLike) -> Array:
        """Reinterpret the bytes as another data type, along the last dimension.

        Raises
        ------
        TypeError
            If `dtype` is bool and the array's is not: most bytes are no truth value.
        ValueError
            If the bytes of a row (of an array without dimensions) are not whole elements.
        """
        row, own = dtype_row(dtype), self._state[0].dtype
        if row.kind == "bool" and own.kind != "bool":
            raise TypeError(f"view cannot see {own} as bool")
        shape = self._shape
        if row.itemsize != own.itemsize:
            count, rest = divmod(shape[-1] * own.itemsize if shape else 1, row.itemsize)
            if not shape or rest:
                raise ValueError(f"view cannot see {own} of shape {shape} as elements of {row}")
            shape = (*shape[:-1], count)
        memory = stream_of(self._materialize())
        strides = contiguous_strides(shape)
        return Operators.array(shape, view_state(memory.moved(memory.value, strides), row))

    def copy(self) -> Array:
        """Return an array with the same values; changes of one do not reach the other."""
        return Operators.array(self._shape, self._state)

    def round(self, decimals: int = 0) -> Array:
        """Round to a number of decimals, as `numpy.ndarray.round` does."""
        if operator.index(decimals) == 0:
            return self._call("round")
        import fklarray

        scale = 10.0 ** abs(decimals)
        scaled, back = fklarray.multiply, fklarray.divide
        if decimals < 0:
            scaled, back = back, scaled
        return back(scaled(self, scale)._call("round"), scale)  # type: ignore[arg-type]

    def conj(self) -> Array:
        """Return the complex conjugate; see `fklarray.conj`."""
        return self._call("conj")

    @property
    def real(self) -> Array:
        """Real part; the values themselves where they are real."""
        return self._call("real")

    @property
    def imag(self) -> Array:
        """Imaginary part; zeros where the values are real."""
        if self._state[0].dtype.kind == "complex":
            return self._call("imag")
        return self._call("zeros_like")
