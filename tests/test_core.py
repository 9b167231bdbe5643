"""The compiled core does what the Python functions behind it do, and is there when it is wanted."""

from __future__ import annotations

import copy
import gc
import inspect
import math
import os
import pickle
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits
from fklarray import core
from fklarray.record import record
from fklarray.recording import Scalar, State
from fklarray_codegen.ops import OPS

ROOT = Path(__file__).parents[1]
DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64",
          "complex64")  # fmt: skip
SHAPES = ((4, 3), (4, 3), (3,), (1, 3), (), (2,), (0, 3))
NUMBERS: tuple[Any, ...] = (
    0.5, -0.0, 0.0, 1, -3, 2, 1e30, 1e38, -1e39, 1e308, math.inf, -math.inf, math.nan, True, False,
    1 << 40, -1 << 70, 10**400, 1j, np.float32(0.5), np.float64(2.0), np.int64(3), np.bool_(True),
    "a word", None, [1, 2], np.ones(3, np.float32),
)  # fmt: skip
UNARY = {
    "__neg__": "negative", "__abs__": "abs", "__pos__": "positive", "__invert__": "bitwise_invert",
}  # fmt: skip
BINARY = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__pow__": "pow",
    "__and__": "bitwise_and", "__lshift__": "bitwise_left_shift", "__lt__": "less",
    "__eq__": "equal", "__ge__": "greater_equal",
}  # fmt: skip
REFLECTED = {
    "__radd__": "add", "__rsub__": "subtract", "__rmul__": "multiply", "__rtruediv__": "divide",
    "__rpow__": "pow", "__rand__": "bitwise_and",
}  # fmt: skip


def _python(function: Any) -> Callable[..., Any]:
    """Return the Python function behind a front."""
    return inspect.unwrap(function)


def _outcome(function: Callable[..., Any], *operands: Any) -> tuple[object, ...]:
    """Describe everything about what a call records or raises."""
    try:
        result = function(*operands)
    except Exception as error:
        return type(error), str(error)
    if not isinstance(result, xp.Array):
        return (result,)
    given = [leaf for x in operands if isinstance(x, xp.Array) for leaf in x._state[1]]
    leaves = [_leaf(leaf, given) for leaf in result._state[1]]
    return type(result), result.shape, result._state[0], *leaves


def _leaf(leaf: Any, given: list[Any]) -> object:
    if isinstance(leaf, Scalar):
        return type(leaf), type(leaf.value), repr(leaf.value)
    return id(leaf) if leaf in given else (type(leaf), leaf.strides)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(8))
def test_both_record_the_same_for_random_programs(seed: int, device: str) -> None:
    draw = random.Random(seed)
    arrays = [
        xp.asarray(np.ones(shape, dtype), device=device) for dtype in DTYPES for shape in SHAPES
    ]
    recorded = 0
    for _ in range(1500):
        names = draw.choice((UNARY, BINARY, BINARY, REFLECTED))
        name = draw.choice(list(names))
        front = getattr(xp.Array, name)
        array = draw.choice(arrays)
        same_dtype = [other for other in arrays if other.dtype == array.dtype]
        other = draw.choice((draw.choice(NUMBERS), draw.choice(arrays), draw.choice(same_dtype)))
        operands = (array,) if names is UNARY else (array, other)
        first, again = _outcome(front, *operands), _outcome(front, *operands)
        assert first == again == _outcome(_python(front), *operands), (front.__name__, operands)
        if first[0] is not xp.Array:
            continue
        recorded += 1
        # What is remembered is what checking everything would record.
        in_order = operands[::-1] if names is REFLECTED else operands
        assert first == _outcome(partial(record, OPS[names[name]]), *in_order)
        result = front(*operands)
        # So that no operand is computed because it has grown too large.
        if result._state[0].operations < 20 and len(result._state[1]) < 20:
            arrays.append(result)
    assert recorded > 300


