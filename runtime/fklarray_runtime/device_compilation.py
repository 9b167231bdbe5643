"""Running a compiler for NVIDIA's devices: flags, one compilation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fklarray_runtime.compilation import compile_in_folder, run_in_folder
from fklarray_runtime.toolkit import Toolkit

__all__ = ["DeviceCompiler", "compile_for_gpu", "gpu_flags"]

# What a driver makes of intermediate code depends on the driver: machine code only. Products and
# sums are rounded one by one, as on the CPU.
_FLAGS = {
    "nvcc": (
        "-std=c++17",
        "-O3",
        "-shared",
        "-Xcompiler=-fPIC,-fvisibility=hidden",
        "-cudart=static",
        "-fmad=false",
    ),
    "clang": (
        "-std=c++17",
        "-O3",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-ffp-contract=off",
        "-fwrapv",
        "--no-cuda-include-ptx=all",
        "-fno-crash-diagnostics",  # which take longer than the compilation that failed
        # Whether a toolkit is too new for it was tried. What it does not know of the attributes of
        # kernels' parameters, it sees by itself.
        "-Wno-unknown-cuda-version",
        "-Wno-unknown-attributes",
    ),
}


@dataclass(frozen=True, slots=True)
class DeviceCompiler:
    """A compiler for NVIDIA's devices.

    Attributes
    ----------
    kind : str
        ``"nvcc"`` or ``"clang"``.
    path : Path
        The program.
    version : str
        What it says of itself: ``"13.2.86"``.
    fingerprint : str
        Version, path, size and modification time of all that results depend on.
    toolkit : Toolkit or None
        What clang works with; nvcc has its own.
    """

    kind: Literal["nvcc", "clang"]
    path: Path
    version: str
    fingerprint: str
    toolkit: Toolkit | None = None

    def __str__(self) -> str:
        """Name it for users."""
        with_toolkit = ""
        if self.toolkit is not None:
            with_toolkit = f" with CUDA {self.toolkit.version} of {self.toolkit.name}"
        return f"{self.path}: {self.kind} {self.version}{with_toolkit}"


def gpu_flags(compiler: DeviceCompiler, architecture: str) -> tuple[str, ...]:
    """List every flag of `compile_for_gpu` that does not depend on the unit."""
    if compiler.kind == "clang":
        return (*_FLAGS["clang"], f"--offload-arch={architecture}")
    number = architecture.removeprefix("sm_")
    return (*_FLAGS["nvcc"], f"-gencode=arch=compute_{number},code={architecture}")


def compile_for_gpu(
    compiler: DeviceCompiler,
    architecture: str,
    source: Path,
    output: Path,
    include: Sequence[Path],
    options: Sequence[str] = (),
) -> None:
    """Compile one translation unit, host and device code in one step.

    Parameters
    ----------
    compiler : DeviceCompiler
        From `find_device_compiler`.
    architecture : str
        Of the device: ``"sm_90"``. Its machine code is all that the library holds.
    source, output, include, options
        As in `compile_library`.

    Raises
    ------
    CompileError, OSError
        As in `compile_library`.
    """

    def compile_to(result: Path) -> tuple[list[str], int, str]:
        arguments = [
            str(compiler.path),
            *gpu_flags(compiler, architecture),
            *options,
            *[f"-I{path.absolute()}" for path in include],
        ]
        unit, to = str(source.absolute()), ("-o", str(result))
        if compiler.toolkit is None:
            arguments += ("-x", "cu", unit, *to)
        else:
            arguments += (*_toolkit_flags(compiler.toolkit, result.parent / "toolkit"),)
            arguments += ("-x", "cuda", unit, *to, "-x", "none", *_libraries(compiler.toolkit))
        return (arguments, *run_in_folder(arguments, result.parent))

    compile_in_folder(compile_to, source, output.absolute())


def _toolkit_flags(toolkit: Toolkit, folder: Path) -> list[str]:
    toolkit.lay_out(folder)
    return [
        f"--cuda-path={folder}",
        *[word for path in toolkit.include for word in ("-isystem", str(path))],
    ]


def _libraries(toolkit: Toolkit) -> list[str]:
    runtime = str(toolkit.runtime)
    if toolkit.runtime.suffix == ".a":
        return [runtime, "-ldl", "-lrt", "-lpthread"]
    return [runtime, f"-Wl,-rpath,{toolkit.runtime.parent}"]
