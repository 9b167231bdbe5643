"""How much memory the results that are yet to be computed may keep from being freed.

The sum of a chunk is small, but while it is pending it keeps the whole chunk. A loop over chunks,
or a task of Dask or Cubed that combines several, would come to hold all of them. So results that
take far less memory than they keep are counted, for each thread, and computed when others follow
that read other memory, or before such memory comes.
"""

from __future__ import annotations

import contextlib
import threading
import weakref

from fklarray.deferred import Deferred

__all__ = ["MAX_HELD_BYTES", "admit", "make_room"]

# Small beside a worker's share of memory, large beside the caches, where passes are cheap.
MAX_HELD_BYTES = 8 << 20
# Computing a result frees memory worth the name if it takes less than this part of what it keeps.
_SMALL = 4
# What is pending takes about as much itself.
_LEAST_BYTES = 4 << 10


class _Pending(threading.local):
    """Small results that one thread has recorded, and the blocks that they keep."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        # Those that were looked at, and the blocks that they keep.
        self.results: weakref.WeakSet[Deferred] = weakref.WeakSet()
        self.blocks: dict[int, int] = {}
        self.nbytes = 0
        # Those since, and the most that they can keep: most are gone before anybody looks.
        self.recent: list[weakref.ref[Deferred]] = []
        self.recent_bytes = 0


_pending = _Pending()


def admit(result: Deferred) -> None:
    """Count a result that was recorded; earlier ones are computed if they keep too much else."""
    if result.nbytes < _LEAST_BYTES:
        return
    _pending.recent.append(weakref.ref(result))
    _pending.recent_bytes += result.nbytes
    if _pending.nbytes + _pending.recent_bytes > MAX_HELD_BYTES:
        _look()


def make_room(nbytes: int) -> None:
    """Compute what keeps much memory, before an array of so many bytes comes."""
    if nbytes > _LEAST_BYTES and _pending.nbytes + _pending.recent_bytes > MAX_HELD_BYTES:
        _look()
        if _pending.nbytes > MAX_HELD_BYTES:
            _compute()


def _look() -> None:
    """Take the recent results among the others, each as if it had just been recorded."""
    recent = _pending.recent
    _pending.recent = []
    _pending.recent_bytes = 0
    for reference in recent:
        result = reference()
        if result is None or not result.is_pending:
            continue
        blocks = _kept_blocks(result)
        kept = sum(blocks.values())
        if kept < _SMALL * result.result_bytes:
            continue
        known = sum(size for block, size in blocks.items() if block in _pending.blocks)
        if _pending.nbytes - known > MAX_HELD_BYTES:
            _compute()
            known = 0
        _pending.results.add(result)
        _pending.nbytes += kept - known
        _pending.blocks.update(blocks)


def _compute() -> None:
    results = list(_pending.results)
    _pending.clear()
    for result in results:
        # One that fails stays pending, and says so where its own value is asked for.
        with contextlib.suppress(Exception):
            result.result()


def _kept_blocks(result: Deferred) -> dict[int, int]:
    """Return the blocks that a pending result keeps, and their sizes."""
    blocks: dict[int, int] = {}
    seen = {id(result)}
    waiting = [result]
    while waiting:
        for leaf in waiting.pop().sources():
            memory = leaf.buffer
            if not isinstance(memory, Deferred):
                blocks[id(memory)] = memory.nbytes
            elif id(memory) not in seen:
                seen.add(id(memory))
                waiting.append(memory)
    return blocks
