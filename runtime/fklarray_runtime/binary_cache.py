"""Compiled libraries on disk, private to the user and verified before every load."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import struct
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import platformdirs

from fklarray_runtime.private_files import (
    entries,
    is_about,
    is_own,
    remove,
    remove_own,
    temporary_name,
    why_not_private,
)

DIRECTORY_VARIABLE = "FKLARRAY_CACHE_DIR"
DEFAULT_LIMIT_BYTES = 512 << 20

# After the library's own bytes: magic, number of those bytes, their SHA-256.
_MAGIC = b"fklarray binary1"
_TRAILER = struct.Struct("<16sQ32s")
_SUFFIX = ".so"
_EVICT_EVERY = 16  # builds of one process between two looks at the cache's size
_EVICT_TO = 0.8
_STALE_SECONDS = 3600.0  # a temporary file this old belongs to a process that was killed
_TOUCH_SECONDS = 3600.0
# Another process's turn may be a stopped one's: then both build.
_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.01


def key(parts: Mapping[str, str]) -> str:
    """Digest what a binary depends on.

    Parameters
    ----------
    parts : mapping of str to str
        Every source, path, version and flag, each under its name.

    Returns
    -------
    str
        SHA-256 of the canonical JSON, in hexadecimal.
    """
    text = json.dumps(dict(parts), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def default_directory() -> Path:
    """Return the folder that FKLARRAY_CACHE_DIR names, or the user's cache folder."""
    named = os.environ.get(DIRECTORY_VARIABLE, "")
    return Path(named) if named else platformdirs.user_cache_path("fklarray")


