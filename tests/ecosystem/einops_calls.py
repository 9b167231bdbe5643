"""The functions of einops.array_api."""

from __future__ import annotations

from typing import Any

from einops import array_api as einops

from ecosystem.harness import Calls, normal

__all__ = ["CALLS", "FAILURES", "FROM_NUMPY", "SYNCS"]


def _packed(xp: Any) -> Any:
    return einops.pack([normal(xp, 4, 5), normal(xp, 4, 2, 3)], "a *")


CALLS: Calls = {
    "rearrange": lambda xp: einops.rearrange(normal(xp, 4, 6), "a (b c) -> c a b", b=2),
    "reduce": lambda xp: einops.reduce(normal(xp, 4, 6), "a (b c) -> b", "mean", b=2),
    "repeat": lambda xp: einops.repeat(normal(xp, 4, 6), "a b -> a r b", r=3),
    "pack": lambda xp: _packed(xp)[0],
    "unpack": lambda xp: einops.unpack(*_packed(xp), "a *"),
}

FAILURES: dict[str, str] = {}
FROM_NUMPY: set[str] = set()
SYNCS = dict.fromkeys(CALLS, 0)
