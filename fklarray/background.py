"""Kernels that are compiled while their expressions run operation by operation.

One rule says which kernels are worth it: for each signature the time is added up that evaluations
have lost without it, and when that exceeds a third of what a compilation takes, one is queued. So
expressions too small to repay a compilation stay operation by operation. Where single operations
would have to be compiled first, the whole is compiled instead, which takes no longer, and they are
queued.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from fklarray.kernels import Unit, build, has_compiler, load, remembered
from fklarray_runtime import BinaryCache, Kernel, stop_compiler

__all__ = ["find", "wait"]

# What operation by operation costs more than a kernel, for each operation: the call, and memory
# traffic for each element.
_SECONDS_PER_CALL = 2e-6
_SECONDS_PER_ELEMENT = 1e-9
# A third of what one takes: it has a core, but nobody waits for it.
_SECONDS_PER_COMPILATION = 0.1
_MAX_WANTED = 4096
# How long the end of the process may wait for a compiler that is being stopped.
_GRACE_SECONDS = 5.0


class _Wanted:
    """A kernel that is neither in memory nor was on disk."""

    __slots__ = ("message", "queued", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.queued = False  # stays so after a failure: nothing is tried twice
        self.message = ""


_Name = tuple[str, BinaryCache]

_wanted: OrderedDict[_Name, _Wanted] = OrderedDict()
_queue: deque[Unit] = deque()  # the first one is being built
_changed = threading.Condition()
_thread: threading.Thread | None = None
_ending = False
_knows_the_end = False


def find(
    unit: Unit, operations: int, elements: int, lacking: Callable[[], Sequence[Unit]]
) -> Kernel | None:
    """Return a kernel that is in memory or on disk; queue one that would repay its compilation.

    Parameters
    ----------
    unit : Unit
        What the kernel is built from.
    operations, elements : int
        Size of the evaluation that will run without the kernel if it is not there.
    lacking : callable
        Returns the units that such an evaluation would have to wait for.

    Raises
    ------
    CompileError
        If such an evaluation would have to wait, and the compiler refuses the unit.

    Warns
    -----
    RuntimeWarning
        Once, if the kernel could not be compiled.
    """
    kernel = remembered(unit)
    if kernel is not None:
        return kernel
    name = (unit.signature, unit.store)
    with _changed:
        wanted = _wanted.get(name)
    if wanted is None:
        kernel = load(unit)
        if kernel is not None:
            return kernel
        units = lacking() if has_compiler(unit.place, unit.include) else ()
        if units:
            kernel = build(unit)
            for single in units:
                _want(single, _SECONDS_PER_COMPILATION)
            return kernel
    seconds = operations * (_SECONDS_PER_CALL + elements * _SECONDS_PER_ELEMENT)
    message = _want(unit, seconds)
    if message:
        warnings.warn(
            "fklarray goes on operation by operation, since a kernel could not be compiled in the "
            f"background: {message}",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def _want(unit: Unit, seconds: float) -> str:
    """Add to the time that a kernel would have saved; return why it could not be compiled."""
    with _changed:
        wanted = _wanted.setdefault((unit.signature, unit.store), _Wanted())
        if len(_wanted) > _MAX_WANTED:
            _wanted.popitem(last=False)
        wanted.seconds += seconds
        if not wanted.queued and wanted.seconds >= _SECONDS_PER_COMPILATION:
            wanted.queued = True
            _enqueue(unit)
        message, wanted.message = wanted.message, ""
    return message


def wait() -> None:
    """Wait until every queued kernel is compiled, or has failed to be."""
    with _changed:
        _changed.wait_for(lambda: not _queue or _ending)


def _enqueue(unit: Unit) -> None:
    global _thread, _knows_the_end  # noqa: PLW0603
    if _ending:
        return
    if not _knows_the_end:
        atexit.register(_end)
        _knows_the_end = True
    if _thread is None:
        thread = threading.Thread(target=_work, name="fklarray compiler", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads: operation by operation, then
            return
        _thread = thread
    _queue.append(unit)
    _changed.notify_all()


def _work() -> None:
    while True:
        with _changed:
            _changed.wait_for(lambda: _queue or _ending)
            if _ending:
                return
            unit = _queue[0]
        message = ""
        try:
            build(unit, shown=False)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        with _changed:
            _queue.popleft()
            wanted = _wanted.pop((unit.signature, unit.store), None)
            if message:
                wanted = wanted or _Wanted()
                wanted.queued, wanted.message = True, message
                _wanted[unit.signature, unit.store] = wanted
            _changed.notify_all()


def _end() -> None:
    """Stop before the interpreter does: nothing half written stays, and nobody waits."""
    global _ending  # noqa: PLW0603
    with _changed:
        _ending = True
        _changed.notify_all()
    thread = _thread
    if thread is None:
        return
    deadline = time.monotonic() + _GRACE_SECONDS
    while thread.is_alive() and time.monotonic() < deadline:
        # Again and again: the thread may be just about to start its compiler.
        stop_compiler(thread.ident)
        thread.join(0.02)


def _begin_anew() -> None:
    """Give a forked child a queue and a thread of its own."""
    global _changed, _thread  # noqa: PLW0603
    _changed = threading.Condition()
    _thread = None
    for unit in _queue:
        _wanted.pop((unit.signature, unit.store), None)
    _queue.clear()


os.register_at_fork(after_in_child=_begin_anew)
