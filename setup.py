"""Names the extensions; everything else about the build stands in pyproject.toml."""

from setuptools import Extension, setup

setup(
    cffi_modules=["runtime/fklarray_runtime/native_build.py:ffibuilder"],
    ext_modules=[
        Extension(
            "fklarray._core",
            [f"fklarray/native/{name}.c" for name in ("core", "record", "flush")],
            include_dirs=["runtime/fklarray_runtime/native"],
            depends=[
                "fklarray/native/core.h",
                *(
                    f"runtime/fklarray_runtime/native/{n}.h"
                    for n in ("interface", "native", "owner")
                ),
            ],
            extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden"],
            optional=True,  # without it, Python does the same
        )
    ],
)
