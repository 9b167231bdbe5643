"""What a terminal shows while the user waits for a compiler."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Generator

__all__ = ["waiting"]

# Shorter waits are not worth a line.
_DELAY_SECONDS = 0.5
# One line at a time: other threads wait without one.
_showing = threading.Lock()


@contextlib.contextmanager
def waiting(what: str) -> Generator[None]:
    """Show on stderr, if that is a terminal, what a block of code is doing; gone at its end.

    Parameters
    ----------
    what : str
        Shown behind a spinner.
    """
    if sys.stderr is None or not sys.stderr.isatty() or not _showing.acquire(blocking=False):
        yield
        return
    done = threading.Event()
    line = threading.Thread(target=_show, args=(what, done), name="fklarray progress", daemon=True)
    try:
        line.start()
        yield
    finally:
        done.set()
        line.join()
        _showing.release()


def _show(what: str, done: threading.Event) -> None:
    if done.wait(_DELAY_SECONDS):
        return
    from rich.console import Console  # takes longer than most kernels to compile

    with Console(stderr=True).status(what):
        done.wait()
