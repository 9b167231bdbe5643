"""Special functions beyond the standard, named as SciPy names them (``scipy.special``).

Those that are rows of the op table are recorded and fuse. The others, and complex operands, run
now through SciPy, which the extra ``scipy`` brings. Values at zeros, infinities and NaN are
SciPy's. The data type of a result is the operands' common one, float64 for integers. SciPy finds
this module on the namespace and hands its own calls over to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Protocol, TypeVar

import numpy as np

from fklarray.array import Array
from fklarray.data_type_functions import astype
from fklarray.delegation import on_numpy
from fklarray.dtype_rows import floating_row
from fklarray.elementwise import _binary, _unary
from fklarray.record import Operand, promoted
from fklarray.reductions import array_operand
from fklarray_codegen.ops import OPS

__all__ = [
    "bdtr", "bdtrc", "bdtri", "betainc", "betaincc", "betaincinv", "betaln", "binom", "boxcox",
    "boxcox1p", "cbrt", "chdtr", "chdtrc", "chdtri", "cosdg", "cosm1", "cotdg", "ellipk",
    "ellipkm1", "entr", "erf", "erfc", "erfcx", "erfinv", "exp1", "exp2", "exp10", "expi", "expit",
    "expn", "exprel", "fdtr", "fdtrc", "fdtri", "gamma", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "gammaln", "gammasgn", "gdtr", "gdtrc", "huber", "hyp1f1", "i0", "i0e", "i1",
    "i1e", "inv_boxcox", "inv_boxcox1p", "j0", "j1", "k0", "k0e", "k1", "k1e", "kl_div", "log_ndtr",
    "loggamma", "logit", "lpmv", "multigammaln", "nbdtr", "nbdtrc", "nbdtri", "ndtr", "ndtri",
    "pdtr", "pdtrc", "pdtri", "poch", "polygamma", "pseudo_huber", "psi", "radian", "rel_entr",
    "rgamma", "sinc", "sindg", "spence", "stdtr", "stdtrit", "tandg", "xlog1py", "xlogy", "y0",
    "y1", "yn", "zeta", "zetac",
]  # fmt: skip

_Recorded = TypeVar("_Recorded", bound=Callable[..., Array])


class _Function(Protocol):
    def __call__(self, *operands: Operand) -> Array: ...


def _from_scipy(name: str, *counts: int) -> _Function:
    def function(*operands: Operand) -> Array:
        if len(operands) not in counts:
            wanted = " or ".join(map(str, counts))
            raise TypeError(f"{name} takes {wanted} arguments, not {len(operands)}")
        here = next((x for x in operands if isinstance(x, Array)), None)
        values = [
            array_operand(name, x, here) if isinstance(x, (np.ndarray, np.generic)) else x
            for x in operands
        ]
        dtype = floating_row(promoted(name, values))
        arrays = [value for value in values if isinstance(value, Array)]
        compute = _scipy_function(name)

        def with_numbers(*parts: Any) -> Any:
            following = iter(parts)
            return compute(*(next(following) if isinstance(x, Array) else x for x in values))

        result: Array = on_numpy(with_numbers, *map(_as_scipy_accepts, arrays))
        return astype(result, dtype.name, copy=False)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"``scipy.special.{name}``, computed now.\n\n"
        "Parameters\n----------\n*operands : Array or scalar\n"
        "    As SciPy's function takes them.\n\n"
        "Returns\n-------\nArray\n    Of the operands' common data type; float64 for integers.\n\n"
        "Raises\n------\nImportError\n    If SciPy is not installed.\n"
        "TypeError\n    If no operand is an array, there are too many or too few of them, or SciPy "
        "does not\n    accept a data type.\n"
    )
    return function


def _scipy_function(name: str) -> Callable[..., Any]:
    try:
        scipy = import_module("scipy.special")
    except ImportError as error:
        raise ImportError(
            f'special.{name} runs through SciPy: pip install "fklarray[scipy]"'
        ) from error
    function: Callable[..., Any] = getattr(scipy, name)
    return function


def _as_scipy_accepts(x: Array) -> Array:
    """Convert what SciPy does not know (bfloat16) or computes in float32 (small integers)."""
    dtype = x._state[0].dtype
    if dtype.kind == "real":
        return astype(x, "float32", copy=False) if dtype.bits < 32 else x
    is_small = dtype.kind != "complex" and dtype.bits < 64
    return astype(x, "int64", copy=False) if is_small else x


def _or_scipy(recorded: _Recorded) -> _Recorded:
    """Extend a recorded function of real numbers by complex ones."""
    through_scipy = _from_scipy(recorded.__name__, OPS[recorded.__name__].arity)

    @wraps(recorded)
    def function(*operands: Operand) -> Array:
        is_complex = any(map(_is_complex, operands))
        return through_scipy(*operands) if is_complex else recorded(*operands)

    return function  # type: ignore[return-value]


def _is_complex(operand: Operand) -> bool:
    if isinstance(operand, Array):
        return operand._state[0].dtype.kind == "complex"
    return isinstance(operand, complex) or np.iscomplexobj(operand)


bdtr = _from_scipy("bdtr", 3)
bdtrc = _from_scipy("bdtrc", 3)
bdtri = _from_scipy("bdtri", 3)
betainc = _from_scipy("betainc", 3)
betaincc = _from_scipy("betaincc", 3)
betaincinv = _from_scipy("betaincinv", 3)
betaln = _from_scipy("betaln", 2)
binom = _from_scipy("binom", 2)
boxcox = _from_scipy("boxcox", 2)
boxcox1p = _from_scipy("boxcox1p", 2)
cbrt = _from_scipy("cbrt", 1)
chdtr = _from_scipy("chdtr", 2)
chdtrc = _from_scipy("chdtrc", 2)
chdtri = _from_scipy("chdtri", 2)
cosdg = _from_scipy("cosdg", 1)
cosm1 = _from_scipy("cosm1", 1)
cotdg = _from_scipy("cotdg", 1)
ellipk = _from_scipy("ellipk", 1)
ellipkm1 = _from_scipy("ellipkm1", 1)
entr = _unary("entr")
erf = _or_scipy(_unary("erf"))
erfc = _or_scipy(_unary("erfc"))
erfcx = _from_scipy("erfcx", 1)
erfinv = _from_scipy("erfinv", 1)
exp1 = _from_scipy("exp1", 1)
exp2 = _from_scipy("exp2", 1)
exp10 = _from_scipy("exp10", 1)
expi = _from_scipy("expi", 1)
expit = _unary("expit")
expn = _from_scipy("expn", 2)
exprel = _from_scipy("exprel", 1)
fdtr = _from_scipy("fdtr", 3)
fdtrc = _from_scipy("fdtrc", 3)
fdtri = _from_scipy("fdtri", 3)
gamma = _from_scipy("gamma", 1)
gammainc = _from_scipy("gammainc", 2)
gammaincc = _from_scipy("gammaincc", 2)
gammainccinv = _from_scipy("gammainccinv", 2)
gammaincinv = _from_scipy("gammaincinv", 2)
gammaln = _unary("gammaln")
gammasgn = _from_scipy("gammasgn", 1)
gdtr = _from_scipy("gdtr", 3)
gdtrc = _from_scipy("gdtrc", 3)
huber = _from_scipy("huber", 2)
hyp1f1 = _from_scipy("hyp1f1", 3)
i0 = _from_scipy("i0", 1)
i0e = _from_scipy("i0e", 1)
i1 = _from_scipy("i1", 1)
i1e = _from_scipy("i1e", 1)
inv_boxcox = _from_scipy("inv_boxcox", 2)
inv_boxcox1p = _from_scipy("inv_boxcox1p", 2)
j0 = _from_scipy("j0", 1)
j1 = _from_scipy("j1", 1)
k0 = _from_scipy("k0", 1)
k0e = _from_scipy("k0e", 1)
k1 = _from_scipy("k1", 1)
k1e = _from_scipy("k1e", 1)
kl_div = _from_scipy("kl_div", 2)
log_ndtr = _or_scipy(_unary("log_ndtr"))
loggamma = _from_scipy("loggamma", 1)
logit = _unary("logit")
lpmv = _from_scipy("lpmv", 3)
multigammaln = _from_scipy("multigammaln", 2)
nbdtr = _from_scipy("nbdtr", 3)
nbdtrc = _from_scipy("nbdtrc", 3)
nbdtri = _from_scipy("nbdtri", 3)
ndtr = _or_scipy(_unary("ndtr"))
ndtri = _from_scipy("ndtri", 1)
pdtr = _from_scipy("pdtr", 2)
pdtrc = _from_scipy("pdtrc", 2)
pdtri = _from_scipy("pdtri", 2)
poch = _from_scipy("poch", 2)
polygamma = _from_scipy("polygamma", 2)
pseudo_huber = _from_scipy("pseudo_huber", 2)
psi = _from_scipy("psi", 1)
radian = _from_scipy("radian", 3)
rel_entr = _binary("rel_entr")
rgamma = _from_scipy("rgamma", 1)
sinc = _from_scipy("sinc", 1)
sindg = _from_scipy("sindg", 1)
spence = _from_scipy("spence", 1)
stdtr = _from_scipy("stdtr", 2)
stdtrit = _from_scipy("stdtrit", 2)
tandg = _from_scipy("tandg", 1)
xlog1py = _or_scipy(_binary("xlog1py"))
xlogy = _or_scipy(_binary("xlogy"))
y0 = _from_scipy("y0", 1)
y1 = _from_scipy("y1", 1)
yn = _from_scipy("yn", 2)
zeta = _from_scipy("zeta", 1, 2)
zetac = _from_scipy("zetac", 1)
