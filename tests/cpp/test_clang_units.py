"""Units compile with clang and CUDA 12 too, without a device and without a warning."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fklarray as xp
from fklarray.doctor import run
from fklarray.kernels import device_compiler
from fklarray_codegen import INCLUDE
from fklarray_runtime import DeviceCompiler, compile_for_gpu, gpu_flags
from golden_graphs import ALL, FOLDER

STRICT = ("-Wall", "-Wextra", "-Werror")
OF_NVIDIA = 190  # in an ELF header, the machine


@pytest.fixture
def clang(monkeypatch: pytest.MonkeyPatch) -> DeviceCompiler:
    monkeypatch.setenv("FKLARRAY_NVCC", "clang++-19")
    return device_compiler("sm_90", (INCLUDE,))


def _assembly_of(clang: DeviceCompiler, unit: Path, folder: Path) -> str:
    assert clang.toolkit is not None
    clang.toolkit.lay_out(folder / "toolkit")
    includes = [f"-isystem{path}" for path in clang.toolkit.include]
    command = [str(clang.path), *gpu_flags(clang, "sm_90"), f"--cuda-path={folder / 'toolkit'}"]
    command += [*includes, f"-I{INCLUDE}", "--cuda-device-only", "-S", "-x", "cuda", str(unit)]
    subprocess.run([*command, "-o", str(folder / "unit.ptx")], check=True)
    return (folder / "unit.ptx").read_text("ascii")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_golden_units_compile_to_machine_code(
    clang: DeviceCompiler, name: str, architecture: str, tmp_path: Path
) -> None:
    output = tmp_path / "unit.so"
    compile_for_gpu(clang, architecture, FOLDER / f"{name}.cpp", output, [INCLUDE], STRICT)
    binary = output.read_bytes()
    assert b"fkl_entry" in binary
    assert b"fkl_error_message" in binary
    assert b".target sm_" not in binary  # intermediate code
    codes = [found.start() for found in re.finditer(b"\x7fELF", binary)][1:]
    machines = [struct.unpack_from("<H", binary, code + 18)[0] for code in codes]
    numbers = [struct.unpack_from("<I", binary, code + 48)[0] & 0xFF for code in codes]
    assert machines == [OF_NVIDIA]
    assert numbers == [int(architecture[3:])]
    assert [path.name for path in tmp_path.iterdir()] == ["unit.so"]


@pytest.mark.parametrize("name", ALL)
def test_everything_is_rounded_and_nothing_contracted(
    clang: DeviceCompiler, name: str, tmp_path: Path
) -> None:
    """The assembler makes one instruction of a product and a sum that do not say how to round."""
    assembly = _assembly_of(clang, FOLDER / f"{name}.cpp", tmp_path)
    steps = set(re.findall(r"\b((?:add|sub|mul|div|sqrt)[.\w]*\.f(?:32|64))\b", assembly))
    assert all(".rn." in step for step in steps)
    assert ".ftz" not in "".join(steps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_and_sums_stay_two_instructions(
    clang: DeviceCompiler, dtype: str, tmp_path: Path
) -> None:
    x, y, z = (xp.asarray(np.ones((64, 100), dtype)) for _ in range(3))
    unit = tmp_path / "unit.cpp"
    unit.write_text(xp.explain(x * y + z).source, "ascii")
    assembly = _assembly_of(clang, unit, tmp_path)
    assert "mul.rn" in assembly
    assert "add.rn" in assembly
    assert "fma" not in assembly


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("wraps", [lambda x: x + 1 < x, lambda x: x - 1 > x])
def test_integers_may_wrap(
    clang: DeviceCompiler, wraps: Callable[[xp.Array], xp.Array], dtype: str, tmp_path: Path
) -> None:
    unit = tmp_path / "unit.cpp"
    unit.write_text(xp.explain(wraps(xp.asarray(np.ones((64, 100), dtype)))).source, "ascii")
    assert "ld.global" in _assembly_of(clang, unit, tmp_path)


def test_doctor_tells(
    clang: DeviceCompiler, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    said = "".join(capsys.readouterr().out.replace("│", "").split())
    assert f"compilerfordevices{clang.path}:clang{clang.version}withCUDA12." in said
    monkeypatch.setenv("FKLARRAY_NVCC", "/bin/false")
    run()
    said = "".join(capsys.readouterr().out.replace("│", "").split())
    assert "compilerfordevicesnone,devicearraysareslow" in said
    assert "/bin/false:itendedwithstatus1:itsaysnoversion" in said
