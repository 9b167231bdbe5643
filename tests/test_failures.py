"""Threads, forks, failing compilers and full disks: a clear error, and everything still usable."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import fklarray as xp
from fklarray_runtime import CompileError

# -------------------------------------------------------------------------------------- threads


def test_many_threads_flush_shared_pending_arrays(device: str) -> None:
    base = np.arange(5000.0)
    shared = [xp.asarray(base, device=device) * 3 - k for k in range(20)]
    barrier = threading.Barrier(8)

    def work(k: int) -> None:
        barrier.wait()
        for n, array in enumerate(shared):
            assert np.array_equal(np.asarray(array * (k + 1)), (base * 3 - n) * (k + 1))
            assert float(array[k]) == 3 * k - n
            xp.materialize(array, array + k)
            assert np.array_equal(np.asarray(array), base * 3 - n)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_a_first_compilation_from_many_threads_is_one(device: str, tmp_path: Path) -> None:
    x = xp.asarray(np.linspace(0, 1, 100), device=device)
    barrier = threading.Barrier(8)

    def work(k: int) -> list[float]:
        barrier.wait()
        return np.asarray(xp.hypot(xp.tan(x), x * k) - 0.125).tolist()

    before = xp.counters()["kernels_compiled"]
    settings = {"compile": "sync", "cache_dir": tmp_path / "kernels"}
    with xp.config.override(**settings), ThreadPoolExecutor(8) as pool:
        got = list(pool.map(work, range(8)))
    assert xp.counters()["kernels_compiled"] - before == 1
    assert len({tuple(values) for values in got}) == 8


def test_an_array_outlives_the_thread_that_recorded_it(device: str) -> None:
    made: list[xp.Array] = []
    thread = threading.Thread(target=lambda: made.append(xp.ones((5,), device=device) * 3))
    thread.start()
    thread.join()
    assert np.asarray(made[0] + 1).tolist() == [4.0] * 5


def _in_child(pending: xp.Array, connection: object) -> None:
    big = np.asarray(xp.ones((300_000,)) * 2 + 1)
    new = np.asarray(xp.atan2(pending, pending + 2) * 0)
    connection.send((float(big.sum()), np.asarray(pending).tolist(), new.tolist()))  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning")
def test_fork_after_a_parallel_kernel(host: str) -> None:
    with xp.config.override(threads=2):
        assert float(np.asarray(xp.ones((300_000,), device=host) * 2 + 1)[-1]) == 3.0
        pending = xp.asarray(np.arange(4.0), device=host) * 5
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        child = context.Process(target=_in_child, args=(pending, theirs))
        child.start()
        assert ours.poll(120), "the child hangs"
        assert ours.recv() == (900_000.0, [0.0, 5.0, 10.0, 15.0], [0.0] * 4)
        child.join(60)
    assert child.exitcode == 0
    assert np.asarray(pending).tolist() == [0.0, 5.0, 10.0, 15.0]


# ------------------------------------------------------------------------------------ compilers


def test_a_kernel_that_does_not_compile(
    device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from fklarray_codegen.render import Program

    x = xp.asarray(np.array([1.0, 4.0]), device=device)
    y = xp.hypot(x, x + 0.5) - xp.sqrt(x)
    source = Program.source
    with xp.config.override(compile="sync", cache_dir=tmp_path / "kernels"):
        with monkeypatch.context() as patch:
            patch.setattr(Program, "source", lambda self: source(self) + "\n#error planted\n")
            for _ in range(2):
                with pytest.raises(CompileError, match="planted") as error:
                    np.asarray(y)
                assert "planted" in error.value.source.read_text()
        wanted = np.hypot([1.0, 4.0], [1.5, 4.5]) - [1.0, 2.0]
        np.testing.assert_allclose(np.asarray(y), wanted, rtol=1e-14)
    assert np.asarray(x * 2).tolist() == [2.0, 8.0]
    assert len(list((tmp_path / "kernels").rglob("*.so"))) == 1


# Zig's clang comes with its own folder and would be found without any PATH.
CODE = """
import sys, warnings
sys.modules["ziglang"] = None
import numpy as np
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import fklarray as xp
    x = xp.asarray(np.arange(4.0).reshape(2, 2))
    for k in range(3):
        y = xp.where(x > 1, x * 3, -x)[::-1] + k
        assert np.asarray(y).tolist() == [[6 + k, 9 + k], [k, k - 1]], y
    x[0] = y[1] // 2
    xp.materialize(x + 1, x - 1)
    assert float(xp.sin(x * 0)[0, 0]) == 0.0
print(xp.counters()["kernels_compiled"], xp.counters()["reference_evaluations"])
for warning in seen:
    print(warning.category.__name__, warning.message)
