"""Memory in and out: NumPy, torch and JAX as consumers and producers, and who owns what.

All of it is memory of the host; `test_devices` has that of devices.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import torch

import fklarray as xp
from fklarray_codegen.dtypes import DTYPES

jax.config.update("jax_enable_x64", True)
CPU = (1, 0)

CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "numpy": np.from_dlpack,
    "torch": torch.from_dlpack,
    "jax": jax.dlpack.from_dlpack,
}
# Data types that a library knows: torch's and JAX's are all of ours, NumPy's DLPack lacks one.
KNOWN = [
    (library, name)
    for library in CONSUMERS
    for name in DTYPES
    if (library, name) != ("numpy", "bfloat16")
]
SHAPES = [(), (1,), (5,), (0,), (2, 0, 3), (2, 3, 4), (1, 1)]


def _values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(int(np.prod(shape))) % 3).reshape(shape).astype(dtype)


def _numpy(tensor: Any) -> np.ndarray:
    if isinstance(tensor, torch.Tensor) and tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view("bfloat16")
    return np.asarray(tensor)


def _torch(values: np.ndarray) -> torch.Tensor:
    if values.dtype == "bfloat16":
        return torch.from_numpy(values.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(values.copy())


# ----------------------------------------------------------------------------------- consumers


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("consumer", "dtype"), KNOWN)
def test_export(consumer: str, dtype: str, shape: tuple[int, ...], host: str) -> None:
    values = _values(shape, dtype)
    x = xp.asarray(values, device=host)
    pending = ~~x if dtype == "bool" else x + x - x
    for array in (x, pending, xp.asarray(np.stack([values] * 2))[1]):
        got = _numpy(CONSUMERS[consumer](array))
        assert (str(got.dtype), got.shape) == (dtype, shape)
        assert got.tolist() == values.tolist()


@pytest.mark.parametrize("consumer", ["numpy", "torch"])
def test_views_are_exported_in_order(consumer: str, host: str) -> None:
    values = np.arange(24.0).reshape(4, 6)
    x = xp.asarray(values, device=host)
    for key in ((slice(None), slice(None, None, 2)), (slice(None, None, -1),), (2,), (None, 1)):
        assert _numpy(CONSUMERS[consumer](x[key])).tolist() == values[key].tolist()
    assert _numpy(CONSUMERS[consumer](x.T)).tolist() == values.T.tolist()
    assert _numpy(CONSUMERS[consumer](xp.broadcast_to(x[0], (3, 6)))).tolist() == [[*range(6)]] * 3


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("ours_first", [True, False])
def test_memory_lives_as_long_as_its_last_owner(consumer: str, ours_first: bool, host: str) -> None:
    x = xp.asarray(np.arange(1000.0), device=host) * 2
    tensor = CONSUMERS[consumer](x)
    if ours_first:
        del x
        gc.collect()
        _ = [np.asarray(xp.zeros((1000,), device=host) + k) for k in range(20)]
        assert _numpy(tensor).tolist() == [2.0 * k for k in range(1000)]
    else:
        del tensor
        gc.collect()
        _ = [np.asarray(xp.zeros((1000,), device=host) + k) for k in range(20)]
        assert np.asarray(x).tolist() == [2.0 * k for k in range(1000)]


@pytest.mark.parametrize("consumer", ["numpy", "torch"])
def test_a_writing_consumer_changes_nobody_else(consumer: str, host: str) -> None:
    x = xp.asarray(np.zeros(8), device=host) + 1
    reader, twin = x * 10, x[::-1]
    copied = xp.asarray(x, copy=True)
    tensor = CONSUMERS[consumer](x)
    if consumer == "numpy" and not tensor.flags.writeable:
        tensor = tensor.copy()
    tensor[:] = 99
    assert np.asarray(reader).tolist() == [10.0] * 8
    assert np.asarray(twin).tolist() == [1.0] * 8
    assert np.asarray(copied).tolist() == [1.0] * 8


def test_what_we_write_later_is_not_seen_by_the_consumer(host: str) -> None:
    x = xp.asarray(np.zeros(8), device=host) + 1
    tensors = [consume(x) for consume in CONSUMERS.values()]
    x[2:4] = 50
    x *= 2
    assert [_numpy(tensor).tolist() for tensor in tensors] == [[1.0] * 8] * 3
    assert np.asarray(x).tolist() == [2.0, 2.0, 100.0, 100.0, 2.0, 2.0, 2.0, 2.0]


def test_memory_is_aligned_and_not_copied(host: str) -> None:
    for size in (1, 3, 17, 1000, 100_003):
        x = xp.asarray(np.zeros(size, np.int8), device=host) + 1
        tensor = torch.from_dlpack(x)
        assert tensor.data_ptr() % 64 == 0
        again = np.from_dlpack(x)
        assert again.ctypes.data % 64 == 0
        assert np.asarray(x).ctypes.data % 64 == 0
    lone = xp.asarray(np.zeros(9), device=host) * 2
    first = np.from_dlpack(lone)
    assert first.ctypes.data == np.asarray(lone).ctypes.data


def test_numpy_conversion_is_zero_copy_and_read_only_where_shared(host: str) -> None:
    x = xp.asarray(np.zeros(100), device=host) + 1
    alone = np.asarray(x)
    assert alone.ctypes.data == np.asarray(x).ctypes.data
    reader = x * 3
    shared = np.asarray(x)
    assert not shared.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        shared[0] = 5
    private = np.array(x)
    private[0] = 5
    assert np.asarray(reader).tolist() == [3.0] * 100
    del x, reader
    gc.collect()
    _ = [np.asarray(xp.zeros((100,), device=host) + k) for k in range(20)]
    assert shared.tolist() == [1.0] * 100


def test_buffer_protocol_method(host: str) -> None:
    x = xp.asarray(np.arange(4, dtype=np.int16), device=host) * 2
    view = x.__buffer__(0)
    assert not view.readonly
    reader = x + 1
    assert x.__buffer__(0).readonly
    del reader
    assert view.tolist() == [0, 2, 4, 6]
    del x
    gc.collect()
    _ = [np.asarray(xp.zeros((4,), dtype="int16", device=host) + k) for k in range(20)]
    assert view.tolist() == [0, 2, 4, 6]


# ----------------------------------------------------------------------------------- producers

PRODUCERS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda values: values.copy(),
    "torch": _torch,
    "jax": jax.numpy.asarray,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("producer", "dtype"), KNOWN)
def test_import(producer: str, dtype: str, shape: tuple[int, ...], host: str) -> None:
    values = _values(shape, dtype)
    tensor = PRODUCERS[producer](values)
    for array in (
        xp.from_dlpack(tensor),
        xp.from_dlpack(tensor, copy=True),
        xp.from_dlpack(tensor, device=host),
        xp.asarray(tensor, device=host),
    ):
        assert (str(array.dtype), array.shape) == (dtype, shape)
        assert np.asarray(array).tolist() == values.tolist()


@pytest.mark.parametrize("producer", ["numpy", "torch"])
def test_strided_imports(producer: str, host: str) -> None:
    values = np.arange(60.0).reshape(3, 4, 5)
    tensor: Any = values if producer == "numpy" else torch.from_numpy(values)
    views = [tensor[:, ::2], tensor[1:, 1:, 3], tensor[2, 3, 4:], tensor[:, :, ::4], tensor[:, :1]]
    views.append(tensor.transpose(2, 0, 1) if producer == "numpy" else tensor.permute(2, 0, 1))
    if producer == "numpy":
        views += [tensor[::-1, :, ::-2], np.broadcast_to(tensor[:, :1], (3, 4, 5))]
    else:
        views.append(tensor[:, :1].expand(3, 4, 5))
    for view in views:
        x = xp.from_dlpack(view)
        assert np.asarray(x).tolist() == _numpy(view).tolist()
        assert np.asarray(x + 1).tolist() == (_numpy(view) + 1).tolist()


def test_imports_share_memory_until_we_write(host: str) -> None:
    values = np.zeros(6)
    x = xp.from_dlpack(values)
    values[1] = 4
    assert np.asarray(x).tolist() == [0.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    x[0] = 9
    x += 1
    assert values.tolist() == [0.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    assert np.asarray(x).tolist() == [10.0, 5.0, 1.0, 1.0, 1.0, 1.0]
    copied = xp.from_dlpack(values, copy=True)
    values[...] = -1
    assert np.asarray(copied).tolist() == [0.0, 4.0, 0.0, 0.0, 0.0, 0.0]


def test_read_only_memory_is_shared_and_never_written(host: str) -> None:
    values = np.linspace(0, 1, 5)
    values.flags.writeable = False
    for make in (xp.from_dlpack, xp.asarray):
        x = make(values)
        x[0] = 9
        x *= 2
        assert values.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
        assert np.asarray(x).tolist() == [18.0, 0.5, 1.0, 1.5, 2.0]
        again = np.asarray(make(values))
        assert again.flags.writeable != np.shares_memory(again, values)
        capsule_owner = np.from_dlpack(make(values))
        assert capsule_owner.tolist() == values.tolist()


def test_the_producer_is_kept_alive(host: str) -> None:
    freed: list[int] = []

    class Owner(np.ndarray):
        def __del__(self) -> None:
            freed.append(1)

    base = np.arange(1000.0).view(Owner)
    x = xp.from_dlpack(base)
    y = x * 2 + 1  # pending: the only thing that still refers to the memory
    del base, x
    gc.collect()
    assert not freed
    assert float(y[999]) == 1999.0
    np.asarray(y)
    del y
    gc.collect()
    assert freed


# ------------------------------------------------------------------------- capsules and options


class Once:
    """Gives the same capsule every time, as no producer should."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_options: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def test_versions(host: str) -> None:
    x = xp.asarray(np.arange(3), device=host)
    for options, name in (
        ({}, '"dltensor"'),
        ({"max_version": None}, '"dltensor"'),
        ({"max_version": (0, 8)}, '"dltensor"'),
        ({"max_version": (1, 0)}, '"dltensor_versioned"'),
        ({"max_version": (1, 3)}, '"dltensor_versioned"'),
        ({"max_version": (2, 0)}, '"dltensor_versioned"'),
    ):
        assert name in repr(x.__dlpack__(**options))