@pytest.mark.parametrize("name", ["add", "divide", "hypot", "exp", "negative", "logical_not"])
def test_functions_record_what_python_records(name: str, device: str) -> None:
    function, op = getattr(xp, name), OPS[name]
    arrays = [xp.asarray(np.ones((2, 3), dtype), device=device) for dtype in DTYPES]
    pairs = [(x,) for x in arrays] if op.arity == 1 else [(x, y) for x in arrays for y in arrays]
    pairs += [] if op.arity == 1 else [(arrays[-3], 0.5), (0.5, arrays[-3])]
    fronts = inspect.getclosurevars(function).nonlocals
    for operands in pairs:
        if op.arity == 1:
            front, arguments = fronts["record_unary"], operands
        elif isinstance(operands[0], xp.Array):
            front, arguments = fronts["binary"], operands
        else:
            front, arguments = fronts["reflected"], operands[::-1]
        _outcome(front, *arguments)
        wanted = _outcome(_python(front), *arguments)
        assert _outcome(front, *arguments) == wanted == _outcome(function, *operands)


class Below(xp.Array):
    """A subclass, whose operators come first."""

    __slots__ = ()

    def __radd__(self, other: Any) -> str:
        return "below"


def test_subclasses_are_operands(device: str) -> None:
    x = xp.asarray(np.ones(3, np.float32), device=device)
    below = Below(x._shape, x._state)
    for _ in range(2):
        assert x + below == "below"
        assert type(x * below) is type(below * x) is type(below * 2.0) is type(-below) is xp.Array


GRAPHS: dict[str, Callable[[xp.Array, xp.Array], xp.Array]] = {
    "numbers": lambda x, y: (x * 1.5 + 2 - y) / 2.5,
    "shared": lambda x, y: (x + y) * (y - x) * x,
    "row": lambda x, y: x * y[0] + 1.0,
    "strided": lambda x, y: x[:, ::-1] + y[:, :1],
    "repeated": lambda x, y: xp.reshape(x, (20, 3)) * y[0, :3] - y[1, 8:2:-2],
    "element": lambda x, y: x[1, 2] * 2.0,
    "computed": lambda x, y: x,
    "head": lambda x, y: x[:2],
    "tail": lambda x, y: x[2:],
    "integers": lambda x, y: xp.astype(x, xp.int16) * 3 + xp.astype(y, xp.uint8),
    "truth": lambda x, y: xp.logical_and(x > y, xp.astype(x, xp.bool)),
    "complex": lambda x, y: xp.astype(x, xp.complex64) * (1 + 2j) + y,
    "16 bits": lambda x, y: xp.astype(x, xp.float16) * 0.1 + 3.0,
    "nothing": lambda x, y: x[:0] + y[:0],
}


@pytest.mark.parametrize("name", GRAPHS)
def test_both_compute_the_same_and_count_it(name: str, device: str) -> None:
    values = np.linspace(-3, 40, 60, dtype=np.float32).reshape(6, 10)
    x, y = xp.asarray(values, device=device), xp.asarray(values[::-1].copy(), device=device)
    counted: list[dict[str, int]] = []
    results: list[xp.Array] = []
    for materialize in (_python(xp.Array._materialize), xp.Array._materialize):
        materialize(GRAPHS[name](x, y))  # prepared
        before = xp.counters()
        result = GRAPHS[name](x, y)
        state: State = materialize(result)
        after = xp.counters()
        assert result._state is state
        assert materialize(result) is state
        results.append(result)
        counted.append({key: after[key] - before[key] for key in after if key != "pool_bytes"})
    assert counted[0] == counted[1]
    assert results[0]._state[0] is results[1]._state[0]
    assert results[0]._state[1][0].strides == results[1]._state[1][0].strides
    assert_same_bits(np.asarray(results[1]), np.asarray(results[0]))


def test_no_kernel_runs_while_compiling_is_off(device: str) -> None:
    x = xp.asarray(np.ones(5, np.float32), device=device)
    xp.materialize(x * 2.0 + 1.5)
    before = xp.counters()["kernels_launched"]
    with xp.config.override(compile="off"):
        xp.materialize(x * 2.0 + 1.5)
    assert xp.counters()["kernels_launched"] == before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [7, 5000])
