"""Names the cffi extension; everything else about the build stands in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["runtime/fklarray_runtime/native_build.py:ffibuilder"])
