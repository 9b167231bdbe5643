"""The helpers of array-api-compat take fklarray for an unknown, eager and writable namespace."""

from collections.abc import Iterator

import numpy as np
import pytest
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_array_api_strict_namespace,
    is_cupy_array,
    is_cupy_namespace,
    is_dask_array,
    is_dask_namespace,
    is_jax_array,
    is_jax_namespace,
    is_lazy_array,
    is_ndonnx_array,
    is_ndonnx_namespace,
    is_numpy_array,
    is_numpy_namespace,
    is_pydata_sparse_array,
    is_pydata_sparse_namespace,
    is_torch_array,
    is_torch_namespace,
    is_writeable_array,
    size,
    to_device,
)

import fklarray as xp

ARRAY_TESTS = [
    is_cupy_array,
    is_dask_array,
    is_jax_array,
    is_ndonnx_array,
    is_numpy_array,
    is_pydata_sparse_array,
    is_torch_array,
]
NAMESPACE_TESTS = [
    is_array_api_strict_namespace,
    is_cupy_namespace,
    is_dask_namespace,
    is_jax_namespace,
    is_ndonnx_namespace,
    is_numpy_namespace,
    is_pydata_sparse_namespace,
    is_torch_namespace,
]


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    with xp.config.override(compile="off"):
        yield


@pytest.fixture
def x() -> xp.Array:
    return xp.asarray([[1.0, 2.0], [3.0, 4.0]])


def test_namespace_of_arrays_and_python_scalars(x: xp.Array) -> None:
    assert array_namespace(x) is xp
    assert array_namespace(x, x + 1, 2.0, None) is xp
    assert array_namespace(x, api_version="2024.12") is xp
    assert array_namespace(x, use_compat=False) is xp
    assert xp.__name__ == "fklarray"
    assert len({xp, x.__array_namespace__()}) == 1


def test_namespace_refuses_what_is_not_one(x: xp.Array) -> None:
    with pytest.raises(ValueError, match="array-api-compat wrapper"):
        array_namespace(x, use_compat=True)
    for other in (np.zeros(2), np.float64(1)):
        with pytest.raises(TypeError, match="namespaces"):
            array_namespace(x, other)
    with pytest.raises(TypeError):
        array_namespace([1.0, 2.0])
    with pytest.raises(ValueError, match=r"2019\.01"):
        array_namespace(x, api_version="2019.01")


def test_arrays_are_recognised_as_nobody_elses(x: xp.Array) -> None:
    assert is_array_api_obj(x)
    assert not any(test(x) for test in ARRAY_TESTS)
    assert not any(test(xp) for test in NAMESPACE_TESTS)


def test_device_and_transfer(x: xp.Array) -> None:
    assert device(x) == x.device == "cpu"
    for target in (x.device, "cpu"):
        moved = to_device(x + 1, target)
        assert moved.device == x.device
        assert moved.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    with pytest.raises(ValueError, match="tpu"):
        to_device(x, "tpu")


def test_size(x: xp.Array) -> None:
    assert size(x) == 4
    assert size(xp.zeros((3, 0))) == 0
    assert size(xp.asarray(1)) == 1


def test_pending_arrays_are_writable_and_not_lazy(x: xp.Array) -> None:
    for array in (x, x + 1, xp.sum(x), xp.asarray(True), xp.zeros((0, 3)), x > 2, x * 1j):
        assert is_writeable_array(array)
        assert not is_lazy_array(array)


def test_the_laziness_probe_computes_one_element() -> None:
    # All elements would take half a terabyte.
    huge = xp.broadcast_to(xp.asarray(1.5), (1 << 18, 1 << 18)) * 2
    assert not is_lazy_array(huge)


def test_the_laziness_probe_leaves_the_rest_pending(x: xp.Array) -> None:
    pending = x * 2
    before = xp.counters()["flushes"]
    assert not is_lazy_array(pending)
    assert xp.counters()["flushes"] - before == 1
    assert xp.any(pending > 7)
    assert xp.counters()["flushes"] - before == 2
