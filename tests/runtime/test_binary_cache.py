"""The binary cache: verification, privacy, races, full and read-only disks."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import filelock
import pytest

from fklarray_runtime import BinaryCache, key

PAYLOAD = b"\x7fELF" + bytes(range(256)) * 8
KEY = key({"source": "int x;"})


def write(path: Path) -> None:
    path.write_bytes(PAYLOAD)


@pytest.fixture
def cache(tmp_path: Path) -> BinaryCache:
    return BinaryCache(tmp_path / "cache")


def names(cache: BinaryCache) -> list[str]:
    return sorted(path.name for path in cache.directory.iterdir())


def test_build_then_load(cache: BinaryCache) -> None:
    assert cache.load(KEY) is None
    path, built = cache.build(KEY, write)
    assert built
    assert path.read_bytes().startswith(PAYLOAD)
    assert cache.load(KEY) == path
    assert cache.build(KEY, write) == (path, False)
    assert names(cache) == [f"{KEY}.so"]
    assert cache.directory.stat().st_mode & 0o777 == 0o700
    assert cache.size() == (1, path.stat().st_size)
    assert cache.clear() == 1
    assert cache.size() == (0, 0)


def damage_truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_garbage(path: Path) -> None:
    path.write_bytes(b"garbage " * 100)


def damage_flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def damage_extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def damage_permissions(path: Path) -> None:
    path.chmod(0o722)


def damage_link(path: Path) -> None:
    path.rename(path.with_suffix(".bak"))
    path.symlink_to(path.with_suffix(".bak"))


def damage_owner(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 65534, 65534)


@pytest.mark.parametrize(
    "damage",
    [
        damage_truncate,
        damage_empty,
        damage_garbage,
        damage_flip,
        damage_extend,
        damage_permissions,
        damage_link,
        damage_owner,
    ],
)
def test_a_damaged_or_foreign_file_is_a_miss_and_goes(cache: BinaryCache, damage: object) -> None:
    path, _ = cache.build(KEY, write)
    damage(path)  # type: ignore[operator]
    assert cache.load(KEY) is None
    assert not os.path.lexists(path)
    assert cache.build(KEY, write) == (path, True)
    assert cache.load(KEY) == path


def test_a_failing_build_leaves_nothing(cache: BinaryCache) -> None:
    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.build(KEY, fail)
    assert names(cache) == []


def test_every_part_changes_the_key_and_their_order_does_not() -> None:
    parts = {"source": "a", "compiler": "b", "flags": "c"}
    assert key(parts) == key(dict(reversed(parts.items())))
    for name in parts:
        assert key({**parts, name: "other"}) != key(parts)
    assert key({"a": "b", "c": "d"}) != key({"a": "bc", "": "d"})
    assert key({"a": "\udcff"}) != key({"a": "ÿ"})


def refused(directory: Path) -> BinaryCache:
    cache = BinaryCache(directory)
    with pytest.warns(RuntimeWarning, match="cannot keep compiled kernels") as caught:
        path, built = cache.build(KEY, write)
    assert len(caught) == 1
    assert built
    assert directory not in path.parents
    assert cache.load(KEY) == path  # and no second warning
    assert not cache.persistent
    return cache


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    refused(tmp_path / "file")
    refused(tmp_path / "file" / "below")


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_directory_that_others_can_write(tmp_path: Path, mode: int) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    refused(tmp_path / "open")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_directory_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir(mode=0o700)
    os.chown(tmp_path / "foreign", 65534, 65534)
    refused(tmp_path / "foreign")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_fills_up_later(tmp_path: Path, number: int) -> None:
    cache = BinaryCache(tmp_path / "cache")
    first = cache.directory

    def fill(path: Path) -> None:
        if path.parent == first:
            raise OSError(number, os.strerror(number))
        write(path)

    with pytest.warns(RuntimeWarning, match="cannot keep"):
        path, built = cache.build(KEY, fill)
    assert built
    assert path.parent != first
    assert list(first.iterdir()) == []


def test_an_error_that_is_not_the_disks_passes_through(cache: BinaryCache) -> None:
    def fail(_: Path) -> None:
        raise PermissionError(errno.EACCES, "no", "/some/compiler")

    with pytest.raises(PermissionError):
        cache.build(KEY, fail)
    assert cache.persistent


def test_the_directory_may_vanish_at_any_time(cache: BinaryCache) -> None:
    cache.build(KEY, write)
    shutil.rmtree(cache.directory)
    assert cache.load(KEY) is None
    assert cache.size() == (0, 0)
    assert cache.clear() == 0
    tries: list[Path] = []

    def vanish(path: Path) -> None:
        tries.append(path)
        write(path)
        if len(tries) == 1:
            shutil.rmtree(path.parent)

    path, built = cache.build(KEY, vanish)
    assert built
    assert cache.load(KEY) == path
    assert len(tries) == 2


def test_the_oldest_go_beyond_the_limit_and_so_do_leftovers(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path, limit_bytes=10 * len(PAYLOAD))
    tmp_path.chmod(0o700)
    stale = tmp_path / ".dead.1.tmp"
    stale.write_bytes(b"")
    os.utime(stale, (1, 1))
    fresh = tmp_path / ".alive.2.tmp"
    fresh.write_bytes(b"")
    keys = [key({"n": str(n)}) for n in range(33)]
    for age, name in enumerate(keys):
        path, _ = cache.build(name, write)
        os.utime(path, (time.time() - 1000 + age,) * 2)
    files, nbytes = cache.size()
    assert nbytes <= 10 * (len(PAYLOAD) + 100)
    assert 0 < files < 12
    assert cache.load(keys[-1]) is not None
    assert cache.load(keys[0]) is None
    assert not stale.exists()
    assert fresh.exists()


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_temporary_folder_is_removed_at_exit_but_not_by_a_child(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    code = """
import os, sys, pathlib
from fklarray_runtime import BinaryCache
cache = BinaryCache()
mine = cache.directory
child = os.fork()
if child == 0:
    assert cache.directory != mine
    print(cache.directory, flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert mine.exists()
print(mine)
"""
    result = run(code, FKLARRAY_CACHE_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("RuntimeWarning: fklarray") == 1
    assert len(result.stdout.split()) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="drops privileges")
def test_an_unprivileged_user_and_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "readonly"
    folder.mkdir()
    folder.chmod(0o555)
    code = """
import os, sys, tempfile, pathlib
from fklarray_runtime import BinaryCache
tempfile.tempdir = "/tmp"
os.setgid(65534); os.setuid(65534)
cache = BinaryCache(pathlib.Path(sys.argv[1]))
path, built = cache.build("k", lambda p: p.write_bytes(b"x"))
assert built and cache.load("k") == path
"""
    for target in (folder, folder / "below"):
        result = run(code, str(target))
        assert result.returncode == 0, result.stderr
        assert result.stderr.count("RuntimeWarning: fklarray") == 1


_BUILDER = """
import os, sys, time, pathlib
from fklarray_runtime import BinaryCache
folder, log, seconds = sys.argv[1:]
cache = BinaryCache(pathlib.Path(folder))
def write(path):
    with open(log, "a") as file:
        print(os.getpid(), file=file)
    time.sleep(float(seconds))
    path.write_bytes(b"p" * 100_000)
path, _ = cache.build("k", write)
assert path.read_bytes()[:100_000] == b"p" * 100_000
"""


def _start_builder(folder: Path, seconds: float) -> subprocess.Popen[bytes]:
    arguments = [folder / "c", folder / "log", seconds]
    return subprocess.Popen([sys.executable, "-c", _BUILDER, *map(str, arguments)])


def test_of_eight_cold_processes_one_builds(tmp_path: Path) -> None:
    processes = [_start_builder(tmp_path, 0.5) for _ in range(8)]
    assert [process.wait(60) for process in processes] == [0] * 8
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["k.so"]
    assert len((tmp_path / "log").read_text("utf-8").split()) == 1


def test_a_killed_builder_holds_nobody_up(tmp_path: Path) -> None:
    first = _start_builder(tmp_path, 600)
    deadline = time.monotonic() + 30
    while not (tmp_path / "log").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    second = _start_builder(tmp_path, 0)
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(2)  # it is the first one's turn
    first.kill()
    first.wait()
    assert second.wait(20) == 0
    assert (tmp_path / "log").read_text("utf-8").split() == [str(first.pid), str(second.pid)]


def test_without_locks_both_build(cache: BinaryCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError("no locks on this file system")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    path, built = cache.build(KEY, write)
    assert built
    assert cache.load(KEY) == path
    assert names(cache) == [f"{KEY}.so"]


@pytest.mark.parametrize(
    "name", ["with space", 'qu\'ote "x"', "naïve-日本語", "dollar$HOME;true", "-O0", "a" * 120]
)
def test_strange_names(tmp_path: Path, name: str) -> None:
    cache = BinaryCache(tmp_path / name)
    path, _ = cache.build(KEY, write)
    assert path.parent == tmp_path / name
    assert cache.load(KEY) == path
