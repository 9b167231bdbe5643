"""NVIDIA's compiler: finding it, and saying why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from fklarray_runtime import (
    CompileError,
    NvccNotFound,
    compile_for_gpu,
    find_nvcc,
    nvcc,
    nvcc_version,
)


def _script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", "ascii")
    path.chmod(0o755)
    return path


def _says(version: str) -> str:
    return f"echo 'Cuda compilation tools, release 0, V{version}'"


@pytest.fixture(autouse=True)
def none_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvcc, "_USUAL", tmp_path / "none")
    monkeypatch.setattr(nvcc, "_of_packages", lambda: iter(()))
    for variable in ("FKLARRAY_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")


def test_the_variable_wins_and_is_not_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = _script(tmp_path / "named", _says("13.2.86"))
    _script(tmp_path / "home/bin/nvcc", _says("12.0.1"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find_nvcc() == tmp_path / "home/bin/nvcc"
    monkeypatch.setenv("FKLARRAY_NVCC", str(named))
    assert find_nvcc() == named
    assert nvcc_version(named) == "13.2.86"
    monkeypatch.setenv("FKLARRAY_NVCC", str(tmp_path / "gone"))
    with pytest.raises(NvccNotFound, match="gone: it does not start"):
        find_nvcc()


def test_broken_ones_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _script(tmp_path / "home/bin/nvcc", "echo broken >&2; exit 3")
    path = _script(tmp_path / "path/nvcc", _says("11.8.89"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin")
    assert find_nvcc() == path


def test_packages_come_first_the_newest_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.delenv("FKLARRAY_NVCC", raising=False)
    for version in ("cu12", "cu13"):
        _script(tmp_path / "nvidia" / version / "bin/nvcc", _says("13.0.0"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(
        nvcc,
        "find_spec",
        lambda _: type("Spec", (), {"submodule_search_locations": [str(tmp_path / "nvidia")]}),
    )
    assert find_nvcc() == tmp_path / "nvidia/cu13/bin/nvcc"


def test_what_was_tried_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NvccNotFound, match=r"nothing, there is none[^$]*pip install"):
        find_nvcc()
    broken = _script(tmp_path / "home/bin/nvcc", "echo 'no licence' >&2; exit 3")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    with pytest.raises(NvccNotFound, match="status 3: no licence") as error:
        find_nvcc()
    assert error.value.reasons[0][0] == broken


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    broken = _script(tmp_path / "nvcc", "echo 'no such architecture' >&2; exit 1")
    source = tmp_path / "unit.cpp"
    source.write_text("", "ascii")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(CompileError, match="no such architecture"):
        compile_for_gpu(broken, "sm_90", source, tmp_path / "unit.so", [])
    assert sorted(tmp_path.iterdir()) == before
