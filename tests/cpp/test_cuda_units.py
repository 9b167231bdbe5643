"""Units compile for NVIDIA's devices, without a device and without a warning."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fklarray as xp
from fklarray.kernels import device_compiler
from fklarray_codegen import INCLUDE
from fklarray_runtime import DeviceCompiler, compile_for_gpu, gpu_flags
from golden_graphs import ALL, FOLDER

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
STRICT = ("-Werror", "all-warnings", "-Xcompiler=-Wall,-Wextra,-Werror")


@pytest.fixture
def nvcc(monkeypatch: pytest.MonkeyPatch) -> DeviceCompiler:
    """Other tests run units on an emulated device."""
    monkeypatch.delenv("FKLARRAY_NVCC", raising=False)
    found = device_compiler("sm_90", (INCLUDE,))
    assert found.kind == "nvcc"
    return found


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_golden_units_compile_for_every_architecture(
    nvcc: DeviceCompiler, name: str, architecture: str, tmp_path: Path
) -> None:
    command = [str(nvcc.path), *gpu_flags(nvcc, architecture), *STRICT, f"-I{INCLUDE}", "-x", "cu"]
    output = tmp_path / "unit.so"
    run = subprocess.run(
        [*command, str(FOLDER / f"{name}.cpp"), "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert output.exists()


def test_a_library_has_machine_code_and_both_entries(nvcc: DeviceCompiler, tmp_path: Path) -> None:
    output = tmp_path / "unit.so"
    compile_for_gpu(nvcc, "sm_90", FOLDER / "two_results.cpp", output, [INCLUDE])
    binary = output.read_bytes()
    assert b"fkl_entry" in binary
    assert b"fkl_error_message" in binary
    assert b".target sm_90" not in binary  # intermediate code
    assert [path.name for path in tmp_path.iterdir()] == ["unit.so"]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("wraps", [lambda x: x + 1 < x, lambda x: x - 1 > x])
def test_integers_may_wrap(
    nvcc: DeviceCompiler, wraps: Callable[[xp.Array], xp.Array], dtype: str, tmp_path: Path
) -> None:
    """Where nvcc takes overflow for impossible, the answer is always no, and nothing is read."""
    x = xp.asarray(np.ones((64, 100), dtype))
    unit, output = tmp_path / "unit.cpp", tmp_path / "unit.ptx"
    unit.write_text(xp.explain(wraps(x)).source, "ascii")
    flags = [one for one in gpu_flags(nvcc, "sm_90") if "gencode" not in one and one != "-shared"]
    subprocess.run(
        [str(nvcc.path), *flags, "-arch=compute_90", f"-I{INCLUDE}", "-ptx", "-x", "cu",
         str(unit), "-o", str(output)], check=True,
    )  # fmt: skip
    assert "ld.global" in output.read_text("ascii")
