"""Expressions on an NVIDIA device beside its peers and the device's copy, in one process.

    python benchmarks/gpu.py --output benchmarks/results/gpu.json

Throughput is that of the bytes that a computation must read and write, best of several rounds in
which the candidates take turns. Host time is that of a call whose work the device does meanwhile.
Needs torch and CuPy; JAX where it is there.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROUNDS = 15
_SETTLE = 3
_SIDE = 16384


@dataclass(frozen=True)
class Work:
    """One computation.

    Attributes
    ----------
    name : str
        What is computed.
    dtype : str
        Of the inputs.
    shape : tuple of int
        Of the result.
    inputs : callable
        Makes the inputs from torch.
    compute : callable
        The computation in a namespace.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    inputs: Callable[[Any], tuple[Any, ...]]
    compute: Callable[..., Any]


def _six(m: Any, x: Any) -> Any:
    return ((x * 1.5 + 2.5 - 1.5) * 2.5 + 1.5) / 2.5


def _new(m: Any, x: Any) -> Any:
    return (((x - 1.5) * 2.5 + 1.5) / 2.5 - 1.5) * 2.5 + x


def _six_integers(m: Any, x: Any) -> Any:
    return ((x * 3 + 2 - 1) * 5 + 7) - 2


def _cast(m: Any, x: Any) -> Any:
    return (_float32(m, x) * 0.00392156862745098 - 0.5) * 2.0


def _float32(m: Any, x: Any) -> Any:
    return x.astype(m.float32) if hasattr(x, "astype") else x.to(m.float32)


def _row(m: Any, a: Any, b: Any, c: Any) -> Any:
    return a * b + m.exp(2 * c)


def _where(m: Any, a: Any, b: Any) -> Any:
    return m.where(a > b, a, b * 2)


def _planes(m: Any, x: Any) -> Any:
    scaled = (_float32(m, x) * 0.00392156862745098 - 0.5) * 2.0
    order = (0, 3, 1, 2)
    return scaled.permute(order) if hasattr(scaled, "permute") else m.permute_dims(scaled, order)


