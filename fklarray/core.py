"""The compiled core in front of the functions that are called most.

What `fklarray_runtime._core` (``native/core/`` there) puts in front of a function does the usual
case of it and calls the function for all others. Without it the functions do everything
themselves, with the same results; the environment variable ``FKLARRAY_CORE`` says so (``python``),
or insists on the core (``compiled``). By default it is used where it was built.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["compiled", "connect", "core_counters", "in_front", "prepare_launch"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _load() -> Any:
    wanted = os.environ.get("FKLARRAY_CORE", "")
    if wanted not in ("", "compiled", "python"):
        raise ValueError(f"FKLARRAY_CORE must be 'compiled' or 'python', not {wanted!r}")
    if wanted == "python":
        return None
    try:
        from fklarray_runtime import _core
    except ImportError:
        if wanted:
            raise
        return None
    return _core


_core = _load()


def compiled() -> bool:
    """Return whether the compiled core is used."""
    return _core is not None


def in_front(kind: str, *known: object) -> Callable[[_Function], _Function]:
    """Put the core's way in front of a function.

    Parameters
    ----------
    kind : {"unary", "binary", "reflected", "replay", "materialize", "dlpack"}
        Which one.
    *known : dict, tuple of dict
        What recording looks up: structures on arrays, then those on an array and a number
        (`fklarray.operators`), or recordings (`fklarray.replay`).
    """

    def wrap(function: _Function) -> _Function:
        front: _Function = function if _core is None else _core.Front(kind, function, *known)
        return front

    return wrap


def connect(**connected: object) -> None:
    """Tell the core the library's classes and dicts; see `fklarray_runtime._core.connect`."""
    if _core is not None:
        _core.connect(**connected)


def prepare_launch(*parts: object) -> object:
    """Return a launch that the core can run by itself; None where it cannot."""
    if _core is None:
        return None
    try:
        return _core.Launch(*parts)
    except ValueError:  # too many parameters, or rows to repeat
        return None


def core_counters() -> tuple[int, int, int]:
    """Return the kernels, the operations in them and the flushes that the core has run."""
    return (0, 0, 0) if _core is None else _core.counters()
