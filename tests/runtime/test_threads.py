"""The executor: every task once, from any thread, after a fork, with signals about."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import threadpoolctl

from fklarray_runtime import set_threads, threads
from fklarray_runtime._native import ffi
from fklarray_runtime.threads import executor, workers

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, BODY, ctypes.c_void_p, ctypes.c_int64)


class Executor(ctypes.Structure):
    _fields_ = (("abi", ctypes.c_int32), ("threads", ctypes.c_int32), ("run", RUN))


def the_executor() -> Any:
    address = int(ffi.cast("uintptr_t", executor()))
    return Executor.from_address(address)


def run(body: Callable[[int], object], tasks: int) -> None:
    it = the_executor()
    it.run(ctypes.addressof(it), BODY(lambda _, task: body(task) and None), None, tasks)


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = threads()
    set_threads(4)
    yield
    set_threads(before)


def test_the_c_structure() -> None:
    it = the_executor()
    assert it.abi == 1
    assert it.threads == 4
    set_threads(2)
    assert it.threads == 2


@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 100, 5000])
@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_every_task_runs_once(tasks: int, count: int) -> None:
    set_threads(count)
    seen: list[int] = []
    run(seen.append, tasks)
    assert sorted(seen) == list(range(tasks))


def test_several_threads_take_part_but_not_more_than_asked() -> None:
    set_threads(8)
    run(lambda _: time.sleep(0.01), 16)
    set_threads(3)
    seen: Counter[int] = Counter()
    run(lambda _: (time.sleep(0.005), seen.update([threading.get_native_id()])), 40)
    assert 2 <= len(seen) <= 3
    assert threading.get_native_id() in seen


def test_a_sleeping_pool_wakes_up() -> None:
    for _ in range(5):
        seen: set[int] = set()
        run(lambda _, seen=seen: (time.sleep(0.01), seen.add(threading.get_native_id())), 8)
        assert len(seen) >= 2
        time.sleep(0.05)


def test_nested_runs_are_serial_and_end() -> None:
    inner: list[tuple[int, int]] = []

    def outer(task: int) -> None:
        here = threading.get_native_id()
        places: set[int] = set()
        run(lambda t: (inner.append((task, t)), places.add(threading.get_native_id())), 10)
        assert places == {here}

    run(outer, 10)
    assert sorted(inner) == [(a, b) for a in range(10) for b in range(10)]


def test_eight_threads_at_once() -> None:
    results: list[bool] = []

    def work() -> None:
        for tasks in range(1, 40):
            seen: list[int] = []
            run(seen.append, tasks)
            results.append(sorted(seen) == list(range(tasks)))

    users = [threading.Thread(target=work) for _ in range(8)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert len(results) == 8 * 39
    assert all(results)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_fork_while_workers_exist() -> None:
    run(lambda _: time.sleep(0.001), 50)
    assert workers() >= 3
    for _ in range(5):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            status = 1
            try:
                seen: set[int] = set()
                before = workers()
                run(lambda _, s=seen: (time.sleep(0.005), s.add(threading.get_native_id())), 20)
                status = 0 if before == 0 and workers() == 3 and len(seen) >= 2 else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        done: list[int] = []
        run(done.append, 50)
        assert len(done) == 50


def test_workers_block_every_signal() -> None:
    run(lambda _: time.sleep(0.001), 50)
    main = threading.get_native_id()
    masks: dict[int, set[int]] = {}

    def look(_: int) -> None:
        time.sleep(0.002)
        with open(f"/proc/self/task/{threading.get_native_id()}/status") as file:  # noqa: PTH123
            line = next(line for line in file if line.startswith("SigBlk"))
        masks[threading.get_native_id()] = {int(line.split()[1], 16)}  # type: ignore[arg-type]

    run(look, 40)
    others = {thread: mask for thread, mask in masks.items() if thread != main}
    assert others
    for mask in others.values():
        (bits,) = mask
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPROF):
            assert bits >> (number - 1) & 1


@pytest.mark.parametrize("number", [0, -1, 1025, 10**9])
def test_numbers_out_of_range(number: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 1024"):
        set_threads(number)
    assert threads() == 4


def fresh(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        k: v for k, v in os.environ.items() if k not in {"FKLARRAY_THREADS", "OMP_NUM_THREADS"}
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_default_number() -> None:
    code = "import fklarray_runtime as r; print(r.threads())"
    assert int(fresh(code).stdout) == len(os.sched_getaffinity(0))
    assert int(fresh(code, OMP_NUM_THREADS="3,2").stdout) == 3
    assert int(fresh(code, OMP_NUM_THREADS="3", FKLARRAY_THREADS="5").stdout) == 5
    assert int(fresh(code, FKLARRAY_THREADS="").stdout) == len(os.sched_getaffinity(0))
    pinned = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); " + code
    assert int(fresh(pinned).stdout) == 1


@pytest.mark.parametrize("text", ["x", "0", "-2", "1.5", "4 2", "9999", "²"])
def test_a_malformed_variable_is_named_on_first_use(text: str) -> None:
    code = """
import fklarray_runtime as r
for _ in range(2):
    try: r.threads()
    except ValueError as error: print(error)
"""
    result = fresh(code, FKLARRAY_THREADS=text, PYTHONIOENCODING="utf-8")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("FKLARRAY_THREADS") == 2
    assert repr(text) in result.stdout


def test_nothing_hangs_at_exit() -> None:
    code = """
import ctypes, fklarray_runtime as r
from fklarray_runtime._native import ffi
from fklarray_runtime.threads import executor, workers
r.set_threads(4)
it = ffi.cast("fkl_executor *", executor())
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(lambda c, t: None)
run(int(ffi.cast("uintptr_t", it.run)))(int(ffi.cast("uintptr_t", it)), body, None, 100)
print(workers())
"""
    start = time.monotonic()
    result = fresh(code)
    assert (result.returncode, result.stdout) == (0, "3\n"), result.stderr
    assert time.monotonic() - start < 20


def test_threadpoolctl_knows_and_limits_our_threads() -> None:
    before = threads()
    set_threads(3)
    try:
        (found,) = [
            info for info in threadpoolctl.threadpool_info() if info["user_api"] == "fklarray"
        ]
        assert found["num_threads"] == 3
        with threadpoolctl.threadpool_limits(limits=1):
            assert threads() == 1
        assert threads() == 3
        with threadpoolctl.threadpool_limits(limits=2, user_api="fklarray"):
            assert threads() == 2
        with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
            assert threads() == 3
    finally:
        set_threads(before)


@pytest.mark.parametrize("first", ["threadpoolctl", "fklarray_runtime"])
def test_threadpoolctl_may_be_imported_before_or_after(first: str) -> None:
    code = f"""
import {first}, numpy, threadpoolctl
threadpoolctl.threadpool_info()
import fklarray_runtime
with threadpoolctl.threadpool_limits(1):
    assert fklarray_runtime.threads() == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)
