"""Launching: parameters, error codes, the executor as stream, lifetime."""

from __future__ import annotations

import shutil
import struct
import threading
from pathlib import Path

import numpy as np
import pytest

from fklarray_runtime import LaunchError, compile_library, find_compiler, set_threads, threads
from fklarray_runtime.kernel import Kernel

UNIT = r"""
#include <cstdint>
#include <cstdio>
#define EXPORTED extern "C" __attribute__((visibility("default")))
struct fkl_executor {
    std::int32_t abi, threads;
    void (*run)(fkl_executor*, void (*)(void*, std::int64_t), void*, std::int64_t);
};
struct Wide { alignas(16) double a; double b; };
struct Sum { std::int64_t* out; std::int64_t scale; };
static thread_local char message[64];
static void body(void* context, std::int64_t task) {
    const Sum* sum = static_cast<Sum*>(context);
    sum->out[task] = task * sum->scale;
}
EXPORTED int fkl_entry(const void** p, void* stream) {
    auto* executor = static_cast<fkl_executor*>(stream);
    Sum sum{*static_cast<std::int64_t* const*>(p[0]), *static_cast<const std::int8_t*>(p[2])};
    const auto tasks = *static_cast<const std::int64_t*>(p[1]);
    const Wide& wide = *static_cast<const Wide*>(p[3]);
    if (reinterpret_cast<std::uintptr_t>(&wide) % 16 != 0 || executor->abi != 1) return 99;
    if (tasks < 0) {
        std::snprintf(message, sizeof message, "%g tasks of %g", double(tasks), wide.b);
        return 7;
    }
    executor->run(executor, body, &sum, tasks);
    return 0;
}
EXPORTED const char* fkl_error_message() { return message; }
"""
FORMAT = "<QqbxxxxxxxxxxxxxxxddI"
OFFSETS = [0, 8, 16, 32]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "unit.cpp").write_text(UNIT)
    compile_library(find_compiler(None), folder / "unit.cpp", folder / "unit.so", [])
    return folder / "unit.so"


@pytest.fixture
def kernel(library: Path) -> Kernel:
    return Kernel(library, FORMAT, OFFSETS)


def test_parameters_of_each_size_arrive_aligned(kernel: Kernel) -> None:
    out = np.zeros(1000, np.int64)
    kernel.launch([out.ctypes.data, 1000, -3, 1.0, 2.0, 5])
    np.testing.assert_array_equal(out, np.arange(1000) * -3)


@pytest.mark.parametrize("count", [1, 4])
def test_many_launches_with_the_pool(kernel: Kernel, count: int) -> None:
    before = threads()
    set_threads(count)
    try:
        for tasks in range(0, 300, 7):
            out = np.full(300, -1, np.int64)
            kernel.launch((out.ctypes.data, tasks, 2, 1.0, 2.0, 5))
            np.testing.assert_array_equal(out[:tasks], np.arange(tasks) * 2)
            assert (out[tasks:] == -1).all()
    finally:
        set_threads(before)


def test_an_error_code_becomes_an_exception(kernel: Kernel) -> None:
    with pytest.raises(LaunchError, match=r"code 7: -2 tasks of 2\.5") as caught:
        kernel.launch([0, -2, 1, 1.0, 2.5, 5])
    assert caught.value.code == 7
    assert caught.value.message == "-2 tasks of 2.5"


def test_each_thread_gets_its_own_message(kernel: Kernel) -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        for _ in range(200):
            try:
                kernel.launch([0, -number, 1, 1.0, 2.5, 5])
            except LaunchError as error:
                if error.message != f"-{number} tasks of 2.5":
                    wrong.append(error.message)

    users = [threading.Thread(target=work, args=(number,)) for number in range(1, 6)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong


def test_values_that_do_not_fit(kernel: Kernel) -> None:
    for values in ([1, 2, 3], [0, 0, 1000, 1.0, 1.0, 5], [0, 0, "x", 1.0, 1.0, 5]):
        with pytest.raises(struct.error):
            kernel.launch(values)  # type: ignore[arg-type]


def test_offsets_are_checked(library: Path) -> None:
    for offsets in ([-1], [8]):
        with pytest.raises(ValueError, match="outside"):
            Kernel(library, "<Q", offsets)
    with pytest.raises(ValueError, match="9000 parameters"):
        Kernel(library, "<Q", [0] * 9000)


def test_the_library_is_unloaded_with_its_kernel(library: Path, tmp_path: Path) -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("no /proc")
    # A file of its own: the exceptions of other tests may still hold their kernels.
    library = shutil.copy(library, tmp_path / "own.so")
    kernel = Kernel(library, FORMAT, OFFSETS)
    assert str(library) in maps.read_text()
    del kernel
    assert str(library) not in maps.read_text()