"""


def _run(code: str, tmp_path: Path, **changes: str | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FKLARRAY_CACHE_DIR": str(tmp_path / "kernels")}
    environment.pop("CXX", None)
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("mode", ["sync", "background"])
def test_no_compiler_means_numpy_and_one_warning(mode: str, tmp_path: Path) -> None:
    result = _run(CODE, tmp_path, PATH="/nonexistent", FKLARRAY_COMPILE=mode)
    assert result.returncode == 0, result.stderr
    counts, *warnings = result.stdout.splitlines()
    assert counts.split()[0] == "0"
    assert int(counts.split()[1]) >= 6
    assert result.stdout.count("RuntimeWarning") == 1
    assert 'pip install "fklarray[compiler]"' in "\n".join(warnings)


# The parity tests' references and bounds, on few examples.
PARITY = """
import sys, warnings
sys.modules["ziglang"] = None
sys.path.insert(0, tests)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import fklarray as xp
    from hypothesis import HealthCheck, given, settings
    from parity import elementwise_rows
    from parity.expectations import assert_alike, numpy_outcome, outcome
    from parity.table import ROWS

    # The op table's bounds are promised of kernels: NumPy's complex powers are not within theirs.
    operations = {id(row) for row in elementwise_rows.ROWS}
    rows = [row for row in ROWS if id(row) not in operations and "Array.__" not in row.name]

    def check(row):
        few = 4 if row.name.startswith("special.") else 10
        @settings(max_examples=few, derandomize=True, database=None, deadline=None,
                  suppress_health_check=list(HealthCheck))
        @given(call=row.calls)
        def compare(call):
            wanted = numpy_outcome(row.reference, *call.with_arrays("numpy"))
            assert_alike(outcome(row.function, *call.with_arrays("ours")), wanted)
        try:
            compare()
        except Exception as error:
            error.add_note(row.name)
            raise

    for row in rows:
        check(row)
print(xp.counters()["kernels_launched"], len(rows))
for warning in seen:
    print(warning.category.__name__, warning.message)
"""


def test_functions_without_a_compiler_are_within_their_bounds(tmp_path: Path) -> None:
    code = f"tests = {str(Path(__file__).parent)!r}\n{PARITY}"
    result = _run(code, tmp_path, PATH="/nonexistent", FKLARRAY_COMPILE="sync")
    assert result.returncode == 0, result.stderr
    counts, *warnings = result.stdout.splitlines()
    assert counts.split()[0] == "0"
    assert int(counts.split()[1]) > 200
    assert result.stdout.count("Warning ") == 1
    assert 'pip install "fklarray[compiler]"' in "\n".join(warnings)


def test_a_useless_cxx_is_named_and_the_next_compiler_taken(tmp_path: Path) -> None:
    result = _run(CODE, tmp_path, CXX="/bin/false", FKLARRAY_COMPILE="sync")
    assert result.returncode == 0, result.stderr
    counts, *warnings = result.stdout.splitlines()
    assert int(counts.split()[0]) > 0
    assert sum("/bin/false" in warning for warning in warnings) == 1


def test_a_compiler_that_breaks_later(tmp_path: Path) -> None:
    """It answers the probe and then fails on every kernel: an error that shows what it said."""
    from fklarray_runtime import find_compiler

    real = " ".join(find_compiler(tmp_path / "probe").command)
    script = tmp_path / "c++"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *kernels/*.cpp*|*fused_kernel*|*include*)'
        f' grep -q . /dev/null; if [ -e {tmp_path}/broken ]; then echo "out of coffee" >&2;'
        f' exit 9; fi;; esac\nexec {real} "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    code = f"""
import pathlib, numpy as np, fklarray as xp
x = xp.asarray(np.arange(3.0))
assert np.asarray(x + 1).tolist() == [1, 2, 3]
broken = pathlib.Path({str(tmp_path / "broken")!r})
broken.touch()
y = x * 5 - 1
for _ in range(2):
    try:
        np.asarray(y)
    except RuntimeError as error:
        assert "out of coffee" in str(error) and "status 9" in str(error), error
    else:
        raise AssertionError
assert np.asarray(x + 3).tolist() == [3, 4, 5]
broken.unlink()
assert np.asarray(y).tolist() == [-1, 4, 9]
"""
    result = _run(code, tmp_path, CXX=str(script), FKLARRAY_COMPILE="sync")
    assert result.returncode == 0, result.stderr


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    result = _run(
        CODE, tmp_path, FKLARRAY_CACHE_DIR=str(blocked / "kernels"), FKLARRAY_COMPILE="sync"
    )
    assert result.returncode == 0, result.stderr
    counts, *warnings = result.stdout.splitlines()
    assert int(counts.split()[0]) > 0
    assert sum(str(blocked) in warning for warning in warnings) == 1


def test_a_malformed_setting_names_its_variable(tmp_path: Path) -> None:
    result = _run(CODE, tmp_path, FKLARRAY_COMPILE="perhaps")
    assert result.returncode != 0
    assert "FKLARRAY_COMPILE" in result.stderr
    assert "perhaps" in result.stderr


def test_off_needs_no_compiler_and_warns_of_nothing(tmp_path: Path) -> None:
    result = _run(CODE, tmp_path, FKLARRAY_COMPILE="off", PATH="/nonexistent")
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stdout
    assert not (tmp_path / "kernels").exists()


# ------------------------------------------------------------------ compiling in the background

BACKGROUND = """
import os, pathlib, signal, sys, time
import numpy as np, fklarray as xp
from fklarray import background
background._SECONDS_PER_COMPILATION = 0.0
x = xp.asarray(np.arange(3.0))
def check():
    assert np.asarray(x * 5 - 1).tolist() == [-1, 4, 9]
    return xp.counters()["reference_evaluations"]
