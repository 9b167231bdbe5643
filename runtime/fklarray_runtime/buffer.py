"""Blocks of memory and the caching pool they come from."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from fklarray_runtime._native import ffi, lib

if TYPE_CHECKING:
    from fklarray_runtime._native import CBuffer

_allocate = lib.fkl_pool_allocate
_UNLIMITED = (1 << 63) - 1
_HEADER_BYTES = lib.FKL_HEADER_BYTES
_MOST_BYTES = 2**63 - 1


if TYPE_CHECKING:

    class _Owner:
        address: int
        nbytes: int
        readonly: bool
        _block: int

        def __init__(self, address: int, nbytes: int, readonly: bool, block: int, /) -> None: ...

else:
    # Gives the block back when the last object dies, without a call of Python's.
    _Owner = cast(
        "Callable[[], type]", ctypes.PYFUNCTYPE(ctypes.py_object)(lib.fkl_owner_type_address())
    )()


class Buffer(_Owner):
    """One block of memory, alive for as long as this object or any other holder of it.

    Buffers are made by `allocate` and by `fklarray_runtime.dlpack.import_capsule`.

    Attributes
    ----------
    address : int
        Address of the first byte; a multiple of 64 for memory of the pool.
    nbytes : int
        Size in bytes, as asked for.
    readonly : bool
        True for imported memory that must not be written.
    """

    __slots__ = ("__weakref__",)

    # Where the memory is; `fklarray_runtime.devices` has blocks of other places.
    place = "cpu"

    def __repr__(self) -> str:
        kind = "read-only " if self.readonly else ""
        return f"<{kind}Buffer of {self.nbytes} bytes at {self.address:#x}>"

    @property
    def shared(self) -> bool:
        """True while somebody besides this object holds the block: a view or a DLPack tensor."""
        return lib.fkl_block_references(self._block) > 1

    @property
    def imported(self) -> bool:
        """True for memory that another library owns, rather than the pool."""
        return self.address != self._block + _HEADER_BYTES

    @property
    def block(self) -> int:
        """The native block's handle, for the other modules of this package."""
        return self._block

    def view(self) -> CBuffer | memoryview:
        """Give the bytes to the buffer protocol.

        Returns
        -------
        object
            Exports the buffer protocol (one dimension of bytes), holds its own reference to the
            block, and refuses writes when `readonly` is set.
        """
        pointer = ffi.cast("char *", self.address)
        lib.fkl_block_retain(self._block)
        owner = ffi.gc(pointer, partial(_release_block, self._block))
        view = ffi.buffer(owner, self.nbytes)
        return memoryview(view).toreadonly() if self.readonly else view


def _release_block(block: int, _pointer: object, _release: object = lib.fkl_block_release) -> None:
    _release(block)  # type: ignore[operator]


def allocate(nbytes: int) -> Buffer:
    """Allocate uninitialised memory from the caching pool.

    Parameters
    ----------
    nbytes : int
        Size in bytes; 0 gives a valid address too.

    Returns
    -------
    Buffer
        Aligned to 64 bytes.

    Raises
    ------
    MemoryError
        The pool would grow past physical memory and swap, or the system refuses.
    ValueError
        `nbytes` is negative.
    """
    try:
        block = _allocate(nbytes)
    except OverflowError:
        block = 0
    if not block:
        raise _refusal(nbytes)
    return Buffer(block + _HEADER_BYTES, nbytes, False, block)


def _refusal(nbytes: int) -> Exception:
    if operator.index(nbytes) < 0:
        return ValueError(f"cannot allocate a negative number of bytes: {nbytes}")
    return MemoryError(
        f"cannot allocate {nbytes} bytes: that is more than this machine's memory still holds "
        f"({pool_bytes()} bytes are in the pool)"
    )


def pool_bytes() -> int:
    """Count the bytes that the pool holds, in use and kept for reuse."""
    return lib.fkl_pool_bytes()


def trim() -> None:
    """Give the memory kept for reuse back to the system."""
    lib.fkl_pool_trim()


def set_pool_limit(nbytes: int | None) -> None:
    """Set how many bytes the pool keeps for reuse at most; what it keeps beyond goes at once.

    Parameters
    ----------
    nbytes : int or None
        None leaves it to the pool: 256 MiB, or half of the most that was ever in use.

    Raises
    ------
    ValueError
        `nbytes` is negative.
    """
    if nbytes is not None and nbytes < 0:
        raise ValueError(f"the pool cannot keep a negative number of bytes: {nbytes}")
    lib.fkl_pool_set_limit(_UNLIMITED if nbytes is None else min(nbytes, _UNLIMITED))
