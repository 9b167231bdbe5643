"""Loading the library of tile kernels, and what crosses its C interface.

``libcutile_kernels.so`` is built from the Rust crate ``runtime/cutile_kernels``, whose README
describes the interface. Tensors cross it as descriptors of memory that the caller keeps alive.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cffi import FFI

from fklarray_runtime.binary_cache import default_directory

__all__ = [
    "NULL",
    "TileArgumentError",
    "TileDescriptorError",
    "TileDeviceError",
    "TileError",
    "TileLaunchError",
    "TileLibraryNotFound",
    "TileTensor",
    "built_library_path",
    "check",
    "descriptor",
    "structure",
    "tile_library",
    "tile_library_path",
]

_VARIABLE = "FKLARRAY_TILE_LIBRARY"
_ASSEMBLER = "FKLARRAY_TILEIRAS"
_NAME = "libcutile_kernels.so"
_MAX_DIMS = 8
_CODES = {"float32": 0, "float16": 1, "bfloat16": 2, "int32": 3}
_DESCRIPTOR = struct.Struct("@Qi8q8qi0q")

_DECLARATIONS = """
typedef struct { uint64_t ptr; int32_t ndim; int64_t shape[8]; int64_t strides[8]; int32_t dtype; }
    TensorDesc;
typedef struct {
    int32_t variant, rows, columns, tiles, fast, pointers, persistent, occupancy, ctas, warps;
} SoftmaxConfig;
typedef struct {
    int32_t variant, m, n, k, group, persistent, occupancy, ctas, warps;
} MatmulConfig;
typedef struct { float alpha; int32_t activation; } Epilogue;
typedef struct { int32_t queries, keys, occupancy, ctas, warps; } AttentionConfig;

int32_t cutile_init(const char *shipped, const char *cache, const char *tileiras);
int32_t cutile_compile_for(const char *architecture, const char *folder);
const char *cutile_last_error(void);
int32_t cutile_softmax(const TensorDesc *out, const TensorDesc *x, const TensorDesc *workspace,
    int32_t axis, int32_t log, const SoftmaxConfig *config, int32_t device_id, uint64_t raw_stream);
int32_t cutile_matmul(const TensorDesc *c, const TensorDesc *a, const TensorDesc *b,
    const TensorDesc *bias, const TensorDesc *workspace, const Epilogue *epilogue,
    const MatmulConfig *config, int32_t device_id, uint64_t raw_stream);
int64_t cutile_matmul_workspace(const TensorDesc *c, const TensorDesc *a, const TensorDesc *b);
int32_t cutile_attention(const TensorDesc *out, const TensorDesc *q, const TensorDesc *k,
    const TensorDesc *v, const TensorDesc *mask, float scale, int32_t causal,
    const AttentionConfig *config, int32_t device_id, uint64_t raw_stream);
"""

_ffi = FFI()
_ffi.cdef(_DECLARATIONS)
NULL = _ffi.NULL


class TileError(RuntimeError):
    """A tile kernel could not be queued; its text is the library's."""


class TileArgumentError(TileError, ValueError):
    """The library's code -2: a data type, shape or configuration that it does not have."""


class TileLaunchError(TileError):
    """The library's code -3: a kernel could not be compiled or launched."""


class TileDeviceError(TileError):
    """The library's code -4: the device or its stream cannot be used."""


class TileDescriptorError(TileError, TypeError):
    """The library's code -5: something that it needs is missing."""


_ERRORS = {
    -2: TileArgumentError,
    -3: TileLaunchError,
    -4: TileDeviceError,
    -5: TileDescriptorError,
}


class TileLibraryNotFound(TileError):  # noqa: N818  (what happened, not an "error")
    """The library of tile kernels is not there; the text names the places and what builds it."""


class TileTensor(NamedTuple):
    """A tensor in a device's memory, which the caller keeps alive.

    Attributes
    ----------
    address : int
        Of its first element.
    shape, strides : sequence of int
        At most eight extents, and strides counted in elements.
    dtype : str
        ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"int32"``.
    """

    address: int
    shape: Sequence[int]
    strides: Sequence[int]
    dtype: str


def tile_library_path() -> Path:
    """Find the library.

    Returns
    -------
    Path
        What FKLARRAY_TILE_LIBRARY names, or else what came with this package, or what
        ``python -m fklarray build-tile`` has built.

    Raises
    ------
    TileLibraryNotFound
        If it is in none of these places.
    """
    if named := os.environ.get(_VARIABLE):
        places = [Path(named)]
    else:
        places = [Path(__file__).parent / "tile_kernels" / _NAME, built_library_path()]
    for path in places:
        if path.is_file():
            return path
    tried = " or ".join(str(path) for path in places)
    raise TileLibraryNotFound(
        f"there is no library of tile kernels at {tried}; set {_VARIABLE}, or run: "
        "python -m fklarray build-tile"
    )


def built_library_path() -> Path:
    """Return where a library that is built on this machine lies."""
    return default_directory() / "tiles" / _NAME


@cache
def _library(path: Path) -> Any:
    try:
        library: Any = _ffi.dlopen(str(path))
    except OSError as error:
        raise TileLibraryNotFound(f"{path} cannot be loaded: {error}") from None
    shipped, kept = path.parent / "cubins", default_directory() / "tiles" / "cubins"
    assembler = os.environ.get(_ASSEMBLER, "")
    check(library, library.cutile_init(bytes(shipped), bytes(kept), assembler.encode()), "loading")
    return library


def tile_library() -> Any:
    """Return the loaded library; raises as `tile_library_path` does."""
    return _library(tile_library_path())


def check(library: Any, code: int, doing: str) -> None:
    """Raise the error of a return code, with the library's text; 0 is none."""
    if code == 0:
        return
    text: Any = _ffi.string(library.cutile_last_error())
    error = _ERRORS.get(code, TileError)
    raise error(
        f"{doing} of a tile kernel failed with code {code}: {text.decode(errors='replace')}"
    )


def descriptor(tensor: TileTensor | None) -> Any:
    """Return a descriptor, whose memory lives as long as it does."""
    if tensor is None:
        return NULL
    rank = len(tensor.shape)
    if rank != len(tensor.strides) or rank > _MAX_DIMS:
        raise TileArgumentError(
            f"a tile kernel takes up to {_MAX_DIMS} dimensions and as many strides, not shape "
            f"{tuple(tensor.shape)} with strides {tuple(tensor.strides)}"
        )
    code = _CODES.get(tensor.dtype)
    if code is None:
        raise TileArgumentError(f"tile kernels have no data type {tensor.dtype}")
    rest = (0,) * (_MAX_DIMS - rank)
    packed = _DESCRIPTOR.pack(
        tensor.address, rank, *tensor.shape, *rest, *tensor.strides, *rest, code
    )
    return _ffi.from_buffer("TensorDesc *", packed)


@lru_cache(maxsize=1024)
def structure(values: NamedTuple) -> Any:
    """Return these values as the structure of the interface that has their type's name."""
    return _ffi.new(f"{type(values).__name__} *", values)
