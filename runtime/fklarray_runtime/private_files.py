"""Files and folders that belong to one user, and errors of the disk under them."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_DISK_ERRORS = frozenset(
    {
        errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT,
        # Something that is not a folder came to lie in the folder's place.
        errno.EEXIST, errno.ENOTDIR, errno.ELOOP,
    }
)  # fmt: skip


@contextmanager
def temporary_folder(*places: tuple[str, Path | None]) -> Generator[Path]:
    """Make a private folder that is gone afterwards.

    `tempfile.TemporaryDirectory` would also remove it at the end of a child that is forked
    meanwhile.

    Parameters
    ----------
    *places : (str, Path or None)
        How its name begins, and where it lies (None: the system's folder for temporary files); the
        first place that can be written to is taken.

    Raises
    ------
    OSError
        If none can be.
    """
    for prefix, parent in places[:-1]:
        with suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            break
    else:
        folder = Path(tempfile.mkdtemp(prefix=places[-1][0], dir=places[-1][1]))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a private file that no reader ever sees half of.

    Raises
    ------
    OSError
        The disk is full, read-only, or the folder is gone.
    """
    temporary = temporary_name(path)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def temporary_name(path: Path) -> Path:
    """Name a hidden file beside `path` that no other process uses."""
    return path.with_name(f".{path.stem[:64]}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


def why_not_private(directory: Path) -> str | None:
    """Create a folder if need be, and say why it cannot be trusted or used, if so."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as error:
        return error.strerror or str(error)
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users can write to it"
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return "it is not writable"
    return None


def is_about(error: OSError, directory: Path) -> bool:
    """Tell whether the disk under a folder is full or forbids writing."""
    name = error.filename
    inside = name is None or os.fsdecode(name).startswith(str(directory))
    return inside and error.errno in _DISK_ERRORS


def entries(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """List a folder, and nothing when it is gone."""
    try:
        paths = list(directory.iterdir())
    except OSError:
        return
    for path in paths:
        with suppress(OSError):
            yield path, path.lstat()


def is_own(status: os.stat_result) -> bool:
    """Tell whether a regular file is the user's, and nobody else can write to it."""
    writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not writable_by_others


def remove(path: Path) -> bool:
    """Remove a file or folder if it is there and this user may, and tell whether it worked."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        return False
    return True


def remove_own(directory: Path, process: int) -> None:
    """Remove a folder at exit, in the process that made it."""
    if os.getpid() == process:  # not in a child that was forked and inherited the exit handler
        shutil.rmtree(directory, ignore_errors=True)
