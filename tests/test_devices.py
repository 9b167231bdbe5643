"""Arrays on NVIDIA devices: on real ones where they are asked for, else on the emulated driver."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits
from counting import counted
from fklarray import background
from fklarray_runtime import describe_device, device_count

CUDA = "cuda:0"
VALUES = np.linspace(-3, 3, 60, dtype=np.float32).reshape(3, 4, 5)
KINDS = ["float32", "float64", "int32", "uint8", "bool", "complex64", "float16", "bfloat16"]


@pytest.fixture
def x() -> xp.Array:
    return xp.asarray(VALUES, device=CUDA)


# ----------------------------------------------------------------------------------- where


def test_devices_are_listed() -> None:
    names = [device.name for device in xp.__array_namespace_info__().devices()]
    assert names == ["cpu", *[f"cuda:{number}" for number in range(device_count())]]
    assert device_count() >= 1
    assert describe_device(0).architecture.startswith("sm_")


def test_a_device_has_several_spellings() -> None:
    for name in ("cuda", "cuda:0", xp.Device("cuda:0")):
        assert xp.zeros(2, device=name).device == "cuda:0"


@pytest.mark.parametrize("name", ["cuda:99", "gpu", "cuda:-1", "cuda:x", ""])
def test_unknown_devices_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=r"devices here: 'cpu', 'cuda:0'"):
        xp.zeros(2, device=name)


@pytest.mark.parametrize(
    "make",
    [
        lambda: xp.zeros(3),
        lambda: xp.full((2, 2), 1.5),
        lambda: xp.arange(5),
        lambda: xp.linspace(0, 1, 4),
        lambda: xp.eye(3),
        lambda: xp.asarray(2.5),
        lambda: xp.asarray([1, 2, 3]),
        lambda: xp.asarray(VALUES),
        lambda: xp.fft.fftfreq(4),
    ],
)
def test_creation_on_the_default_device(make: Callable[[], xp.Array]) -> None:
    wanted = make()
    with xp.default_device("cuda") as device:
        assert (device, xp.__array_namespace_info__().default_device()) == (CUDA, CUDA)
        made = make()
    assert (wanted.device, made.device) == ("cpu", CUDA)
    assert_same_bits(np.asarray(made), np.asarray(wanted))
    assert (made + 1).device == CUDA


def test_the_default_device_is_of_the_thread() -> None:
    seen: list[str] = []
    with xp.default_device(CUDA):
        thread = threading.Thread(target=lambda: seen.append(xp.zeros(1).device.name))
        thread.start()
        thread.join()
    assert seen == ["cpu"]


@pytest.mark.parametrize("like", [xp.zeros_like, xp.ones_like, xp.empty_like])
def test_like_is_on_the_same_device(like: Callable[..., xp.Array], x: xp.Array) -> None:
    assert like(x).device == CUDA
    assert like(x, device="cpu").device == "cpu"


# -------------------------------------------------------------------------------- computing


def _chain(m: Any, x: Any) -> Any:
    return ((x * 1.5 + 2.5 - 1.5) * 2.5 + 1.5) / 2.5


def test_a_chain_is_one_kernel_with_numpys_bits(x: xp.Array) -> None:
    with counted("kernels_launched", "reference_evaluations") as change:
        result = np.asarray(_chain(xp, x))
    assert change == {"kernels_launched": 1, "reference_evaluations": 0}
    assert_same_bits(result, _chain(np, VALUES))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 63, 64, 65, 1000, 4097, 70001])
@pytest.mark.parametrize("name", KINDS)
def test_sizes_and_types(name: str, size: int) -> None:
    values = np.asarray(xp.astype(xp.asarray(np.arange(size) % 7), getattr(xp, name)))
    x, y = xp.asarray(values, device=CUDA), xp.asarray(values)
    assert_same_bits(np.asarray(x + x), np.asarray(y + y))
    assert_same_bits(np.asarray(x[::-1] * x), np.asarray(y[::-1] * y))
    assert_same_bits(np.asarray(xp.where(x == y.to_device(CUDA)[:1], x, x[::-1])),
                     np.asarray(xp.where(y == y[:1], y, y[::-1])))  # fmt: skip


VIEWS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.mT + 1,
    "flipped": lambda x: x[::-1, :, ::-1] + 1,
    "strided": lambda x: x[:, ::2, 1::3] * 2,
    "broadcast": lambda x: x * x[:1, :, :1],
    "one element": lambda x: x[1, 2, 3] + x,
    "row": lambda x: x - x[0, 0],
    "mixed": lambda x: x.mT * 2 + x[:, :1, :].mT,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, x: xp.Array) -> None:
    wanted = VIEWS[name](xp.asarray(VALUES))
    with counted("reference_evaluations") as change:
        got = VIEWS[name](x)
        xp.materialize(got)
    assert change == {"reference_evaluations": 0}
    assert got.device == CUDA
    assert_same_bits(np.asarray(got), np.asarray(wanted))


def test_channels_of_pixels() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (33, 47, 3), dtype=np.uint8)
    mean, scale = np.array([0.4, 0.5, 0.6], np.float32), np.array([0.2, 0.25, 0.3], np.float32)
    on_device = [xp.asarray(one, device=CUDA) for one in (pixels, mean, scale)]
    got = (xp.astype(on_device[0], xp.float32) / 255 - on_device[1]) / on_device[2]
    assert_same_bits(np.asarray(got), (pixels.astype(np.float32) / np.float32(255) - mean) / scale)


REDUCED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: xp.sum(x * 2, axis=1) + 1,
    "sum of all": lambda x: xp.sum(x * x),
    "columns": lambda x: xp.max(x, axis=0) - xp.min(x, axis=0),
    "centred": lambda x: (x - xp.mean(x, axis=-1, keepdims=True)) / xp.std(x, axis=-1, keepdims=1),
    "argmax": lambda x: xp.argmax(x, axis=2),
    "any": lambda x: xp.any(x > 2.5, axis=1),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=2) * 2,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCED)
def test_reductions_are_one_kernel_with_the_hosts_bits(name: str, x: xp.Array) -> None:
    with counted("kernels_launched", "reference_evaluations") as change:
        got = REDUCED[name](x)
        xp.materialize(got)
    assert change == {"kernels_launched": 1, "reference_evaluations": 0}
    assert got.device == CUDA
    assert_same_bits(np.asarray(got), np.asarray(REDUCED[name](xp.asarray(VALUES))))


@pytest.mark.parametrize(
    "shape",
    [(1, 1), (1, 100_003), (3, 5000), (257, 33), (5000, 3), (70_001, 1), (9, 70_001), (1030, 1030)],
)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_shapes_of_reductions(shape: tuple[int, int], axis: int | None) -> None:
    values = np.random.default_rng(7).standard_normal(shape, dtype=np.float32)
    x, y = xp.asarray(values, device=CUDA), xp.asarray(values)
    assert_same_bits(np.asarray(xp.sum(x, axis=axis)), np.asarray(xp.sum(y, axis=axis)))
    assert_same_bits(np.asarray(xp.max(x - 1, axis=axis)), np.asarray(xp.max(y - 1, axis=axis)))
    soft, wanted = (np.asarray(xp.nn.softmax(one, axis=axis)) for one in (x, y))
    np.testing.assert_allclose(soft, wanted, rtol=2e-5)


REST: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: xp.sum(x, axis=1),
    "mean of all": xp.mean,
    "normalise": lambda x: (x - xp.mean(x, axis=-1, keepdims=True)) / xp.std(x),
    "argmax": lambda x: xp.argmax(x, axis=0),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=2),
    "concat": lambda x: xp.concat([x, x * 2], axis=1),
    "sort": lambda x: xp.sort(-x, axis=1),
    "take": lambda x: xp.take(x, xp.asarray([2, 0], device=x.device), axis=1),
    "matmul": lambda x: x @ x.mT,
    "fft": xp.fft.rfft,
    "pad": lambda x: xp.pad(x, 1),
    "unique_values": lambda x: xp.unique_values(xp.round(x)),
    "mask": lambda x: x[x > 0],
    "indices": lambda x: x[[0, 2], 1],
    "tril": xp.tril,
    "inverse": lambda x: xp.linalg.inv(x[:, :3, :3] + 5 * xp.eye(3, device=x.device)),
    "special": lambda x: xp.special.erf(x) * xp.special.gammaln(xp.abs(x) + 3),
    "softmax": xp.nn.softmax,
    "isin": lambda x: xp.isin(x, x[0]),
}  # fmt: skip


@pytest.mark.parametrize("pending", [False, True], ids=["in memory", "pending"])
@pytest.mark.parametrize("name", REST)
def test_the_rest_of_the_namespace(name: str, pending: bool, x: xp.Array) -> None:
    y = xp.asarray(VALUES)
    if pending:
        x, y = x * 1.25, y * 1.25
    got, wanted = REST[name](x), REST[name](y)
    assert got.device == CUDA
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["background", "off"])
def test_other_modes_give_the_same_bits(mode: str, x: xp.Array) -> None:
    wanted = np.asarray(_chain(xp, xp.asarray(VALUES)))
    with xp.config.override(compile=mode):
        assert_same_bits(np.asarray(_chain(xp, x)), wanted)
        assert_same_bits(np.asarray(_chain(xp, x.mT)), np.swapaxes(wanted, 1, 2))
    background.wait()


def test_operations_alone_give_the_same_bits(x: xp.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_SECONDS_PER_COMPILATION", 1e9)
    wanted = np.asarray(xp.exp(x) * 3.5 - x)
    with xp.config.override(compile="background"):
        np.asarray(xp.exp(x))
        got = np.asarray(xp.exp(x) * 3.75 + 0.25 * x - (xp.exp(x) * 0.25 + 1.25 * x))
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "mixed",
    [
        lambda x, y: x + y,
        lambda x, y: xp.where(x > 0, x, y),
        lambda x, y: xp.clip(x, y, VALUES + 1),
        lambda x, y: xp.concat([x, y]),
        lambda x, y: x @ y.mT,
        xp.isin,
        lambda x, y: xp.take(x, xp.astype(y[0, 0, :1] * 0, xp.int64), axis=0),
        lambda x, y: x + xp.sum(y),
        lambda x, y: x.__setitem__((0, ...), y[0]),
    ],
)
def test_mixed_devices_are_refused_when_recorded(
    mixed: Callable[[xp.Array, xp.Array], Any], x: xp.Array
) -> None:
    with pytest.raises(ValueError, match=r"cpu.*cuda:0|cuda:0.*cpu"):
        mixed(x, xp.asarray(VALUES))
    assert_same_bits(np.asarray(x), VALUES)


def test_numbers_and_numpys_arrays_go_along(x: xp.Array) -> None:
    for other in (2, 2.5, np.float32(2), VALUES):
        result = x * other
        assert result.device == CUDA
        assert_same_bits(np.asarray(result), VALUES * np.float32(other))
    x[0] = VALUES[1]
    assert_same_bits(np.asarray(x[0]), VALUES[1])


def test_memory_that_is_not_there_is_said() -> None:
    total = describe_device(0).total
    many = xp.zeros(2 * total, device=CUDA) + xp.asarray(1.0, device=CUDA)
    with pytest.raises(MemoryError, match=rf"{8 * many.size} bytes on cuda:0: \d+ of its {total}"):
        xp.materialize(many)
    assert float(many[0]) == 1.0  # still pending and usable


def test_a_forked_child_is_told() -> None:
    code = """
