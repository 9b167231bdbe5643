"""Finding a C++ compiler that works, and remembering it.

What is done with it stands in `fklarray_runtime.compilation`, whose names can be had here too.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shlex
import shutil
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

from fklarray_runtime.compilation import (
    CompileError,
    Compiler,
    CompilerError,
    command_flags,
    compile_library,
    first_lines,
    flags,
    identity_of,
    run_compiler,
)
from fklarray_runtime.cpu import target
from fklarray_runtime.private_files import temporary_folder, write_atomically

__all__ = [
    "SEARCH_ORDER",
    "CompileError",
    "Compiler",
    "CompilerError",
    "CompilerNotFound",
    "candidates",
    "compile_library",
    "find_compiler",
    "flags",
    "forget_compiler",
    "probe",
]

# The order of the compilers that are tried when CXX does not name one: the code is as fast with
# either, and g++ compiles a kernel in two thirds of clang's time.
SEARCH_ORDER: tuple[tuple[str, ...], ...] = (
    ("g++",),
    ("clang++",),
    ("clang++-19",),
    ("clang++-18",),
    ("clang++-17",),
    ("clang++-16",),
    ("clang++-15",),
    ("c++",),
)

_ANSWER = 42
# A probe includes what the kernels' headers include: half a toolchain often lacks just these.
_PROBE = """\
#include <cstddef>
#include <cstdint>
#define EXPORTED extern "C" __attribute__((visibility("default")))
#ifdef FKLARRAY_VECTOR_MATH
typedef float Floats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(16)));
extern "C" Floats _ZGVbN4vv_atan2f(Floats, Floats);
extern "C" Doubles _ZGVbN2v_tanh(Doubles);
static bool vector_math(float zero) {
    const Floats y = {zero, zero, zero, zero};
    const Floats x = {1, 1, 1, 1};
    const Doubles t = {zero, zero};
    return _ZGVbN4vv_atan2f(y, x)[3] == 0 && _ZGVbN2v_tanh(t)[1] == 0;
}
#else
static bool vector_math(float) { return true; }
#endif
EXPORTED int fklarray_probe(float zero) {
    static_assert(sizeof(std::uint8_t) == 1 && sizeof(std::size_t) == sizeof(void*), "");
    return vector_math(zero) && __builtin_sqrtf(zero) == 0 ? 42 : 1;
}
EXPORTED const char* fklarray_probe_version() { return __VERSION__; }
EXPORTED int fklarray_probe_is_clang() {
#ifdef __clang__
    return 1;
#else
    return 0;
#endif
}
"""

_lock = threading.RLock()
_found: dict[tuple[str | None, ...], Compiler | CompilerNotFound] = {}


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603  (a forked child may inherit it locked)
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class CompilerNotFound(CompilerError):  # noqa: N818  (what happened, not an "error")
    """No compiler works.

    Attributes
    ----------
    reasons : tuple of (tuple of str, str)
        Every command that was tried, and why it cannot be used.
    """

    def __init__(self, reasons: list[tuple[tuple[str, ...], str]]) -> None:
        self.reasons = tuple(reasons)
        tried = "\n".join(f"  {shlex.join(command)}: {reason}" for command, reason in reasons)
        super().__init__(
            f"no working C++ compiler was found. Tried:\n{tried}\n"
            "Install g++ or clang, set CXX to a compiler, or run: "
            'pip install "fklarray[compiler]"'
        )


def candidates() -> list[tuple[str, ...]]:
    """List the compilers to try, in order.

    Returns
    -------
    list of tuple of str
        CXX as an argument list, the well-known names, and Zig's clang when it is installed.
    """
    commands = [named] if (named := _named_compiler()) else []
    commands += SEARCH_ORDER
    if find_spec("ziglang") is not None:
        commands.append((sys.executable, "-m", "ziglang", "c++"))
    return commands


def _named_compiler() -> tuple[str, ...] | None:
    text = os.environ.get("CXX", "").strip()
    try:
        return tuple(shlex.split(text)) or None
    except ValueError:  # an unbalanced quote: take the text as one file name
        return (text,)


def _fingerprint(command: tuple[str, ...]) -> str:
    """Path, size and time of every executable in the command; a wrapper's compiler among them."""
    files = [found for word in command if (found := shutil.which(word)) is not None]
    if "ziglang" in command and (spec := find_spec("ziglang")) is not None and spec.origin:
        files.append(str(Path(spec.origin).with_name("zig")))
    texts: list[str] = []
    for name in files:
        with suppress(OSError):
            texts.append(identity_of(Path(name).resolve()))
    return "; ".join(texts)


