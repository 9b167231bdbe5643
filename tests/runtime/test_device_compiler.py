"""Compilers for NVIDIA's devices: finding them, trying a clang, saying why there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fklarray_codegen import INCLUDE
from fklarray_runtime import (
    CompileError,
    DeviceCompiler,
    DeviceCompilerNotFound,
    DeviceProbe,
    compile_for_gpu,
    device_compiler,
    find_device_compiler,
    forget_device_compiler,
    gpu_flags,
    toolkit,
)

PROBE = DeviceProbe("sm_90", "#include <fklarray/probe.h>\n", (INCLUDE,))
# A unit that any C++ compiler takes for one, and a toolkit's files, which this one never opens.
EASY = DeviceProbe("sm_90", 'extern "C" int fkl_entry() { return 0; }\n', ())
PACKAGES = toolkit.nvidia_packages()


def _script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", "ascii")
    path.chmod(0o755)
    return path


def _says(version: str) -> str:
    return f"echo 'Cuda compilation tools, release 0, V{version}'"


def _clang(path: Path, compiles: str = "exit 0") -> Path:
    """Write a clang that has been called as often as its log has lines."""
    answer = 'echo "Debian clang version 18.1.8 (3)"'
    log = path.with_name("calls")
    return _script(path, f'if test "$1" = --version; then {answer}; exit; fi\n'
                         f'echo "$*" >> {log}\n{compiles}')  # fmt: skip


def _writes_library(folder: Path) -> str:
    """Return what makes a script write a library that can be loaded."""
    gcc = shutil.which("g++", path="/usr/local/bin:/usr/bin:/bin")
    code = f"echo 'int fkl_entry();' | {gcc} -shared -x c++ - -o {folder}/ready.so"
    find = 'while test "$1" != -o; do shift; done; cp'
    return f"PATH=/usr/bin:/bin; {code}; {find} {folder}/ready.so $2"


def _toolkit(folder: Path, version: int = 12040) -> Path:
    files = (
        "bin/ptxas", "bin/fatbinary", "lib64/libcudart_static.a", "include/cuda_runtime.h",
        "include/crt/host_defines.h", "nvvm/libdevice/libdevice.10.bc",
    )  # fmt: skip
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "include/cuda.h").write_text(f"#define CUDA_VERSION {version}\n", "ascii")
    return folder


@pytest.fixture(autouse=True)
def none_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (device_compiler, toolkit):
        monkeypatch.setattr(module, "_USUAL", tmp_path / "none")
        monkeypatch.setattr(module, "nvidia_packages", list)
    for variable in ("FKLARRAY_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    forget_device_compiler()
    yield
    forget_device_compiler()


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put back what pip has installed."""
    for module in (device_compiler, toolkit):
        monkeypatch.setattr(module, "nvidia_packages", lambda: PACKAGES)
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    return PACKAGES[0]


