"""Running a C++ compiler: flags, one compilation, its errors."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fklarray_runtime.cpu import cache_bytes, target
from fklarray_runtime.private_files import temporary_folder

_COMMON_FLAGS = (
    "-std=c++17",
    "-O2",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    # Results must be NumPy's bits: no fused multiply-add that the source does not ask for.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fno-exceptions",
    "-fno-rtti",
    "-fopenmp-simd",
)
_MOST_ERROR_TEXT = 8000
_REASON_LINES = 6
_GRACE_SECONDS = 2.0

_running: dict[int, subprocess.Popen[bytes]] = {}  # by the thread that waits for it

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)


class CompilerError(RuntimeError):
    """A compiler cannot be used."""


class CompilerStopped(RuntimeError):  # noqa: N818  (what happened, not an "error")
    """A compiler was ended by `stop_compiler`."""


class CompileError(RuntimeError):
    """A compilation failed.

    Attributes
    ----------
    command : tuple of str
        The compiler's arguments.
    source : Path
        The source, which is kept.
    stderr : str
        What the compiler said, shortened.
    """

    def __init__(self, command: Sequence[str], source: Path, status: int, stderr: str) -> None:
        self.command = tuple(command)
        self.source = source
        self.stderr = shorten(stderr)
        super().__init__(
            f"the compiler ended with status {status} on {source}\n"
            f"command: {self.command}\n{self.stderr}"
        )


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler that was tried and works.

    Attributes
    ----------
    command : tuple of str
        How it is started.
    kind : str
        ``"gcc"`` or ``"clang"``.
    version : str
        What the compiler says of itself in ``__VERSION__``.
    fingerprint : str
        Path, size and modification time of the executables behind `command`.
    vector_math : bool
        Units may call the vector functions of glibc's libmvec.
    """

    command: tuple[str, ...]
    kind: Literal["gcc", "clang"]
    version: str
    fingerprint: str
    vector_math: bool


def flags(compiler: Compiler) -> tuple[str, ...]:
    """List every flag that does not depend on the unit; part of a binary's key.

    Raises
    ------
    ValueError
        FKLARRAY_CPU_LEVEL is malformed.
    """
    return command_flags(compiler.command, compiler.vector_math)


def command_flags(command: Sequence[str], vector_math: bool) -> tuple[str, ...]:
    """Do what `flags` does, for a compiler that is yet to be tried."""
    chosen = target().flags
    if is_zig(command):
        # Zig spells the levels in its own way, and calls the option for the processor -mcpu.
        chosen = tuple(
            "-mcpu=" + flag.removeprefix("-march=").replace("-", "_")
            for flag in chosen
            if "x86-64" in flag
        )
    vector = ("-DFKLARRAY_VECTOR_MATH=1",) if vector_math else ()
    return (*_COMMON_FLAGS, *chosen, f"-DFKLARRAY_CACHE_BYTES={cache_bytes()}", *vector)


def is_zig(command: Sequence[str]) -> bool:
    """Tell whether a command is Zig's clang."""
    return "ziglang" in command or Path(command[0]).name == "zig"


def compile_library(
    compiler: Compiler,
    source: Path,
    output: Path,
    include: Sequence[Path],
    options: Sequence[str] = (),
) -> None:
    """Compile one translation unit to a shared library.

    Parameters
    ----------
    compiler : Compiler
        From `find_compiler`.
    source, output : Path
        The C++ file, and the library to write. Nothing is left at `output` on an error.
    include : sequence of Path
        Folders of headers.
    options : sequence of str
        Further options, which win over the usual ones.

    Raises
    ------
    CompileError
        The compiler refused the source.
    OSError
        The compiler is gone, or the disk is full.
    """
    all_options = [*[f"-I{path.absolute()}" for path in include], *options]
    libraries = _libraries(compiler.vector_math)
    if compiler.kind == "gcc" and compiler.vector_math and not options:
        # Nothing of C++'s own library, which takes half of the linker's time.
        libraries = ("-nostdlib", *libraries, "-lc", "-lgcc")
    run_compiler(compiler.command, compiler.vector_math, source, output, all_options, libraries)