def probe(command: tuple[str, ...], cache_directory: Path | None = None) -> Compiler:
    """Try a compiler: compile, load and run a small library.

    Parameters
    ----------
    command : tuple of str
        The compiler and its first arguments.
    cache_directory : Path, optional
        Where to work; default: the system's folder for temporary files.

    Returns
    -------
    Compiler
        What was found out.

    Raises
    ------
    CompilerError
        It is not installed, fails, or makes libraries that do not load here.
    """
    if shutil.which(command[0]) is None:
        raise CompilerError("not found")
    fingerprint = _fingerprint(command)
    # The cache first: a library must be loadable from there, which /tmp may forbid (noexec).
    with temporary_folder((".probe-", cache_directory), ("fklarray-probe-", None)) as folder:
        work = cache_directory or folder
        try:
            kind, version = _try(command, True, folder, work)
        except CompilerError:
            # Most often there is just no libmvec, as outside glibc.
            kind, version = _try(command, False, folder, work)
            return Compiler(command, kind, version, fingerprint, vector_math=False)
    return Compiler(command, kind, version, fingerprint, vector_math=True)


def _try(
    command: tuple[str, ...], vector_math: bool, folder: Path, cache: Path
) -> tuple[Literal["gcc", "clang"], str]:
    source = folder / "probe.cpp"
    # dlopen knows a library by its path, so that each try needs a name of its own.
    library = folder / f"probe{vector_math:d}.so"
    source.write_text(_PROBE, encoding="ascii")
    try:
        run_compiler(command, vector_math, source, library, cache=cache)
        loaded = ctypes.CDLL(str(library))
        loaded.fklarray_probe.argtypes = [ctypes.c_float]
        answer = loaded.fklarray_probe(0.0)
        loaded.fklarray_probe_version.restype = ctypes.c_char_p
        version = cast("bytes", loaded.fklarray_probe_version()).decode("utf-8", "replace")
        is_clang = bool(loaded.fklarray_probe_is_clang())
    except CompileError as error:
        raise CompilerError(first_lines(error)) from error
    except (OSError, AttributeError) as error:
        raise CompilerError(f"its library does not work: {error}") from error
    if answer != _ANSWER:
        raise CompilerError("its library gives a wrong answer")
    return "clang" if is_clang else "gcc", version


def find_compiler(cache_directory: Path | None = None) -> Compiler:
    """Find the first compiler that works.

    Parameters
    ----------
    cache_directory : Path, optional
        A private folder that remembers what was found, so that the next process starts no
        compiler to find out.

    Returns
    -------
    Compiler
        The same one for as long as CXX, PATH and the target stay.

    Raises
    ------
    CompilerNotFound
        None works; the text names each one tried.
    ValueError
        FKLARRAY_CPU_LEVEL is malformed.
    """
    place = str(cache_directory) if cache_directory else None
    situation = (os.environ.get("CXX"), os.environ.get("PATH"), place, *target().flags)
    with _lock:
        if situation not in _found:
            try:
                _found[situation] = _search(cache_directory)
            except CompilerNotFound as error:
                # Remembered as well: the search may take seconds, and flushes are many.
                _found[situation] = error
        found = _found[situation]
    if isinstance(found, CompilerNotFound):
        raise found
    return found


def forget_compiler() -> None:
    """Forget, in this process, which compiler was found."""
    with _lock:
        _found.clear()


def _search(cache_directory: Path | None) -> Compiler:
    reasons: list[tuple[tuple[str, ...], str]] = []
    named = _named_compiler()
    for command in candidates():
        try:
            return _recall_or_probe(command, cache_directory)
        except CompilerError as error:
            reasons.append((command, str(error)))
            if command == named:
                warnings.warn(
                    f"CXX={shlex.join(command)} cannot be used ({error}); "
                    "looking for another compiler",
                    RuntimeWarning,
                    stacklevel=4,
                )
    raise CompilerNotFound(reasons)


def _recall_or_probe(command: tuple[str, ...], cache_directory: Path | None) -> Compiler:
    if shutil.which(command[0]) is None:
        raise CompilerError("not found")
    if cache_directory is None:
        return probe(command)
    path = cache_directory / f"compiler-{_memory_key(command)}.json"
    compiler = _recall(path, command)
    if compiler is None:
        compiler = probe(command, cache_directory)
        with suppress(OSError):  # a full disk costs the next process a probe, no more
            write_atomically(path, json.dumps(asdict(compiler)).encode("ascii"))
    return compiler


def _memory_key(command: tuple[str, ...]) -> str:
    facts = (command, _fingerprint(command), command_flags(command, True), target().features)
    return hashlib.sha256(json.dumps([facts, _PROBE]).encode("ascii")).hexdigest()[:32]


def _recall(path: Path, command: tuple[str, ...]) -> Compiler | None:
    """Read a remembered compiler; None when there is none or the file is damaged."""
    try:
        facts = cast("dict[str, Any]", json.loads(path.read_bytes()))
        compiler = Compiler(
            tuple(facts["command"]),
            facts["kind"],
            facts["version"],
            facts["fingerprint"],
            facts["vector_math"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = (
        compiler.command == command
        and compiler.kind in {"gcc", "clang"}
        and isinstance(compiler.version, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        and isinstance(compiler.vector_math, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    )
    return compiler if whole else None
