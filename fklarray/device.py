"""Devices: where arrays live."""

from __future__ import annotations

__all__ = ["Device"]


class Device:
    """A device. Equal to its name, hashable and picklable.

    Parameters
    ----------
    name : str
        ``"cpu"``.
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


CPU = Device("cpu")


def as_device(device: Device | str | None) -> Device:
    """Return the device that an argument names; None is the default device.

    Raises
    ------
    ValueError
        If there is no such device on this machine.
    """
    if device is None or device == CPU:
        return CPU
    raise ValueError(f"unknown device {str(device)!r}; devices here: 'cpu'")
