"""A CuPy that is none: its arrays are in memory of the emulated device, and NumPy computes.

It has what `fklarray.on_cupy` uses of CuPy, and writes down what was called on which stream.
"""

from __future__ import annotations

import contextlib
import math
import sys
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from fklarray import on_cupy
from fklarray.dtype_rows import dtype_row
from fklarray_runtime import (
    DeviceBuffer,
    allocate_on,
    copy_from_device,
    copy_to_device,
    export_capsule,
    use_on,
)

DEFAULT_STREAM = types.SimpleNamespace(ptr=0)
LEGACY = 1


class Fake:
    """The state of the library: what was called, the stream, and what is to fail."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.streams: list[int] = []
        self.stream: Any = DEFAULT_STREAM
        self.device = 0
        self.linalg = "ignore"
        self.failing: dict[str, list[Exception]] = {}

    def handle(self) -> int:
        return self.stream.ptr or LEGACY

    def called(self, name: str) -> None:
        self.calls.append(name)
        self.streams.append(self.stream.ptr)
        if self.failing.get(name):
            raise self.failing[name].pop(0)


class ndarray(NDArrayOperatorsMixin):  # noqa: N801 (CuPy's name)
    fake: Fake

    def __init__(self, shape: Any, dtype: Any, memptr: Any, strides: Any = None) -> None:
        self.shape, self.dtype, self.data = tuple(shape), np.dtype(dtype), memptr
        if self.dtype.kind not in "biufc":
            raise TypeError(f"unsupported dtype {dtype}")
        self.strides = _c_strides(self) if strides is None else tuple(strides)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    device = property(lambda self: _Device(self.data.mem.device_id))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str,
                "data": (self.data.ptr, False), "strides": self.strides}  # fmt: skip

    def get(self) -> np.ndarray[Any, Any]:
        """Copy the values to the host, on the current stream."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        reach = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        below = -sum(one for one in reach if one < 0)
        nbytes = below + sum(one for one in reach if one > 0) + self.dtype.itemsize
        bytes_ = np.empty(nbytes, np.uint8)
        copy_from_device(self.data.mem.owner, self.data.ptr - below, bytes_, self.fake.handle())
        return np.ndarray(self.shape, self.dtype, bytes_.data, below, self.strides)

    def _set(self, values: np.ndarray[Any, Any]) -> None:
        owner = self.data.mem.owner
        whole = np.empty(owner.nbytes, np.uint8)
        copy_from_device(owner, owner.address, whole, self.fake.handle())
        start = self.data.ptr - owner.address
        np.ndarray(self.shape, self.dtype, whole.data, start, self.strides)[...] = values
        copy_to_device(owner, owner.address, whole, self.fake.handle())

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.data.mem.device_id

    def __dlpack__(self, *, stream: int | None = None, max_version: Any = None) -> object:
        self.fake.called("__dlpack__")
        owner, row = self.data.mem.owner, dtype_row(self.dtype)
        assert self.strides == _c_strides(self)
        use_on(owner, LEGACY if stream is None else stream)
        return export_capsule(
            owner, address=self.data.ptr, shape=self.shape, code=row.dlpack_code, bits=row.bits,
            versioned=max_version is not None,
        )  # fmt: skip

    def __array_function__(self, func: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        self.fake.called(func.__name__)
        if func is np.moveaxis:
            order = [axis for axis in range(self.ndim) if axis != args[1]]
            order.insert(args[2], args[1])
            steps = [self.strides[axis] for axis in order]
            return ndarray([self.shape[axis] for axis in order], self.dtype, self.data, steps)
        if {"stable", "upper", "rtol"} & set(kwargs):
            raise TypeError(f"{func.__name__} got an unexpected keyword: {kwargs}")
        return _there(self.fake, func(*_here(args), **_here(kwargs)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _there(self.fake, getattr(ufunc, method)(*_here(inputs), **kwargs))

    @property
    def imag(self) -> ndarray:
        part = self.dtype.type(0).real.dtype
        pointer = _pointer(self.data.mem, self.data.ptr - self.data.mem.ptr + part.itemsize)
        return ndarray(self.shape, part, pointer, self.strides)

    def __getitem__(self, key: Any) -> ndarray:
        return _there(self.fake, np.asarray(self.get()[_here(key)]))  # type: ignore[no-any-return]

    def __setitem__(self, key: Any, value: Any) -> None:
        values = self.get()
        values[key] = value
        self._set(values)

    def __bool__(self) -> bool:
        return bool(self.get())

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> ndarray:
        is_usual = order == "K" or self.strides == _c_strides(self)
        if dtype == self.dtype and is_usual and not copy:
            return self
        return _there(self.fake, self.get().astype(dtype))  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name not in ("all", "any", "conj", "copy", "reshape", "swapaxes"):
            raise AttributeError(name)
        method = getattr(self.get(), name)
        return lambda *args, **kwargs: _there(self.fake, np.asarray(method(*args, **kwargs)))


def _c_strides(array: Any) -> tuple[int, ...]:
    steps = [array.dtype.itemsize]
    for extent in array.shape[:0:-1]:
        steps.insert(0, steps[0] * extent)
    return tuple(steps[: len(array.shape)])


def _pointer(memory: Any, offset: int) -> Any:
    return types.SimpleNamespace(mem=memory, ptr=memory.ptr + offset)


def _memory(address: int, nbytes: int, owner: DeviceBuffer, device_id: int) -> Any:
    return types.SimpleNamespace(ptr=address, size=nbytes, owner=owner, device_id=device_id)


def _here(values: Any) -> Any:
    if isinstance(values, (tuple, list)):
        return type(values)(map(_here, values))
    if isinstance(values, dict):
        return {name: _here(value) for name, value in values.items()}
    assert not (isinstance(values, np.ndarray) and values.ndim), "CuPy takes no arrays of NumPy's"
    return values.get() if isinstance(values, ndarray) else values


def _there(fake: Fake, result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_there(fake, part) for part in result)
    values = np.asarray(result)
    owner = allocate_on(fake.device, values.nbytes, fake.handle())
    array = ndarray(values.shape, values.dtype, _pointer(_memory(
        owner.address, owner.nbytes, owner, fake.device), 0))  # fmt: skip
    if values.size:
        plain = np.ascontiguousarray(values).reshape(-1)
        copy_to_device(owner, owner.address, plain.view(np.uint8), fake.handle())
    return array


@contextlib.contextmanager
def _Device(number: int) -> Iterator[None]:  # noqa: N802 (CuPy's name)
    ndarray.fake.device, before = number, ndarray.fake.device
    yield
    ndarray.fake.device = before


@contextlib.contextmanager
def _errstate(linalg: str) -> Iterator[None]:
    ndarray.fake.linalg, before = linalg, ndarray.fake.linalg
    yield
    ndarray.fake.linalg = before


def install(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put the fake in CuPy's place until the test is over."""
    fake = ndarray.fake = Fake()
    cupy: Any = types.ModuleType("cupy")
    cupy.ndarray = ndarray
    cupy.asarray = lambda values: _there(fake, values)
    cupy.get_default_memory_pool = lambda: types.SimpleNamespace(free_all_blocks=lambda: None)
    cupy.cuda = types.SimpleNamespace(
        Device=_Device,
        MemoryPointer=_pointer,
        UnownedMemory=_memory,
        get_current_stream=lambda device: fake.stream,
        runtime=types.SimpleNamespace(
            pointerGetAttributes=lambda address: types.SimpleNamespace(device=0)
        ),
    )
    cupyx: Any = types.ModuleType("cupyx")
    cupyx.errstate = _errstate
    for name, module in (("cupy", cupy), ("cupyx", cupyx)):
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    on_cupy.cupy_problem.cache_clear()
    monkeypatch.setattr(on_cupy, "_failed", {})
    return fake


def forget() -> None:
    """Let CuPy be looked for anew."""
    on_cupy.cupy_problem.cache_clear()
