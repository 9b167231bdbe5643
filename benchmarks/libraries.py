"""How each library runs a case: with its own arrays, to the end, on its default threads."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from cases import Arrays, Case

Call = Callable[[], Any]


class UnsupportedError(Exception):
    """A library has no way to say what a case computes."""


class Library(ABC):
    """One candidate. Made only where it is installed; ImportError otherwise."""

    name: str
    distribution: str

    @property
    @abstractmethod
    def threads(self) -> int:
        """Threads that it uses by default."""

    @property
    def version(self) -> str:
        """Version of the distribution."""
        return str(importlib.import_module(self.distribution).__version__)

    @abstractmethod
    def call(self, case: Case, inputs: Arrays) -> Call:
        """Return a call that computes the case and has the values in memory when it returns."""

    def numpy(self, result: Any) -> npt.NDArray[Any]:
        """Return a result as a NumPy array."""
        return np.asarray(result)


class _With:
    """A namespace and a few functions more."""

    def __init__(self, namespace: Any, **functions: Callable[..., Any]) -> None:
        self.__dict__.update(functions)
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._namespace, name)
        setattr(self, name, value)
        return value


class NumPy(Library):
    """NumPy as its users write it: operation by operation."""

    name = "NumPy"
    distribution = "numpy"
    threads = 1

    def call(self, case: Case, inputs: Arrays) -> Call:
        """Return a call that computes the case."""
        return lambda: case.compute(np, *inputs)


class FklArray(Library):
    """fklarray: record, run, and take the values out through DLPack."""

    name = "fklarray"
    distribution = "fklarray"

    def __init__(self) -> None:
        import fklarray

        self._xp: Any = fklarray

    @property
    def threads(self) -> int:
        """Threads that it uses by default."""
        return int(self._xp.config.threads)

    def call(self, case: Case, inputs: Arrays) -> Call:
        """Return a call that computes the case."""
        arrays = [self._xp.asarray(array, copy=False) for array in inputs]
        namespace = _With(self._xp, softmax=self._xp.nn.softmax)
        return lambda: np.from_dlpack(case.compute(namespace, *arrays))

    def kernels_of(self, call: Call) -> int:
        """Count the kernels that one call launches."""
        before = self._xp.counters()
        call()
        after = self._xp.counters()
        if after["reference_evaluations"] > before["reference_evaluations"]:
            raise RuntimeError("fklarray ran on NumPy: there is no C++ compiler to measure with")
        return int(after["kernels_launched"] - before["kernels_launched"])


class NumExpr(Library):
    """numexpr; the numbers in its text become float32, or it would compute in float64."""

    name = "numexpr"
    distribution = "numexpr"

    def __init__(self) -> None:
        self._numexpr: Any = importlib.import_module("numexpr")

    @property
    def threads(self) -> int:
        """Threads that it uses by default."""
        return int(self._numexpr.nthreads)

    def call(self, case: Case, inputs: Arrays) -> Call:
        """Return a call that computes the case."""
        if not case.numexpr:
            raise UnsupportedError(case.name)
        names: dict[str, Any] = dict(zip("abcd", inputs, strict=False))

        def name_of(number: re.Match[str]) -> str:
            name = f"k{number[0].replace('.', '_')}"
            names[name] = np.float32(number[0])
            return name

        text = re.sub(r"\d+\.\d+", name_of, case.numexpr)
        evaluate = self._numexpr.evaluate
        if case.name != "image":
            return lambda: evaluate(text, local_dict=names)
        shape = inputs[0].shape
        return lambda: evaluate(
            text, local_dict=names, out=np.empty(shape, np.uint8), casting="unsafe"
        )


class Jax(Library):
    """jax.jit on the CPU."""

    name = "jax.jit"
    distribution = "jax"

    def __init__(self) -> None:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax
        import jax.numpy

        self._jax: Any = jax

    @property
    def threads(self) -> int:
        """Threads that it uses by default."""
        return len(os.sched_getaffinity(0))

    def call(self, case: Case, inputs: Arrays) -> Call:
        """Return a call that computes the case."""
        namespace = _With(self._jax.numpy, softmax=self._jax.nn.softmax)
        arrays = [self._jax.numpy.asarray(array) for array in inputs]
        compiled = self._jax.jit(lambda *args: case.compute(namespace, *args))
        return lambda: compiled(*arrays).block_until_ready()


class Torch(Library):
    """torch, eager."""

    name = "torch"
    distribution = "torch"

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        self._namespace = SimpleNamespace(
            exp=torch.exp,
            sin=torch.sin,
            where=torch.where,
            clip=torch.clip,
            astype=lambda x, dtype: x.to(dtype),
            float32=torch.float32,
            uint8=torch.uint8,
            sum=torch.sum,
            mean=torch.mean,
            std=lambda x, axis, keepdims: torch.std(x, axis, correction=0, keepdim=keepdims),
            softmax=lambda x: torch.softmax(x, -1),
        )

    @property
    def threads(self) -> int:
        """Threads that it uses by default."""
        return int(self._torch.get_num_threads())

    def call(self, case: Case, inputs: Arrays) -> Call:
        """Return a call that computes the case."""
        tensors = [self._torch.from_numpy(array) for array in inputs]
        return lambda: case.compute(self._namespace, *tensors)


class TorchCompile(Torch):
    """torch.compile, compiled for each shape."""

    name = "torch.compile"

    def call(self, case: Case, inputs: Arrays) -> Call:
        """Return a call that computes the case."""
        tensors = [self._torch.from_numpy(array) for array in inputs]
        namespace = self._namespace

        def computed(*args: Any) -> Any:
            return case.compute(namespace, *args)

        self._torch.compiler.reset()
        compiled = self._torch.compile(computed, dynamic=False)
        return lambda: compiled(*tensors)


class Loop(Library):
    """A loop in C for the case, compiled with gcc; not a library, but what one would write."""

    name = "loop in C"
    distribution = "gcc"
    _FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC")

    def __init__(self) -> None:
        compiler = shutil.which("gcc")
        if compiler is None:
            raise ImportError("there is no gcc")
        source = Path(__file__).with_name("loops.c")
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder, "loops.so")
            command = [compiler, *self._FLAGS, str(source), "-o", str(library), "-lmvec", "-lm"]
            subprocess.run(command, check=True)
            self._loops = ctypes.CDLL(str(library))
        self._loops.sum.restype = ctypes.c_float
        self._version = subprocess.run(
            [compiler, "-dumpfullversion"], check=True, capture_output=True, text=True
        ).stdout.strip()

    @property
    def version(self) -> str:
        """Version of the compiler."""
        return self._version

    @property
    def threads(self) -> int:
        """Threads that it uses by default."""
        return len(os.sched_getaffinity(0))

    def call(self, case: Case, inputs: Arrays) -> Call:
        """Return a call that computes the case."""
        loop = getattr(self._loops, case.name, None)
        if loop is None:
            raise UnsupportedError(case.name)
        (array,) = inputs
        extents = [ctypes.c_long(extent) for extent in array.shape]
        source = ctypes.c_void_p(array.ctypes.data)
        if case.name == "sum":
            return lambda: np.float32(loop(source, *extents))
        kept = {"columns": array.shape[1:], "sum_exp": array.shape[:1]}
        shape = kept.get(case.name, array.shape)

        def compute() -> Any:
            result = np.empty(shape, np.float32)
            loop(source, ctypes.c_void_p(result.ctypes.data), *extents)
            return result

        return compute


def installed(*, with_torch_compile: bool) -> tuple[list[Library], list[str]]:
    """Find the libraries that are here.

    Returns
    -------
    list of Library, list of str
        NumPy first; and the names of those that are absent.
    """
    present: list[Library] = []
    absent: list[str] = []
    kinds: list[type[Library]] = [NumPy, FklArray, NumExpr, Jax, Torch, Loop]
    if with_torch_compile:
        kinds.append(TorchCompile)
    for kind in kinds:
        try:
            present.append(kind())
        except ImportError:
            if kind in (NumPy, FklArray):
                raise
            absent.append(kind.name)
    return present, absent
