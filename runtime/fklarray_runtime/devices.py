"""NVIDIA devices: their memory, in the order of streams, and what is there.

The driver is loaded when a device is first asked for. The stream is CuPy's current one where CuPy
is in the process, else the legacy default stream, in whose order all other usual streams are.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fklarray_runtime._native import ffi, lib
from fklarray_runtime.buffer import Buffer
from fklarray_runtime.kernel import LaunchError

if TYPE_CHECKING:
    from fklarray_runtime.kernel import Kernel

__all__ = [
    "LEGACY_STREAM",
    "DeviceBuffer",
    "DeviceDescription",
    "DeviceError",
    "allocate_on",
    "copy_from_device",
    "copy_to_device",
    "copy_within",
    "current_stream",
    "describe_device",
    "device_count",
    "device_problem",
    "launch_on",
    "trim_device",
    "use_on",
]

LEGACY_STREAM = 1
_LAST_STREAM_OF_ALL = 2  # the legacy stream is in order with each thread's own
_OUT_OF_MEMORY = 2
_MOST_BYTES = 2**63 - 1
_STREAM = ffi.typeof("void *")
_CODE = ffi.typeof("int *")
_BLOCKS = ffi.typeof("uint64_t[]")

# CuPy's streams on which blocks were used last, and the one that each thread has asked for last,
# which may be about to get blocks.
_streams: dict[int, object] = {}
_current: dict[int, int] = {}
_streams_lock = threading.Lock()


class DeviceError(RuntimeError):
    """The driver refused something.

    Attributes
    ----------
    code : int
        The driver's ``CUresult``.
    """

    def __init__(self, code: int, doing: str) -> None:
        text = ffi.string(lib.fkl_device_message(code)).decode("utf-8", "replace")
        super().__init__(f"{doing} failed with the driver's code {code}: {text}")
        self.code = code


class DeviceBuffer(Buffer):
    """One block of a device's memory, alive for as long as this object or any other holder of it.

    Attributes
    ----------
    device : int
        Number of the device.
    place : str
        Its name.
    """

    __slots__ = ("_imported", "device", "place")

    def __init__(
        self, address: int, nbytes: int, readonly: bool, block: int, device: int, imported: bool
    ) -> None:
        super().__init__(address, nbytes, readonly, block)
        self.device = device
        self.place = f"cuda:{device}"
        self._imported = imported

    @property
    def imported(self) -> bool:
        """True for memory that another library owns."""
        return self._imported

    def view(self) -> Any:
        """Refuse: the processor cannot see the memory.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(f"memory of {self.place} has no view on the CPU")


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """What a device is.

    Attributes
    ----------
    name : str
        Of the product.
    architecture : str
        ``"sm_90"``.
    driver : str
        Newest CUDA that the driver runs: ``"13.0"``.
    total, free, pool : int
        Bytes of the device, those that nobody holds, and those in this process' pool.
    """

    name: str
    architecture: str
    driver: str
    total: int
    free: int
    pool: int


def device_count() -> int:
    """Count the devices; 0 also where there is no driver."""
    return lib.fkl_device_count()


def device_problem() -> str:
    """Return why there are no devices."""
    lib.fkl_device_count()
    return ffi.string(lib.fkl_device_problem()).decode("utf-8", "replace")


def describe_device(device: int) -> DeviceDescription:
    """Describe a device.

    Raises
    ------
    DeviceError
        If the driver does not say.
    """
    found = ffi.new("fkl_device_description *")
    _check(lib.fkl_device_properties(device, found), f"looking at cuda:{device}")
    return DeviceDescription(
        ffi.string(found.name).decode("utf-8", "replace"),
        f"sm_{found.major}{found.minor}",
        f"{found.driver // 1000}.{found.driver % 1000 // 10}",
        found.total,
        found.free,
        found.reserved,
    )


def current_stream(device: int) -> int:
    """Return the handle of the stream that work on a device is queued on."""
    cupy: Any = sys.modules.get("cupy")
    if cupy is None:
        return LEGACY_STREAM
    stream = cupy.cuda.get_current_stream(device)
    handle = int(stream.ptr)
    if handle <= _LAST_STREAM_OF_ALL:
        return LEGACY_STREAM
    with _streams_lock:
        _current[threading.get_ident()] = handle
        if handle not in _streams:
            _keep(handle, stream)
    return handle


def _keep(handle: int, stream: object) -> None:
    """Keep a stream of CuPy's for as long as blocks were used last on it, and let others go."""
    asked = set(_current.values())
    for one in list(_streams):
        if one not in asked and not lib.fkl_device_needs(ffi.cast(_STREAM, one)):
            del _streams[one]
    _streams[handle] = stream


