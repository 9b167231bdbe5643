"""Memory of a device: what is handed out again, and streams that are no more."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from fklarray_runtime import (
    LEGACY_STREAM,
    DeviceError,
    allocate_on,
    current_stream,
    describe_device,
    trim_device,
    use_on,
)

NBYTES = 12345  # of no other test
SPARES = 8
PER_THREAD_STREAM = 2


def _is_emulated() -> bool:
    return describe_device(0).name == "Emulated device"


@pytest.fixture(autouse=True)
def no_spares() -> Iterator[None]:
    trim_device(0)
    yield
    trim_device(0)


def _given_back(nbytes: int, stream: int = LEGACY_STREAM) -> int:
    """Return where a block was that nobody has any more."""
    return allocate_on(0, nbytes, stream).address


@pytest.mark.parametrize("stream", [LEGACY_STREAM, PER_THREAD_STREAM, 0])
def test_the_last_block_is_handed_out_again(stream: int) -> None:
    before = _given_back(NBYTES, stream)
    assert [_given_back(NBYTES, stream) for _ in range(3)] == 3 * [before]
    block = allocate_on(0, NBYTES, stream)
    assert _given_back(NBYTES, stream) != block.address == before


def test_blocks_that_differ_are_apart() -> None:
    kept = [allocate_on(0, NBYTES + k, LEGACY_STREAM) for k in range(3)]
    places = {block.nbytes: block.address for block in kept}
    del kept
    for nbytes in sorted(places, reverse=True):
        assert _given_back(nbytes) == places[nbytes]


def test_few_spares_are_kept_and_all_go_back() -> None:
    before = describe_device(0).pool
    blocks = [allocate_on(0, NBYTES, LEGACY_STREAM) for _ in range(3 * SPARES)]
    places = {block.address for block in blocks}
    assert len(places) == len(blocks)
    each = (describe_device(0).pool - before) // len(blocks)
    del blocks
    if _is_emulated():  # the pool of a real driver keeps memory, too
        assert describe_device(0).pool - before == SPARES * each
    trim_device(0)
    assert describe_device(0).pool == before


def test_large_blocks_are_no_spares() -> None:
    before = describe_device(0).pool
    _given_back(17 << 20)
    if _is_emulated():
        assert describe_device(0).pool == before
    trim_device(0)
    assert describe_device(0).pool == before


class _Stream:
    """A stream of a CuPy that is none."""

    handles = count(0x70000000, 16)

    def __init__(self) -> None:
        self.ptr = next(self.handles)


def _current_stream(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, weakref.ref[Any]]:
    """Return a context in which a new stream is CuPy's current one, and the stream."""
    if not _is_emulated():
        cupy: Any = import_module("cupy")
        stream = cupy.cuda.Stream(non_blocking=True)
        return stream, weakref.ref(stream)

    streams = [_Stream()]
    cuda = SimpleNamespace(get_current_stream=lambda _: streams[0])
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    fake = SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: pool)

    @contextmanager
    def current() -> Iterator[None]:
        monkeypatch.setitem(sys.modules, "cupy", fake)
        yield
        monkeypatch.delitem(sys.modules, "cupy")
        streams.clear()

    return current(), weakref.ref(streams[0])


def test_a_stream_lives_as_long_as_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    context, stream = _current_stream(monkeypatch)
    with context:
        handle = current_stream(0)
        block = allocate_on(0, NBYTES, handle)
        other = allocate_on(0, NBYTES, LEGACY_STREAM)
        use_on(other, handle)
    assert handle > PER_THREAD_STREAM
    del context
    _use_another_stream(monkeypatch)
    assert stream() is not None
    use_on(block, LEGACY_STREAM)
    del block
    _use_another_stream(monkeypatch)
    assert stream() is not None
    del other
    _use_another_stream(monkeypatch)
    assert stream() is None


def test_a_stream_that_a_thread_has_asked_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    context, stream = _current_stream(monkeypatch)
    with context:
        current_stream(0)  # and blocks come next
    del context
    thread = threading.Thread(target=_use_another_stream, args=(monkeypatch,))
    thread.start()
    thread.join()
    assert stream() is not None
    _use_another_stream(monkeypatch)
    assert stream() is None


@pytest.mark.parametrize("device", [-1, 99, 10**6])
def test_devices_that_are_not_there_are_refused(device: int) -> None:
    for use in (describe_device, trim_device, lambda one: allocate_on(one, 8, LEGACY_STREAM)):
        with pytest.raises(DeviceError, match=f"cuda:{device}"):
            use(device)


def _use_another_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    context, _ = _current_stream(monkeypatch)
    with context:
        current_stream(0)