class BinaryCache:
    """A folder of libraries named by the digest of all that they depend on.

    Everything in the folder may be deleted at any time, by anybody, while programs run. A folder
    that others could write to, or that cannot be written, is never used: one warning is given,
    and a temporary folder serves this process instead.

    Parameters
    ----------
    directory : Path, optional
        Default: FKLARRAY_CACHE_DIR, else the user's cache folder.
    limit_bytes : int, optional
        Beyond this many bytes the binaries unused for longest are removed.
    """

    def __init__(
        self, directory: Path | None = None, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
    ) -> None:
        self._wanted = directory
        self._limit_bytes = limit_bytes
        self._directory: Path | None = None
        self._temporary_of: int | None = None  # the process that made the temporary folder
        self._builds = 0
        self._lock = threading.RLock()

    @property
    def directory(self) -> Path:
        """The folder in use; made and checked on first access."""
        with self._lock:
            if self._directory is None:
                self._directory = self._open_directory()
            elif self._temporary_of is not None and self._temporary_of != os.getpid():
                # A forked child must not use a folder that its parent removes.
                self._directory = self._make_temporary()
            return self._directory

    @property
    def persistent(self) -> bool:
        """True when binaries outlive the process."""
        return self.directory.is_absolute() and self._temporary_of is None

    def _open_directory(self) -> Path:
        try:
            wanted = (self._wanted or default_directory()).absolute()
        except (OSError, RuntimeError) as error:  # no home to be found
            return self._fall_back("the user's cache folder", str(error))
        reason = why_not_private(wanted)
        return wanted if reason is None else self._fall_back(str(wanted), reason)

    def _fall_back(self, wanted: str, reason: str) -> Path:
        temporary = self._make_temporary()
        warnings.warn(
            f"fklarray cannot keep compiled kernels in {wanted}: {reason}. This process keeps "
            f"them in {temporary}; set {DIRECTORY_VARIABLE} to a folder of your own.",
            RuntimeWarning,
            stacklevel=4,
        )
        return temporary

    def _make_temporary(self) -> Path:
        directory = Path(tempfile.mkdtemp(prefix="fklarray-"))
        self._temporary_of = os.getpid()
        atexit.register(remove_own, directory, os.getpid())
        return directory

    def load(self, key: str) -> Path | None:
        """Find a binary and verify it.

        Parameters
        ----------
        key : str
            What `key` returned.

        Returns
        -------
        Path or None
            None when there is none. A damaged or foreign one is removed.
        """
        path = self.directory / f"{key}{_SUFFIX}"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError:
            remove(path)
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not (is_own(status) and _is_intact(file.read())):
                remove(path)
                return None
        if time.time() - status.st_mtime > _TOUCH_SECONDS:
            with suppress(OSError):
                os.utime(path)  # eviction goes by the time of last use
        return path

    def build(self, key: str, write: Callable[[Path], None]) -> tuple[Path, bool]:
        """Build a binary and publish it under its key.

        Parameters
        ----------
        key : str
            What `key` returned.
        write : callable
            Writes the library to the path it is given. What it raises passes through, and
            leaves nothing behind.

        Returns
        -------
        Path
            The verified binary.
        bool
            True when `write` ran, False when somebody else had published the binary meanwhile.

        Raises
        ------
        OSError
            Not even a temporary folder can be written.
        """
        for last in (False, False, True):
            found = self.load(key)
            if found is not None:
                return found, False
            directory = self.directory
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                with self._turn(directory, key):
                    # Another process may have had its turn.
                    found = self.load(key)
                    if found is not None:
                        return found, False
                    path = self._publish(directory, key, write)
            except FileNotFoundError:
                # The folder was deleted, or cleared, under the compiler: begin again.
                if last:
                    raise
            except OSError as error:
                if last or self._temporary_of is not None or not is_about(error, directory):
                    raise
                with self._lock:
                    self._directory = self._fall_back(str(directory), error.strerror or str(error))
            else:
                return path, True
        raise AssertionError("unreachable")

    @contextmanager
    def _turn(self, directory: Path, key: str) -> Generator[None]:
        """Keep other processes from building the same meanwhile, as far as the system lets us."""
        if self._temporary_of is not None:
            yield
            return
        from filelock import FileLock  # as slow to import as some kernels are to compile

        path = directory / f".{key}.lock"
        lock = FileLock(path, timeout=_PATIENCE_SECONDS, mode=0o600)
        try:
            # Refused on some network folders; Timeout is an OSError too.
            with suppress(OSError, NotImplementedError):
                lock.acquire(poll_interval=_POLL_SECONDS)
            yield
        finally:
            if lock.is_locked:
                remove(path)
                lock.release()

    def _publish(self, directory: Path, key: str, write: Callable[[Path], None]) -> Path:
        path = directory / f"{key}{_SUFFIX}"
        temporary = temporary_name(path)
        try:
            write(temporary)
            payload = temporary.read_bytes()
            with temporary.open("ab") as file:
                file.write(_TRAILER.pack(_MAGIC, len(payload), _sha256(payload)))
            temporary.chmod(0o700)  # whatever the umask left
            temporary.replace(path)
        except BaseException:
            remove(temporary)
            raise
        self._builds += 1
        if self._builds % _EVICT_EVERY == 1:
            self._evict(path)
        return path

    def _evict(self, newest: Path) -> None:
        """Remove what killed processes left, and the oldest binaries beyond the limit."""
        now = time.time()
        kept: list[tuple[float, int, Path]] = []
        for path, status in entries(self.directory):
            if path.suffix == _SUFFIX and not path.name.startswith("."):
                kept.append((status.st_mtime, status.st_size, path))
            elif path.name.startswith(".") and now - status.st_mtime > _STALE_SECONDS:
                remove(path)
        total = sum(nbytes for _, nbytes, _ in kept)
        if total <= self._limit_bytes:
            return
        for _, nbytes, path in sorted(kept):
            if total <= self._limit_bytes * _EVICT_TO:
                return
            if path != newest:
                remove(path)
                total -= nbytes

    def size(self) -> tuple[int, int]:
        """Count the binaries.

        Returns
        -------
        tuple of int
            Their number, and the bytes they take.
        """
        sizes = [s.st_size for path, s in entries(self.directory) if path.suffix == _SUFFIX]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Remove everything in the folder.

        Returns
        -------
        int
            The number of binaries removed.
        """
        count = 0
        for path, _ in entries(self.directory):
            count += remove(path) and path.suffix == _SUFFIX
        return count


@cache
def digest_of_folders(folders: tuple[Path, ...]) -> str:
    """Return a digest of every file in folders of headers, which are read once."""
    digest = hashlib.sha256()
    for folder in folders:
        for header in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(f"{header.relative_to(folder)}\0".encode())
            digest.update(header.read_bytes())
    return digest.hexdigest()


def _is_intact(data: bytes) -> bool:
    if len(data) <= _TRAILER.size:
        return False
    magic, nbytes, digest = _TRAILER.unpack(data[-_TRAILER.size :])
    payload = memoryview(data)[: -_TRAILER.size]
    return bool(magic == _MAGIC and nbytes == len(payload) and _sha256(payload) == digest)


def _sha256(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()
