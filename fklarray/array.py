"""The array object: a shape and a recorded expression, computed when its values are needed."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from fklarray import indexing, views
from fklarray.core import in_front
from fklarray.device import CPU, Device, as_device
from fklarray.dtype_rows import NUMPY_DTYPES, DtypeLike, dtype_row
from fklarray.evaluation import connect_core, evaluate
from fklarray.interchange import DLPACK_CPU, copy_of, export_dlpack, is_private, numpy_view
from fklarray.methods import Methods
from fklarray.pending import Held, admit, held_by_thread
from fklarray.record import Number, Recorded, compute_together, reduce_pending
from fklarray.recording import is_stream, stream_of

__all__ = ["Array", "materialize"]


class Array(Methods):
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
    def device(self) -> Device:
        """Device that the array lives on."""
        return CPU

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
        state = self._state
        # A strided view of memory is computed already.
        if not is_stream(state):
            state = self._materialize()
        return numpy_view(stream_of(state), state[0].dtype, self._shape)

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

    def __array__(
        self, dtype: DtypeLike | None = None, copy: builtins.bool | None = None
    ) -> np.ndarray[Any, Any]:
        """Return a NumPy array.

        Parameters
        ----------
        dtype : dtype, optional
            Data type to convert to.
        copy : bool or None
            True: a copy. Otherwise a view of the array's own memory, unless the data type differs:
            writable if neither other arrays nor recorded operations see the memory.

        Raises
        ------
        ValueError
            If `copy` is False and the data type differs.
        """
        if dtype is None and not copy and self._has_usual_memory():
            # A DLPack export is read-only in the same cases, and made faster.
            return np.from_dlpack(self, copy=False)  # type: ignore[arg-type]
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        state = self._materialize()
        array = numpy_view(stream_of(state), state[0].dtype, self._shape)
        if wanted != self.dtype:
            if copy is False:
                raise ValueError(f"conversion of {self.dtype} to {wanted} needs a copy")
            return array.astype(wanted)
        if copy:
            return array.copy()
        # What others see must not change under them.
        if not is_private(state) or stream_of(state).buffer.imported:
            array.flags.writeable = False
        return array

    def _has_usual_memory(self) -> builtins.bool:
        """Return whether the values, computed now, are of NumPy's types and in our own memory."""
        state = self._materialize()
        return state[0].dtype.is_standard and not stream_of(state).buffer.imported

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and number; computes nothing."""
        return DLPACK_CPU

    @in_front("dlpack")
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: builtins.bool | None = None,
    ) -> object:
        """Export the values as a DLPack capsule, which shares their memory.

        Parameters
        ----------
        stream : None or -1
            There are no streams on a CPU.
        max_version : tuple of int, optional
            Newest version that the consumer knows; a versioned capsule is given from (1, 0) on.
        dl_device : tuple of int, optional
            Device to export to: (1, 0).
        copy : bool or None
            True: always a copy. False: never. None: if other arrays or recorded operations see
            the memory, which the consumer may write to.

        Raises
        ------
        BufferError
            If the device, the stream or `copy` cannot be satisfied.
        """
        if dl_device is not None and tuple(dl_device) != DLPACK_CPU:
            raise BufferError(f"cannot export from the CPU to DLPack device {dl_device}")
        if stream not in (None, -1):
            raise BufferError(f"an array on the CPU has no stream, but stream={stream!r} was given")
        versioned = max_version is not None and max_version[0] >= 1
        state = self._materialize()
        readonly = not is_private(state) or stream_of(state).buffer.readonly
        if copy or (copy is None and readonly):
            (state,) = evaluate(*state, self._shape)
            readonly, copy = False, True
        return export_dlpack(
            stream_of(state).buffer,
            state[0].dtype,
            self._shape,
            versioned=versioned,
            readonly=readonly,
            copied=builtins.bool(copy),
        )

    def __buffer__(self, flags: int, /) -> memoryview:
        """Export the values to the buffer protocol (Python 3.12), writable where `__array__` is."""
        return self.__array__().data

    def to_device(self, device: Device | str, /, *, stream: object = None) -> Array:
        """Return the array on a device.

        Raises
        ------
        ValueError
            If there is no such device, or a stream is given for the CPU.
        """
        as_device(device)
        if stream is not None:
            raise ValueError(f"an array on the CPU has no stream, but stream={stream!r} was given")
        return self

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
    return Array(array.shape, copy_of(array, dtype_row(array.dtype), array.shape))


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
