"""The linalg extension: values, data types, named results, and errors at the call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.linalg import LinAlgError

import fklarray as xp

INF = float("inf")
DTYPES = ["float32", "float64", "complex64", "complex128"]
RANDOM = np.random.default_rng(21)


def _matrices(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = RANDOM.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * RANDOM.normal(size=shape)
    return values.astype(dtype)


def _real(dtype: Any) -> np.dtype[Any]:
    return np.finfo(dtype).dtype


def _close(found: Any, wanted: Any, dtype: Any = None) -> None:
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype == (wanted.dtype if dtype is None else dtype)
    tolerance = 1e-4 if _real(found.dtype) == np.float32 else 1e-11
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance)


def _hermitian(values: np.ndarray) -> np.ndarray:
    return values @ values.conj().swapaxes(-1, -2) + np.eye(values.shape[-1], dtype=values.dtype)


@pytest.fixture(params=DTYPES)
def dtype(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[(3, 3), (2, 1, 4, 4), (2, 0, 0), (0, 3, 3)], ids=str)
def shape(request: pytest.FixtureRequest) -> tuple[int, ...]:
    extents: tuple[int, ...] = request.param
    return extents


# ----------------------------------------------------------------------- square matrices


SQUARE: dict[str, Callable[[Any, Any], Any]] = {
    "inv": lambda linalg, x: linalg.inv(x),
    "det": lambda linalg, x: linalg.det(x),
    "matrix_power 0": lambda linalg, x: linalg.matrix_power(x, 0),
    "matrix_power 3": lambda linalg, x: linalg.matrix_power(x, 3),
    "matrix_power -2": lambda linalg, x: linalg.matrix_power(x, -2),
    "cholesky": lambda linalg, x: linalg.cholesky(x),
    "cholesky upper": lambda linalg, x: linalg.cholesky(x, upper=True),
    "eigvalsh": lambda linalg, x: linalg.eigvalsh(x),
    "sign": lambda linalg, x: linalg.slogdet(x).sign,
    "logabsdet": lambda linalg, x: linalg.slogdet(x).logabsdet,
    "pinv": lambda linalg, x: linalg.pinv(x),
    "trace": lambda linalg, x: linalg.trace(x),
}


@pytest.mark.parametrize("name", SQUARE)
def test_functions_of_square_matrices_are_those_of_numpy(
    name: str, dtype: str, shape: tuple[int, ...], device: str
) -> None:
    values = _hermitian(_matrices(shape, dtype))
    x = xp.asarray(values, device=device)
    _close(SQUARE[name](xp.linalg, x), SQUARE[name](np.linalg, values))
    # A view of something pending.
    pending = xp.matrix_transpose(xp.asarray(values.swapaxes(-1, -2) / 2, device=device)) * 2
    _close(SQUARE[name](xp.linalg, pending), SQUARE[name](np.linalg, values))


def test_decompositions_give_the_matrices_back(
    dtype: str, shape: tuple[int, ...], device: str
) -> None:
    values = _matrices(shape, dtype)
    x = xp.asarray(values, device=device)
    hermitian = xp.asarray(_hermitian(values), device=device)
    eigen = xp.linalg.eigh(hermitian)
    assert eigen._fields == ("eigenvalues", "eigenvectors")
    assert eigen.eigenvalues.dtype == _real(dtype)
    vectors = eigen.eigenvectors
    _close((vectors * eigen.eigenvalues[..., None, :]) @ xp.conj(vectors.mT), hermitian, dtype)
    general = xp.linalg.eig(x)
    assert general._fields == ("eigenvalues", "eigenvectors")
    assert {part.dtype for part in general} == {np.result_type(dtype, np.complex64)}
    _close(x @ general.eigenvectors, general.eigenvectors * general.eigenvalues[..., None, :])
    _close(xp.linalg.eigvals(x), general.eigenvalues)


def test_eigenvalues_are_complex_also_where_all_are_real(device: str) -> None:
    x = xp.asarray(np.asarray([[2, 0], [0, 3]], np.float32), device=device)
    assert xp.linalg.eigvals(x).dtype == xp.complex64
    assert {part.dtype for part in xp.linalg.eig(x)} == {np.dtype("complex64")}
    assert xp.linalg.eigvals(xp.asarray([[2, 1], [0, 3]], device=device)).dtype == xp.complex128


@pytest.mark.parametrize("extents", [(4, 3), (3, 4), (2, 5, 2), (0, 3), (2, 3, 0)], ids=str)
def test_qr_and_svd_of_any_matrices(extents: tuple[int, ...], dtype: str, device: str) -> None:
    x = xp.asarray(_matrices(extents, dtype), device=device)
    rows, columns = extents[-2:]
    rank = min(rows, columns)
    for mode, inner in (("reduced", rank), ("complete", rows)):
        q, r = xp.linalg.qr(x, mode=mode)  # type: ignore[arg-type]
        assert (q.shape[-2:], r.shape[-2:]) == ((rows, inner), (inner, columns))
        _close(q @ r, x)
        assert not np.tril(np.asarray(r), -1).any()
    assert xp.linalg.qr(x)._fields == ("Q", "R")
    for full in (True, False):
        u, s, vh = xp.linalg.svd(x, full_matrices=full)
        assert u.shape[-2:] == (rows, rows if full else rank)
        assert vh.shape[-2:] == (columns if full else rank, columns)
        assert s.dtype == _real(dtype)
        _close((u[..., :rank] * s[..., None, :]) @ vh[..., :rank, :], x, dtype)
        _close(xp.linalg.svdvals(x), s)
    assert xp.linalg.svd(x)._fields == ("U", "S", "Vh")
    assert xp.linalg.slogdet(xp.eye(2))._fields == ("sign", "logabsdet")


def test_the_logarithm_of_a_determinant_of_zero(device: str) -> None:
    for dtype in DTYPES:
        sign, logarithm = xp.linalg.slogdet(xp.zeros((2, 2), dtype=dtype, device=device))
        assert (complex(sign), float(logarithm)) == (0, -INF)
        assert (sign.dtype, logarithm.dtype) == (np.dtype(dtype), _real(dtype))


def test_solve_tells_a_vector_from_a_stack_of_matrices(dtype: str, device: str) -> None:
    a = _hermitian(_matrices((2, 1, 3, 3), dtype))
    x = xp.asarray(a, device=device)
    for extents in ((3,), (3, 2), (4, 3, 2), (2, 1, 3, 1)):
        b = _matrices(extents, dtype)
        _close(xp.linalg.solve(x, xp.asarray(b, device=device)), np.linalg.solve(a, b))
    integers = xp.linalg.solve(xp.asarray([[2, 0], [0, 4]]), xp.asarray([1, 1]))
    _close(integers, [0.5, 0.25])
    mixed = xp.linalg.solve(xp.eye(2, dtype=xp.float32), xp.ones(2, dtype=xp.complex128))
    assert mixed.dtype == xp.complex128
    for extents in ((), (2,), (2, 3), (4, 3, 3, 1)):
        with pytest.raises(ValueError, match=r"\("):
            xp.linalg.solve(x, xp.ones(extents, device=device))


def test_ranks_and_pseudo_inverses_follow_the_tolerance(dtype: str, device: str) -> None:
    values = np.stack([np.diag([4, 1, 0.01]), np.diag([4, 0, 0])]).astype(dtype)
    x = xp.asarray(values, device=device)
    tolerances = xp.asarray([0.1, 0.5], dtype=_real(dtype), device=device)
    for rtol, ranks in ((None, [3, 1]), (0.1, [2, 1]), (tolerances, [2, 1]), (1.5, [0, 0])):
        found = xp.linalg.matrix_rank(x, rtol=rtol)
        assert found.dtype == np.int64
        assert np.asarray(found).tolist() == ranks
        inverse = xp.linalg.pinv(x, rtol=rtol)
        assert inverse.dtype == np.dtype(dtype)
        assert np.asarray(xp.linalg.matrix_rank(inverse)).tolist() == ranks
    noise = float(np.finfo(_real(dtype)).eps)
    close = xp.asarray(np.diag([1, noise, 4 * noise]).astype(dtype), device=device)
    assert int(xp.linalg.matrix_rank(close)) == 2
    assert np.asarray(xp.linalg.matrix_rank(xp.zeros((2, 0, 3)))).tolist() == [0, 0]
    assert xp.linalg.pinv(xp.zeros((2, 0, 3))).shape == (2, 3, 0)


def test_powers_of_integers_stay_integers(device: str) -> None:
    x = xp.asarray([[1, 1], [0, 2]], device=device)
    found = xp.linalg.matrix_power(x, 3)
    assert (found.dtype, np.asarray(found).tolist()) == (np.int64, [[1, 7], [0, 8]])
    _close(xp.linalg.matrix_power(x, -1), [[1, -0.5], [0, 0.5]])
    with pytest.raises(TypeError):
        xp.linalg.matrix_power(x, 0.5)  # type: ignore[arg-type]


# -------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "name", ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]
)
def test_what_is_no_square_matrix_is_refused(name: str, device: str) -> None:
    function = getattr(xp.linalg, name)
    for extents in ((3,), (), (2, 3), (3, 3, 2)):
        with pytest.raises(LinAlgError, match=rf"{name} needs .*{', '.join(map(str, extents))}"):
            function(xp.ones(extents, device=device))
    with pytest.raises(TypeError, match=f"{name} takes an array"):
        function([[1.0]])
    for narrow in (xp.float16, xp.bfloat16):
        with pytest.raises(TypeError, match=f"{name} computes in float32"):
            function(xp.ones((2, 2), dtype=narrow, device=device))
    whole = function(xp.asarray([[2, 0], [0, 1]], device=device))
    parts = whole if isinstance(whole, tuple) else (whole,)
    assert {_real(part.dtype) for part in parts} == {np.dtype("float64")}


def test_errors_of_values_name_function_and_shape(device: str) -> None:
    singular = xp.ones((2, 2), device=device)
    for name, call in (
        ("inv", lambda: xp.linalg.inv(singular)),
        ("solve", lambda: xp.linalg.solve(singular, xp.ones(2))),
        ("matrix_power", lambda: xp.linalg.matrix_power(singular, -1)),
        ("cholesky", lambda: xp.linalg.cholesky(-singular)),
        ("eig", lambda: xp.linalg.eig(singular * INF)),
        ("svd", lambda: xp.linalg.svd(singular * xp.nan)),
    ):
        with pytest.raises(xp.linalg.LinAlgError, match=rf"{name} of shape \(2, 2\)"):
            call()
    for name in ("qr", "svd", "svdvals", "pinv", "matrix_rank"):
        with pytest.raises(LinAlgError, match=rf"{name} needs matrices.*\(3,\)"):
            getattr(xp.linalg, name)(xp.ones(3, device=device))
    with pytest.raises(ValueError, match="'r'"):
        xp.linalg.qr(singular, mode="r")  # type: ignore[arg-type]


# --------------------------------------------------------------------------------- norms


@pytest.mark.parametrize("order", [0, 1, 2, 3, 2.5, -1, -2, 0.5, INF, -INF])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 1), (0, 1, 2)], ids=str)
def test_norms_of_vectors(order: float, axis: Any, device: str) -> None:
    for dtype in ("float32", "complex128", "int16"):
        values = _matrices((3, 4, 2), dtype) if dtype != "int16" else np.ones((3, 4, 2), dtype) * 3
        x = xp.asarray(values, device=device)
        for keepdims in (False, True):
            keywords: dict[str, Any] = {"axis": axis, "keepdims": keepdims, "ord": order}
            wanted = np.linalg.vector_norm(values, **keywords)
            dtype_of_result = np.float64 if dtype == "int16" else _real(dtype)
            _close(xp.linalg.vector_norm(x, **keywords), wanted, dtype_of_result)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, INF, -INF])
def test_norms_of_matrices(order: Any, dtype: str, device: str) -> None:
    for extents in ((3, 4), (2, 4, 3)):
        values = _matrices(extents, dtype)
        x = xp.asarray(values, device=device)
        for keepdims in (False, True):
            wanted = np.linalg.norm(values, ord=order, axis=(-2, -1), keepdims=keepdims)
            found = xp.linalg.matrix_norm(x, ord=order, keepdims=keepdims)
            _close(found, wanted, _real(dtype))


def test_norms_of_nothing_and_of_nan(device: str) -> None:
    nothing = xp.zeros((3, 0), device=device)
    for order in (1, 2, INF):
        assert float(xp.linalg.vector_norm(nothing, ord=order)) == 0
        assert np.asarray(xp.linalg.vector_norm(nothing, ord=order, axis=1)).tolist() == [0.0] * 3
        assert float(xp.linalg.matrix_norm(nothing, ord=order)) == 0
    assert xp.linalg.vector_norm(nothing, axis=0, ord=-INF).shape == (0,)
    assert float(xp.linalg.matrix_norm(nothing, ord=-INF)) == 0
    for order in (-1, -2):
        with pytest.raises(ValueError, match="matrix_norm of order"):
            xp.linalg.matrix_norm(nothing, ord=order)
    with pytest.raises(ValueError, match="vector_norm of order"):
        xp.linalg.vector_norm(nothing, ord=-INF)
    x = xp.asarray([[1.0, math.nan]], device=device)
    for order in (1, 2, INF, -INF, 3):
        assert math.isnan(float(xp.linalg.vector_norm(x, ord=order)))
    for order in ("fro", 1, INF):
        assert math.isnan(float(xp.linalg.matrix_norm(x, ord=order)))  # type: ignore[arg-type]


def test_norms_are_recorded_and_sixteen_bits_do_not_overflow(device: str) -> None:
    x = xp.asarray(np.full(4, 300, np.float16), device=device)
    before = xp.counters()
    norm = xp.linalg.vector_norm(x)
    square = xp.linalg.matrix_norm(xp.reshape(x, (2, 2)))
    assert xp.counters()["reference_evaluations"] == before["reference_evaluations"]
    assert [(float(one), one.dtype) for one in (norm, square)] == [(600, np.float16)] * 2


def test_norms_name_what_is_wrong(device: str) -> None:
    x = xp.ones((2, 2), device=device)
    with pytest.raises(ValueError, match=r"vector_norm.*'fro'"):
        xp.linalg.vector_norm(x, ord="fro")  # type: ignore[arg-type]
    for order in (3, "max", 0):
        with pytest.raises(ValueError, match=f"matrix_norm.*{order}"):
            xp.linalg.matrix_norm(x, ord=order)
    with pytest.raises(np.exceptions.AxisError):
        xp.linalg.matrix_norm(x[0])
    with pytest.raises(np.exceptions.AxisError):
        xp.linalg.vector_norm(x, axis=2)
    with pytest.raises(TypeError, match="matrix_norm takes an array"):
        xp.linalg.matrix_norm([[1.0]])  # type: ignore[arg-type]


# ------------------------------------------------------------------- vectors and diagonals


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "complex64"])
def test_cross_products(dtype: str, device: str) -> None:
    a, b = (RANDOM.integers(0, 50, extents).astype(dtype) for extents in ((4, 1, 3), (2, 3)))
    x, y = xp.asarray(a, device=device), xp.asarray(b, device=device)
    _assert_same(xp.linalg.cross(x, y), np.linalg.cross(a, b))
    moved, other = np.moveaxis(a, -1, 1), np.moveaxis(b, -1, 0)
    found = xp.linalg.cross(xp.asarray(moved), xp.asarray(other), axis=-2)
    _assert_same(found, np.moveaxis(np.linalg.cross(a, b), -1, -2))
    _assert_same(xp.linalg.cross(x, x), np.zeros_like(a))


def _assert_same(found: xp.Array, wanted: np.ndarray) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert np.asarray(found).tolist() == wanted.tolist()


def test_cross_needs_three_elements_of_numbers(device: str) -> None:
    three = xp.ones((2, 3), device=device)
    for other, axis in ((xp.ones((2, 1)), -1), (xp.ones((2, 2)), -1), (three, 0)):
        with pytest.raises(ValueError, match=r"cross.*\(2, "):
            xp.linalg.cross(three, other, axis=axis)
    with pytest.raises(ValueError, match="cross"):
        xp.linalg.cross(xp.ones(2), xp.ones(2))
    with pytest.raises(TypeError, match="cross needs numeric"):
        xp.linalg.cross(three > 0, three > 0)


def test_outer_products(device: str) -> None:
    for dtype in ("int8", "complex64", "bool"):
        a, b = np.asarray([1, 0, 100]).astype(dtype), np.asarray([2, 3]).astype(dtype)
        found = xp.linalg.outer(xp.asarray(a, device=device), xp.asarray(b, device=device))
        _assert_same(found, np.linalg.outer(a, b))
    assert xp.linalg.outer(xp.ones(0), xp.ones(3)).shape == (0, 3)
    with pytest.raises(ValueError, match=r"outer needs vectors.*\(2, 2\)"):
        xp.linalg.outer(xp.ones((2, 2), device=device), xp.ones(2, device=device))


@pytest.mark.parametrize("extents", [(3, 3), (2, 4), (2, 5, 3), (1, 1), (0, 3), (2, 3, 0)], ids=str)
def test_diagonals_and_traces(extents: tuple[int, ...], device: str) -> None:
    values = np.arange(math.prod(extents), dtype=np.int16).reshape(extents)
    x = xp.asarray(values, device=device)
    for offset in range(-6, 7):
        _assert_same(
            xp.linalg.diagonal(x, offset=offset), np.linalg.diagonal(values, offset=offset)
        )
        pending = xp.linalg.diagonal(x[..., ::-1, ::-1] * 2, offset=offset) + 1
        wanted = np.linalg.diagonal(values[..., ::-1, ::-1] * 2, offset=offset) + 1
        _assert_same(pending, wanted)
        found = np.asarray(xp.linalg.trace(x, offset=offset))
        assert found.dtype == np.int64
        assert found.tolist() == np.linalg.trace(values, offset=offset).tolist()


def test_diagonals_are_views_of_broadcast_and_pending_arrays(device: str) -> None:
    row = xp.asarray([1.0, 2, 3], device=device)
    before = xp.counters()
    spread = xp.linalg.diagonal(xp.broadcast_to(row, (2, 3, 3)))
    table = xp.linalg.diagonal(row[:, None] * 10 + row)
    assert xp.counters() == before
    assert np.asarray(spread).tolist() == [[1, 2, 3]] * 2
    assert np.asarray(table).tolist() == [11, 22, 33]
    spread[0, 0] = 50
    assert np.asarray(row).tolist() == [1, 2, 3]


def test_data_types_of_traces(device: str) -> None:
    for name, result in (
        ("int8", "int64"), ("uint8", "uint64"), ("bool", "int64"), ("float16", "float16"),
        ("float32", "float32"), ("complex64", "complex64"), ("uint64", "uint64"),
    ):  # fmt: skip
        found = xp.linalg.trace(xp.ones((200, 200), dtype=name, device=device))
        assert (found.dtype, complex(found)) == (np.dtype(result), 200)
    x = xp.full((3, 3), 100, dtype=xp.int8, device=device)
    assert int(xp.linalg.trace(x, dtype=xp.int8)) == 300 - 256
    assert xp.linalg.trace(x, dtype=xp.float32).dtype == xp.float32
    for function in (xp.linalg.trace, xp.linalg.diagonal):
        with pytest.raises(ValueError, match=r"needs matrices.*\(3,\)"):
            function(x[0])
        with pytest.raises(TypeError):
            function(x, offset=0.5)  # type: ignore[arg-type]


def test_functions_of_both_namespaces_are_the_same() -> None:
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert getattr(xp.linalg, name) is getattr(xp, name)