def run_compiler(
    command: Sequence[str],
    vector_math: bool,
    source: Path,
    output: Path,
    options: Sequence[str] = (),
    libraries: Sequence[str] | None = None,
    cache: Path | None = None,
) -> None:
    """Do what `compile_library` does, for a compiler that is yet to be tried.

    `cache` is where a compiler that needs a cache of its own may keep it; default: beside the
    output.
    """

    def compile_to(result: Path) -> tuple[list[str], int, str]:
        arguments = [
            *command,
            *command_flags(command, vector_math),
            *options,
            str(source.absolute()),
            "-o",
            str(result),
            *(_libraries(vector_math) if libraries is None else libraries),
        ]
        folder = result.parent
        environment = _environment(command, str(folder), cache or output.absolute().parent)
        if is_zig(command):
            return (arguments, *_run_zig(arguments, folder, environment))
        return (arguments, *_run(arguments, environment))

    compile_in_folder(compile_to, source, output.absolute())


def _libraries(vector_math: bool) -> tuple[str, ...]:
    return ("-lmvec", "-lm") if vector_math else ("-lm",)


def compile_in_folder(
    compile_to: Callable[[Path], tuple[list[str], int, str]], source: Path, output: Path
) -> None:
    """Run a compiler on a source; its result appears at `output` whole, or not at all."""
    # The compiler's own temporary files lie there too, so that a killed one leaves nothing.
    with temporary_folder((".compile-", output.parent)) as folder:
        result = folder / "library.so"
        arguments, status, stderr = compile_to(result)
        if status != 0 or not result.exists():
            if "No space left on device" in stderr:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(output))
            if not folder.exists():  # somebody cleared the cache meanwhile
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
            raise CompileError(arguments, source, status, stderr)
        result.replace(output)


def _run_zig(arguments: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Compile as C++ but link as C: Zig builds all of libc++ (minutes) before it links C++."""
    split = arguments.index("-o")
    compiled = folder / "unit.o"
    compile_only = [flag for flag in arguments[:split] if flag != "-shared"]
    status, stderr = _run([*compile_only, "-c", "-o", str(compiled)], environment)
    if status != 0:
        return status, stderr
    front = arguments[: arguments.index("c++")]
    link = [*front, "cc", "-O2", "-shared", str(compiled), *arguments[split:]]
    return _run(link, environment)


def _environment(command: Sequence[str], folder: str, cache: Path) -> dict[str, str]:
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": folder}
    if is_zig(command):
        # Zig builds its C++ library once per cache folder; without one it wants a home.
        environment["ZIG_GLOBAL_CACHE_DIR"] = str(cache / "zig")
        environment["ZIG_LOCAL_CACHE_DIR"] = str(cache / "zig")
    return environment


def run_in_folder(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a compiler whose temporary files lie in a folder; its exit status and error text."""
    return _run(arguments, _environment(arguments, str(folder), folder))


def _run(arguments: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a compiler to its end; its exit status and error text."""
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        process_group=0,  # a driver's children must die with it
    ) as process:
        thread = threading.get_ident()
        _running[thread] = process
        try:
            _, stderr = process.communicate()
        except BaseException:
            _running.pop(thread, None)
            _kill_group(process)
            raise
        if _running.pop(thread, None) is None:
            raise CompilerStopped
    return process.returncode, stderr.decode("utf-8", "replace")


def stop_compiler(thread: int | None) -> None:
    """End the compiler that another thread waits for, if there is one.

    Parameters
    ----------
    thread : int or None
        Identifier of the thread. What it was doing there raises, and leaves nothing behind.
    """
    process = None if thread is None else _running.pop(thread, None)
    if process is not None:
        _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
            return


def shorten(text: str) -> str:
    """Keep the beginning and the end of a long error text."""
    if len(text) <= _MOST_ERROR_TEXT:
        return text
    half = _MOST_ERROR_TEXT // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def identity_of(path: Path) -> str:
    """Return a file's path, size and modification time; raises OSError if it is not there."""
    found = path.stat()
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def first_lines(error: CompileError) -> str:
    """Say in a line why a compiler that was tried cannot be used."""
    lines = [line.strip() for line in error.stderr.splitlines() if line.strip()]
    if not lines:
        return "it failed without a word"
    # Before them clang says by which way the file was read.
    errors = [line for line in lines if re.search("error|fatal", line)] or lines
    return "it failed: " + " | ".join(errors[:_REASON_LINES])
