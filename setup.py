"""Names the extensions; everything else about the build stands in pyproject.toml."""

from setuptools import Extension, setup

_NATIVE = "runtime/fklarray_runtime/native"

setup(
    cffi_modules=["runtime/fklarray_runtime/native_build.py:ffibuilder"],
    ext_modules=[
        Extension(
            "fklarray_runtime._core",
            [
                f"{_NATIVE}/core/{name}.c"
                for name in ("core", "find", "record", "replay", "launch", "fuse", "flush")
            ],
            include_dirs=[_NATIVE],
            depends=[
                f"{_NATIVE}/{name}.h" for name in ("core/core", "interface", "native", "owner")
            ],
            extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden"],
            optional=True,  # without it, Python does the same
        )
    ],
)
