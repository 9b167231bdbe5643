"""How many threads one kernel may use."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from fklarray_runtime._native import ffi, lib

if TYPE_CHECKING:
    from fklarray_runtime._native import CData

_MOST_THREADS = 1024
_lock = threading.Lock()


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603  (a forked child may inherit it locked)
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

_count: int | None = None


def _from_environment() -> int | None:
    for variable in ("FKLARRAY_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "").strip()
        if not text:
            continue
        # OMP_NUM_THREADS may list one number for each level of nesting.
        first = text.split(",")[0].strip() if variable == "OMP_NUM_THREADS" else text
        if variable == "OMP_NUM_THREADS" and not first.isdecimal():
            continue  # another program's variable, which may say something else
        if not (first.isascii() and first.isdecimal() and 1 <= int(first) <= _MOST_THREADS):
            raise ValueError(
                f"{variable}={text!r} is not a number of threads between 1 and {_MOST_THREADS}"
            )
        return int(first)
    return None


def _default() -> int:
    count = _from_environment()
    if count is None and hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    return min(count or os.cpu_count() or 1, _MOST_THREADS)


def set_threads(n: int) -> None:
    """Set how many threads a kernel may use, the caller among them.

    Parameters
    ----------
    n : int
        Between 1 and 1024; 1 means that kernels run in their caller alone.

    Raises
    ------
    ValueError
        `n` is out of range.
    """
    global _count  # noqa: PLW0603
    if not 1 <= n <= _MOST_THREADS:
        raise ValueError(f"the number of threads must be between 1 and {_MOST_THREADS}, not {n}")
    with _lock:
        _count = int(n)
        lib.fkl_executor_set_threads(_count)


def threads() -> int:
    """Tell how many threads a kernel may use.

    Returns
    -------
    int
        What `set_threads` was given; else FKLARRAY_THREADS, else the first number of
        OMP_NUM_THREADS, else the number of processors this process may run on.

    Raises
    ------
    ValueError
        One of the two variables is malformed.
    """
    if _count is None:
        set_threads(_default())
    assert _count is not None
    return _count


def executor() -> CData:
    """Give the process's CPU executor, as the ``void *stream`` that an entry takes.

    Raises
    ------
    ValueError
        The number of threads comes from a malformed variable.
    """
    threads()
    return ffi.cast("void *", lib.fkl_executor_instance())


def workers() -> int:
    """Count the worker threads that exist; 0 before the first parallel run and after a fork."""
    return lib.fkl_executor_workers()
