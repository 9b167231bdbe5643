"""The library of tile kernels: its own tests, its interface, and what its codes become."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from fklarray_runtime import tile_build, tile_library, tiles
from fklarray_runtime.tile_build import TileBuildError
from fklarray_runtime.tile_library import (
    TileArgumentError,
    TileDescriptorError,
    TileDeviceError,
    TileLaunchError,
    TileLibraryNotFound,
    TileTensor,
)
from fklarray_runtime.tiles import AttentionConfig, MatmulConfig, SoftmaxConfig

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "runtime" / "cutile_kernels"
TARGET = ROOT / ".cache" / "tile-target"
NOWHERE = (4096, 0)  # a device that no machine has
ROWS = SoftmaxConfig(0, 1, 8)


def _cargo(*arguments: str) -> None:
    """Run cargo on the crate; one worker of the tests at a time."""
    TARGET.mkdir(parents=True, exist_ok=True)
    options = ["--locked", "--quiet", "--target-dir", str(TARGET)]
    command = [tile_build.find_cargo(), arguments[0], *options, *arguments[1:]]
    environment = {**tile_build.build_environment(), "CARGO_PROFILE_DEV_DEBUG": "0"}
    with FileLock(TARGET.with_suffix(".lock")):
        run = subprocess.run(
            command,
            cwd=CRATE,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def library() -> Path:
    _cargo("build")
    return TARGET / "debug" / "libcutile_kernels.so"


@pytest.fixture(autouse=True)
def named(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FKLARRAY_TILE_LIBRARY", str(library))
    monkeypatch.setenv("FKLARRAY_CACHE_DIR", str(tmp_path))
    toolkit = tile_build.build_environment()["CUDA_TOOLKIT_PATH"]
    monkeypatch.setenv("FKLARRAY_TILEIRAS", str(Path(toolkit, "bin", "tileiras")))


def _tensor(*shape: int, dtype: str = "float32") -> TileTensor:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return TileTensor(1 << 20, shape, strides, dtype)


def _softmax(x: TileTensor, config: SoftmaxConfig = ROWS, axis: int = 1) -> None:
    tiles.queue_softmax(x, x, None, axis, config, NOWHERE)


def test_the_crate_passes_its_own_tests() -> None:
    _cargo("test")


def test_the_crate_has_no_warnings() -> None:
    _cargo("clippy", "--all-targets", "--", "-D", "warnings")


REFUSED: dict[str, tuple[Callable[[], None], type[Exception], str]] = {
    "an unknown data type": (
        lambda: _softmax(_tensor(4, 8, dtype="float64")), TileArgumentError, "float64",
    ),
    "a data type that softmax lacks": (
        lambda: _softmax(_tensor(4, 8, dtype="int32")), TileArgumentError, "-2",
    ),
    "nine dimensions": (
        lambda: _softmax(_tensor(*[1] * 9)), TileArgumentError, "up to 8 dimensions",
    ),
    "an axis that is not there": (lambda: _softmax(_tensor(4, 8), axis=2), TileArgumentError, "-2"),
    "a tile that is too short": (
        lambda: _softmax(_tensor(4, 9)), TileArgumentError, "9 columns in a tile of 8",
    ),
    "two shapes": (
        lambda: tiles.queue_softmax(_tensor(4, 8), _tensor(8, 4), None, 1, ROWS, NOWHERE),
        TileArgumentError, r"x is \[8, 4\], out is \[4, 8\]",
    ),
    "matrices that do not fit": (
        lambda: tiles.queue_matmul(
            _tensor(4, 4, dtype="float16"), _tensor(4, 5, dtype="float16"),
            _tensor(6, 4, dtype="float16"), MatmulConfig(0, 64, 64, 32), NOWHERE,
        ),
        TileArgumentError, r"\[4, 5\] @ \[6, 4\]",
    ),
    "no workspace": (
        lambda: _softmax(_tensor(4, 64), SoftmaxConfig(2, 1, 16)), TileDescriptorError, "workspace",
    ),
    "no such device": (lambda: _softmax(_tensor(4, 8)), TileDeviceError, "-4"),
    "attention of float32": (
        lambda: tiles.queue_attention(
            _tensor(1, 1, 8, 16), (_tensor(1, 1, 8, 16),) * 3, None, 1.0,
            AttentionConfig(64, 64), NOWHERE,
        ),
        TileArgumentError, "-2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_has_its_own_exception(what: str) -> None:
    call, error, text = REFUSED[what]
    with pytest.raises(error, match=text):
        call()


def test_kernels_compile_ahead_without_a_device(tmp_path: Path) -> None:
    x = _tensor(4, 1000, dtype="bfloat16")
    with tiles.compile_tiles_for("sm_90", tmp_path):
        tiles.queue_softmax(x, x, None, 1, SoftmaxConfig(0, 1, 1024, fast=1), NOWHERE)
    (found,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert found.read_bytes()[:4] == b"\x7fELF"
    with pytest.raises(TileDeviceError):
        _softmax(_tensor(4, 8))


def test_a_missing_assembler_is_said(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from fklarray_runtime import tiles
from fklarray_runtime.tile_library import TileLaunchError, TileTensor
x = TileTensor(1 << 20, (4, 8), (8, 1), "float32")
try:
    with tiles.compile_tiles_for("sm_90", Path({str(tmp_path)!r})):
        tiles.queue_softmax(x, x, None, 1, tiles.SoftmaxConfig(0, 1, 8), (0, 0))
except TileLaunchError as error:
    print(error)
"""
    environment = {**os.environ, "FKLARRAY_TILEIRAS": str(tmp_path / "nothing")}
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "tileiras" in said.stdout
    assert "code -3" in said.stdout
    assert issubclass(TileLaunchError, RuntimeError)


def test_a_missing_library_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FKLARRAY_TILE_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(TileLibraryNotFound, match=r"none\.so.*build-tile"):
        tile_library.tile_library_path()
    (tmp_path / "none.so").write_text("not a library")
    with pytest.raises(TileLibraryNotFound, match="cannot be loaded"):
        _softmax(_tensor(4, 8))


def test_what_a_build_needs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_build, "nvidia_packages", list)
    monkeypatch.delenv("CUDA_TOOLKIT_PATH", raising=False)
    with pytest.raises(TileBuildError, match=r"pip install .cuda-toolkit\[.*tileiras\]"):
        tile_build.build_environment()
    monkeypatch.chdir(ROOT)
    assert tile_build.crate_folder() == CRATE
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tile_build, "__file__", str(tmp_path / "package" / "tile_build.py"))
    with pytest.raises(TileBuildError, match="checkout"):
        tile_build.crate_folder()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CARGO_HOME", raising=False)
    with pytest.raises(TileBuildError, match="cargo"):
        tile_build.find_cargo()
