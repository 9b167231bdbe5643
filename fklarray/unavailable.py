"""Functions of the standard that are not there yet: each says so when it is called."""

from __future__ import annotations

from typing import NoReturn, Protocol

__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "concat", "count_nonzero", "cumulative_prod",
    "cumulative_sum", "diff", "isin", "matmul", "matrix_transpose", "max", "mean", "min", "nonzero",
    "prod", "repeat", "roll", "searchsorted", "sort", "stack", "std", "sum", "take",
    "take_along_axis", "tensordot", "tile", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unstack", "var", "vecdot",
]  # fmt: skip


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


all = _unavailable("all")
any = _unavailable("any")
argmax = _unavailable("argmax")
argmin = _unavailable("argmin")
argsort = _unavailable("argsort")
concat = _unavailable("concat")
count_nonzero = _unavailable("count_nonzero")
cumulative_prod = _unavailable("cumulative_prod")
cumulative_sum = _unavailable("cumulative_sum")
diff = _unavailable("diff")
isin = _unavailable("isin")
matmul = _unavailable("matmul")
matrix_transpose = _unavailable("matrix_transpose")
max = _unavailable("max")
mean = _unavailable("mean")
min = _unavailable("min")
nonzero = _unavailable("nonzero")
prod = _unavailable("prod")
repeat = _unavailable("repeat")
roll = _unavailable("roll")
searchsorted = _unavailable("searchsorted")
sort = _unavailable("sort")
stack = _unavailable("stack")
std = _unavailable("std")
sum = _unavailable("sum")
take = _unavailable("take")
take_along_axis = _unavailable("take_along_axis")
tensordot = _unavailable("tensordot")
tile = _unavailable("tile")
unique_all = _unavailable("unique_all")
unique_counts = _unavailable("unique_counts")
unique_inverse = _unavailable("unique_inverse")
unique_values = _unavailable("unique_values")
unstack = _unavailable("unstack")
var = _unavailable("var")
vecdot = _unavailable("vecdot")
