"""Nothing public is without a parity test, and nothing of the standard is missing."""

from __future__ import annotations

import types

import fklarray as xp
from parity.table import ROWS

MODULES = {
    "": xp,
    "fft.": xp.fft,
    "linalg.": xp.linalg,
    "nn.": xp.nn,
    "special.": xp.special,
}
# They take no array apart, or give none: each has tests of its own.
NOT_FUNCTIONS_OF_ARRAYS = {
    "Array",
    "Device",
    "Explanation",
    "counters",
    "explain",
    "linalg.LinAlgError",
    "materialize",
}
# The same object in a second place.
ALIASES = {"nn.logsumexp": "logsumexp"}

EXTENSIONS = """
    fft.fft fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifftn fft.ifftshift fft.ihfft
    fft.irfft fft.irfftn fft.rfft fft.rfftfreq fft.rfftn
    linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh linalg.eigvals
    linalg.eigvalsh linalg.inv linalg.matmul linalg.matrix_norm linalg.matrix_power
    linalg.matrix_rank linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr linalg.slogdet
    linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot
    linalg.vector_norm
"""


def _public() -> set[str]:
    names = set()
    for prefix, module in MODULES.items():
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if callable(value) and not name.startswith("_"):
                assert not isinstance(value, types.ModuleType)
                names.add(prefix + name)
    return names


def test_every_function_has_a_parity_test() -> None:
    tested = {row.name for row in ROWS if not row.name.startswith("Array.")}
    for alias, name in ALIASES.items():
        module, _, attribute = alias.rpartition(".")
        assert getattr(MODULES[f"{module}."], attribute) is getattr(xp, name)
    assert _public() - NOT_FUNCTIONS_OF_ARRAYS - set(ALIASES) == tested
    assert len(ROWS) == len({row.name for row in ROWS})


def test_the_extensions_are_there() -> None:
    assert not set(EXTENSIONS.split()) - _public()
