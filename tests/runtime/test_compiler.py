"""Compilers: finding, refusing, remembering, interrupting."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fklarray_runtime import (
    CompileError,
    Compiler,
    CompilerError,
    CompilerNotFound,
    LoadError,
    candidates,
    compilation,
    compile_library,
    compiler,
    cpu,
    find_compiler,
    flags,
    forget_compiler,
    probe,
    target,
)
from fklarray_runtime.compiler import SEARCH_ORDER
from fklarray_runtime.kernel import Kernel

UNIT = """
#include <cmath>
#include "value.h"
#define EXPORTED extern "C" __attribute__((visibility("default")))
EXPORTED int fkl_entry(const void** p, void*) {
    *static_cast<double*>(*static_cast<void* const*>(p[0])) = VALUE + NUMBER;
    return 0;
}
EXPORTED const char* fkl_error_message() { return ""; }
"""


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CXX", raising=False)
    forget_compiler()
    yield
    forget_compiler()


@pytest.fixture(scope="module")
def working() -> Compiler:
    return find_compiler(None)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "value.h").write_text("static constexpr double VALUE = 40;\n")
    source = tmp_path / "unit.cpp"
    source.write_text(UNIT)
    return source


def count_processes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    started: list[object] = []
    popen = subprocess.Popen

    class Counting(popen):  # type: ignore[type-arg]
        def __init__(self, arguments: object, **options: object) -> None:
            started.append(arguments)
            super().__init__(arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(compilation.subprocess, "Popen", Counting)
    return started


def test_a_probe_tells_what_it_tried(working: Compiler) -> None:
    assert working.kind in {"gcc", "clang"}
    assert working.version
    assert str(Path(shutil.which(working.command[0]) or "").resolve()) in working.fingerprint
    assert "native" not in " ".join(flags(working))
    assert set(target().flags) <= set(flags(working))
    assert ("-DFKLARRAY_VECTOR_MATH=1" in flags(working)) == working.vector_math


def test_units_of_ours_link_without_the_library_of_cpp(
    working: Compiler, unit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = count_processes(monkeypatch)
    library = unit.with_suffix(".so")
    # One with options of its own may need it: the public library's throw.
    body = "try { throw 1; } catch (int number) { return number - 1; }"
    unit.write_text(f"#define NUMBER 1\n{UNIT.replace('return 0;', body)}")
    compile_library(working, unit, library, [unit.parent / "include"], ["-fexceptions"])
    result = np.zeros(1)
    Kernel(library, "@Q", [0]).launch([result.ctypes.data])
    assert result[0] == 41
    unit.write_text(f"#define NUMBER 2\n{UNIT}")
    compile_library(working, unit, library, [unit.parent / "include"])
    bare = working.kind == "gcc" and working.vector_math
    assert ["-nostdlib" in str(command) for command in started] == [False, bare]


@pytest.mark.parametrize(
    ("says", "size"),
    [("512K", 512), ("768K\n", 512), ("32K", 256), ("65536K", 2048), ("a lot", 512), (None, 512)],
)
def test_tiles_follow_the_cache(
    says: str | None, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "size"
    if says is not None:
        path.write_text(says)
    monkeypatch.setattr(cpu, "_SECOND_LEVEL", path)
    assert cpu.cache_bytes.__wrapped__() == size << 10
    assert f"-DFKLARRAY_CACHE_BYTES={cpu.cache_bytes()}" in compilation.command_flags(
        ("g++",), False
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libmvec is glibc's")
def test_vector_math_is_found_and_its_absence_too(
    working: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert working.vector_math
    text = compiler._PROBE.replace("_ZGVbN2v_tanh", "_ZGVbN2v_no_such_function")
    monkeypatch.setattr(compiler, "_PROBE", text)
    without = probe(working.command)
    assert not without.vector_math
    assert without.version == working.version
    assert "-DFKLARRAY_VECTOR_MATH=1" not in flags(without)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("/nonexistent/g++",), "not found"),
        (("/bin/false",), "failed"),
        (("/bin/true",), "failed"),
        (("g++", "-no-such-option"), "no-such-option"),
        (("g++", "-c"), "does not work"),
    ],
)
def test_a_useless_compiler_is_refused_with_its_reason(command: tuple[str, ...], word: str) -> None:
    with pytest.raises(CompilerError, match=word):
        probe(command)


def test_a_second_process_would_start_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = count_processes(monkeypatch)
    first = find_compiler(tmp_path)
    assert started
    started.clear()
    assert find_compiler(tmp_path) is first
    forget_compiler()
    assert find_compiler(tmp_path) == first
    assert not started
    (remembered,) = tmp_path.iterdir()
    assert remembered.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"command": 3}', "wrong version type"])
def test_a_damaged_memory_is_a_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, working: Compiler, text: str
) -> None:
    probed: list[tuple[str, ...]] = []

    def quick(command: tuple[str, ...], _: Path | None) -> Compiler:
        probed.append(command)
        return working

    monkeypatch.setattr(compiler, "probe", quick)
    monkeypatch.setenv("CXX", shlex.join(working.command))
    assert find_compiler(tmp_path) == working
    (remembered,) = tmp_path.iterdir()
    if text == "wrong version type":
        text = json.dumps({**json.loads(remembered.read_text()), "version": 7})
    remembered.write_text(text)
    for _ in range(2):
        forget_compiler()
        assert find_compiler(tmp_path) == working
    assert probed == [working.command] * 2


def wrapper(folder: Path, name: str = "c++", text: str = "") -> Path:
    # Not find_compiler: with CXX set it would name the wrapper, which would call itself for ever.
    real = next(found for command in SEARCH_ORDER if (found := shutil.which(command[0])))
    path = folder / name
    path.write_text(f'#!/bin/sh\n{text}\nexec {real} "$@"\n')
    path.chmod(0o755)
    return path


def test_a_changed_compiler_or_target_is_probed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wrapper(tmp_path)
    monkeypatch.setenv("CXX", str(path))
    cache = tmp_path / "cache"
    cache.mkdir()
    first = find_compiler(cache)
    wrapper(tmp_path, text="# a new version")
    forget_compiler()
    second = find_compiler(cache)
    assert first.fingerprint != second.fingerprint
    assert len(list(cache.iterdir())) == 2
    if target().architecture == "x86-64":
        monkeypatch.setenv("FKLARRAY_CPU_LEVEL", "v1")
        assert "-march=x86-64" in flags(find_compiler(cache))
        assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize("text", ["/bin/false", "/nonexistent/c++", "g++ -no-such", "'unbalanced"])
def test_a_failing_cxx_warns_and_the_search_goes_on(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CXX", text)
    with pytest.warns(RuntimeWarning, match="CXX=.*cannot be used") as caught:
        found = find_compiler(None)
    assert len(caught) == 1
    assert found.command in candidates()[1:]


def test_cxx_comes_first_and_may_have_arguments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / 'with space and "quote'
    folder.mkdir()
    path = wrapper(folder)
    monkeypatch.setenv("CXX", f"'{path}' -g0")
    assert candidates()[0] == (str(path), "-g0")
    assert find_compiler(None).command == (str(path), "-g0")


def test_no_compiler_names_each_one_and_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(compiler, "find_spec", lambda _: None)
    with pytest.raises(CompilerNotFound) as caught:
        find_compiler(None)
    text = str(caught.value)
    for word in ("g++: not found", "clang++: not found", "CXX", 'pip install "fklarray[compiler]"'):
        assert word in text
    assert len(text) < 2000


def test_zig_is_the_last_candidate_when_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find_spec", lambda _: object())
    command = candidates()[-1]
    assert command == (sys.executable, "-m", "ziglang", "c++")
    assert not [flag for flag in compilation.command_flags(command, False) if "-march" in flag]


@pytest.mark.parametrize("name", ["plain", "with space", 'qu\'ote "x"', "naïve-日本語", "-O0"])
def test_compile_and_run(working: Compiler, unit: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    shutil.copytree(tmp_path / "include", folder / "include")
    source = folder / "unit.cpp"
    shutil.copy(unit, source)
    compile_library(working, source, folder / "out.so", [folder / "include"], ["-DNUMBER=2"])
    assert sorted(path.name for path in folder.iterdir()) == ["include", "out.so", "unit.cpp"]
    result = np.zeros(1)
    Kernel(folder / "out.so", "<Q", [0]).launch([result.ctypes.data])
    assert result[0] == 42


def test_an_error_shows_command_source_and_text(working: Compiler, tmp_path: Path) -> None:
    source = tmp_path / "bad.cpp"
    source.write_text("int f() { return undeclared; }\n" * 2000)
    with pytest.raises(CompileError) as caught:
        compile_library(working, source, tmp_path / "out.so", [])
    assert caught.value.source == source
    assert caught.value.command[0] == working.command[0]
    assert "undeclared" in caught.value.stderr
    assert len(str(caught.value)) < 20_000
    assert [path.name for path in tmp_path.iterdir()] == ["bad.cpp"]


def test_ctrl_c_kills_the_compiler_and_leaves_no_file(tmp_path: Path, working: Compiler) -> None:
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\nsleep 30 &\necho $! > "$PIDFILE"\nwait\n')
    slow.chmod(0o755)
    cache = tmp_path / "cache"
    code = f"""
