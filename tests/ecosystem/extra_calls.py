"""The 33 public functions of array-api-extra."""

from __future__ import annotations

from typing import Any

import array_api_extra as xpx
import numpy as np

from ecosystem.harness import Calls, integers, normal, positive

__all__ = ["CALLS", "FAILURES", "FROM_NUMPY", "SYNCS"]


def _holes(xp: Any) -> Any:
    values = np.array(normal(np, 4, 6))
    values[1, 2] = values[3, :2] = np.nan
    return xp.asarray(values)


def _at(xp: Any) -> Any:
    """Change selected elements in all ways: by set and by arithmetic, in place and in a copy."""
    x = normal(xp, 4, 6)
    mask = x > 0
    new = xpx.at(x)[mask].set(0.5, copy=True)
    new = xpx.at(new)[1, :].add(1.0)
    new = xpx.at(new, mask).multiply(xp.asarray(2.0))
    new = xpx.at(new)[:, 2].subtract(0.5)
    new = xpx.at(new)[..., 0].divide(2.0)
    new = xpx.at(new)[0].power(2.0)
    new = xpx.at(new)[mask].min(0.75)
    return x, xpx.at(new)[2, :].max(-0.25)


def _sorted(call: Any) -> Any:
    return lambda xp: xp.sort(call(xp))


def _parted(xp: Any) -> Any:
    """A partition leaves the order on both sides open; what is at its place is not."""
    return xpx.partition(normal(xp, 9), 4)[4], xp.sum(xpx.partition(normal(xp, 9), 4)[:4])


def _arg_parted(xp: Any) -> Any:
    return xpx.argpartition(normal(xp, 9), 4)[4]


CALLS: Calls = {
    "angle": lambda xp: xpx.angle(normal(xp, 5) + 1j * normal(xp, 5, seed=1)),
    "apply_where": lambda xp: xpx.apply_where(
        normal(xp, 4, 6) > 0, (normal(xp, 4, 6), positive(xp, 6)), lambda a, b: a / b, xp.add
    ),
    "argpartition": _arg_parted,
    "at": _at,
    "atleast_nd": lambda xp: xpx.atleast_nd(normal(xp, 5), ndim=3),
    "broadcast_shapes": lambda xp: xpx.broadcast_shapes((4, 1), (6,), xp=xp),
    "cov": lambda xp: xpx.cov(normal(xp, 4, 6)),
    "create_diagonal": lambda xp: xpx.create_diagonal(normal(xp, 5), offset=1),
    "default_dtype": lambda xp: str(xpx.default_dtype(xp, "integral")),
    "deg2rad": lambda xp: xpx.deg2rad(normal(xp, 5)),
    "diag_indices": lambda xp: xpx.diag_indices(4, xp=xp),
    "expand_dims": lambda xp: xpx.expand_dims(normal(xp, 5), axis=(0, 2)),
    "isclose": lambda xp: xpx.isclose(normal(xp, 5), normal(xp, 5) + 1e-9),
    "isin": lambda xp: xpx.isin(integers(xp, 9), xp.asarray([1, 3])),
    "kron": lambda xp: xpx.kron(normal(xp, 2, 3), normal(xp, 3, 2, seed=1)),
    "lazy_apply": lambda xp: xpx.lazy_apply(
        np.tanh, normal(xp, 5), shape=(5,), dtype=xp.float64, as_numpy=True
    ),
    "nan_to_num": lambda xp: xpx.nan_to_num(_holes(xp), fill_value=2.0),
    "nanmax": lambda xp: xpx.nanmax(_holes(xp), axis=0),
    "nanmean": lambda xp: xpx.nanmean(_holes(xp), axis=0),
    "nanmin": lambda xp: xpx.nanmin(_holes(xp), axis=0),
    "nansum": lambda xp: xpx.nansum(_holes(xp), axis=0),
    "nunique": lambda xp: xpx.nunique(integers(xp, 9)),
    "one_hot": lambda xp: xpx.one_hot(integers(xp, 9), 5, dtype=xp.float64),
    "pad": lambda xp: xpx.pad(normal(xp, 4, 6), ((1, 0), (2, 1)), constant_values=1.0),
    "partition": _parted,
    "rad2deg": lambda xp: xpx.rad2deg(normal(xp, 5)),
    "searchsorted": lambda xp: xpx.searchsorted(
        xp.asarray([[0.0, 1.0, 2.0], [0.0, 2.0, 3.0]]), positive(xp, 2, 4), side="right"
    ),
    "setdiff1d": _sorted(lambda xp: xpx.setdiff1d(integers(xp, 9), xp.asarray([1, 3]))),
    "sinc": lambda xp: xpx.sinc(normal(xp, 5)),
    "tril_indices": lambda xp: xpx.tril_indices(4, offset=1, xp=xp),
    "triu_indices": lambda xp: xpx.triu_indices(4, m=3, xp=xp),
    "union1d": _sorted(lambda xp: xpx.union1d(integers(xp, 9), integers(xp, 9, high=9, seed=1))),
    "unravel_index": lambda xp: xpx.unravel_index(integers(xp, 9), (2, 3), xp=xp),
}

FAILURES: dict[str, str] = {}
FROM_NUMPY: set[str] = set()
# The most sync points that a call may have.
SYNCS = {"sinc": 0, "kron": 0, "nanmean": 0, "cov": 0, "nan_to_num": 0, "pad": 2, "at": 9}
