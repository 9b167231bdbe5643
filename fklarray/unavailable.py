"""Functions of the standard that are not there yet: each says so when it is called."""

from __future__ import annotations

from typing import NoReturn, Protocol

__all__ = [
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class _Unavailable(Protocol):
    def __call__(self, *args: object, **kwargs: object) -> NoReturn: ...


def _unavailable(name: str) -> _Unavailable:
    def function(*args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"fklarray.{name} is not implemented yet")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Not there yet.\n\nRaises\n------\nNotImplementedError\n    Always ({name})."
    )
    return function


argsort = _unavailable("argsort")
isin = _unavailable("isin")
nonzero = _unavailable("nonzero")
searchsorted = _unavailable("searchsorted")
sort = _unavailable("sort")
unique_all = _unavailable("unique_all")
unique_counts = _unavailable("unique_counts")
unique_inverse = _unavailable("unique_inverse")
unique_values = _unavailable("unique_values")
