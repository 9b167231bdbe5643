"""Loaded libraries and their launch."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fklarray_runtime._native import ffi, lib
from fklarray_runtime.threads import executor

if TYPE_CHECKING:
    from fklarray_runtime._native import CData

_ERROR_BYTES = 2048
_launch = lib.fkl_kernel_launch
_ADDRESS = ffi.typeof("uintptr_t")


def native_functions() -> int:
    """Return the address of ``fkl_functions`` (``native/interface.h``), for compiled callers."""
    return int(ffi.cast(_ADDRESS, lib.fkl_functions_table()))


class LoadError(RuntimeError):
    """A shared library could not be loaded, or lacks an entry."""


class LaunchError(RuntimeError):
    """A kernel's entry returned an error.

    Attributes
    ----------
    code : int
        What the entry returned.
    message : str
        What the library says about it.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"the kernel failed with code {code}: {message}")
        self.code = code
        self.message = message


class Kernel:
    """One loaded library with its entry ``int fkl_entry(const void **, void *)``.

    The library is unloaded when this object dies.

    Parameters
    ----------
    path : Path
        The shared library.
    packer_format : str
        A `struct` format that packs all parameters into one block.
    offsets : sequence of int
        Offset, in bytes, of each parameter in that block.

    Raises
    ------
    LoadError
        The library does not load, or lacks ``fkl_entry`` or ``fkl_error_message``.
    ValueError
        An offset lies outside the packed block, or there are more than 8192 of them.
    """

    __slots__ = ("__weakref__", "_executor", "_kernel", "_pack", "offsets", "path")

    path: Path
    offsets: tuple[int, ...]
    _executor: CData
    _kernel: CData

    def __init__(self, path: Path, packer_format: str, offsets: Sequence[int]) -> None:
        packer = struct.Struct(packer_format)
        if len(offsets) > lib.FKL_MAX_PARAMETERS:
            raise ValueError(f"{len(offsets)} parameters exceed {lib.FKL_MAX_PARAMETERS}")
        if any(not 0 <= offset < packer.size for offset in offsets):
            raise ValueError(f"an offset lies outside the block of {packer.size} bytes")
        self.path = path
        self.offsets = tuple(offsets)
        self._executor = executor()
        self._pack = packer.pack
        error = ffi.new("char[]", _ERROR_BYTES)
        # An absolute path: dlopen searches the system's folders for a name without a slash.
        name = os.fsencode(path.absolute())
        kernel = lib.fkl_kernel_open(name, offsets, len(offsets), packer.size, error, _ERROR_BYTES)
        if not kernel:
            text = ffi.string(error).decode("utf-8", "replace")
            raise LoadError(f"cannot load {path}: {text}")
        self._kernel = ffi.gc(kernel, lib.fkl_kernel_close)

    @property
    def addresses(self) -> tuple[int, int]:
        """Addresses of the native kernel and its executor, for compiled callers."""
        return int(ffi.cast(_ADDRESS, self._kernel)), int(ffi.cast(_ADDRESS, self._executor))

    @property
    def handle(self) -> CData:
        """The native kernel, for the other modules of this package."""
        return self._kernel

    def message(self) -> str:
        """Return what the library says about the last error of its entry."""
        return ffi.string(lib.fkl_kernel_message(self._kernel)).decode("utf-8", "replace")

    def pack(self, values: Sequence[int | float | bool]) -> bytes:
        """Return the parameter block for values; see `launch`."""
        return self._pack(*values)

    def launch(self, values: Sequence[int | float | bool]) -> None:
        """Run the kernel; the GIL is released meanwhile.

        Parameters
        ----------
        values : sequence of int, float or bool
            One value for each field of the packer's format.

        Raises
        ------
        LaunchError
            The entry returned a code other than 0.
        struct.error
            The values do not fit the format.
        """
        code = _launch(self._kernel, self._pack(*values), self._executor)
        if code:
            raise LaunchError(code, self.message())
