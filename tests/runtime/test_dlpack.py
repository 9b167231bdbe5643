"""DLPack: who owns what, in every order of deaths, with real producers and consumers."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import pytest

from fklarray_runtime import allocate, export_capsule, import_capsule, pool_bytes, request, trim
from fklarray_runtime.buffer import Buffer
from fklarray_runtime.dlpack import BOOL, COMPLEX, FLOAT, INT, UINT

_CODES = {"i": INT, "u": UINT, "f": FLOAT, "c": COMPLEX, "b": BOOL}


def filled(array: np.ndarray[Any, Any]) -> Buffer:
    buffer = allocate(array.nbytes)
    np.frombuffer(buffer.view(), array.dtype)[:] = array.ravel()
    return buffer


def capsule_of(
    array: np.ndarray[Any, Any], versioned: bool = True, readonly: bool = False
) -> tuple[Buffer, object]:
    buffer = filled(array)
    return buffer, export_capsule(
        buffer,
        address=buffer.address,
        shape=array.shape,
        code=_CODES[array.dtype.kind],
        bits=array.dtype.itemsize * 8,
        versioned=versioned,
        readonly=readonly,
    )


class Producer:
    """Hands out one capsule."""

    def __init__(self, capsule: object, device: tuple[int, int] = (1, 0)) -> None:
        self.capsule = capsule
        self.device = device

    def __dlpack__(self, **_: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def to_numpy(capsule: object) -> Any:
    return np.from_dlpack(Producer(capsule))


def to_torch(capsule: object) -> Any:
    torch = pytest.importorskip("torch")
    return torch.from_dlpack(Producer(capsule))


def to_jax(capsule: object) -> Any:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.from_dlpack(Producer(capsule))


# JAX 0.10 asks for no version, and takes the legacy form alone.
CONSUMERS = [(to_numpy, True), (to_torch, True), (to_torch, False), (to_jax, False)]


def test_the_names_of_the_two_forms() -> None:
    _, new = capsule_of(np.arange(3))
    _, old = capsule_of(np.arange(3), versioned=False)
    assert '"dltensor_versioned"' in repr(new)
    assert '"dltensor"' in repr(old)


@pytest.mark.parametrize(("consume", "versioned"), CONSUMERS)
@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int32", "int64", "float32", "float64", "complex64", "bool"]
)
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 1, 3), (0,), (2, 0, 3)])
def test_real_consumers_see_the_values(
    consume: Callable[[object], Any], versioned: bool, dtype: str, shape: tuple[int, ...]
) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    buffer, capsule = capsule_of(array, versioned)
    result = consume(capsule)
    assert tuple(result.shape) == shape
    np.testing.assert_array_equal(np.asarray(result), array)
    del result, capsule
    assert not buffer.shared


@pytest.mark.parametrize("versioned", [False, True])
def test_numpy_takes_both_forms(versioned: bool) -> None:
    _, capsule = capsule_of(np.arange(6.0).reshape(2, 3), versioned)
    assert to_numpy(capsule).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_numpy_gets_the_very_memory_and_read_only_when_told() -> None:
    buffer, capsule = capsule_of(np.arange(3))
    writable = to_numpy(capsule)
    assert writable.ctypes.data == buffer.address
    assert writable.flags.writeable
    _, capsule = capsule_of(np.arange(3), readonly=True)
    assert not to_numpy(capsule).flags.writeable


def test_read_only_cannot_be_said_in_the_legacy_form() -> None:
    with pytest.raises(BufferError, match="read-only"):
        capsule_of(np.arange(3), versioned=False, readonly=True)


@pytest.mark.parametrize("versioned", [False, True])
def test_an_unconsumed_capsule_releases_its_block(versioned: bool) -> None:
    buffer, capsule = capsule_of(np.arange(3), versioned)
    assert buffer.shared
    del capsule
    assert not buffer.shared


def test_unconsumed_capsules_do_not_leak() -> None:
    trim()
    before = pool_bytes()
    for _ in range(500):
        buffer = allocate(1 << 20)
        export_capsule(buffer, address=buffer.address, shape=(9,), code=0, bits=8, versioned=True)
    del buffer
    assert pool_bytes() - before <= 4 << 20


@pytest.mark.parametrize("versioned", [False, True])
def test_a_used_capsule_is_refused_and_frees_nothing_twice(versioned: bool) -> None:
    buffer, capsule = capsule_of(np.arange(3), versioned)
    first = import_capsule(capsule)
    with pytest.raises(ValueError, match="consumed"):
        import_capsule(capsule)
    del capsule
    assert buffer.shared
    del first
    assert not buffer.shared


def test_only_one_of_many_threads_gets_a_capsule() -> None:
    for _ in range(50):
        buffer, capsule = capsule_of(np.arange(3))
        winners: list[object] = []
        barrier = threading.Barrier(4)

        def take(
            capsule: object = capsule,
            winners: list[object] = winners,
            barrier: threading.Barrier = barrier,
        ) -> None:
            barrier.wait()
            with suppress(ValueError):
                winners.append(import_capsule(capsule))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(winners) == 1
        winners.clear()
        del take, capsule, threads, thread
        assert not buffer.shared


@pytest.mark.parametrize("what", [None, 3, object(), "dltensor"])
def test_other_objects_are_refused(what: object) -> None:
    with pytest.raises(TypeError, match="capsule"):
        import_capsule(what)


@pytest.mark.parametrize("order", ["buffer first", "array first", "capsule last"])
def test_the_memory_lives_as_long_as_its_last_holder(order: str) -> None:
    expected = list(range(1000))
    buffer, capsule = capsule_of(np.arange(1000))
    address = buffer.address
    array = to_numpy(capsule)
    if order == "buffer first":
        del buffer, capsule
        for _ in range(20):
            other = allocate(8000)
            np.frombuffer(other.view(), np.int64)[:] = -1
            assert other.address != address
        assert array.tolist() == expected
        del other, array
        assert allocate(8000).address != 0
        return
    if order == "array first":
        del array
        assert not buffer.shared
        del capsule
    else:
        del buffer, array
        del capsule
        assert allocate(8000).address == address
        return
    assert np.frombuffer(buffer.view(), np.int64).tolist() == expected


class Counted:
    """A tensor built by hand, whose deleter counts its calls."""

    alive: ClassVar[list[Counted]] = []  # a tensor lies in its object, which must outlive it

    def __init__(self, *, versioned: bool, **changes: Any) -> None:
        self.alive.append(self)
        self.deletions = 0
        self.data = (ctypes.c_double * 24)(*range(24))
        self.shape = (ctypes.c_int64 * 2)(*changes.get("shape", (2, 3)))
        strides = changes.get("strides", (3, 1))
        self.strides = None if strides is None else (ctypes.c_int64 * 2)(*strides)
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._delete)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p).value
        self.words = self._words(versioned, 0 if changes.get("no_deleter") else deleter, changes)
        name = b"dltensor_versioned" if versioned else b"dltensor"
        self.name = ctypes.create_string_buffer(name)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self.capsule = new(ctypes.addressof(self.words), ctypes.addressof(self.name), None)

    def _delete(self, _: object) -> None:
        self.deletions += 1

    def _words(self, versioned: bool, deleter: int | None, changes: dict[str, Any]) -> Any:
        device, device_id = changes.get("device", (1, 0))
        code, bits, lanes = changes.get("dtype", (FLOAT, 64, 1))
        tensor = [
            ctypes.addressof(self.data),
            device | device_id << 32,
            changes.get("ndim", 2) | (code | bits << 8 | lanes << 16) << 32,
            ctypes.addressof(self.shape),
            0 if self.strides is None else ctypes.addressof(self.strides),
            changes.get("byte_offset", 0),
        ]
        if not versioned:
            words = [*tensor, 0, deleter]
        else:
            major, minor = changes.get("version", (1, 1))
            words = [major | minor << 32, 0, deleter, changes.get("flags", 0), *tensor]
        return (ctypes.c_uint64 * len(words))(*[(word or 0) & (2**64 - 1) for word in words])

    def values(self, imported: Any) -> list[list[float]]:
        start = (imported.address - ctypes.addressof(self.data)) // 8
        rows, columns = imported.shape
        down, right = imported.strides
        return [
            [self.data[start + i * down + j * right] for j in range(columns)] for i in range(rows)
        ]


@pytest.mark.parametrize("versioned", [False, True])
def test_the_producers_deleter_runs_exactly_once(versioned: bool) -> None:
    tensor = Counted(versioned=versioned)
    imported = import_capsule(tensor.capsule)
    tensor.capsule = None
    assert tensor.deletions == 0
    view = np.frombuffer(imported.buffer.view(), np.float64)
    del imported
    assert tensor.deletions == 0
    assert view.tolist() == [0, 1, 2, 3, 4, 5]
    del view
    assert tensor.deletions == 1


def test_a_producer_without_deleter_is_fine() -> None:
    tensor = Counted(versioned=True, no_deleter=True)
    imported = import_capsule(tensor.capsule)
    assert tensor.values(imported) == [[0, 1, 2], [3, 4, 5]]
    del imported


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"device": (2, 99)}, r"device type 2 \(CUDA\), id 99"),
        ({"device": (77, 0)}, "device type 77"),
        ({"dtype": (FLOAT, 32, 4)}, "float32 with 4 lanes"),
        ({"dtype": (FLOAT, 4, 1)}, "float4"),
        ({"dtype": (UINT, 0, 1)}, "uint0"),
        ({"dtype": (19, 0, 1)}, "code 19"),
        ({"ndim": -1 & 0xFFFFFFFF}, "-1 dimensions"),
        ({"ndim": 65}, "65 dimensions"),
        ({"shape": (2, -3)}, "negative extent"),
    ],
)
def test_refusals_name_their_reason_and_leave_the_capsule(
    versioned: bool, changes: dict[str, Any], word: str
) -> None:
    tensor = Counted(versioned=versioned, **changes)
    for _ in range(2):
        with pytest.raises(BufferError, match=word):
            import_capsule(tensor.capsule)
    assert "used" not in repr(tensor.capsule)
    assert tensor.deletions == 0


def test_another_major_version_is_refused() -> None:
    tensor = Counted(versioned=True, version=(2, 0))
    with pytest.raises(BufferError, match=r"2\.0"):
        import_capsule(tensor.capsule)
    assert '"dltensor_versioned"' in repr(tensor.capsule)


@pytest.mark.parametrize("kind", [1, 3, 13])
def test_memory_that_the_host_can_read_is_taken(kind: int) -> None:
    tensor = Counted(versioned=True, device=(kind, 0))
    assert tensor.values(import_capsule(tensor.capsule)) == [[0, 1, 2], [3, 4, 5]]


def test_null_strides_offsets_and_negative_strides() -> None:
    tensor = Counted(versioned=False, strides=None, byte_offset=16)
    imported = import_capsule(tensor.capsule)
    assert imported.strides == (3, 1)
    assert tensor.values(imported) == [[2, 3, 4], [5, 6, 7]]
    tensor = Counted(versioned=True, strides=(-3, -1), byte_offset=8 * 7)
    imported = import_capsule(tensor.capsule)
    assert tensor.values(imported) == [[7, 6, 5], [4, 3, 2]]
    assert imported.buffer.address == ctypes.addressof(tensor.data) + 16
    assert imported.buffer.nbytes == 48
    tensor = Counted(versioned=True, byte_offset=3)
    assert import_capsule(tensor.capsule).address == ctypes.addressof(tensor.data) + 3


def test_the_read_only_flag_reaches_the_view() -> None:
    imported = import_capsule(Counted(versioned=True, flags=1).capsule)
    assert imported.readonly
    assert imported.buffer.readonly
    assert not np.frombuffer(imported.buffer.view(), np.float64).flags.writeable


def numpy_producer() -> Any:
    return np.arange(12.0).reshape(3, 4)


def torch_producer() -> Any:
    torch = pytest.importorskip("torch")
    return torch.arange(12, dtype=torch.float64).reshape(3, 4)


def jax_producer() -> Any:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.numpy.arange(12.0, dtype="float64").reshape(3, 4)


@pytest.mark.parametrize("make", [numpy_producer, torch_producer, jax_producer])
def test_real_producers(make: Callable[[], Any]) -> None:
    array = make()
    imported = import_capsule(request(array))
    del array
    assert imported.shape == (3, 4)
    assert imported.strides == (4, 1)
    assert (imported.code, imported.bits) == (FLOAT, 64)
    view = np.frombuffer(imported.buffer.view(), np.float64)
    del imported
    assert view.tolist() == list(range(12))


def test_a_read_only_numpy_array_is_imported_as_such() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    assert import_capsule(request(array)).readonly
    assert not import_capsule(request(np.arange(3))).readonly


def test_the_address_of_a_numpy_view() -> None:
    array = np.arange(24).reshape(4, 6)[::-2, ::3]
    imported = import_capsule(request(array))
    assert imported.address == array.ctypes.data
    assert imported.strides == (-12, 3)


class Old:
    """Knows no keyword but stream, as producers before 2023."""

    def __dlpack__(self, stream: None = None) -> object:
        return "capsule"


class Middle(Old):
    """Knows versions, but neither devices nor copies."""

    def __dlpack__(self, stream: None = None, max_version: tuple[int, int] | None = None) -> object:
        return ("capsule", max_version)


class Recorder:
    def __dlpack__(self, **options: object) -> object:
        return options


class Failing:
    def __dlpack__(self, **options: object) -> object:
        raise BufferError("mine")


def test_requests_fall_back_for_older_producers() -> None:
    assert request(Old()) == "capsule"
    assert request(Old(), dl_device=(1, 0), copy=True) == "capsule"
    assert request(Middle(), copy=True) == ("capsule", (1, 0))
    assert request(Recorder()) == {"max_version": (1, 0)}
    assert request(Recorder(), dl_device=(1, 0), copy=False) == {
        "max_version": (1, 0),
        "dl_device": (1, 0),
        "copy": False,
    }
    with pytest.raises(BufferError, match="mine"):
        request(Failing(), copy=True)
    with pytest.raises(TypeError, match="__dlpack__"):
        request(3)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("direction", ["export", "import"])
def test_the_process_ends_well_while_others_hold_the_memory(library: str, direction: str) -> None:
    pytest.importorskip(library)
    code = f"""
import {library} as library
from fklarray_runtime import *
class P:
    def __dlpack__(self, **_):
        return export_capsule(b, address=b.address, shape=(4, 4), code=0, bits=64, versioned=True)
    def __dlpack_device__(self):
        return (1, 0)
b = allocate(128)
if {direction!r} == "export":
    import sys
    sys.held = library.from_dlpack(P())
    del b
else:
    held = import_capsule(request(library.arange(9)))
print("end")
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")
