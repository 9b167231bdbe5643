"""The 40 xarray operations on a variable whose data is an array of the namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from ecosystem.harness import Calls, normal

__all__ = ["CALLS", "FAILURES", "FROM_NUMPY", "SYNCS"]


def _a(xp: Any) -> xr.DataArray:
    coords = {"x": np.arange(4), "y": np.arange(6.0)}
    return xr.DataArray(normal(xp, 4, 6), dims=("x", "y"), coords=coords, name="a")


def _b(xp: Any) -> xr.DataArray:
    return xr.DataArray(normal(xp, 6, seed=1), dims=("y",), coords={"y": np.arange(6.0)})


def _holes(xp: Any) -> xr.DataArray:
    values = np.array(normal(np, 4, 6))
    values[1, 2] = values[3, :2] = np.nan
    return xr.DataArray(xp.asarray(values), dims=("x", "y"))


def _groups(xp: Any) -> xr.DataArray:
    return _a(xp).assign_coords(group=("x", [0, 1, 0, 1]))


def _data(operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the array inside what an operation gives."""
    return lambda xp: operation(xp).data


def _assign(xp: Any) -> xr.DataArray:
    a = _a(xp)
    a[1:3, 0] = 7.0
    return a


def _text(xp: Any) -> list[str]:
    """Return the lines of the variable's text that do not depend on the array's class."""
    return [line for line in repr(_a(xp)).splitlines() if line.startswith("  * ")]


def _vectorised(xp: Any) -> xr.DataArray:
    at = xr.DataArray([0, 2, 3], dims="points")
    return _a(xp).isel(x=at, y=at)


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "a + 1": lambda xp: _a(xp) + 1,
    "a * b (broadcast by name)": lambda xp: _a(xp) * _b(xp),
    "a > 0": lambda xp: _a(xp) > 0,
    "xr.apply_ufunc(xp.sin, a)": lambda xp: xr.apply_ufunc(xp.sin, _a(xp)),
    "a.sum('x')": lambda xp: _a(xp).sum("x"),
    "a.mean('x', skipna=False)": lambda xp: _a(xp).mean("x", skipna=False),
    "a.mean('x')": lambda xp: _holes(xp).mean("x"),
    "a.max('y')": lambda xp: _holes(xp).max("y"),
    "a.std('y')": lambda xp: _holes(xp).std("y"),
    "a.var('y', skipna=False)": lambda xp: _a(xp).var("y", skipna=False),
    "a.median('y')": lambda xp: _holes(xp).median("y"),
    "a.cumsum('y')": lambda xp: _holes(xp).cumsum("y"),
    "(a > 0).any(), .all()": lambda xp: (_a(xp) > 0).any("x") | (_a(xp) > 0).all("x"),
    "a.count('y')": lambda xp: _holes(xp).count("y"),
    "a.argmax('y')": lambda xp: _a(xp).argmax("y", skipna=False),
    "a.isel(x=slice, y=slice)": lambda xp: _a(xp).isel(x=slice(1, 3), y=slice(None, None, 2)),
    "a.isel(x=[0, 2])": lambda xp: _a(xp).isel(x=[0, 2]),
    "a.isel (vectorised)": _vectorised,
    "a.sel(y=3.0)": lambda xp: _a(xp).sel(y=3.0),
    "a[1:3, 0] = 7": _assign,
    "a.transpose('y', 'x')": lambda xp: _a(xp).transpose("y", "x"),
    "a.stack(z=('x', 'y'))": lambda xp: _a(xp).stack(z=("x", "y")),
    "a.expand_dims('t')": lambda xp: _a(xp).expand_dims("t"),
    "xr.concat": lambda xp: xr.concat([_a(xp), _a(xp) + 1], dim="x"),
    "a.where(a > 0)": lambda xp: _a(xp).where(_a(xp) > 0),
    "a.fillna(0)": lambda xp: _holes(xp).fillna(0.0),
    "a.isnull()": lambda xp: _holes(xp).isnull(),
    "a.clip(0, 1)": lambda xp: _a(xp).clip(0.0, 1.0),
    "a.astype('float32')": lambda xp: _a(xp).astype("float32"),
    "a.shift(x=1)": lambda xp: _a(xp).shift(x=1),
    "a.rolling(y=3).mean()": lambda xp: _a(xp).rolling(y=3).mean(),
    "a.coarsen(y=2).mean()": lambda xp: _a(xp).coarsen(y=2).mean(),
    "a.groupby('group').mean()": lambda xp: _groups(xp).groupby("group").mean(),
    "a.diff('y')": lambda xp: _a(xp).diff("y"),
    "a.dot(b)": lambda xp: _a(xp).dot(_b(xp)),
    "a.interp(y=[0.5])": lambda xp: _a(xp).interp(y=[0.5, 2.25]),
    "a.pad(x=1)": lambda xp: _a(xp).pad(x=1, mode="constant", constant_values=0.0),
    "a.sortby('y')": lambda xp: _a(xp).sortby("y", ascending=False),
    "a.weighted(w).mean('y')": lambda xp: _a(xp).weighted(abs(_b(xp))).mean("y"),
}

CALLS: Calls = {
    "repr(a)": _text,
    **{name: _data(operation) for name, operation in OPERATIONS.items()},
}

# Expected to fail, and why.
FAILURES = {
    "a.isel (vectorised)": "xarray refuses vectorised indexing for arrays that it does not know",
    "a.rolling(y=3).mean()": "xarray looks for lib.stride_tricks.sliding_window_view, an alias",
}
FROM_NUMPY = {"a.median('y')", "a.interp(y=[0.5])"}
# The most sync points that a call may have.
SYNCS = {"a[1:3, 0] = 7": 1, "a.weighted(w).mean('y')": 1, "a.interp(y=[0.5])": 1}
SYNCS = {**dict.fromkeys(CALLS, 0), **SYNCS}
