"""The runtime of fklarray: compilers, binary cache, loading, memory, threads, DLPack, launch.

This package knows no operation. It turns a C++ source file into a loaded `Kernel`, gives it
memory from a caching pool (`allocate`) and threads (`set_threads`), and exchanges memory with
other libraries (`export_capsule`, `import_capsule`). ``DESIGN.md`` beside this file says why it
is as it is.
"""

from __future__ import annotations

from fklarray_runtime.binary_cache import BinaryCache, key
from fklarray_runtime.buffer import Buffer, allocate, pool_bytes, set_pool_limit, trim
from fklarray_runtime.compilation import compile_for_gpu, stop_compiler
from fklarray_runtime.compiler import (
    CompileError,
    Compiler,
    CompilerError,
    CompilerNotFound,
    candidates,
    compile_library,
    find_compiler,
    flags,
    forget_compiler,
    probe,
)
from fklarray_runtime.cpu import Target, target
from fklarray_runtime.dlpack import Imported, export_capsule, import_capsule, request
from fklarray_runtime.kernel import Kernel, LaunchError, LoadError, native_functions
from fklarray_runtime.nvcc import NvccNotFound, find_nvcc, nvcc_version
from fklarray_runtime.thread_limits import register_threads
from fklarray_runtime.threads import set_threads, threads

__all__ = [
    "BinaryCache",
    "Buffer",
    "CompileError",
    "Compiler",
    "CompilerError",
    "CompilerNotFound",
    "Imported",
    "Kernel",
    "LaunchError",
    "LoadError",
    "NvccNotFound",
    "Target",
    "allocate",
    "candidates",
    "compile_for_gpu",
    "compile_library",
    "export_capsule",
    "find_compiler",
    "find_nvcc",
    "flags",
    "forget_compiler",
    "import_capsule",
    "key",
    "native_functions",
    "nvcc_version",
    "pool_bytes",
    "probe",
    "request",
    "set_pool_limit",
    "set_threads",
    "stop_compiler",
    "target",
    "threads",
    "trim",
]

register_threads()