def allocate_on(device: int, nbytes: int, stream: int) -> DeviceBuffer:
    """Allocate uninitialised memory of a device, in the order of a stream.

    Raises
    ------
    MemoryError
        Even after what is kept for reuse was given back.
    DeviceError
        If the driver refuses for another reason.
    """
    if nbytes > _MOST_BYTES:
        raise _refusal(device, nbytes, _OUT_OF_MEMORY)
    code = ffi.new(_CODE)
    pointer = ffi.cast(_STREAM, stream)
    block = lib.fkl_device_allocate(device, nbytes, pointer, code)
    if not block and code[0] == _OUT_OF_MEMORY:
        trim_device(device)
        block = lib.fkl_device_allocate(device, nbytes, pointer, code)
    if not block:
        raise _refusal(device, nbytes, code[0])
    return DeviceBuffer(lib.fkl_device_address(block), nbytes, False, block, device, False)


def _refusal(device: int, nbytes: int, code: int) -> Exception:
    if code != _OUT_OF_MEMORY:
        return DeviceError(code, f"allocating {nbytes} bytes on cuda:{device}")
    found = describe_device(device)
    return MemoryError(
        f"cannot allocate {nbytes} bytes on cuda:{device}: {found.free} of its {found.total} bytes "
        f"are free, and {found.pool} are in the pool of this process"
    )


def trim_device(device: int) -> None:
    """Give the memory that is kept for reuse back to the device, CuPy's too."""
    cupy: Any = sys.modules.get("cupy")
    if cupy is not None:
        with cupy.cuda.Device(device):
            cupy.get_default_memory_pool().free_all_blocks()
    _check(lib.fkl_device_trim(device), f"trimming the pool of cuda:{device}")


def copy_to_device(buffer: DeviceBuffer, address: int, source: Any, stream: int) -> None:
    """Copy bytes of the host into a block.

    Parameters
    ----------
    buffer : DeviceBuffer
        The block.
    address : int
        Of the first byte, in it.
    source : object
        Has the buffer protocol, contiguous; it may change once this has returned.
    stream : int
        The copy is queued there.
    """
    data = ffi.from_buffer(source)
    use_on(buffer, stream)
    _copy(buffer.device, address, int(ffi.cast("uintptr_t", data)), len(data), stream)


def copy_from_device(buffer: DeviceBuffer, address: int, target: Any, stream: int) -> None:
    """Copy bytes of a device to the host, and wait for them.

    Parameters
    ----------
    buffer : DeviceBuffer
        The block.
    address : int
        Of the first byte, in it.
    target : object
        Has a writable, contiguous buffer, which is filled.
    stream : int
        The copy comes after what is queued there.
    """
    data = ffi.from_buffer(target, require_writable=True)
    use_on(buffer, stream)
    here = int(ffi.cast("uintptr_t", data))
    _copy(buffer.device, here, address, len(data), stream, wait=True)


def copy_within(target: DeviceBuffer, source: DeviceBuffer, stream: int) -> None:
    """Copy a block into another, perhaps of another device, in the order of the target's stream."""
    use_on(source, stream)
    use_on(target, stream)
    _copy(target.device, target.address, source.address, source.nbytes, stream)


def _copy(
    device: int, to: int, start: int, nbytes: int, stream: int, *, wait: bool = False
) -> None:
    code = lib.fkl_device_copy(device, to, start, nbytes, ffi.cast(_STREAM, stream), wait)
    _check(code, f"copying {nbytes} bytes to or from cuda:{device}")


def use_on(buffer: DeviceBuffer, stream: int) -> None:
    """Let what is done on a stream from now on come after what was done with a block before.

    Parameters
    ----------
    buffer : DeviceBuffer
        The block.
    stream : int
        Must not be destroyed before the block is used on another one; CuPy's current one is not.
    """
    if stream > _LAST_STREAM_OF_ALL:
        current_stream(buffer.device)
    code = lib.fkl_device_use(buffer.block, ffi.cast(_STREAM, stream))
    _check(code, f"ordering the streams of {buffer.place}")


def launch_on(kernel: Kernel, data: bytes, device: int, stream: int, blocks: list[int]) -> None:
    """Queue a kernel of a device; it may still run when this returns.

    Parameters
    ----------
    kernel : Kernel
        Compiled for the device.
    data : bytes
        Its parameters, packed.
    device, stream : int
        Where it runs.
    blocks : list of int
        Handles of the blocks that it reads and writes.

    Raises
    ------
    LaunchError
        If the entry failed.
    DeviceError
        If the driver refused what comes before it.
    """
    code = lib.fkl_device_launch(
        kernel.handle,
        data,
        device,
        ffi.cast(_STREAM, stream),
        ffi.new(_BLOCKS, blocks),
        len(blocks),
    )
    # Of a process that was forked, the code is a little less.
    if code > lib.FKL_DEVICE_REFUSED // 2:
        raise DeviceError(code - lib.FKL_DEVICE_REFUSED, f"queueing a kernel on cuda:{device}")
    if code:
        raise LaunchError(code, kernel.message())


def _check(code: int, doing: str) -> None:
    if code:
        raise DeviceError(code, doing)
