"""Settings, each also an environment variable: `config.compile` is ``FKLARRAY_COMPILE``."""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Callable, Generator
from pathlib import Path

from fklarray_runtime import set_pool_limit, set_threads, threads

__all__ = ["config"]

_COMPILE_MODES = ("sync", "background", "off")


def _compile_mode(value: object) -> str:
    if value not in _COMPILE_MODES:
        raise ValueError(
            f"compile must be one of {', '.join(map(repr, _COMPILE_MODES))}, not {value!r}"
        )
    return str(value)


def _include_folder(value: object) -> Path | None:
    folder = _optional_path(value)
    if folder is not None and not (folder / "fused_kernel" / "fused_kernel.h").is_file():
        raise ValueError(f"{folder} has no fused_kernel/fused_kernel.h")
    return folder


def _optional_path(value: object) -> Path | None:
    if value is None or value == "":
        return None
    if isinstance(value, (str, Path)):
        return Path(value)
    raise TypeError(f"a path is needed, not {value!r}")


def _byte_count(value: object) -> int | None:
    """Return a number of bytes; a variable gives it as text."""
    if value is None or value == "":
        return None
    try:
        count = int(value) if isinstance(value, str) else operator.index(value)  # type: ignore[arg-type]
    except ValueError:
        raise ValueError(f"a number of bytes is needed, not {value!r}") from None
    if count < 0:
        raise ValueError(f"a number of bytes cannot be negative: {count}")
    return count


# Setting: what checks a value, and its default.
_SETTINGS: dict[str, tuple[Callable[[object], object], object]] = {
    "compile": (_compile_mode, "background"),
    "cache_dir": (_optional_path, None),
    "fkl_include": (_include_folder, None),
    "pool_limit": (_byte_count, None),
}


class Config:
    """Settings of the process.

    Attributes
    ----------
    compile : {"sync", "background", "off"}
        ``"background"``, the default, evaluates operation by operation until a kernel that repays
        its compilation is ready; where operations would need kernels of their own that are not
        there, it compiles at once. ``"sync"`` compiles a kernel when it is first needed; the bits
        are the same.
        ``"off"`` evaluates operation by operation on NumPy, without any compiler.
    cache_dir : Path or None
        Folder of the compiled kernels; None is the user's cache folder.
    pool_limit : int or None
        Bytes that the memory pool keeps for reuse at most; None leaves it to the pool, which keeps
        256 MiB, or half of the most that was ever in use. `clear_pool` gives all of it back.
    threads : int
        Threads that a kernel may use; by default the CPUs that this process may run on.
    fkl_include : Path or None
        Include folder of the public Fused Kernel Library, to build kernels against it instead of
        the headers that come with fklarray.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, object] = {}

    @property
    def compiles(self) -> bool:
        """Whether kernels are compiled at all."""
        mode = self._values.get("compile")
        return (mode or self.compile) != "off"

    @property
    def values(self) -> dict[str, object]:
        """The settings that were read or set, for the compiled core."""
        return self._values

    def _get(self, name: str) -> object:
        if name not in self._values:
            check, default = _SETTINGS[name]
            variable = f"FKLARRAY_{name.upper()}"
            value = os.environ.get(variable)
            try:
                self._values[name] = check(default if value is None else value)
            except ValueError as error:
                raise ValueError(f"{variable}: {error}") from None
        return self._values[name]

    @property
    def compile(self) -> str:
        """How kernels are compiled."""
        return str(self._get("compile"))

    @compile.setter
    def compile(self, value: str) -> None:
        self._values["compile"] = _compile_mode(value)

    @property
    def cache_dir(self) -> Path | None:
        """Folder of the compiled kernels."""
        return _optional_path(self._get("cache_dir"))

    @cache_dir.setter
    def cache_dir(self, value: str | Path | None) -> None:
        self._values["cache_dir"] = _optional_path(value)

    @property
    def fkl_include(self) -> Path | None:
        """Include folder of the public Fused Kernel Library."""
        return _optional_path(self._get("fkl_include"))

    @fkl_include.setter
    def fkl_include(self, value: str | Path | None) -> None:
        self._values["fkl_include"] = _include_folder(value)

    @property
    def pool_limit(self) -> int | None:
        """Bytes that the memory pool keeps for reuse at most."""
        return _byte_count(self._get("pool_limit"))

    @pool_limit.setter
    def pool_limit(self, value: int | None) -> None:
        limit = _byte_count(value)
        set_pool_limit(limit)
        self._values["pool_limit"] = limit

    @property
    def threads(self) -> int:
        """Threads that a kernel may use."""
        return threads()

    @threads.setter
    def threads(self, value: int) -> None:
        set_threads(value)

    @contextlib.contextmanager
    def override(self, **settings: object) -> Generator[Config]:
        """Change settings for the duration of a ``with`` block.

        Raises
        ------
        TypeError
            If there is no setting of a given name.
        ValueError
            If a value is not allowed.
        """
        names = (*_SETTINGS, "threads")
        for name in settings:
            if name not in names:
                raise TypeError(f"there is no setting {name!r}; settings: {', '.join(names)}")
        before = {name: getattr(self, name) for name in settings}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in (*_SETTINGS, "threads"))
        return f"Config({values})"


config = Config()
# The pool asks nobody for its limit.
if "FKLARRAY_POOL_LIMIT" in os.environ:
    set_pool_limit(config.pool_limit)
