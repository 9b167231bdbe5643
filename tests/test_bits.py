"""The same input gives the same bits, wherever the element lies and whatever runs beside it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import fklarray as xp
from accuracy import assert_same_bits
from batches import TOGETHER, evaluate
from fklarray_codegen.dtypes import DTYPES, DType
from fklarray_codegen.ops import OPS
from samples import Values, operands, operations, random

FLOATING = [row for row in DTYPES.values() if row.kind in ("real", "complex") and row.is_standard]
CASES = [
    pytest.param(op.name, row, id=f"{op.name}-{row.name}")
    for row in FLOATING
    for arity in (1, 2)
    for op in operations(row, arity)
]
# One pack is 2 to 32 lanes; a run of 4096 elements is one row.
LENGTHS = (1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 100)


@cache
def _operands(row: DType, arity: int) -> tuple[Values, ...]:
    return tuple(values[-133:] for values in operands(row, arity))


@cache
def _reference(row: DType, arity: int, device: str) -> dict[str, Values]:
    arrays = tuple(xp.asarray(value, device=device) for value in _operands(row, arity))
    return evaluate(row, arity, arrays)


def _check(row: DType, arity: int, device: str, views: list[Any]) -> None:
    """Compute on views of the operands; each element must be as in the reference."""
    arrays = tuple(xp.asarray(value, device=device) for value in _operands(row, arity))
    for view in views:
        got = evaluate(row, arity, tuple(array[view] for array in arrays))
        for name, values in _reference(row, arity, device).items():
            try:
                assert_same_bits(got[name], values[view])
            except AssertionError as error:
                raise AssertionError(f"{name} of elements {view}: {error}") from None


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("row", FLOATING, ids=str)
def test_single_elements(row: DType, arity: int, device: str) -> None:
    _check(row, arity, device, [slice(i, i + 1) for i in range(133)])


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("row", FLOATING, ids=str)
def test_lengths_and_offsets(row: DType, arity: int, device: str) -> None:
    views = [slice(at, at + length) for length in LENGTHS for at in (0, 1, 3, 4, 7, 32)]
    _check(row, arity, device, views)


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("row", FLOATING, ids=str)
def test_strides(row: DType, arity: int, device: str) -> None:
    views = [slice(None, None, step) for step in (2, 3, 7, 60, -1, -2, -5)]
    views += [slice(at, None, 2) for at in (1, 2, 5)] + [slice(90, 3, -4), slice(20, 22, 3)]
    _check(row, arity, device, views)


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("row", FLOATING, ids=str)
def test_numbers_of_threads_and_places_in_long_arrays(row: DType, arity: int, device: str) -> None:
    repeat = 150  # several rows, of which each thread gets some
    arrays = tuple(
        xp.asarray(np.tile(value, repeat), device=device) for value in _operands(row, arity)
    )
    wanted = {name: np.tile(v, repeat) for name, v in _reference(row, arity, device).items()}
    for threads in (1, 2, 3):
        with xp.config.override(threads=threads):
            got = evaluate(row, arity, arrays)
        for name, values in wanted.items():
            assert_same_bits(got[name], values)


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("row", FLOATING, ids=str)
def test_beside_other_data_types(row: DType, arity: int, device: str) -> None:
    """A kernel that also has float64, int64 and bool registers uses packs of other widths."""
    names = [op.name for op in operations(row, arity)]
    values = _operands(row, arity)
    arrays = tuple(xp.asarray(value, device=device) for value in values)
    mask = xp.asarray(random(DTYPES["bool"], 133, 3), device=device)
    whole = xp.asarray(random(DTYPES["int64"], 133, 4), device=device)
    small = xp.asarray(random(DTYPES["uint8"], 133, 5), device=device)
    kind = DTYPES["float32" if row.bits != 32 else "float64"]
    other = xp.asarray(random(kind, 133, 6), device=device)
    beside = [
        xp.where(mask, whole, xp.astype(small, xp.int64)),
        xp.sqrt(xp.abs(other)) * 3,
        small + 1,
    ]
    results = [getattr(xp, name)(*arrays) for name in names]
    for start in range(0, len(results), TOGETHER):
        xp.materialize(*results[start : start + TOGETHER], *(+value for value in beside))
    for name, result in zip(names, results, strict=True):
        assert_same_bits(np.asarray(result), _reference(row, arity, device)[name])


ALONE = [
    ("sin", "float32"), ("exp", "float64"), ("pow", "float32"), ("atan2", "float64"),
    ("log", "complex64"), ("tanh", "complex128"), ("hypot", "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype"), ALONE)
def test_alone_and_in_a_longer_expression(name: str, dtype: str, device: str) -> None:
    row, op = DTYPES[dtype], OPS[name]
    arrays = tuple(xp.asarray(value, device=device) for value in _operands(row, op.arity))
    alone = getattr(xp, name)(*arrays)
    for place in (0, 7, 132):
        one = getattr(xp, name)(*(array[place] for array in arrays))
        assert one.shape == ()
        assert_same_bits(np.asarray(one), np.asarray(alone)[place])
    assert_same_bits(np.asarray(alone), _reference(row, op.arity, device)[name])
    inside = getattr(xp, name)(*(xp.positive(array) for array in arrays))
    keep = inside * 1
    xp.materialize(inside, keep)
    assert_same_bits(np.asarray(inside), np.asarray(alone))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_broadcast_operands(dtype: str, device: str) -> None:
    """A value that is the same for a whole row meets the same vector function."""
    values = _operands(DTYPES[dtype], 2)[0][:60]
    x = xp.asarray(values, device=device)
    table = np.asarray(xp.atan2(x[:, None], x[None, :]))
    first, second = np.repeat(values, 60), np.tile(values, 60)
    pairs = np.asarray(
        xp.atan2(xp.asarray(first, device=device), xp.asarray(second, device=device))
    )
    assert_same_bits(table, pairs.reshape(60, 60))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 7, 127, 128, 129, 200, 5000])
def test_chains_of_several_long_functions(length: int, dtype: str, device: str) -> None:
    """They run in parts, each for a block of packs at a time."""
    x = xp.asarray(random(DTYPES[dtype], length, 7) % 4, device=device)

    def several(keep: Any) -> tuple[xp.Array, xp.Array]:
        sine = keep(xp.sin(x))
        cosine = keep(xp.cos(x * sine))
        exponential = keep(xp.exp(sine - cosine))
        return exponential, keep(xp.log1p(exponential) + cosine * x)

    def alone(result: xp.Array) -> xp.Array:
        xp.materialize(result)
        return result

    wanted = several(alone)
    got = several(lambda result: result)
    xp.materialize(*got)
    for values, reference in zip(got, wanted, strict=True):
        assert_same_bits(np.asarray(values), np.asarray(reference))
    x[...] = several(lambda result: result)[1]
    assert_same_bits(np.asarray(x), np.asarray(wanted[1]))
