"""The demonstration: a photograph goes through a recorded pipeline, which runs as one kernel."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import fklarray as xp
from fklarray.evaluation import compile_seconds

__all__ = ["develop", "load", "run"]

_Pixels = np.ndarray[Any, np.dtype[np.uint8]]

_LARGE_PIXELS = 24_000_000
_REPETITIONS = 7

# Per channel: haze to take away and white balance; exposure of the linear values.
_MEAN = np.asarray([0.05, 0.04, 0.03], dtype=np.float32)
_SCALE = np.asarray([1.06, 1.03, 1.01], dtype=np.float32)
_EXPOSURE = 1.3


def develop(namespace: Any, image: Any, mean: Any, scale: Any) -> Any:
    """Develop a photograph: normalise each channel, expose, tone-map, and return to bytes.

    The filmic curve is the rational approximation x(ax + b) / (x(cx + d) + e) of K. Narkowicz,
    "ACES Filmic Tone Mapping Curve" (2016).

    Parameters
    ----------
    namespace : module
        An array API namespace.
    image : array
        Shape (height, width, 3), uint8.
    mean, scale : array
        Shape (3,), float32.

    Returns
    -------
    array
        Shape and data type of `image`.
    """
    x = namespace.astype(image, namespace.float32) / 255
    x = namespace.maximum((x - mean) * scale, 0)
    x = x * x * _EXPOSURE  # from about gamma 2 to linear light
    x = (x * (2.51 * x + 0.03)) / (x * (2.43 * x + 0.59) + 0.14)
    x = namespace.sqrt(namespace.minimum(x, 1))
    return namespace.astype(x * 255 + 0.5, namespace.uint8)


def _on_fklarray(image: xp.Array) -> xp.Array:
    result: xp.Array = develop(xp, image, xp.asarray(_MEAN), xp.asarray(_SCALE))
    return result


def _on_numpy(image: _Pixels) -> _Pixels:
    result: _Pixels = develop(np, image, _MEAN, _SCALE)
    return result


def load(path: Path | None) -> tuple[str, _Pixels]:
    """Load a photograph; by default one that scikit-learn ships.

    Returns
    -------
    str, numpy.ndarray
        Its name and its pixels, of shape (height, width, 3) and type uint8.

    Raises
    ------
    ImportError
        If the packages of the ``demo`` extra are missing.
    OSError
        If the file is not a readable image.
    """
    from PIL import Image, ImageOps

    if path is not None:
        with Image.open(path) as opened:
            picture = ImageOps.exif_transpose(opened)
            if picture.mode.startswith("I;16"):
                # Conversion would clip 16-bit greys instead of scaling them.
                picture = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
            return path.name, np.asarray(picture.convert("RGB"))
    from sklearn.datasets import load_sample_image  # type: ignore[import-untyped]

    pixels: _Pixels = np.asarray(cast("Any", load_sample_image("china.jpg")))
    return "scikit-learn's china.jpg", pixels


def _enlarge(image: _Pixels) -> _Pixels:
    """Tile a photograph to about 24 megapixels."""
    repeat = max(1, round((_LARGE_PIXELS / (image.shape[0] * image.shape[1])) ** 0.5))
    return np.tile(image, (repeat, repeat, 1))


@dataclass(frozen=True)
class _Measurement:
    size: str
    kernels: int
    operations: int
    seconds: float
    numpy_seconds: float
    difference: int


def _best(function: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_REPETITIONS):
        began = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - began)
    return best


def _measure(image: _Pixels) -> tuple[_Measurement, _Pixels]:
    source = xp.asarray(image)
    before = xp.counters()
    result = np.asarray(_on_fklarray(source))
    after = xp.counters()
    expected = _on_numpy(image)
    difference = np.abs(result.astype(np.int16) - expected.astype(np.int16)).max(initial=0)
    return _Measurement(
        f"{image.shape[1]} x {image.shape[0]}",
        after["kernels_launched"] - before["kernels_launched"],
        after["ops_fused"] - before["ops_fused"],
        _best(lambda: xp.materialize(_on_fklarray(source))),
        _best(lambda: _on_numpy(image)),
        int(difference),
    ), result


def run(path: Path | None, output: Path) -> int:
    """Run the demonstration; return the exit status.

    Parameters
    ----------
    path : Path, optional
        A photograph; by default one that a package ships.
    output : Path
        Folder for ``before.png`` and ``after.png``.
    """
    console = Console()
    try:
        name, image = load(path)
        # Before the work, so that nothing is lost if it cannot be made.
        output.mkdir(parents=True, exist_ok=True)
    except ImportError as error:
        print(f'{error}; install the extra "demo": pip install ".[demo]"', file=sys.stderr)
        return 1
    except (OSError, ValueError, _bomb_error()) as error:
        print(f"cannot read the photograph or make the folder {output}: {error}", file=sys.stderr)
        return 1
    with (
        console.status("compiling the kernel and measuring ...")
        if console.is_terminal
        else (_Quiet())
    ):
        # The first call of all is shown: it waits for its kernel.
        mode = "off" if xp.config.compile == "off" else "sync"
        with xp.config.override(compile=mode):
            small, developed = _measure(image)
            large, _ = _measure(_enlarge(image))
    _save(output, image, developed)
    _report(console, name, small, large)
    print(f"before and after: {output / 'before.png'}, {output / 'after.png'}")
    if small.kernels == large.kernels == 1:
        return 0
    print("no kernel ran (see the warning above): NumPy did the work", file=sys.stderr)
    return 1


def _bomb_error() -> type[Exception]:
    from PIL import Image

    return Image.DecompressionBombError


class _Quiet:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _save(output: Path, before: _Pixels, after: _Pixels) -> None:
    from PIL import Image

    Image.fromarray(before).save(output / "before.png")
    Image.fromarray(after).save(output / "after.png")


def _report(console: Console, name: str, small: _Measurement, large: _Measurement) -> None:
    how = "by one fused kernel" if small.kernels else "on NumPy, for want of a compiler"
    table = Table(title=escape(f"fklarray: {name} developed {how}"))
    table.add_column("")
    table.add_column("photograph", justify="right")
    table.add_column("24 megapixels", justify="right")
    both = (small, large)
    table.add_row("pixels", *(one.size for one in both))
    table.add_row("kernels launched", *(str(one.kernels) for one in both))
    table.add_row("operations fused", *(str(one.operations) for one in both))
    compiled = f"{compile_seconds[0]:.2f} s" if compile_seconds else "0 s (from the disk cache)"
    compiled = compiled if small.kernels else "no compiler"
    table.add_row("compile time", compiled, "0 s (same kernel)")
    table.add_row("fklarray, per call", *(f"{one.seconds * 1e3:.2f} ms" for one in both))
    table.add_row("NumPy, per call", *(f"{one.numpy_seconds * 1e3:.2f} ms" for one in both))
    table.add_row(
        "times faster", *(f"{one.numpy_seconds / one.seconds:.1f}" for one in both), style="bold"
    )
    table.add_row("largest difference (of 255)", *(str(one.difference) for one in both))
    console.print(table)
    console.print(f"{xp.config.threads} threads on {os.cpu_count()} CPUs")
