"""The runtime of fklarray: compilers, binary cache, loading, memory, threads, DLPack, launch.

This package knows no operation. It turns a C++ source file into a loaded `Kernel`, gives it
memory from a caching pool (`allocate`) and threads (`set_threads`), and exchanges memory with
other libraries (`export_capsule`, `import_capsule`). ``DESIGN.md`` beside this file says why it
is as it is.
"""

from __future__ import annotations

from fklarray_runtime.binary_cache import BinaryCache, digest_of_folders, key
from fklarray_runtime.buffer import Buffer, allocate, pool_bytes, set_pool_limit, trim
from fklarray_runtime.compilation import stop_compiler
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
from fklarray_runtime.device_compilation import DeviceCompiler, compile_for_gpu, gpu_flags
from fklarray_runtime.device_compiler import (
    DeviceCompilerNotFound,
    DeviceProbe,
    find_device_compiler,
    forget_device_compiler,
)
from fklarray_runtime.devices import (
    LEGACY_STREAM,
    DeviceBuffer,
    DeviceDescription,
    DeviceError,
    allocate_on,
    copy_from_device,
    copy_to_device,
    copy_within,
    current_stream,
    describe_device,
    device_count,
    device_problem,
    launch_on,
    trim_device,
    use_on,
)
from fklarray_runtime.dlpack import Imported, export_capsule, import_capsule, request
from fklarray_runtime.kernel import Kernel, LaunchError, LoadError, native_functions
from fklarray_runtime.thread_limits import register_threads
from fklarray_runtime.threads import set_threads, threads

__all__ = [
    "LEGACY_STREAM",
    "BinaryCache",
    "Buffer",
    "CompileError",
    "Compiler",
    "CompilerError",
    "CompilerNotFound",
    "DeviceBuffer",
    "DeviceCompiler",
    "DeviceCompilerNotFound",
    "DeviceDescription",
    "DeviceError",
    "DeviceProbe",
    "Imported",
    "Kernel",
    "LaunchError",
    "LoadError",
    "Target",
    "allocate",
    "allocate_on",
    "candidates",
    "compile_for_gpu",
    "compile_library",
    "copy_from_device",
    "copy_to_device",
    "copy_within",
    "current_stream",
    "describe_device",
    "device_count",
    "device_problem",
    "digest_of_folders",
    "export_capsule",
    "find_compiler",
    "find_device_compiler",
    "flags",
    "forget_compiler",
    "forget_device_compiler",
    "gpu_flags",
    "import_capsule",
    "key",
    "launch_on",
    "native_functions",
    "pool_bytes",
    "probe",
    "request",
    "set_pool_limit",
    "set_threads",
    "stop_compiler",
    "target",
    "threads",
    "trim",
    "trim_device",
    "use_on",
]

register_threads()