assert check() == 1
while not pathlib.Path(started).exists():
    time.sleep(0.01)
assert check() == 2
"""


def _run_while_compiling(
    code: str, tmp_path: Path, before: str, *, began: str = BACKGROUND, mode: str = "background"
) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run with a compiler that says that it has started, and then does something first."""
    from fklarray_runtime import find_compiler

    real = " ".join(find_compiler(tmp_path / "probe").command)
    script, started = tmp_path / "c++", tmp_path / "started"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *-I*) echo $$ > {started}.part\n'
        f'mv {started}.part {started}\n{before};; esac\nexec {real} "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    # Whoever runs the tests in the background may have had interrupts ignored.
    interrupts = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"import signal\n{interrupts}\nimport os\nstarted = {str(started)!r}\n{began}\n{code}"
    result = _run(code, tmp_path, CXX=str(script), FKLARRAY_COMPILE=mode)
    return result, int(started.read_text())


INTERRUPTED = """
import os, pathlib, signal, threading, time
import numpy as np, fklarray as xp
x = xp.asarray(np.arange(12.0).reshape(3, 4))
y = (x - xp.mean(x, axis=1, keepdims=True)) * 2
def interrupt():
    while not pathlib.Path(started).exists():
        time.sleep(0.01)
    action(int(pathlib.Path(started).read_text()))
threading.Thread(target=interrupt, daemon=True).start()
try:
    np.asarray(y)
except expected as error:
    print(type(error).__name__, error)
else:
    raise AssertionError("not interrupted")
pathlib.Path(started + ".once").touch()
assert np.asarray(y).tolist() == [[-3, -1, 1, 3]] * 3
left = [path.name for path in pathlib.Path(os.environ["FKLARRAY_CACHE_DIR"]).iterdir()]
# The unit that an error names stays.
ends = (".so", ".json", ".cpp") if expected is RuntimeError else (".so", ".json")
assert all(name.endswith(ends) for name in left), left
"""


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("lambda compiler: os.kill(os.getpid(), signal.SIGINT)", "KeyboardInterrupt"),
        ("lambda compiler: os.killpg(compiler, signal.SIGKILL)", "RuntimeError"),
    ],
    ids=["interrupt", "killed compiler"],
)
def test_a_flush_that_is_interrupted_can_be_repeated(
    action: str, expected: str, tmp_path: Path
) -> None:
    once = tmp_path / "started.once"
    code = f"action = {action}\nexpected = {expected}\n{INTERRUPTED}"
    result, compiler = _run_while_compiling(
        code, tmp_path, f"[ -e {once} ] || exec sleep 300", began="", mode="sync"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(
        "KeyboardInterrupt" if expected == "KeyboardInterrupt" else "CompileError"
    ), result.stdout
    with pytest.raises(ProcessLookupError):
        os.kill(compiler, 0)


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -signal.SIGINT),
        ("raise ValueError", 1),
    ],
    ids=["end", "exit", "interrupt", "error"],
)
def test_a_process_that_ends_stops_its_compiler(ending: str, status: int, tmp_path: Path) -> None:
    began = time.monotonic()
    result, compiler = _run_while_compiling(ending, tmp_path, "exec sleep 300")
    assert result.returncode == status, result.stderr
    assert time.monotonic() - began < 60
    with pytest.raises(ProcessLookupError):
        os.kill(compiler, 0)
    left = [path.name for path in (tmp_path / "kernels").iterdir()]
    assert all(name.startswith("compiler-") for name in left), left


def test_a_child_that_is_forked_while_a_kernel_is_compiled(tmp_path: Path) -> None:
    code = """
child = os.fork()
if child == 0:
    background.wait()  # nothing is queued here
    assert check() == 3
    background.wait()
    assert check() == 3
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
background.wait()
assert check() == 2
"""
    result, _ = _run_while_compiling(code, tmp_path, "sleep 1")
    assert result.returncode == 0, result.stderr
    assert len(list((tmp_path / "kernels").glob("*.so"))) == 1
