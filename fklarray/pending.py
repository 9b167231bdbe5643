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

__all__ = ["MAX_HELD_BYTES", "Held", "admit", "held_by_thread", "make_room"]

# Small beside a worker's share of memory, large beside the caches, where passes are cheap.
MAX_HELD_BYTES = 8 << 20
# Computing a result frees memory worth the name if it takes less than this part of what it keeps.
_SMALL = 4
# What is pending takes about as much itself.
_LEAST_BYTES = 4 << 10


class Held:
    """Small results that one thread has recorded, and the blocks that they keep.

    Attributes
    ----------
    recent : list of weak references
        Results that nobody has looked at: most are gone before anybody does.
    room : int
        Bytes that results may keep until somebody looks.
    """

    __slots__ = ("blocks", "nbytes", "recent", "results", "room")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Count anew."""
        self.recent: list[weakref.ref[Deferred]] = []
        # Those that were looked at, and the blocks that they keep.
        self.results: weakref.WeakSet[Deferred] = weakref.WeakSet()
        self.blocks: dict[int, int] = {}
        self.nbytes = 0
        self.room = MAX_HELD_BYTES


class _Pending(threading.local):
    def __init__(self) -> None:
        self.held = Held()


_pending = _Pending()


def held_by_thread() -> Held:
    """Return what is counted for this thread: the same object as long as the thread runs."""
    return _pending.held


def admit(result: Deferred) -> None:
    """Count a result that was recorded; earlier ones are computed if they keep too much else."""
    if result.nbytes < _LEAST_BYTES:
        return
    held = held_by_thread()
    held.recent.append(weakref.ref(result))
    held.room -= result.nbytes
    if held.room < 0:
        _look(held)


def make_room(nbytes: int) -> None:
    """Compute what keeps much memory, before an array of so many bytes comes."""
    held = held_by_thread()
    if nbytes > _LEAST_BYTES and held.room < 0:
        _look(held)
        if held.room < 0:
            _compute(held)


def _look(held: Held) -> None:
    """Take the recent results among the others, each as if it had just been recorded."""
    recent, held.recent = held.recent, []
    held.room = MAX_HELD_BYTES - held.nbytes
    for reference in recent:
        result = reference()
        if result is None or not result.is_pending:
            continue
        blocks = _kept_blocks(result)
        kept = sum(blocks.values())
        if kept < _SMALL * result.result_bytes:
            continue
        known = sum(size for block, size in blocks.items() if block in held.blocks)
        if held.nbytes - known > MAX_HELD_BYTES:
            _compute(held)
            known = 0
        held.results.add(result)
        held.nbytes += kept - known
        held.room -= kept - known
        held.blocks.update(blocks)


def _compute(held: Held) -> None:
    results = list(held.results)
    held.clear()
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