import os
import numpy as np, fklarray as xp
from fklarray.plans import plans
from fklarray_runtime import launch_on
x = xp.asarray(np.arange(3.0), device="cuda") + 1
xp.materialize(x)
plan = next(plan for plan in plans.values() if plan.place == "cuda:0")
if os.fork() == 0:
    try:
        np.asarray(xp.asarray(np.arange(3.0), device="cuda") + 1)
    except Exception as error:
        print(error)
    try:
        launch_on(plan.kernel, bytes(64), 0, 1, [])
    except Exception as error:
        print(error)
    xp.clear_pool()
    assert float(xp.sum(xp.asarray([1.0, 2.0, 3.0]))) == 6.0
    print("the host works", flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert np.asarray(x * 2).tolist() == [2, 4, 6]
"""
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "queueing a kernel on cuda:0 failed with the driver's code -1" in run.stdout
    assert "allocating 24 bytes" in run.stdout
    assert run.stdout.count("forked") == 2
    assert "the host works" in run.stdout


def test_without_a_driver_the_reason_is_named(tmp_path: Path) -> None:
    code = """
import fklarray as xp
assert xp.__array_namespace_info__().devices() == ("cpu",)
try:
    xp.zeros(3, device="cuda")
except ValueError as error:
    print(error)
"""
    environment = {**os.environ, "FKLARRAY_CUDA_DRIVER": str(tmp_path / "absent.so")}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "there is no NVIDIA driver" in run.stdout
    assert "absent.so" in run.stdout


def test_without_nvcc_operations_run_one_by_one(tmp_path: Path) -> None:
    code = """
import numpy as np, warnings
import fklarray as xp
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    x = xp.asarray(np.arange(4.0), device="cuda")
    assert np.asarray(xp.sqrt(x * x) + 1).tolist() == [1, 2, 3, 4]
    assert (x + 1).device == "cuda:0"
print(*[str(one.message) for one in seen])
"""
    environment = {**os.environ, "FKLARRAY_NVCC": str(tmp_path / "nvcc")}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "nvcc" in run.stdout


# ------------------------------------------------------------------------------ assignment


def test_values_are_those_of_the_recording(x: xp.Array) -> None:
    doubled = x * 2
    view = x[0]
    x[0, 0] = 7
    x[x < 0] = 0
    x[[1, 2], 1] = xp.asarray(5.0, dtype=xp.float32, device=CUDA)
    x += 1
    wanted = VALUES.copy()
    wanted[0, 0] = 7
    wanted[wanted < 0] = 0
    wanted[[1, 2], 1] = 5
    assert_same_bits(np.asarray(x), wanted + 1)
    assert_same_bits(np.asarray(doubled), VALUES * 2)
    assert_same_bits(np.asarray(view), VALUES[0])


# -------------------------------------------------------------------------------- exchange


def test_there_and_back(x: xp.Array) -> None:
    y = (x + 1).to_device("cpu")
    assert y.device == "cpu"
    assert_same_bits(np.asarray(y), VALUES + 1)
    assert x.to_device(CUDA) is x
    assert y.to_device("cuda").device == CUDA
    assert xp.asarray(y, device=CUDA).device == CUDA
    assert xp.astype(y, xp.float64, device=CUDA).device == CUDA
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray(y, device=CUDA, copy=False)


def test_copies_and_pickles(x: xp.Array) -> None:
    assert copy.copy(x).device == copy.deepcopy(x).device == CUDA
    assert_same_bits(np.asarray(pickle.loads(pickle.dumps(x))), VALUES)
    assert "device='cuda:0'" in repr(x)


def test_dlpack_to_ourselves_shares(x: xp.Array) -> None:
    assert x.__dlpack_device__() == (2, 0)
    y = xp.from_dlpack(x)
    assert y.device == CUDA
    address = x.__cuda_array_interface__["data"][0]
    assert y.__cuda_array_interface__["data"][0] == address
    del x
    gc.collect()
    assert_same_bits(np.asarray(y + 0), VALUES + 0)
    y[0] = 1  # a copy: the memory came from somebody else
    assert y.__cuda_array_interface__["data"][0] != address


def test_dlpack_to_the_cpu(x: xp.Array) -> None:
    assert_same_bits(np.asarray(xp.from_dlpack(x, device="cpu")), VALUES)
    assert_same_bits(np.from_dlpack(x, device="cpu"), VALUES)
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


@pytest.mark.parametrize("stream", [0, -2])
def test_streams_that_are_none_are_refused(stream: int, x: xp.Array) -> None:
    with pytest.raises(BufferError, match=str(stream)):
        x.__dlpack__(stream=stream)
    for valid in (None, -1, 1, 2):
        assert x.__dlpack__(stream=valid, max_version=(1, 0)) is not None


def test_the_cuda_array_interface(x: xp.Array) -> None:
    y = x * 2
    found = y.__cuda_array_interface__
    assert (found["version"], found["shape"], found["typestr"]) == (3, (3, 4, 5), "<f4")
    assert found["strides"] is None
    assert found["data"][1] is False
    kept = y * 1
    assert y.__cuda_array_interface__["data"][1] is True  # what was recorded sees the memory
    assert_same_bits(np.asarray(kept), VALUES * 2)
    assert not hasattr(xp.zeros(3), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="bfloat16"):
        _ = xp.zeros(3, dtype=xp.bfloat16, device=CUDA).__cuda_array_interface__


@pytest.mark.skipif(
    "cuda" not in os.environ.get("FKLARRAY_TEST_DEVICES", ""),
    reason="torch does not see the emulated device",
)
def test_torch_shares_in_both_directions(x: xp.Array) -> None:
    import torch

    tensor = torch.from_dlpack(x * 2)
    assert tensor.device == torch.device("cuda", 0)
    y = xp.from_dlpack(tensor)
    assert y.__cuda_array_interface__["data"][0] == tensor.data_ptr()
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(20):
            tensor = torch.from_dlpack(xp.from_dlpack(tensor * 2) / 2)
    assert_same_bits(np.asarray(xp.from_dlpack(tensor)), VALUES * 2)
    del tensor
    gc.collect()
    assert_same_bits(np.asarray(y + 0), VALUES * 2)


def test_memory_goes_back(x: xp.Array) -> None:
    gc.collect()
    xp.materialize(x)
    before = describe_device(0).pool
    for _ in range(50):
        y = xp.from_dlpack(x * 2 + 1)
        xp.materialize(y * 3)
        del y
    gc.collect()
    assert describe_device(0).pool <= before + (64 << 20)


def test_the_pools_of_devices_are_trimmed(x: xp.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    from fklarray import inspection

    trimmed: list[int] = []
    trim = inspection.trim_device
    monkeypatch.setattr(inspection, "trim_device", lambda one: (trimmed.append(one), trim(one)))
    xp.materialize(xp.zeros(1 << 24, device=CUDA) + x[0, 0, 0])
    before = describe_device(0).pool
    xp.clear_pool()
    assert trimmed == list(range(device_count()))
    assert describe_device(0).pool <= max(before - (1 << 25), 1 << 25)
    assert_same_bits(np.asarray(x), VALUES)


def test_threads_use_a_device_together(x: xp.Array) -> None:
    results: list[Any] = []

    def work(k: int) -> None:
        for _ in range(10):
            results.append((k, np.asarray(x * k + x)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 60
    for k, result in results:
        assert_same_bits(result, VALUES * np.float32(k) + VALUES)