def test_the_core_repeats_short_rows_of_every_type(count: int, dtype: str, device: str) -> None:
    values = np.arange(3 * count).reshape(count, 3).astype(dtype)
    rows = np.arange(20, 32).reshape(4, 3).astype(dtype)
    x, y = (xp.asarray(array, device=device) for array in (values, rows))
    for row in (slice(None), slice(None, None, -1)):

        def recorded(row: slice = row) -> xp.Array:
            return xp.where(x == y[2, row], y[0, row], y[1, row])

        wanted = np.where(values == rows[2, row], rows[0, row], rows[1, row])
        xp.materialize(recorded())  # prepared
        run = core.core_counters()[0]
        assert_same_bits(_taken(recorded()), wanted)
        # On a device, a row is repeated by a kernel that Python launches.
        assert core.core_counters()[0] - run == (core.compiled() and device == "cpu")


def test_a_repeated_row_is_read_as_it_was_recorded(device: str) -> None:
    x = xp.asarray(np.ones((50, 3)), device=device)
    row = xp.asarray(np.arange(3.0), device=device)
    for number in range(4):
        recorded = x * row
        row[...] = row + 1
        assert _taken(recorded)[::49].tolist() == [[number, number + 1, number + 2]] * 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_every_type_reach_the_kernel(dtype: str, device: str) -> None:
    x = xp.asarray(np.ones(5, dtype), device=device)
    for number in (1, 3, -1, 100, 0.5, -0.0, (1 << 62) + 1, True, 0.1 - 2j, complex(-0.0, 1e300)):
        results: list[np.ndarray] = []
        run = core.core_counters()[0]
        for materialize in (_python(xp.Array._materialize), xp.Array._materialize):
            try:
                recorded = x + number
            except OverflowError:
                continue
            materialize(recorded)
            results.append(np.asarray(recorded))
        if results:
            assert core.core_counters()[0] - run == core.compiled()
            assert_same_bits(results[1], results[0])
            with np.errstate(over="ignore"):
                wanted = np.asarray(np.ones(5, dtype) + number, results[1].dtype)
            assert_same_bits(results[1], wanted)


SHARING: dict[str, Callable[[xp.Array], Any]] = {
    "nothing": lambda x: None,
    "memory": lambda x: x[1:],
    "stream": lambda x: x + 1.0,
    "state": lambda x: x.copy(),
    "tail": lambda x: x[1:],
}


@pytest.mark.parametrize("options", [
    {}, {"max_version": (1, 0)}, {"max_version": (1, 3), "copy": None, "dl_device": None},
    {"max_version": (0, 8)}, {"max_version": None, "stream": None}, {"max_version": [1, 0]},
    {"dl_device": (1, 0)}, {"copy": True}, {"copy": False, "max_version": (1, 0)},
    {"dl_device": (2, 0)}, {"stream": 1}, {"word": 1}, {"max_version": (10**30, 0)},
])  # fmt: skip
@pytest.mark.parametrize("share", SHARING)
def test_both_export_the_same(options: dict[str, Any], share: str, device: str) -> None:
    outcomes: list[object] = []
    for export in (_python(xp.Array.__dlpack__), xp.Array.__dlpack__):
        array = xp.asarray(np.ones(6, np.float32), device=device) * 2.0
        array._materialize()
        kept = SHARING[share](array)
        if share == "tail":
            array = kept
        try:
            capsule = export(array, **options)
        except Exception as error:
            outcomes.append((type(error), str(error)))
            continue
        if device != "cpu":  # where NumPy does not see the memory
            outcomes.append(repr(capsule).split()[2])
            continue
        taken = np.from_dlpack(_Once(capsule))
        address = array._state[1][0].value
        same = taken.__array_interface__["data"][0] == address
        outcomes.append((repr(capsule).split()[2], same, taken.flags.writeable, taken.tolist()))
        assert share in ("nothing", "tail") or not (same and taken.flags.writeable)
        del kept
    assert outcomes[0] == outcomes[1]


def _taken(x: xp.Array) -> np.ndarray[Any, Any]:
    """Return what NumPy takes by DLPack: the memory, or a copy of a device's."""
    return np.from_dlpack(x, device=None if x.device == "cpu" else "cpu")


