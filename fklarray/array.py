"""The array object: a shape and a recorded expression, computed when its values are needed."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from fklarray import indexing, views
from fklarray.dtype_rows import NUMPY_DTYPES, dtype_row
from fklarray.evaluation import connect_core
from fklarray.exchange import Exchange
from fklarray.pending import Held, admit, held_by_thread
from fklarray.placement import placed, values_of
from fklarray.record import Number, Recorded, compute_together, reduce_pending
from fklarray.recording import HOST, State, is_stream, stream_of

__all__ = ["Array", "materialize"]


class Array(Exchange):
    """An n-dimensional array of the array API standard ("Array object").

    Operations on it are recorded; conversions to Python, NumPy or DLPack compute what was recorded
    as one kernel. Arrays behave as values: an operation sees its operands as they were when it was
    recorded. Made by the creation functions, `asarray` above all.
    """

    __slots__ = ()

    # Attributes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return NUMPY_DTYPES[self._state[0].dtype]

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """Data type, for libraries that convert an array to one."""
        return self.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self._state[0].dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def T(self) -> Array:  # noqa: N802 (the standard's name)
        """Transpose of a matrix.

        Raises
        ------
        ValueError
            If the array does not have two dimensions.
        """
        if self.ndim != 2:
            raise ValueError(f"T needs an array of 2 dimensions, not of shape {self.shape}; use mT")
        return self.mT

    @property
    def mT(self) -> Array:  # noqa: N802 (the standard's name)
        """Transpose of each matrix in a stack of matrices.

        Raises
        ------
        ValueError
            If the array has fewer than two dimensions.
        """
        if self.ndim < 2:
            raise ValueError(
                f"mT needs an array of 2 or more dimensions, not of shape {self.shape}"
            )
        *stack, rows, columns = range(self.ndim)
        shape = (*self._shape[:-2], self._shape[-1], self._shape[-2])
        return Array(shape, views.permute(self._state, self.ndim, (*stack, columns, rows)))

    # Indexing

    def __getitem__(self, key: Any, /) -> Array:
        """Select elements ("Indexing" in the standard); always a copy, never an alias."""
        found = indexing.basic_view(self._state, self._shape, key)
        return indexing.select(self, key) if found is None else Array(*found)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        """Assign to elements; what was recorded before keeps seeing the old values."""
        indexing.assign(self, key, value)

    def __len__(self) -> int:
        """Length of the first dimension."""
        if not self._shape:
            raise TypeError("len() of an array without dimensions")
        return self._shape[0]

    def __iter__(self) -> Iterator[Array]:
        """Iterate over the first dimension."""
        if not self._shape:
            raise TypeError("iteration over an array without dimensions")
        return self._rows()

    def _rows(self) -> Iterator[Array]:
        # What only asks whether it could iterate computes nothing.
        whole = Array(self._shape, self._materialize())
        yield from (whole[index] for index in range(self._shape[0]))

    # Conversions

    def _numpy(self) -> np.ndarray[Any, Any]:
        """Return a NumPy array over the values, writable only if the memory is."""
        state = self._in_memory()
        return values_of(stream_of(state), state[0].dtype, self._shape)

    def _in_memory(self) -> State:
        """Return a state whose values are in memory; a strided view of some is computed already."""
        return self._state if is_stream(self._state) else self._materialize()

    def item(self) -> Number:
        """Return the only element as a Python scalar.

        Raises
        ------
        ValueError
            If the array does not have exactly one element.
        """
        if self.size != 1:
            raise ValueError(f"only an array of one element is a scalar, not one of {self.shape}")
        return self._numpy().item()  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """Return the elements as (nested lists of) Python scalars."""
        return self._numpy().tolist()

    def _scalar(self, target: str) -> Number:
        if self.size != 1:
            raise TypeError(f"only an array of one element converts to {target}, not {self.shape}")
        return self.item()

    def __bool__(self) -> builtins.bool:
        """Truth of the only element."""
        if self.size != 1:
            raise ValueError(
                f"the truth value of an array of shape {self.shape} is ambiguous; "
                "only one element has one"
            )
        return builtins.bool(self.item())

    def __int__(self) -> int:
        """Return the only element, truncated."""
        return int(self._scalar("int"))  # type: ignore[arg-type]

    def __float__(self) -> float:
        """Return the only element, which must not be complex."""
        return float(self._scalar("float"))  # type: ignore[arg-type]

    def __complex__(self) -> complex:
        """Return the only element."""
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        """Return the only element, which must be an integer."""
        if self._state[0].dtype.kind not in ("signed", "unsigned"):
            raise TypeError(f"only integer arrays are an index, not {self.dtype}")
        return int(self._scalar("an index"))  # type: ignore[arg-type]

    # Interchange

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Return the module with the standard's functions.

        Raises
        ------
        ValueError
            If another version of the standard is asked for.
        """
        import fklarray

        versions = ("2021.12", "2022.12", "2023.12", "2024.12", fklarray.__array_api_version__)
        if api_version is not None and api_version not in versions:
            raise ValueError(f"unsupported version {api_version!r} of the array API standard")
        return fklarray

    # Python's protocols

    def __copy__(self) -> Array:
        """Return an array with the same values; they are shared until one of the two is changed."""
        return Array(self._shape, self._materialize())

    def __deepcopy__(self, memo: dict[int, object]) -> Array:
        """Return an array with the same values."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the values."""
        return _unpickle, (self.__array__(),)

    def __repr__(self) -> str:
        """Return the values as NumPy writes them; computes what is pending."""
        prefix = "Array("
        values = np.array2string(self._numpy(), separator=", ", prefix=prefix, suffix=",")
        # Without elements, the shape is all there is to see.
        shape = "" if self.size else f"shape={self._shape}, "
        about = f"{shape}dtype={self.dtype}, device={self.device.name!r})"
        text = f"{prefix}{values},"
        last = len(text) - text.rfind("\n") - 1
        fits = last + 1 + len(about) <= np.get_printoptions()["linewidth"]
        return text + (" " if fits else "\n" + " " * len(prefix)) + about

    def __str__(self) -> str:
        """Return the values as NumPy writes them."""
        return str(self._numpy())

    def __format__(self, spec: str) -> str:
        """Format the only element of an array without dimensions; others have no format."""
        if self.ndim == 0:
            return format(self.item(), spec)
        if spec:
            raise TypeError(f"format {spec!r} is for one number, not for shape {self._shape}")
        return str(self)


Recorded.array = Array
connect_core(Array, admit=admit, held=Held, held_by_thread=held_by_thread, reduce=reduce_pending)


def _unpickle(array: np.ndarray[Any, Any]) -> Array:
    return Array(array.shape, placed(array, dtype_row(array.dtype), array.shape, HOST))


def _check_array(function: str, value: object) -> None:
    """Refuse anything but an array of this library.

    Raises
    ------
    TypeError
        Naming the function and the argument's type.
    """
    if not isinstance(value, Array):
        raise TypeError(f"{function} takes arrays of fklarray, not {type(value).__name__}")


def materialize(*arrays: Array) -> None:
    """Compute pending arrays now; those of one shape as one kernel that writes them all.

    Parameters
    ----------
    *arrays : Array
        They keep their identity; each is an array in memory afterwards.

    Raises
    ------
    TypeError
        If an argument is not an array of this library.
    """
    for array in arrays:
        _check_array("materialize", array)
    compute_together(arrays)
