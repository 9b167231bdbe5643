"""Programs of 1 to 30 calls over the namespace give one answer in the three ways to run them.

What compiles gives the same bits whether its kernel was ready or not; elementary functions differ
from NumPy's in the last digits, so values are kept tame where NumPy is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fklarray as xp
from accuracy import assert_same_bits

pytestmark = pytest.mark.usefixtures("device")

Step = Callable[[Any, Any], Any]


def _smooth(namespace: Any, name: str) -> Step:
    # Squashed, so that 30 calls neither overflow nor amplify differences.
    return lambda x, _: getattr(namespace, name)(x) / 2


def _assigned(x: Any, y: Any) -> Any:
    x = x + 0
    before = x * 2
    x[..., ::2] = 0.25
    x[x > 1] = 1.0
    x += y
    return x + before / 4


def _selected(x: Any, y: Any) -> Any:
    return x[::-1] - y[..., ::-1] / 2


def _steps(namespace: Any) -> dict[str, Step]:
    n = namespace
    return {
        "add": lambda x, y: (x + y) / 2,
        "multiply": lambda x, y: x * y,
        "subtract": lambda x, y: (x - 0.5) - y,
        "divide": lambda x, y: x / (y * y + 1),
        "compare": lambda x, y: n.where(x > y, x, -y),
        "sin": _smooth(n, "sin"),
        "tanh": _smooth(n, "tanh"),
        "expm1": lambda x, _: n.expm1(n.clip(x, -2.0, 1.0)),
        "hypot": lambda x, y: n.hypot(x, y) / 2,
        "narrow": lambda x, _: n.astype(n.astype(x, np.dtype("float32")), np.dtype("float64")),
        "integers": lambda x, _: n.astype(n.astype(x * 8, np.dtype("int16")) // 3, x.dtype) / 8,
        "transpose": lambda x, _: n.permute_dims(n.permute_dims(x, (1, 0))[::-1, :], (1, 0)),
        "slices": _selected,
        "reshape": lambda x, _: n.reshape(n.flip(n.reshape(x, (-1,))), x.shape),
        "assign": _assigned,
        "centre": lambda x, _: x - n.mean(x, axis=0),
        "sum": lambda x, y: n.sum(x, axis=-1, keepdims=True) / 8 + y,
        "max": lambda x, y: n.max(x, axis=0) - n.min(y, axis=0, keepdims=True),
        "spread": lambda x, y: x / (1 + n.std(y)),
        "count": lambda x, y: x + n.count_nonzero(y > 0, axis=0) / 16,
        "cumulate": lambda x, _: n.cumulative_sum(x, axis=1) / 8,
        "argmax": lambda x, _: x + n.expand_dims(n.argmax(x, axis=1), axis=1) / 16,
        "concat": lambda x, y: n.concat([x, y], axis=1)[:, 1 : x.shape[1] + 1],
        "stack": lambda x, y: n.stack([x, y * 2], axis=0)[1],
        "roll": lambda x, y: n.roll(x, 2, axis=1) + n.roll(y, -1) / 2,
        "tile": lambda x, _: n.tile(x, (1, 2))[:, : x.shape[1]],
        "take": lambda x, _: n.take(x, n.asarray([x.shape[0] - 1] * x.shape[0]), axis=0),
        "sort": lambda x, _: n.sort(x, axis=1),
        "diff": lambda x, y: n.diff(x, axis=0, prepend=y[:1, :]),
        "matmul": lambda x, y: (x @ n.permute_dims(y, (1, 0)) @ y) / 64,
    }


OURS, NUMPYS = _steps(xp), _steps(np)


def _run(steps: dict[str, Step], program: list[tuple[str, int, int]], start: list[Any]) -> Any:
    values = list(start)
    for name, first, second in program:
        x, y = values[first % len(values)], values[second % len(values)]
        result = steps[name](x, y)
        # Some steps give fewer rows or columns: broadcast again, as all of one shape.
        values.append((result + 0 * start[0]) if result.shape != start[0].shape else result)
    return values[len(start) :]


@st.composite
def _programs(draw: st.DrawFn, longest: int) -> tuple[list[tuple[str, int, int]], Any]:
    calls = st.tuples(st.sampled_from(sorted(OURS)), st.integers(0, 40), st.integers(0, 40))
    program = draw(st.lists(calls, min_size=1, max_size=longest))
    shape = draw(st.sampled_from([(1, 1), (2, 3), (3, 5), (4, 16), (7, 33)]))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    return program, [rng.uniform(-1, 1, shape) for _ in range(2)]


def _answers(mode: str, program: list[tuple[str, int, int]], start: list[Any]) -> list[Any]:
    with xp.config.override(compile=mode):
        results = _run(OURS, program, [xp.asarray(values) for values in start])
        # The last first: what comes before is computed for it, or again.
        return [np.asarray(result) for result in reversed(results)]


# A last digit may turn these elsewhere, so NumPy is followed without them where functions differ.
JUMPS = {"argmax", "assign", "compare", "count", "integers"}


@pytest.mark.parametrize("mode", ["off", "background"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=_programs(30))
def test_operation_by_operation_as_numpy(mode: str, drawn: Any) -> None:
    program, start = drawn
    if mode == "background":
        program = [call for call in program if call[0] not in JUMPS]
    wanted = _run(NUMPYS, program, start)
    for got, exact in zip(_answers(mode, program, start), reversed(wanted), strict=True):
        assert got.dtype == exact.dtype
        np.testing.assert_allclose(got, exact, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("length", [1, 4, 12, 30])
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_compiled_and_not_are_the_same_bits(length: int, data: Any) -> None:
    program, start = data.draw(_programs(length))
    compiled = _answers("sync", program, start)
    for one, other in zip(compiled, _answers("background", program, start), strict=True):
        assert_same_bits(one, other)