class _Once:
    """A producer with one capsule."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _chain(x: Any) -> Any:
    return ((x * 1.5 + 2.5 - 1.5) * 2.5 + 1.5) / 2.5


def test_nothing_is_left_behind(device: str) -> None:
    x = xp.asarray(np.ones(1024, np.float32), device=device)
    y = xp.asarray(np.ones((2, 1024), np.float32), device=device)

    def work() -> None:
        _taken(_chain(x))
        xp.materialize((x + y) * x - abs(1.0 - y), xp.reshape(y, (512, 4)) * y[1, 4:8])
        for operand in ("a word", 1e300):
            _outcome(xp.Array.__add__, x, operand)

    # The core remembers its latest keys, some of which are new each time.
    for _ in range(1000):
        work()
    gc.collect()
    before, pool = sys.getallocatedblocks(), xp.counters()["pool_bytes"]
    for _ in range(2000):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - before < 200
    assert xp.counters()["pool_bytes"] == pool


@pytest.mark.parametrize("size", [1024, 200_000])
def test_threads_record_and_flush_at_once(size: int, device: str) -> None:
    values = np.linspace(-2, 2, size, dtype=np.float32)
    x = xp.asarray(values, device=device)
    wanted, shared = np.array(_chain(x)), [_chain(x)]
    failures: list[BaseException] = []
    rounds = 400_000 // size + 20

    def work() -> None:
        try:
            for _ in range(rounds):
                assert_same_bits(_taken(_chain(x)), wanted)
                everyones = shared[0]
                shared[0] = _chain(x)
                assert_same_bits(np.asarray(everyones), wanted)
        except BaseException as error:
            failures.append(error)

    before = xp.counters()["flushes"]
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert xp.counters()["flushes"] - before >= 6 * rounds


def test_fronts_look_like_their_functions() -> None:
    for name in ("__add__", "__radd__", "__neg__", "_materialize", "__dlpack__"):
        front = getattr(xp.Array, name)
        assert front.__doc__ == _python(front).__doc__
        assert inspect.signature(front) == inspect.signature(_python(front))
    bound = xp.asarray(1.0).__add__
    assert inspect.ismethod(bound)
    assert float(bound(2.0)) == 3.0


# ------------------------------------------------------------------------- with and without it


SUITES = (
    "tests/test_host_cost.py",
    "tests/test_laziness.py",
    "tests/test_promotion.py",
    "tests/test_random_graphs.py",
    "tests/test_dlpack.py",
)


def _path() -> str:
    """Where the packages of this very run are."""
    return os.pathsep.join(filter(None, (*sys.path, os.environ.get("PYTHONPATH"))))


def _run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": _path(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_core_is_built() -> None:
    assert core.compiled() == (os.environ.get("FKLARRAY_CORE") != "python")


USE = """
import numpy as np, fklarray as xp
from fklarray import core
x = xp.asarray(np.ones(3, np.float32))
print(core.compiled(), np.from_dlpack(x * 2.0 + 1.0).tolist(), type(xp.Array.__add__).__name__)
"""


def test_python_does_it_alone() -> None:
    without = "import sys; sys.modules['fklarray_runtime._core'] = None\n"
    for run in (_run(USE, FKLARRAY_CORE="python"), _run(without + USE, FKLARRAY_CORE="")):
        assert run.returncode == 0, run.stderr
        assert run.stdout.split(" ", 1) == ["False", "[3.0, 3.0, 3.0] function\n"]
    missing = _run(without + USE, FKLARRAY_CORE="compiled")
    assert "ImportError" in missing.stderr or "ModuleNotFoundError" in missing.stderr


@pytest.mark.parametrize("suite", SUITES)
def test_suites_pass_without_the_core(suite: str) -> None:
    command = [sys.executable, "-m", "pytest", suite, "-n", "0", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": _path(), "FKLARRAY_CORE": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_a_misspelt_core_is_an_error() -> None:
    assert "FKLARRAY_CORE must be" in _run(USE, FKLARRAY_CORE="compield").stderr


def test_functions_behind_a_front_are_like_others() -> None:
    for function in (xp.sum, xp.clip, xp.nn.softmax, xp.where, xp.exp, xp.add):
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function
        assert weakref.ref(function)() is function
        assert callable(function)
        assert function.__module__.startswith("fklarray.")
        assert getattr(sys.modules[function.__module__], function.__name__) is function
        assert function.__doc__
        assert inspect.signature(function).parameters
