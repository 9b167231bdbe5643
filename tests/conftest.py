"""Devices, the kernel cache, Hypothesis profiles and golden files, for all tests."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("default", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=2000, deadline=None, print_blob=True)


EMULATED = Path(__file__).parent / "emulated_cuda"


def _requested_devices() -> list[str]:
    """Return what to test: ``"cpu"``, ``"cuda"``, or ``"emulated"`` (a driver that is none)."""
    names = os.environ.get("FKLARRAY_TEST_DEVICES", "cpu").split(",")
    return list(dict.fromkeys(name.strip() for name in names))


def _emulate_cuda(folder: Path) -> None:
    """Put the emulated driver and compiler in the places of NVIDIA's."""
    driver = folder / "emulated_driver.so"
    source = EMULATED / "driver.cpp"
    if not driver.exists() or driver.stat().st_mtime < source.stat().st_mtime:
        part = folder / f"emulated_driver.{os.getpid()}"
        command = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run([*command, str(source), "-o", str(part)], check=True)
        part.replace(driver)
    os.environ["FKLARRAY_CUDA_DRIVER"] = str(driver)
    os.environ["FKLARRAY_NVCC"] = str(EMULATED / "nvcc")


def _available_devices() -> set[str]:
    import fklarray

    devices = fklarray.__array_namespace_info__().devices()
    return {str(device).partition(":")[0] for device in devices}


def _check_devices(requested: list[str]) -> None:
    if "cuda" not in requested:  # always there, and no reason to import anything yet
        return
    available = _available_devices()
    if absent := [name for name in requested if name not in available]:
        raise pytest.UsageError(
            f"FKLARRAY_TEST_DEVICES names {absent}, but this machine has {sorted(available)}"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files with today's output"
    )


def pytest_configure(config: pytest.Config) -> None:
    cache = config.rootpath / ".cache" / "test-kernels"
    cache.parent.mkdir(exist_ok=True)
    cache.mkdir(mode=0o700, exist_ok=True)
    os.environ["FKLARRAY_CACHE_DIR"] = str(cache)
    # Tests count kernels; those of the modes say which one they mean.
    os.environ.setdefault("FKLARRAY_COMPILE", "sync")

    if "cuda" not in _requested_devices():
        _emulate_cuda(cache)
    # JAX would take most of a device's memory, which several test processes share.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

    profile = os.environ.get("FKLARRAY_HYPOTHESIS_PROFILE", "default")
    if profile not in {"default", "thorough"}:
        raise pytest.UsageError(f"FKLARRAY_HYPOTHESIS_PROFILE is {profile!r}, not a known profile")
    settings.load_profile(profile)

    _check_devices(_requested_devices())


@pytest.fixture(scope="session", params=_requested_devices())
def device(request: pytest.FixtureRequest) -> str:
    """Name each device that the tests run on, in turn."""
    name: str = request.param
    return name if name == "cpu" else "cuda:0"


@pytest.fixture
def host() -> str:
    """Name the device of tests about memory that NumPy sees: there is no other of this kind."""
    return "cpu"


@pytest.fixture(autouse=True)
def _arrays_are_made_there(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make the arrays of a test on its device where it names none."""
    names = request.fixturenames
    if "device" not in names or "host" in names or _requested_devices() == ["cpu"]:
        yield
        return
    import fklarray

    with fklarray.default_device(request.getfixturevalue("device")):
        yield


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Say whether golden files are to be rewritten instead of compared."""
    update: bool = request.config.getoption("--update-golden")
    return update


@pytest.fixture(params=["sync", "background", "off"])
def compile_mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test in each compile mode; it leaves no kernel to be compiled behind it."""
    import fklarray
    from fklarray import background

    with fklarray.config.override(compile=request.param):
        yield request.param
    background.wait()