def test_the_variable_wins_and_is_not_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = _script(tmp_path / "named", _says("13.2.86"))
    _script(tmp_path / "home/bin/nvcc", _says("12.0.1"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find_device_compiler(PROBE).path == tmp_path / "home/bin/nvcc"
    monkeypatch.setenv("FKLARRAY_NVCC", str(named))
    found = find_device_compiler(PROBE)
    assert (found.kind, found.path, found.version) == ("nvcc", named, "13.2.86")
    assert str(found) == f"{named}: nvcc 13.2.86"
    monkeypatch.setenv("FKLARRAY_NVCC", str(tmp_path / "gone"))
    with pytest.raises(DeviceCompilerNotFound, match="gone: it does not start"):
        find_device_compiler(PROBE)


def test_broken_ones_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _script(tmp_path / "home/bin/nvcc", "echo broken >&2; exit 3")
    path = _script(tmp_path / "path/nvcc", _says("11.8.89"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin")
    assert find_device_compiler(PROBE).path == path


def test_packages_come_first_the_newest_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("cu12", "cu13"):
        _script(tmp_path / "nvidia" / version / "bin/nvcc", _says("13.0.0"))
    _script(tmp_path / "home/bin/nvcc", _says("12.0.1"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(device_compiler, "nvidia_packages", lambda: [tmp_path / "nvidia"])
    assert find_device_compiler(PROBE).path == tmp_path / "nvidia/cu13/bin/nvcc"


def test_what_was_tried_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceCompilerNotFound, match=r"nothing, there is none[^$]*pip install"):
        find_device_compiler(PROBE)
    broken = _script(tmp_path / "home/bin/nvcc", "echo 'no licence' >&2; exit 3")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    with pytest.raises(DeviceCompilerNotFound, match="status 3: no licence") as error:
        find_device_compiler(PROBE)
    assert error.value.reasons[0][0] == str(broken)


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    broken = _script(tmp_path / "nvcc", "echo 'no such architecture' >&2; exit 1")
    source = tmp_path / "unit.cpp"
    source.write_text("", "ascii")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(CompileError, match="no such architecture"):
        compile_for_gpu(
            DeviceCompiler("nvcc", broken, "13.0.0", ""), "sm_90", source, tmp_path / "unit.so", []
        )
    assert sorted(tmp_path.iterdir()) == before


# --------------------------------------------------------------------------------------- clang


def test_a_clang_comes_after_every_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clang = _clang(tmp_path / "path/clang++", _writes_library(tmp_path))
    monkeypatch.setenv("PATH", str(clang.parent))
    monkeypatch.setenv("CUDA_HOME", str(_toolkit(tmp_path / "home")))
    found = find_device_compiler(EASY)
    assert (found.kind, found.path, found.version) == ("clang", clang, "18.1.8")
    assert str(found) == f"{clang}: clang 18.1.8 with CUDA 12.4 of {tmp_path / 'home'}"
    nvcc = _script(tmp_path / "path/nvcc", _says("12.0.1"))
    forget_device_compiler()
    assert find_device_compiler(EASY).path == nvcc
    monkeypatch.setenv("FKLARRAY_NVCC", str(clang))
    assert find_device_compiler(EASY).path == clang
    monkeypatch.setenv("FKLARRAY_NVCC", "clang++")  # as a shell would find it
    assert find_device_compiler(EASY).path == clang


def test_a_clang_gets_the_first_toolkit_that_it_works_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = f'case "$*" in *{tmp_path}/first/*) echo "error: too new" >&2; exit 1;; esac\n'
    clang = _clang(tmp_path / "path/clang++", refuses + _writes_library(tmp_path))
    monkeypatch.setenv("PATH", str(clang.parent))
    monkeypatch.setenv("CUDA_HOME", str(_toolkit(tmp_path / "first", 13000)))
    with pytest.raises(
        DeviceCompilerNotFound, match=r"CUDA 13\.0 of .*first: it failed: .*too new"
    ):
        find_device_compiler(EASY)
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "second"))
    with pytest.raises(DeviceCompilerNotFound, match="second: it has no bin/ptxas"):
        find_device_compiler(EASY)
    _toolkit(tmp_path / "second")
    forget_device_compiler()
    chosen = find_device_compiler(EASY).toolkit
    assert chosen is not None
    assert chosen.name == str(tmp_path / "second")


@pytest.mark.parametrize("works", [True, False])
def test_an_answer_is_remembered(
    works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = "echo 'error: not today' >&2; exit 1"
    clang = _clang(tmp_path / "path/clang++", _writes_library(tmp_path) if works else refuses)
    monkeypatch.setenv("PATH", str(clang.parent))
    monkeypatch.setenv("CUDA_HOME", str(_toolkit(tmp_path / "home")))
    cache = tmp_path / "cache"
    cache.mkdir()

    def calls_for(probe: DeviceProbe) -> int:
        forget_device_compiler()
        if works:
            assert find_device_compiler(probe, cache).path == clang
        else:
            with pytest.raises(DeviceCompilerNotFound, match="not today"):
                find_device_compiler(probe, cache)
        return len((clang.parent / "calls").read_text().splitlines())

    assert [calls_for(EASY), calls_for(EASY)] == [1, 1]
    assert calls_for(DeviceProbe("sm_80", EASY.source, ())) == 2
    (tmp_path / "home/bin/ptxas").write_text("another version", "ascii")
    assert calls_for(EASY) == 3
    for answer in cache.iterdir():
        answer.write_text("{", "ascii")
    assert [calls_for(EASY), calls_for(EASY)] == [4, 4]


def test_a_shared_runtime_is_found_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clang = _clang(tmp_path / "path/clang++", _writes_library(tmp_path))
    monkeypatch.setenv("FKLARRAY_NVCC", str(clang))
    folder = _toolkit(tmp_path / "home") / "lib64"
    monkeypatch.setenv("CUDA_HOME", str(folder.parent))
    find_device_compiler(EASY)
    (folder / "libcudart_static.a").rename(folder / "libcudart.so.12")
    forget_device_compiler()
    find_device_compiler(EASY)
    static, shared = (clang.parent / "calls").read_text("utf-8").splitlines()
    assert f"{folder}/libcudart_static.a" in static
    assert "rpath" not in static
    assert f"{folder}/libcudart.so.12 -Wl,-rpath,{folder}" in shared


def test_this_clang_works_with_cuda_12_and_is_refused_with_13(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FKLARRAY_NVCC", "clang++-19")
    found = find_device_compiler(PROBE)
    assert (found.kind, found.path.name) == ("clang", "clang++-19")
    assert found.toolkit is not None
    assert found.toolkit.version.startswith("12.")
    assert found.toolkit.name == str(packages / "cuda_nvcc")
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/cu13").symlink_to(packages / "cu13")
    monkeypatch.setattr(toolkit, "nvidia_packages", lambda: [tmp_path / "alone"])
    forget_device_compiler()
    with pytest.raises(DeviceCompilerNotFound, match=r"with CUDA 13\..*cu13: it failed: .*error:"):
        find_device_compiler(PROBE)


def test_packages_that_lack_one_say_which(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "cuda_nvcc").symlink_to(packages / "cuda_nvcc")
    found = []
    for part, lacks in (("nvfatbin", "fatbinary"), ("cuda_runtime", "libcudart"), ("", "")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(toolkit, "nvidia_packages", lambda: [tmp_path])
            found.append((*toolkit.toolkits(),))
        if part:
            assert lacks in found[-1][0][1]
            (tmp_path / part).symlink_to(packages / part)
    assert isinstance(found[-1][0], toolkit.Toolkit)


def test_kinds_have_flags_of_their_own(tmp_path: Path) -> None:
    nvcc = DeviceCompiler("nvcc", tmp_path, "13.0.0", "")
    clang = DeviceCompiler("clang", tmp_path, "19.1.7", "")
    assert {"-fmad=false", "-gencode=arch=compute_80,code=sm_80"} <= {*gpu_flags(nvcc, "sm_80")}
    assert {"-ffp-contract=off", "-fwrapv", "--offload-arch=sm_80"} <= {*gpu_flags(clang, "sm_80")}
