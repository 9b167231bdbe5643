"""The op table: one row per elementwise function, the single source of truth for them.

A new operation is a row here, a functor of the same name in ``include/fklarray/functors/`` and a
line in ``fklarray/elementwise.py``; the tests hold the three against each other and against the
array API standard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fklarray_codegen.dtypes import DTYPES, DType

__all__ = ["ACCEPTED", "OPS", "REDUCTIONS", "Op", "Reduction", "reduced_dtype", "result_dtype"]

# The standard's names for groups of data types ("Data Type Categories").
Category = Literal[
    "any", "numeric", "real numeric", "integer", "integer or boolean", "boolean",
    "floating-point", "real floating-point", "complex floating-point",
]  # fmt: skip
Result = Literal["same", "bool", "real"]

_KINDS: dict[str, set[str]] = {
    "any": {"bool", "signed", "unsigned", "real", "complex"},
    "numeric": {"signed", "unsigned", "real", "complex"},
    "real numeric": {"signed", "unsigned", "real"},
    "integer": {"signed", "unsigned"},
    "integer or boolean": {"bool", "signed", "unsigned"},
    "boolean": {"bool"},
    "floating-point": {"real", "complex"},
    "real floating-point": {"real"},
    "complex floating-point": {"complex"},
}
ACCEPTED: dict[str, frozenset[DType]] = {
    category: frozenset(dtype for dtype in DTYPES.values() if dtype.kind in kinds)
    for category, kinds in _KINDS.items()
}


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One elementwise operation.

    Attributes
    ----------
    name : str
        Name of the function in the standard.
    arity : int
        Number of operands.
    accepts : str
        The standard's category of the operands' common data type.
    result : {"same", "bool", "real"}
        Data type of the result: the operands', ``bool``, or the real type of a complex operand.
    family : str
        Header below ``fklarray/functors/`` that has the functor. Those of the family
        ``"special"`` are not functions of the standard.
    max_ulp : float
        Bound of the error for real floating-point operands, in units in the last place of the
        correctly rounded result. 0 means: the same bits as NumPy. For `logaddexp`, whose result
        crosses zero, units of the largest of both operands and the result.
    complex_ulp : float
        The same for complex operands, measured on the modulus of the error against the modulus
        of the result. For `pow`, as long as the modulus of ``x2 * log(x1)`` is at most 1000.
    doc : str
        First line of the public function's docstring.
    """

    name: str
    arity: int
    accepts: Category
    result: Result
    family: str
    max_ulp: float
    complex_ulp: float
    doc: str

    def runs_on_devices(self, dtype: DType) -> bool:
        """Return whether there is device code: C's complex functions exist on the host only."""
        families = ("exponential", "hyperbolic", "trigonometric")
        of_the_library = self.family in families or self.name in ("sign", "sqrt")
        return dtype.kind != "complex" or not of_the_library

    @property
    def functor(self) -> str:
        """Name of the C++ functor: ``bitwise_and`` is ``BitwiseAnd``."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    def __repr__(self) -> str:
        return self.name


# fmt: off
_ROWS = (
    #  name                 n  accepts                   result   family           ulp  c-ulp  doc
    Op("abs",               1, "numeric",                "real",  "arithmetic",      0,  4, "Absolute value."),
    Op("acos",              1, "floating-point",         "same",  "trigonometric",   4,  5, "Inverse cosine, in radians."),
    Op("acosh",             1, "floating-point",         "same",  "hyperbolic",      4,  5, "Inverse hyperbolic cosine."),
    Op("add",               2, "numeric",                "same",  "arithmetic",      0,  0, "Sum."),
    Op("asin",              1, "floating-point",         "same",  "trigonometric",   4,  5, "Inverse sine, in radians."),
    Op("asinh",             1, "floating-point",         "same",  "hyperbolic",      4,  5, "Inverse hyperbolic sine."),
    Op("atan",              1, "floating-point",         "same",  "trigonometric",   4,  5, "Inverse tangent, in radians."),
    Op("atan2",             2, "real floating-point",    "same",  "trigonometric",   4,  0, "Angle of the point (x2, x1) from the positive x axis, in radians."),
    Op("atanh",             1, "floating-point",         "same",  "hyperbolic",      4,  5, "Inverse hyperbolic tangent."),
    Op("bitwise_and",       2, "integer or boolean",     "same",  "bitwise",         0,  0, "Bitwise AND."),
    Op("bitwise_invert",    1, "integer or boolean",     "same",  "bitwise",         0,  0, "Bitwise NOT."),
    Op("bitwise_left_shift", 2, "integer",               "same",  "bitwise",         0,  0, "Bits of x1 moved left by x2 places; 0 when x2 is not below the number of bits."),
    Op("bitwise_or",        2, "integer or boolean",     "same",  "bitwise",         0,  0, "Bitwise OR."),
    Op("bitwise_right_shift", 2, "integer",              "same",  "bitwise",         0,  0, "Bits of x1 moved right by x2 places, keeping the sign."),
    Op("bitwise_xor",       2, "integer or boolean",     "same",  "bitwise",         0,  0, "Bitwise exclusive OR."),
    Op("ceil",              1, "real numeric",           "same",  "rounding",        0,  0, "Smallest integer that is not below the value."),
    Op("conj",              1, "numeric",                "same",  "complex",         0,  0, "Complex conjugate."),
    Op("copysign",          2, "real floating-point",    "same",  "arithmetic",      0,  0, "Magnitude of x1 with the sign of x2."),
    Op("cos",               1, "floating-point",         "same",  "trigonometric",   4,  5, "Cosine of an angle in radians."),
    Op("cosh",              1, "floating-point",         "same",  "hyperbolic",      4,  5, "Hyperbolic cosine."),
    Op("divide",            2, "floating-point",         "same",  "arithmetic",      0,  4, "Quotient."),
    Op("equal",             2, "any",                    "bool",  "comparison",      0,  0, "Whether x1 == x2."),
    Op("exp",               1, "floating-point",         "same",  "exponential",     4,  5, "Exponential function."),
    Op("expm1",             1, "floating-point",         "same",  "exponential",     4,  5, "exp(x) - 1, precise near zero."),
    Op("floor",             1, "real numeric",           "same",  "rounding",        0,  0, "Greatest integer that is not above the value."),
    Op("floor_divide",      2, "real numeric",           "same",  "division",        0,  0, "Greatest integer that is not above the quotient; 0 for integers divided by zero."),
    Op("greater",           2, "real numeric",           "bool",  "comparison",      0,  0, "Whether x1 > x2."),
    Op("greater_equal",     2, "real numeric",           "bool",  "comparison",      0,  0, "Whether x1 >= x2."),
    Op("hypot",             2, "real floating-point",    "same",  "exponential",     4,  0, "Square root of the sum of squares, without undue overflow."),
    Op("imag",              1, "complex floating-point", "real",  "complex",         0,  0, "Imaginary part."),
    Op("isfinite",          1, "numeric",                "bool",  "classification",  0,  0, "Whether the value is neither infinite nor NaN."),
    Op("isinf",             1, "numeric",                "bool",  "classification",  0,  0, "Whether the value is infinite."),
    Op("isnan",             1, "numeric",                "bool",  "classification",  0,  0, "Whether the value is NaN."),
    Op("less",              2, "real numeric",           "bool",  "comparison",      0,  0, "Whether x1 < x2."),
    Op("less_equal",        2, "real numeric",           "bool",  "comparison",      0,  0, "Whether x1 <= x2."),
    Op("log",               1, "floating-point",         "same",  "exponential",     4,  5, "Natural logarithm."),
    Op("log10",             1, "floating-point",         "same",  "exponential",     4,  5, "Logarithm to base 10."),
    Op("log1p",             1, "floating-point",         "same",  "exponential",     4,  5, "log(1 + x), precise near zero."),
    Op("log2",              1, "floating-point",         "same",  "exponential",     4,  5, "Logarithm to base 2."),
    Op("logaddexp",         2, "real floating-point",    "same",  "exponential",     4,  0, "log(exp(x1) + exp(x2)), without undue overflow."),
    Op("logical_and",       2, "boolean",                "bool",  "bitwise",         0,  0, "Logical AND."),
    Op("logical_not",       1, "boolean",                "bool",  "bitwise",         0,  0, "Logical NOT."),
    Op("logical_or",        2, "boolean",                "bool",  "bitwise",         0,  0, "Logical OR."),
    Op("logical_xor",       2, "boolean",                "bool",  "bitwise",         0,  0, "Logical exclusive OR."),
    Op("maximum",           2, "real numeric",           "same",  "selection",       0,  0, "Greater of two values; NaN if one is NaN."),
    Op("minimum",           2, "real numeric",           "same",  "selection",       0,  0, "Smaller of two values; NaN if one is NaN."),
    Op("multiply",          2, "numeric",                "same",  "arithmetic",      0,  4, "Product."),
    Op("negative",          1, "numeric",                "same",  "arithmetic",      0,  0, "Value with the opposite sign."),
    Op("nextafter",         2, "real floating-point",    "same",  "rounding",        0,  0, "Next representable value after x1 towards x2."),
    Op("not_equal",         2, "any",                    "bool",  "comparison",      0,  0, "Whether x1 != x2."),
    Op("positive",          1, "numeric",                "same",  "arithmetic",      0,  0, "The value itself, as a new array."),
    Op("pow",               2, "numeric",                "same",  "exponential",     4, 16, "x1 to the power x2."),
    Op("real",              1, "numeric",                "real",  "complex",         0,  0, "Real part."),
    Op("reciprocal",        1, "floating-point",         "same",  "arithmetic",      0,  4, "1 / x."),
    Op("remainder",         2, "real numeric",           "same",  "division",        0,  0, "What floor division leaves, with the sign of x2; 0 for integers divided by zero."),
    Op("round",             1, "numeric",                "same",  "rounding",        0,  0, "Nearest integer; of two equally near, the even one."),
    Op("sign",              1, "numeric",                "same",  "arithmetic",      0,  4, "-1, 0 or 1; x / abs(x) for complex values."),
    Op("signbit",           1, "real floating-point",    "bool",  "classification",  0,  0, "Whether the sign bit is set."),
    Op("sin",               1, "floating-point",         "same",  "trigonometric",   4,  5, "Sine of an angle in radians."),
    Op("sinh",              1, "floating-point",         "same",  "hyperbolic",      4,  5, "Hyperbolic sine."),
    Op("sqrt",              1, "floating-point",         "same",  "arithmetic",      0,  4, "Square root."),
    Op("square",            1, "numeric",                "same",  "arithmetic",      0,  4, "x * x."),
    Op("subtract",          2, "numeric",                "same",  "arithmetic",      0,  0, "Difference."),
    Op("tan",               1, "floating-point",         "same",  "trigonometric",   4,  5, "Tangent of an angle in radians."),
    Op("tanh",              1, "floating-point",         "same",  "hyperbolic",      4,  5, "Hyperbolic tangent."),
    Op("trunc",             1, "real numeric",           "same",  "rounding",        0,  0, "Nearest integer towards zero."),
    # x1 is of type bool and x2, x3 have the result's type; casts are rows named after their target.
    Op("where",             3, "any",                    "same",  "selection",       0,  0, "Elements of x1 where the condition holds, of x2 elsewhere."),
    # Beyond the standard: functions of `fklarray.special`, named as in SciPy.
    Op("entr",              1, "real floating-point",    "same",  "special",         6,  0, "-x * log(x), 0 at 0 and negative infinity below."),
    Op("erf",               1, "real floating-point",    "same",  "special",         4,  0, "Error function."),
    Op("erfc",              1, "real floating-point",    "same",  "special",         6,  0, "1 - erf(x), precise where that is small."),
    Op("expit",             1, "real floating-point",    "same",  "special",         6,  0, "Logistic sigmoid, 1 / (1 + exp(-x))."),
    Op("gammaln",           1, "real floating-point",    "same",  "special",         6,  0, "Logarithm of the absolute value of the gamma function."),
    Op("log_ndtr",          1, "real floating-point",    "same",  "special",         6,  0, "Logarithm of `ndtr`, precise in both tails."),
    Op("logit",             1, "real floating-point",    "same",  "special",         4,  0, "log(x / (1 - x)), the inverse of `expit`."),
    Op("ndtr",              1, "real floating-point",    "same",  "special",         4,  0, "Probability that a standard normal variable is below x."),
    Op("rel_entr",          2, "real floating-point",    "same",  "special",         6,  0, "x1 * log(x1 / x2), 0 where x1 is 0, infinity outside of probabilities."),
    Op("xlog1py",           2, "real floating-point",    "same",  "special",         6,  0, "x1 * log1p(x2), 0 where x1 is 0 and x2 is not NaN."),
    Op("xlogy",             2, "real floating-point",    "same",  "special",         6,  0, "x1 * log(x2), 0 where x1 is 0 and x2 is not NaN."),
)
# fmt: on

OPS: dict[str, Op] = {row.name: row for row in _ROWS}


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """One way to reduce many elements to one, or to what that is up to each of them (a scan).

    Attributes
    ----------
    name : str
        Name of the function; its functor in ``include/fklarray/reductions.h`` is ``Name``.
    accepts : str
        The standard's category of the elements' data type.
    result : {"same", "index"}
        Data type of the result: the elements', or int64.
    scans : str
        For a scan, the name of the reduction whose running results it gives, in the order of the
        elements; else empty.
    """

    name: str
    accepts: Category
    result: Literal["same", "index"]
    scans: str = ""

    @property
    def functor(self) -> str:
        """Name of the C++ functor."""
        return (self.scans or self.name).capitalize()

    def __repr__(self) -> str:
        return self.name


# fmt: off
_REDUCTION_ROWS = (
    #          name      accepts         result
    Reduction("all",     "boolean",      "same"),
    Reduction("any",     "boolean",      "same"),
    Reduction("argmax",  "real numeric", "index"),
    Reduction("argmin",  "real numeric", "index"),
    Reduction("cumulative_prod", "numeric", "same", "prod"),
    Reduction("cumulative_sum",  "numeric", "same", "sum"),
    Reduction("max",     "real numeric", "same"),
    Reduction("min",     "real numeric", "same"),
    Reduction("prod",    "numeric",      "same"),
    Reduction("sum",     "numeric",      "same"),
)
# fmt: on

REDUCTIONS: dict[str, Reduction] = {row.name: row for row in _REDUCTION_ROWS}


def reduced_dtype(reduction: Reduction, element: DType) -> DType:
    """Return the data type of a reduction's result."""
    return DTYPES["int64"] if reduction.result == "index" else element


def result_dtype(op: Op, operand: DType) -> DType:
    """Return the data type of an operation's result, given its operands' common data type."""
    if op.result == "bool":
        return DTYPES["bool"]
    if op.result == "real" and operand.kind == "complex":
        return DTYPES[f"float{operand.bits // 2}"]
    return operand
