"""The processor that kernels are compiled for."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

LEVEL_VARIABLE = "FKLARRAY_CPU_LEVEL"

# The x86-64 psABI's levels, in the words of /proc/cpuinfo (pni is SSE3, abm is LZCNT).
_V2_FEATURES = ("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3")
_V3_FEATURES = ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave")
_V4_FEATURES = ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
_LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("v1", ()),
    ("v2", _V2_FEATURES),
    ("v3", _V2_FEATURES + _V3_FEATURES),
    ("v4", _V2_FEATURES + _V3_FEATURES + _V4_FEATURES),
)


_SECOND_LEVEL = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
_USUAL_CACHE = 512 << 10


@dataclass(frozen=True, slots=True)
class Target:
    """What to compile for.

    Attributes
    ----------
    architecture : str
        ``"x86-64"``, ``"aarch64"``, or what the system calls itself.
    flags : tuple of str
        Flags for a compiler of the GCC family; always a named level, never the building host.
    features : tuple of str
        The processor features that allow those flags.
    """

    architecture: str
    flags: tuple[str, ...]
    features: tuple[str, ...]


@lru_cache(maxsize=1)
def _processor_features() -> frozenset[str]:
    """The features of every processor; empty where /proc/cpuinfo does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    lines = [line.partition(":")[2].split() for line in text.splitlines() if _is_flags(line)]
    if not lines:
        return frozenset()
    return frozenset(lines[0]).intersection(*lines[1:])


def _is_flags(line: str) -> bool:
    return line.partition(":")[0].strip() in {"flags", "Features"}


def _x86_level(present: frozenset[str]) -> int:
    wanted = os.environ.get(LEVEL_VARIABLE, "").strip().lower()
    names = [name for name, _ in _LEVELS]
    able = max(i for i, (_, needed) in enumerate(_LEVELS) if present.issuperset(needed))
    if not wanted:
        return able
    if wanted not in names:
        raise ValueError(f"{LEVEL_VARIABLE}={wanted!r} is not one of {', '.join(names)}")
    level = names.index(wanted)
    if level > able:
        missing = sorted(set(_LEVELS[level][1]) - present)
        raise ValueError(f"{LEVEL_VARIABLE}={wanted!r}: this processor lacks {', '.join(missing)}")
    return level


def target() -> Target:
    """Name what to compile for on this machine.

    Returns
    -------
    Target
        The highest of x86-64-v1, v2, v3 and v4 that the processor has, or the one that
        FKLARRAY_CPU_LEVEL names; the baseline on other architectures.

    Raises
    ------
    ValueError
        FKLARRAY_CPU_LEVEL is another word, or a level that this processor lacks.
    """
    machine = platform.machine().lower()
    if machine in {"x86_64", "amd64"}:
        level = _x86_level(_processor_features())
        name = "x86-64" if level == 0 else f"x86-64-{_LEVELS[level][0]}"
        return Target("x86-64", (f"-march={name}",), tuple(sorted(_LEVELS[level][1])))
    if machine in {"aarch64", "arm64"}:
        return Target("aarch64", ("-march=armv8-a",), ("asimd",))
    return Target(machine, (), ())


@lru_cache(maxsize=1)
def cache_bytes() -> int:
    """Return the size of a core's second-level cache: a power of two from 256 KiB to 2 MiB.

    Returns
    -------
    int
        Rounded down; 512 KiB where the system does not say.
    """
    try:
        text = _SECOND_LEVEL.read_text(encoding="ascii").strip()
        size = int(text.removesuffix("K")) << 10
    except (OSError, ValueError):
        size = _USUAL_CACHE
    return min(max(1 << size.bit_length() - 1, 256 << 10), 2 << 20)
