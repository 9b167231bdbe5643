"""A plugin of pytest's: what the suite makes without naming a device is made on a chosen one."""

from __future__ import annotations

import os

import pytest

import fklarray
from fklarray.device import as_device


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the device that ``FKLARRAY_SUITE_DEVICE`` names the default of this process."""
    chosen = fklarray.default_device(os.environ["FKLARRAY_SUITE_DEVICE"])
    chosen.__enter__()
    config.add_cleanup(lambda: chosen.__exit__(None, None, None))


def pytest_runtest_setup() -> None:
    """Make sure that it still is, so that no test runs elsewhere."""
    here = as_device(None)
    if here != as_device(os.environ["FKLARRAY_SUITE_DEVICE"]):
        pytest.exit(f"the default device has become {here}")