import signal, sys, pathlib
from fklarray_runtime import *
# Whoever runs the tests in the background may have had interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
cache = BinaryCache(pathlib.Path({str(cache)!r}))
compiler = Compiler(({str(slow)!r},), "gcc", "1", "f", False)
source = pathlib.Path({str(slow)!r})
try:
    cache.build("k", lambda path: compile_library(compiler, source, path, []))
except KeyboardInterrupt:
    print("interrupted", [p.name for p in cache.directory.iterdir()])
"""
    pidfile = tmp_path / "pid"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PIDFILE": str(pidfile)},
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 20
    while not (pidfile.exists() and pidfile.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert output == "interrupted []\n"
    sleeper = int(pidfile.read_text())
    deadline = time.monotonic() + 5
    while _is_running(sleeper):
        assert time.monotonic() < deadline, "the compiler's child lives on"
        time.sleep(0.02)


def _is_running(process: int) -> bool:
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def test_a_library_without_entry_or_no_library_at_all(tmp_path: Path, working: Compiler) -> None:
    source = tmp_path / "empty.cpp"
    source.write_text("int unused;\n")
    compile_library(working, source, tmp_path / "empty.so", [])
    with pytest.raises(LoadError, match="fkl_entry"):
        Kernel(tmp_path / "empty.so", "<Q", [0])
    (tmp_path / "garbage.so").write_bytes(b"garbage")
    with pytest.raises(LoadError, match=r"garbage\.so"):
        Kernel(tmp_path / "garbage.so", "<Q", [0])
    with pytest.raises(LoadError, match="missing"):
        Kernel(tmp_path / "missing.so", "<Q", [0])


@pytest.mark.skipif(target().architecture != "x86-64", reason="levels of x86-64")
def test_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    every = frozenset(cpu._V2_FEATURES + cpu._V3_FEATURES)
    with_avx512 = every | set(cpu._V4_FEATURES)
    monkeypatch.setattr(cpu, "_processor_features", lambda: with_avx512)
    assert target().flags == ("-march=x86-64-v4",)
    monkeypatch.setattr(cpu, "_processor_features", lambda: with_avx512 - {"avx512dq"})
    assert target().flags == ("-march=x86-64-v3",)
    monkeypatch.setattr(cpu, "_processor_features", lambda: every)
    assert target().flags == ("-march=x86-64-v3",)
    assert {"avx2", "fma", "abm"} <= set(target().features)
    monkeypatch.setenv("FKLARRAY_CPU_LEVEL", "v2")
    assert target().flags == ("-march=x86-64-v2",)
    monkeypatch.delenv("FKLARRAY_CPU_LEVEL")
    for missing in ("avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"):
        monkeypatch.setattr(cpu, "_processor_features", lambda m=missing: every - {m})
        assert target().flags == ("-march=x86-64-v2",)
    monkeypatch.setenv("FKLARRAY_CPU_LEVEL", "v3")
    with pytest.raises(ValueError, match="lacks abm"):
        target()
    monkeypatch.setenv("FKLARRAY_CPU_LEVEL", "native")
    with pytest.raises(ValueError, match="FKLARRAY_CPU_LEVEL='native'"):
        target()
    monkeypatch.delenv("FKLARRAY_CPU_LEVEL")
    monkeypatch.setattr(cpu, "_processor_features", frozenset)
    assert target().flags == ("-march=x86-64",)