def _floats(dtype: str, *shapes: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
    def make(torch: Any) -> tuple[Any, ...]:
        return tuple(torch.randn(one, device="cuda").to(getattr(torch, dtype)) for one in shapes)

    return make


def _integers(dtype: str, shape: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
    def make(torch: Any) -> tuple[Any, ...]:
        return (torch.randint(0, 200, shape, device="cuda").to(getattr(torch, dtype)),)

    return make


def _dot(m: Any, x: Any, y: Any) -> Any:
    return m.sum(x * y)


def _row_sums(m: Any, x: Any) -> Any:
    return m.sum(m.exp(x), axis=1)


def _column_sums(m: Any, x: Any) -> Any:
    return m.sum(m.exp(x), axis=0)


def _normalise(m: Any, x: Any) -> Any:
    mean = m.mean(x, axis=1, keepdims=True)
    return (x - mean) / (m.mean((x - mean) * (x - mean), axis=1, keepdims=True) + 1e-5)


_SQUARE = (_SIDE, _SIDE)
_PIXELS = (32, 1080, 1920, 3)

WORKS = [
    Work("six operations", "float32", _SQUARE, _floats("float32", _SQUARE), _six),
    Work("six operations", "float64", (8192, _SIDE), _floats("float64", (8192, _SIDE)), _six),
    Work("six operations", "float16", _SQUARE, _floats("float16", _SQUARE), _six),
    Work("six operations", "bfloat16", _SQUARE, _floats("bfloat16", _SQUARE), _six),
    Work("six operations", "int32", _SQUARE, _integers("int32", _SQUARE), _six_integers),
    Work("to float32, scaled", "uint8", _SQUARE, _integers("uint8", _SQUARE), _cast),
    Work("a*b + exp(2c), b a row", "float32", _SQUARE,
         _floats("float32", _SQUARE, (_SIDE,), _SQUARE), _row),
    Work("where", "float32", _SQUARE, _floats("float32", _SQUARE, _SQUARE), _where),
    Work("odd rows", "float32", (_SIDE, 16383), _floats("float32", (_SIDE, 16383)), _six),
    Work("sum(x*y)", "float32", (), _floats("float32", _SQUARE, _SQUARE), _dot),
    Work("sum(exp(x)) of rows", "float32", (_SIDE,), _floats("float32", _SQUARE), _row_sums),
    Work("sum(exp(x)) of columns", "float32", (_SIDE,), _floats("float32", _SQUARE), _column_sums),
    Work("rows normalised", "float32", _SQUARE, _floats("float32", _SQUARE), _normalise),
    Work("pixels to planes", "uint8", (32, 3, 1080, 1920), _integers("uint8", _PIXELS), _planes),
]  # fmt: skip


def _seconds(torch: Any, call: Callable[[], Any], calls: int = 5) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3 / calls


def _best(torch: Any, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    best = dict.fromkeys(calls, math.inf)
    for call in calls.values():
        for _ in range(_SETTLE):
            call()
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            best[name] = min(best[name], _seconds(torch, call))
    return best


def _host_microseconds(torch: Any, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    best = dict.fromkeys(calls, math.inf)
    for _ in range(50):
        for name, call in calls.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(20):
                call()
            best[name] = min(best[name], (time.perf_counter() - began) / 20 * 1e6)
    return best


def _ours(xp: Any, compute: Callable[..., Any], arrays: list[Any]) -> Callable[[], Any]:
    def call() -> Any:
        result = compute(xp, *arrays)
        xp.materialize(result)
        return result

    return call


def _check(torch: Any, work: Work, ours: Any, wanted: Any) -> None:
    got = torch.from_dlpack(ours)
    # torch divides by a number by multiplying with its inverse.
    close = 1e-5 if wanted.dtype.itemsize >= 4 else 2e-2
    scale = float(wanted.double().abs().mean()) if wanted.ndim < 2 else 1.0
    if not bool(torch.allclose(got.double(), wanted.double(), rtol=close, atol=close * scale)):
        raise SystemExit(f"{work.name}, {work.dtype}: wrong")


class _Bench:
    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.cupy: Any = importlib.import_module("cupy")
        self.xp: Any = importlib.import_module("fklarray")
        self.xp.config.compile = "sync"
        self.records: list[dict[str, Any]] = []
        self.about = {
            "gpu": self.torch.cuda.get_device_name(0),
            "driver": Path("/sys/module/nvidia/version").read_text().strip()
            if Path("/sys/module/nvidia/version").exists()
            else str(self.cupy.cuda.runtime.driverGetVersion()),
            "date": datetime.date.today().isoformat(),
            "versions": {"torch": self.torch.__version__, "cupy": self.cupy.__version__},
        }

    def add(self, name: str, dtype: str, shape: tuple[int, ...], **found: Any) -> None:
        record = {"work": name, "dtype": dtype, "shape": list(shape), **found, **self.about}
        self.records.append(record)
        peers = ", ".join(f"{peer} {figure:.4g}" for peer, figure in record["peers"].items())
        limit = f" ({record['ours'] / record['limit']:.3f} of the limit)" if record["limit"] else ""
        print(f"{name}, {dtype}: {record['ours']:.4g} {record['unit']}{limit}; {peers}", flush=True)

    def copy_speed(self, nbytes: int) -> Callable[[], Any]:
        source = self.torch.zeros(nbytes // 2, dtype=self.torch.uint8, device="cuda")
        target = self.torch.empty_like(source)
        return lambda: target.copy_(source)

    def throughput(self, work: Work) -> None:
        tensors = work.inputs(self.torch)
        arrays = [self.xp.from_dlpack(tensor) for tensor in tensors]
        wanted = work.compute(self.torch, *tensors)
        _check(self.torch, work, work.compute(self.xp, *arrays), wanted)
        moved = sum(one.nbytes for one in (*tensors, wanted))
        del wanted
        self.torch._dynamo.reset()  # or it gives up after eight functions of one name
        compiled = self.torch.compile(lambda *given: work.compute(self.torch, *given).contiguous())
        copied = min(moved, 4 << 30)
        calls = {
            "ours": _ours(self.xp, work.compute, arrays),
            "torch.compile": lambda: compiled(*tensors),
            "copy": self.copy_speed(copied),
        }
        seconds = _best(self.torch, calls)
        self.add(
            work.name, work.dtype, work.shape, ours=moved / seconds["ours"] / 1e9,
            peers={"torch.compile": moved / seconds["torch.compile"] / 1e9},
            limit=copied / seconds["copy"] / 1e9, unit="GB/s",
        )  # fmt: skip

    def host_time(self) -> None:
        self.torch._dynamo.reset()
        torch, cupy = self.torch, self.cupy
        tensor = torch.randn(1024, device="cuda")
        array, peer = self.xp.from_dlpack(tensor), cupy.from_dlpack(tensor)

        @cupy.fuse()  # type: ignore[untyped-decorator]
        def fused(x: Any) -> Any:
            return ((x * 1.5 + 2.5 - 1.5) * 2.5 + 1.5) / 2.5

        compiled = torch.compile(lambda x: _six(torch, x))
        times = _host_microseconds(torch, {
            "ours": _ours(self.xp, _six, [array]),
            "cupy.fuse": lambda: fused(peer),
            "torch.compile": lambda: compiled(tensor),
        })  # fmt: skip
        ours = times.pop("ours")
        self.add(
            "six operations, host time", "float32", (1024,), ours=ours, peers=times, limit=None,
            unit="us",
        )  # fmt: skip

    def separate(self) -> None:
        torch = self.torch
        tensor = torch.randn((1080, 1920), device="cuda")
        array = self.xp.from_dlpack(tensor)
        calls = {
            "ours": _ours(self.xp, _six, [array]),
            "six launches of torch": lambda: _six(torch, tensor),
        }
        seconds = _best(torch, calls)
        self.add(
            "six operations on an image", "float32", (1080, 1920), ours=seconds["ours"] * 1e6,
            peers={"six launches of torch": seconds["six launches of torch"] * 1e6}, limit=None,
            unit="us",
        )  # fmt: skip

    def first_result(self) -> None:
        torch, xp = self.torch, self.xp
        background: Any = importlib.import_module("fklarray.background")
        tensor = torch.randn((1024, 1024), device="cuda")
        array = xp.from_dlpack(tensor)

        def milliseconds(call: Callable[[], Any]) -> tuple[float, Any]:
            torch.cuda.synchronize()
            began = time.perf_counter()
            result = call()
            torch.cuda.synchronize()
            return (time.perf_counter() - began) * 1e3, result

        with xp.config.override(compile="background"):
            # The same operations in another expression: their own units are compiled behind it.
            xp.materialize((array / 2.5 - 1.5) * 1.5 + 2.5)
            background.wait()
            compiled = xp.counters()["kernels_compiled"]
            ours, first = milliseconds(_ours(xp, _new, [array]))
            if xp.counters()["kernels_compiled"] != compiled:
                raise SystemExit("the first result has waited for a compilation")
            background.wait()
        xp.config.compile = "sync"
        fused = _ours(xp, _new, [array])()
        if not bool(xp.all(fused == first)):
            raise SystemExit("the first result has other bits than the fused one")
        torch._dynamo.reset()
        peer, _ = milliseconds(lambda: torch.compile(lambda x: _new(torch, x))(tensor))
        self.add(
            "first result of seven operations", "float32", (1024, 1024), ours=ours,
            peers={"torch.compile": peer}, limit=None, unit="ms",
        )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run all; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--output", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FKLARRAY_CACHE_DIR"] = str(Path(folder, "kernels"))
        bench = _Bench()
        for work in WORKS:
            bench.throughput(work)
        bench.host_time()
        bench.separate()
        bench.first_result()
    options.output.write_text(json.dumps(bench.records, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
