"""Memory of arrays for other libraries, and on other devices: NumPy, DLPack, CUDA, `to_device`."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fklarray.core import in_front
from fklarray.device import CPU, Device, as_device
from fklarray.dtype_rows import NUMPY_DTYPES, DtypeLike
from fklarray.evaluation import evaluate
from fklarray.interchange import (
    DLPACK_CPU,
    check_stream,
    dlpack_device,
    export_dlpack,
    hand_over,
    is_private,
)
from fklarray.methods import Methods
from fklarray.placement import moved, number_of, values_of
from fklarray.record import Recorded
from fklarray.recording import HOST, constant_state, stream_of
from fklarray_runtime import current_stream

if TYPE_CHECKING:
    from fklarray.array import Array

__all__ = ["Exchange"]


class Exchange(Methods):
    """What an array offers to whoever takes its memory."""

    __slots__ = ()

    @property
    def device(self) -> Device:
        """Device that the array lives on."""
        return Device(self._state[0].place or HOST)

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
        own = NUMPY_DTYPES[self._state[0].dtype]
        wanted = own if dtype is None else np.dtype(dtype)
        state = self._materialize()
        array = values_of(stream_of(state), state[0].dtype, self._shape)
        if wanted != own:
            if copy is False:
                raise ValueError(f"conversion of {own} to {wanted} needs a copy")
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
        memory = stream_of(state).buffer
        return state[0].dtype.is_standard and memory.place == HOST and not memory.imported

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and number; computes nothing."""
        return dlpack_device(self._state[0].place or HOST)

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
        stream : int, optional
            On a device the consumer's stream, which comes after what is queued for the array: 1
            or None for the legacy default stream, 2 for that of the thread, -1 for none of this.
            There are no streams on a CPU.
        max_version : tuple of int, optional
            Newest version that the consumer knows; a versioned capsule is given from (1, 0) on.
        dl_device : tuple of int, optional
            Device to export to: the array's own, or (1, 0), the CPU, by a copy.
        copy : bool or None
            True: always a copy. False: never. None: if other arrays or recorded operations see
            the memory, which the consumer may write to.

        Raises
        ------
        BufferError
            If the device, the stream or `copy` cannot be satisfied.
        """
        place = self._state[0].place or HOST
        if dl_device is not None and tuple(dl_device) != dlpack_device(place):
            return self._dlpack_elsewhere((dl_device[0], dl_device[1]), stream, max_version, copy)
        check_stream(place, stream)
        versioned = max_version is not None and max_version[0] >= 1
        state = self._materialize()
        readonly = not is_private(state) or stream_of(state).buffer.readonly
        if copy or (copy is None and readonly):
            (state,) = evaluate(*state, self._shape)
            readonly, copy = False, True
        hand_over(stream_of(state), stream)
        return export_dlpack(
            stream_of(state).buffer,
            state[0].dtype,
            self._shape,
            versioned=versioned,
            readonly=readonly,
            copied=builtins.bool(copy),
        )

    def _dlpack_elsewhere(
        self,
        dl_device: tuple[int, int],
        stream: int | None,
        max_version: tuple[int, int] | None,
        copy: builtins.bool | None,
    ) -> object:
        if dl_device != DLPACK_CPU or copy is False:
            raise BufferError(
                f"cannot export from {self.device} to DLPack device {dl_device} with copy={copy}"
            )
        # Whoever asks for memory of the CPU has no stream to wait on: the copy is there at once.
        check_stream(self.device.name, stream)
        return self.to_device(CPU).__dlpack__(max_version=max_version)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as Numba, CuPy and others take it (version 3).

        Raises
        ------
        AttributeError
            If the array is on the CPU, or of a data type that the interface has no name for.
        """
        row = self._state[0].dtype
        if self.device == CPU or not row.is_standard:
            raise AttributeError(f"an array of {row} on {self.device} has no CUDA array interface")
        state = self._materialize()
        # It counts references: before this function holds any but `state`.
        readonly = not is_private(state) or stream_of(state).buffer.readonly
        stream = stream_of(state)
        return {
            "version": 3,
            "shape": self._shape,
            "typestr": NUMPY_DTYPES[row].str,
            "data": (stream.value if math.prod(self._shape) else 0, readonly),
            "strides": None,
            "stream": current_stream(number_of(state[0].place)),
        }

    def __buffer__(self, flags: int, /) -> memoryview:
        """Export the values to the buffer protocol (Python 3.12), writable where `__array__` is."""
        return self.__array__().data

    def to_device(self, device: Device | str, /, *, stream: object = None) -> Array:
        """Return the array on a device.

        Raises
        ------
        ValueError
            If there is no such device, or a stream is given: the copy is queued on the current one.
        """
        target = as_device(device)
        if stream is not None:
            raise ValueError(f"the current stream is used; stream={stream!r} cannot be")
        if target == self.device:
            itself: Any = self
            return itself  # type: ignore[no-any-return]
        if self._state[0].op == "scalar":
            row, (number,) = self._state[0].dtype, self._state[1]
            return Recorded.array(self._shape, constant_state(number.value, row, target.name))
        return Recorded.array(self._shape, moved(self._materialize(), self._shape, target.name))
