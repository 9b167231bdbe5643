"""Data types as plain rows, and the promotion rule.

Nothing here knows NumPy: a row carries what the generator needs (the C++ spelling) and what the
other packages need to find their own object for it (the name and the DLPack type code).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DTYPES", "DType", "can_cast", "named", "promote"]

Kind = Literal["bool", "signed", "unsigned", "real", "complex"]


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One data type.

    Attributes
    ----------
    name : str
        Name in the standard, for example ``"float32"``, or NumPy's.
    kind : {"bool", "signed", "unsigned", "real", "complex"}
        Kind of number.
    bits : int
        Size of one element in bits.
    cpp : str
        C++ type.
    format : str
        Format characters of :mod:`struct` (native sizes and alignment) for a number that a kernel
        gets as a parameter. Numbers of 16 bits travel as float64, and the kernel rounds them.
    dlpack_code : int
        ``DLDataTypeCode`` of the DLPack C header.
    """

    name: str
    kind: Kind
    bits: int
    cpp: str
    format: str
    dlpack_code: int

    @property
    def is_standard(self) -> bool:
        """Whether the array API standard has the data type."""
        return self.kind != "real" or self.bits > 16

    @property
    def parameter(self) -> str:
        """C++ type of a number that a kernel gets as a parameter."""
        return self.cpp if self.is_standard else "double"

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self.bits // 8

    def __repr__(self) -> str:
        return self.name


# fmt: off
_ROWS = (
    #     name          kind        bits  C++                          struct  DLPack
    DType("bool",       "bool",        8, "bool",                      "?",    6),
    DType("int8",       "signed",      8, "std::int8_t",               "b",    0),
    DType("int16",      "signed",     16, "std::int16_t",              "h",    0),
    DType("int32",      "signed",     32, "std::int32_t",              "i",    0),
    DType("int64",      "signed",     64, "std::int64_t",              "q",    0),
    DType("uint8",      "unsigned",    8, "std::uint8_t",              "B",    1),
    DType("uint16",     "unsigned",   16, "std::uint16_t",             "H",    1),
    DType("uint32",     "unsigned",   32, "std::uint32_t",             "I",    1),
    DType("uint64",     "unsigned",   64, "std::uint64_t",             "Q",    1),
    DType("float16",    "real",       16, "fklarray::Float16",         "d",    2),
    DType("bfloat16",   "real",       16, "fklarray::BFloat16",        "d",    4),
    DType("float32",    "real",       32, "float",                     "f",    2),
    DType("float64",    "real",       64, "double",                    "d",    2),
    DType("complex64",  "complex",    64, "fklarray::Complex<float>",  "ff",   5),
    DType("complex128", "complex",   128, "fklarray::Complex<double>", "dd",   5),
)
# fmt: on

DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}
_BY_KIND_AND_BITS = {(row.kind, row.bits): row for row in _ROWS if row.is_standard}


def named(name: str) -> DType:
    """Return the data type of this name.

    Raises
    ------
    TypeError
        If there is no such data type.
    """
    try:
        return DTYPES[name]
    except KeyError:
        raise TypeError(f"unsupported dtype {name!r}; supported: {', '.join(DTYPES)}") from None


def promote(first: DType, second: DType) -> DType:
    """Return the data type that holds the values of both.

    Within a kind this is the promotion table of the array API standard 2025.12 ("Type Promotion
    Rules"); between kinds, where the standard leaves it open, it is NumPy's rule. float16 and
    bfloat16 meet in float32.

    Parameters
    ----------
    first, second : DType
        The operands' data types, in any order.

    Returns
    -------
    DType
        ``float64`` where a signed and an unsigned 64-bit integer meet, as in NumPy.
    """
    if first is second or second.kind == "bool":
        return first
    if first.kind == "bool":
        return second
    if first.kind == second.kind:
        return _wider(first, second)
    kinds = {first.kind, second.kind}
    if kinds == {"signed", "unsigned"}:
        signed, unsigned = (first, second) if first.kind == "signed" else (second, first)
        bits = max(signed.bits, 2 * unsigned.bits)
        return DTYPES["float64"] if bits > 64 else _BY_KIND_AND_BITS["signed", bits]
    # An integer needs a significand twice as wide as itself; a complex number has two components.
    component = max(min(64, _component_bits(first)), min(64, _component_bits(second)))
    if "complex" in kinds:
        return _BY_KIND_AND_BITS["complex", 2 * component]
    real = first if first.kind == "real" else second
    return real if component == real.bits else _BY_KIND_AND_BITS["real", component]


def _wider(first: DType, second: DType) -> DType:
    if first.bits == second.bits:
        return DTYPES["float32"]
    return first if first.bits > second.bits else second


def _component_bits(dtype: DType) -> int:
    if dtype.kind == "complex":
        return dtype.bits // 2
    if dtype.kind == "real":
        return dtype.bits
    return 2 * dtype.bits


def can_cast(source: DType, target: DType) -> bool:
    """Return whether every value of one data type has a place in the other (NumPy's "safe")."""
    return promote(source, target) is target