def test_options(host: str) -> None:
    x = xp.asarray(np.arange(3.0), device=host) * 2
    assert x.__dlpack_device__() == CPU
    for stream in (None, -1):
        x.__dlpack__(stream=stream)
    for stream in (0, 1, 2, 12345, -2):
        with pytest.raises(BufferError, match=str(stream)):
            x.__dlpack__(stream=stream)
    x.__dlpack__(dl_device=CPU)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError):
        x.__dlpack__(colour="red")
    copied = np.from_dlpack(Once(x.__dlpack__(max_version=(1, 0), copy=True)))
    shared = np.from_dlpack(Once(x.__dlpack__(max_version=(1, 0), copy=False)))
    address = np.asarray(x).ctypes.data
    assert (copied.ctypes.data != address, shared.ctypes.data) == (True, address)
    assert np.from_dlpack(x, device="cpu", copy=True).tolist() == [0.0, 2.0, 4.0]
    assert np.asarray(x).tolist() == [0.0, 2.0, 4.0]


def test_legacy_consumers_of_shared_memory(host: str) -> None:
    """A legacy capsule cannot be read-only: the consumer gets memory of its own, or an error."""
    x = xp.asarray(np.zeros(4), device=host) + 1
    xp.materialize(x)
    reader = x + 1
    tensor = np.from_dlpack(Once(x.__dlpack__()))
    if tensor.flags.writeable:
        tensor[...] = 50
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(copy=False)
    assert np.asarray(reader).tolist() == [2.0] * 4


