"""A fatbinary program, which clang calls, for toolkits that have the library nvFatbin instead.

Run as a script: the library's path, then what clang says to NVIDIA's program.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

__all__ = ["main"]

# As of clang 21, and as before: "--image3=kind=elf,sm=90,file=F", "--image=profile=sm_90,file=F".
_IMAGE = re.compile(r"--image.*[,=](?:profile=sm_|sm=)(\w+),file=(.+)")


def main(library: str, arguments: list[str]) -> int:
    """Put machine code for a device into the format that NVIDIA's runtime loads.

    Parameters
    ----------
    library : str
        Path of libnvfatbin.
    arguments : list of str
        ``-64 --create OUTPUT --image=profile=sm_90,file=INPUT``.

    Returns
    -------
    int
        0, or 1 after a message.
    """
    functions = ctypes.CDLL(library)
    functions.nvFatbinGetErrorString.restype = ctypes.c_char_p
    handle = ctypes.c_void_p()
    size = ctypes.c_size_t()

    def call(name: str, *values: object) -> None:
        status = getattr(functions, name)(*values)
        if status != 0:
            raise OSError(f"{name}: {functions.nvFatbinGetErrorString(status).decode()}")

    try:
        call("nvFatbinCreate", ctypes.byref(handle), None, ctypes.c_size_t(0))
        for found in filter(None, map(_IMAGE.fullmatch, arguments)):
            code = Path(found[2]).read_bytes()
            length = ctypes.c_size_t(len(code))
            call("nvFatbinAddCubin", handle, code, length, found[1].encode(), b"")
        call("nvFatbinSize", handle, ctypes.byref(size))
        result = ctypes.create_string_buffer(size.value)
        call("nvFatbinGet", handle, result)
        Path(arguments[arguments.index("--create") + 1]).write_bytes(result)
    except OSError as error:
        print(f"fatbinary: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
