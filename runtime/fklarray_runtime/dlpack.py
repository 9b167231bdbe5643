"""DLPack: capsules out of buffers, and buffers out of capsules."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from fklarray_runtime._native import ffi, lib
from fklarray_runtime.buffer import Buffer
from fklarray_runtime.devices import LEGACY_STREAM, DeviceBuffer

# DLDataTypeCode
INT = 0
UINT = 1
FLOAT = 2
OPAQUE = 3
BFLOAT = 4
COMPLEX = 5
BOOL = 6

# DLDeviceType
CPU = 1
CUDA = 2
CUDA_HOST = 3
CUDA_MANAGED = 13

# Bits of DLManagedTensorVersioned.flags
READ_ONLY = 1
IS_COPIED = 2

_MAJOR_VERSION = 1
_HOST_DEVICES = (CPU, CUDA_HOST, CUDA_MANAGED)
_CODE_NAMES = ("int", "uint", "float", "opaque", "bfloat", "complex", "bool")
_DEVICE_NAMES = {
    1: "CPU", 2: "CUDA", 3: "CUDA host", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm",
    11: "ROCm host", 13: "CUDA managed", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon",
}  # fmt: skip

# Parsed once: cffi looks a type up by its text on every use of the text.
_POINTER = ffi.typeof("void *")
_DESCRIPTION = ffi.typeof("fkl_description *")
_NUMBERS = ffi.typeof("int64_t *")
_HEADER_FIELDS = 12  # of fkl_description, before its extents

# PYFUNCTYPE keeps the GIL, so that looking at a capsule and claiming it cannot be interrupted.
_export = cast(
    "Callable[[], Callable[..., object]]",
    ctypes.PYFUNCTYPE(ctypes.py_object)(lib.fkl_export_function_address()),
)()
_inspect_capsule = cast(
    "Callable[[object, Any], int]",
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_size_t))(
        lib.fkl_capsule_inspect_address()
    ),
)
_claim_capsule = cast(
    "Callable[[object, int], int]",
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_int)(
        lib.fkl_capsule_claim_address()
    ),
)


@dataclass(frozen=True, slots=True)
class Imported:
    """A tensor taken over from another library.

    Attributes
    ----------
    buffer : Buffer
        The bytes the tensor spans; its end is what lets the producer free them.
    address : int
        Address of element (0, 0, ...), which need not be aligned, nor be the lowest one.
    shape, strides : tuple of int
        Extents, and strides in elements.
    code, bits : int
        DLPack type code and bits of one element.
    readonly : bool
        The producer forbids writing.
    """

    buffer: Buffer
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    code: int
    bits: int
    readonly: bool


def export_capsule(
    buffer: Buffer,
    *,
    address: int,
    shape: tuple[int, ...],
    code: int,
    bits: int,
    versioned: bool,
    readonly: bool = False,
    copied: bool = False,
) -> object:
    """Export a C-contiguous tensor over a buffer.

    Parameters
    ----------
    buffer : Buffer
        The memory; the tensor holds a reference of its own to it.
    address : int
        Address of the first element.
    shape : tuple of int
        Extents.
    code, bits : int
        DLPack type code and bits of one element.
    versioned : bool
        Whether the consumer knows DLPack 1.x; only such a capsule can carry the two flags.
    readonly, copied : bool
        The flags READ_ONLY and IS_COPIED.

    Returns
    -------
    object
        A capsule named ``dltensor_versioned`` or ``dltensor``, which frees its tensor when no
        consumer takes it.

    Raises
    ------
    BufferError
        A read-only tensor cannot be said in the legacy form.
    MemoryError
        The managed tensor could not be allocated.

    Notes
    -----
    The structures are those of the DLPack 1.x C interface; the version written is 1.0.
    """
    if readonly and not versioned:
        raise BufferError("a legacy DLPack capsule cannot say that its memory is read-only")
    flags = (READ_ONLY if readonly else 0) | (IS_COPIED if copied else 0)
    device = (CUDA, buffer.device) if isinstance(buffer, DeviceBuffer) else (CPU, 0)
    return _export(buffer.block, address, device, shape, code, bits, versioned, flags)


def import_capsule(capsule: object, stream: int = LEGACY_STREAM) -> Imported:
    """Take over the tensor of a capsule.

    Parameters
    ----------
    capsule : object
        A fresh capsule of either name.
    stream : int
        Of a CUDA tensor: the stream that its producer was asked to make it ready on.

    Returns
    -------
    Imported
        Its buffer calls the producer's deleter exactly once, when the last holder is gone.

    Raises
    ------
    BufferError
        The device, dtype, version or shape is not supported; the capsule stays unconsumed.
    ValueError
        The capsule was consumed before.
    TypeError
        `capsule` is not a DLPack capsule.
    """
    pointer = ctypes.c_size_t()
    versioned = _inspect_capsule(capsule, ctypes.byref(pointer))
    if versioned < 0:
        raise _not_fresh(capsule, versioned)
    managed = ffi.cast(_POINTER, pointer.value)
    description = ffi.new(_DESCRIPTION)
    lib.fkl_describe_tensor(managed, versioned, description)
    said = ffi.unpack(ffi.cast(_NUMBERS, description), _HEADER_FIELDS)
    _check(said)
    _, _, flags, device_type, number, code, bits, _, ndim, address, lowest, nbytes = said
    extents = tuple(ffi.unpack(description.extents, 2 * ndim)) if ndim else ()
    shape, strides = extents[:ndim], extents[ndim:]
    if ndim and min(shape) < 0:
        raise BufferError(f"the tensor has a negative extent in its shape {shape}")
    readonly = bool(flags & READ_ONLY)
    if device_type == CUDA:
        block = lib.fkl_device_block(number, ffi.cast(_POINTER, stream))
        buffer: Buffer = DeviceBuffer(lowest, nbytes, readonly, _made(block), number, True)
        adopt = lib.fkl_device_adopt
    else:
        buffer = Buffer(lowest, nbytes, readonly, _made(lib.fkl_import_block()))
        adopt = lib.fkl_import_adopt
    # Everything that can fail comes before the claim; after it the tensor has an owner at once.
    if not _claim_capsule(capsule, versioned):
        raise _not_fresh(capsule, -1)
    adopt(buffer.block, managed, versioned)
    return Imported(buffer, address, shape, strides, code, bits, readonly)


def _not_fresh(capsule: object, state: int) -> Exception:
    if state == -1:
        return ValueError("this DLPack capsule was consumed before; a capsule is good for one use")
    return TypeError(f"expected a DLPack capsule, not {capsule!r}")


def _check(said: list[int]) -> None:
    """Refuse versions, devices and dtypes that are not supported."""
    major, minor, _, device_type, device_id, code, bits, lanes, ndim, *_ = said
    if major != _MAJOR_VERSION:
        raise BufferError(f"DLPack version {major}.{minor} is not supported, only 1.x")
    if device_type == CUDA and 0 <= device_id < lib.fkl_device_count():
        pass
    elif device_type not in _HOST_DEVICES:
        name = _DEVICE_NAMES.get(device_type, "unknown")
        raise BufferError(
            f"the tensor is on device type {device_type} ({name}), id {device_id}; "
            "only memory of the CPU and of the NVIDIA devices here can be imported"
        )
    if lanes != 1 or bits == 0 or bits % 8 != 0:
        name = _CODE_NAMES[code] if code < len(_CODE_NAMES) else f"code {code} "
        raise BufferError(f"dtype {name}{bits} with {lanes} lanes is not supported")
    if not 0 <= ndim <= lib.FKL_MAX_NDIM:
        raise BufferError(f"a tensor of {ndim} dimensions is not supported")


def _made(block: int) -> int:
    if not block:
        raise MemoryError("cannot allocate the header of an imported tensor")
    return block


def request(
    producer: object,
    *,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
    stream: int | None = None,
) -> object:
    """Ask a producer for a capsule, in the newest form it understands.

    Parameters
    ----------
    producer : object
        Has ``__dlpack__``.
    dl_device : tuple of int, optional
        Device type and id to ask for; passed on only when given.
    copy : bool, optional
        Passed on only when given. A producer that does not know the keyword is asked without
        it: the caller makes the copy.
    stream : int, optional
        Of a CUDA tensor: where the caller will use it; every producer knows the keyword.

    Returns
    -------
    object
        The producer's capsule.

    Raises
    ------
    TypeError
        `producer` has no ``__dlpack__``.
    Exception
        Whatever the producer raises, unchanged.
    """
    method = getattr(producer, "__dlpack__", None)
    if method is None:
        raise TypeError(f"{type(producer).__name__} objects have no __dlpack__ method")
    options: dict[str, object] = {}
    if dl_device is not None:
        options["dl_device"] = dl_device
    if copy is not None:
        options["copy"] = copy
    always: dict[str, object] = {} if stream is None else {"stream": stream}
    newest: dict[str, object] = {"max_version": (1, 0), **always}
    forms = [{**newest, **options}, newest]
    for form in forms if options else forms[1:]:
        try:
            return method(**form)
        except TypeError:
            continue  # an older producer: it does not know one of the keywords
    return method(**always)