def test_a_used_capsule_is_refused(host: str) -> None:
    for options in ({}, {"max_version": (1, 0)}):
        producer = Once((xp.asarray(np.arange(3), device=host) + 1).__dlpack__(**options))
        first = xp.from_dlpack(producer)
        for _ in range(2):
            with pytest.raises(ValueError, match="consumed"):
                xp.from_dlpack(producer)
        del producer
        gc.collect()
        assert np.asarray(first).tolist() == [1, 2, 3]


def test_round_trips_between_our_own_arrays(host: str) -> None:
    x = xp.asarray(np.arange(5.0), device=host) * 3
    y = xp.from_dlpack(x)
    z = xp.from_dlpack(y[::-1])
    y[0] = 100
    assert np.asarray(x).tolist() == [0.0, 3.0, 6.0, 9.0, 12.0]
    assert np.asarray(z).tolist() == [12.0, 9.0, 6.0, 3.0, 0.0]


class Old:
    """A producer from before the keywords of DLPack 1.0."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, stream: object = None) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def test_producers_without_keywords(host: str) -> None:
    values = np.arange(3)
    assert np.asarray(xp.from_dlpack(Old(values))).tolist() == [0, 1, 2]
    copied = xp.from_dlpack(Old(values), copy=True)
    values[...] = 7
    assert np.asarray(copied).tolist() == [0, 1, 2]


def test_what_cannot_be_imported(host: str) -> None:
    with pytest.raises(TypeError, match="int"):
        xp.from_dlpack(3)
    for tensor, text in (
        (torch.zeros(2, dtype=torch.float8_e5m2), "8"),
        (np.zeros(2, "U3"), "U3|only supports"),
    ):
        with pytest.raises((BufferError, TypeError), match=text):
            xp.from_dlpack(tensor)
        with pytest.raises((BufferError, TypeError), match=text):
            xp.asarray(tensor)

    class Failing(Old):
        def __dlpack__(self, **_options: object) -> object:
            raise RuntimeError("producer says no")

    with pytest.raises(RuntimeError, match="producer says no"):
        xp.from_dlpack(Failing(np.arange(3)))
    with pytest.raises((TypeError, ValueError), match="capsule"):
        xp.from_dlpack(Once("no capsule"))


@pytest.mark.parametrize("what", ["unconsumed", "numpy", "torch", "import"])
def test_two_thousand_cycles_do_not_grow(what: str, host: str) -> None:
    def cycle() -> None:
        x = xp.ones((100_000,), device=host) * 1
        if what == "unconsumed":
            x.__dlpack__()
            x.__dlpack__(max_version=(1, 0))
        elif what == "import":
            np.asarray(xp.from_dlpack(np.ones(100_000)) + 1)
        else:
            CONSUMERS[what](x)

    for _ in range(100):
        cycle()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2000):
        cycle()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024


EXIT = """
import sys
import numpy as np, torch
import fklarray as xp
x = xp.asarray(np.arange(1000.0)) * 2
sys.kept = [np.from_dlpack(x), torch.from_dlpack(x), x.__dlpack__(), xp.from_dlpack(torch.ones(5))]
assert sys.kept[0][3] == 6
"""


def test_the_process_ends_well(host: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", EXIT], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
