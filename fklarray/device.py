"""Devices: where arrays live."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from fklarray.recording import HOST
from fklarray_runtime import device_count, device_problem

__all__ = ["CPU", "Device", "as_device", "default_device", "devices"]

_NAME = re.compile(r"cuda(?::(\d+))?")


class Device:
    """A device. Equal to its name, hashable and picklable.

    Parameters
    ----------
    name : str
        ``"cpu"``, or ``"cuda:0"`` for the first NVIDIA device that the driver names.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Device):
            return self.name == other.name
        return self.name == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    def __str__(self) -> str:
        return self.name


CPU = Device(HOST)
_default: ContextVar[Device] = ContextVar("fklarray default device", default=CPU)


def devices() -> tuple[Device, ...]:
    """Return the devices of this machine, the CPU first."""
    return (CPU, *[Device(f"cuda:{number}") for number in range(device_count())])


def as_device(device: Device | str | None) -> Device:
    """Return the device that an argument names; None is the default device.

    Raises
    ------
    ValueError
        If there is no such device on this machine.
    """
    if device is None:
        return _default.get()
    if device == CPU:
        return CPU
    found = _NAME.fullmatch(str(device))
    if found is not None and int(found[1] or 0) < device_count():
        return Device(f"cuda:{int(found[1] or 0)}")
    reason = f" ({device_problem()})" if found is not None and not device_count() else ""
    here = ", ".join(repr(one.name) for one in devices())
    raise ValueError(f"unknown device {str(device)!r}; devices here: {here}{reason}")


@contextmanager
def default_device(device: Device | str) -> Generator[Device]:
    """Make arrays on a device where none is named, in the ``with`` block and its thread.

    Parameters
    ----------
    device : Device or str
        The device.

    Raises
    ------
    ValueError
        If there is no such device on this machine.
    """
    chosen = as_device(device)
    token = _default.set(chosen)
    try:
        yield chosen
    finally:
        _default.reset(token)
