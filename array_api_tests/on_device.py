"""A plugin of pytest's: what the suite makes without naming a device is made on a chosen one."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from hypothesis import assume

import fklarray
from fklarray.device import CPU, as_device


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the device that ``FKLARRAY_SUITE_DEVICE`` names the default of this process."""
    chosen = fklarray.default_device(os.environ["FKLARRAY_SUITE_DEVICE"])
    chosen.__enter__()
    config.add_cleanup(lambda: chosen.__exit__(None, None, None))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ask no device for its memory on the CPU without a copy.

    The suite's test expects to get it; the standard wants a BufferError.
    """
    for item in items:
        if item.name == "test_dunder_dlpack" and as_device(None) != CPU:
            test: Any = getattr(item, "obj").hypothesis  # noqa: B009 (of functions only)
            test.inner_test = _possible(test.inner_test)


def _possible(test: Callable[..., None]) -> Callable[..., None]:
    @wraps(test)
    def function(copy_kw: dict[str, Any], dl_device_kw: dict[str, Any], **others: Any) -> None:
        assume(copy_kw.get("copy") is not False or not dl_device_kw)
        test(copy_kw=copy_kw, dl_device_kw=dl_device_kw, **others)

    return function


def pytest_runtest_setup() -> None:
    """Make sure that it still is, so that no test runs elsewhere."""
    here = as_device(None)
    if here != as_device(os.environ["FKLARRAY_SUITE_DEVICE"]):
        pytest.exit(f"the default device has become {here}")
