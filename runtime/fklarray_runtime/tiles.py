"""Tile kernels on NVIDIA devices: softmax, matrix products and attention.

Every call queues its work on the caller's stream, and nothing waits.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fklarray_runtime.tile_library import (
    NULL,
    TileTensor,
    check,
    descriptor,
    structure,
    tile_library,
)

__all__ = [
    "AttentionConfig",
    "Epilogue",
    "MatmulConfig",
    "SoftmaxConfig",
    "compile_tiles_for",
    "matmul_workspace",
    "queue_attention",
    "queue_matmul",
    "queue_softmax",
]


class SoftmaxConfig(NamedTuple):
    """How a softmax runs.

    Attributes
    ----------
    variant : int
        0: whole rows in a tile; 1: rows in several passes; 2: several blocks for each row; 3: as
        0, with the next tile read before one is written.
    rows, columns : int
        Sides of a tile, powers of two.
    tiles : int
        Tiles of a row that one block goes through, of variant 2.
    fast : int
        1: the hardware's power of two, which 16-bit results cannot tell from a better one.
    pointers : int
        1: elements are loaded through pointers; 0: by the tensor memory accelerator.
    persistent : int
        Blocks for each multiprocessor, which take tiles in turn; 0: one for each tile.
    occupancy, ctas, warps : int
        Requests to the assembler; 0 leaves its default.
    """

    variant: int
    rows: int
    columns: int
    tiles: int = 1
    fast: int = 0
    pointers: int = 0
    persistent: int = 0
    occupancy: int = 0
    ctas: int = 0
    warps: int = 0


class MatmulConfig(NamedTuple):
    """How a product of matrices runs.

    Attributes
    ----------
    variant : int
        0: of 16-bit numbers; 1, 2 and 3: of float32, each as a sum of three bfloat16, with the
        sums of products started anew for every k step, in two ways, or for every four.
    m, n, k : int
        Sides of a tile, powers of two.
    group : int
        Tiles of rows that are taken before the next one of columns.
    persistent : int
        Blocks for each multiprocessor, which take tiles in turn; 0: one for each tile.
    occupancy, ctas, warps : int
        Requests to the assembler; 0 leaves its default.
    """

    variant: int
    m: int
    n: int
    k: int
    group: int = 8
    persistent: int = 0
    occupancy: int = 0
    ctas: int = 0
    warps: int = 0


class AttentionConfig(NamedTuple):
    """How attention runs.

    Attributes
    ----------
    queries, keys : int
        Of a tile, powers of two.
    occupancy, ctas, warps : int
        Requests to the assembler; 0 leaves its default.
    """

    queries: int
    keys: int
    occupancy: int = 0
    ctas: int = 0
    warps: int = 0


class Epilogue(NamedTuple):
    """What happens to a sum of products before it is stored.

    Attributes
    ----------
    alpha : float
        Factor.
    activation : int
        0: none; 1: relu; 2: gelu; 3: gelu by tanh; 4: silu.
    """

    alpha: float = 1.0
    activation: int = 0


_PLAIN = Epilogue()


def queue_softmax(
    out: TileTensor,
    x: TileTensor,
    workspace: TileTensor | None,
    axis: int,
    config: SoftmaxConfig,
    stream: tuple[int, int],
    *,
    log: bool = False,
) -> None:
    """Queue ``out = softmax(x, axis)``, or log_softmax, computed in float32.

    Parameters
    ----------
    out, x : TileTensor
        Of one shape; float32, float16 or bfloat16.
    workspace : TileTensor or None
        Of variant 2: float32, two elements for each row and each of its blocks.
    axis : int
        From 0 on.
    config : SoftmaxConfig
        How it runs.
    stream : tuple of int
        Number of the device, and its stream's handle.
    log : bool
        Whether the logarithms are wanted.

    Raises
    ------
    TileError
        One of its kinds; nothing was queued.
    """
    library = tile_library()
    target, source, scratch = descriptor(out), descriptor(x), descriptor(workspace)
    how = structure(config)
    code = library.cutile_softmax(target, source, scratch, axis, log, how, *stream)
    check(library, code, "softmax")


def matmul_workspace(c: TileTensor, a: TileTensor, b: TileTensor) -> int:
    """Return how many bytes of workspace a product of float32 needs; raises as it does."""
    library = tile_library()
    size = library.cutile_matmul_workspace(descriptor(c), descriptor(a), descriptor(b))
    check(library, min(size, 0), "sizing the workspace")
    return int(size)


def queue_matmul(
    c: TileTensor,
    a: TileTensor,
    b: TileTensor,
    config: MatmulConfig,
    stream: tuple[int, int],
    *,
    bias: TileTensor | None = None,
    workspace: TileTensor | None = None,
    epilogue: Epilogue = _PLAIN,
) -> None:
    """Queue ``c = activation(alpha * a @ b + bias)``.

    Parameters
    ----------
    c, a, b : TileTensor
        ``(..., m, n)``, ``(..., m, k)`` and ``(..., k, n)``; other dimensions are broadcast.
    config : MatmulConfig
        How it runs.
    stream : tuple of int
        Number of the device, and its stream's handle.
    bias : TileTensor, optional
        ``(n,)``, of the data type of `c`.
    workspace : TileTensor, optional
        Of variants 1 to 3: as many bytes as `matmul_workspace` says.
    epilogue : Epilogue
        Factor and activation.

    Raises
    ------
    TileError
        One of its kinds; nothing was queued.
    """
    library = tile_library()
    tensors = [descriptor(one) for one in (c, a, b, bias, workspace)]
    end, how = structure(epilogue), structure(config)
    check(library, library.cutile_matmul(*tensors, end, how, *stream), "matmul")


def queue_attention(
    out: TileTensor,
    operands: tuple[TileTensor, TileTensor, TileTensor],
    mask: TileTensor | None,
    scale: float,
    config: AttentionConfig,
    stream: tuple[int, int],
    *,
    causal: bool = False,
) -> None:
    """Queue ``out = softmax(scale * q @ k.T + mask) @ v``.

    Parameters
    ----------
    out : TileTensor
        ``(batch, heads, queries, width)``; float16 or bfloat16, as the operands.
    operands : tuple of TileTensor
        Queries as `out`, keys and values ``(batch, key heads, keys, width)``.
    mask : TileTensor or None
        ``(batch or 1, heads or 1, queries, keys)``, added.
    scale : float
        Factor.
    config : AttentionConfig
        How it runs.
    stream : tuple of int
        Number of the device, and its stream's handle.
    causal : bool
        Whether a query sees the keys up to its own place only.

    Raises
    ------
    TileError
        One of its kinds; nothing was queued.
    """
    library = tile_library()
    tensors = [descriptor(one) for one in (out, *operands, mask)]
    how = structure(config)
    check(library, library.cutile_attention(*tensors, scale, causal, how, *stream), "attention")


@contextmanager
def compile_tiles_for(architecture: str, folder: Path) -> Generator[None]:
    """Let this thread's calls compile for an architecture into a folder, instead of being queued.

    Parameters
    ----------
    architecture : str
        Such as ``"sm_90"``.
    folder : Path
        Gets one file for each kernel.
    """
    library = tile_library()
    code = library.cutile_compile_for(architecture.encode(), bytes(folder))
    check(library, code, "choosing an architecture")
    try:
        yield
    finally:
        library.cutile_compile_for(NULL, NULL)
