"""Data types of the standard, float16 and bfloat16, as NumPy's scalar types.

`x.dtype` is a `numpy.dtype`, and equal to its type here. A `numpy.dtype` would say that it equals
None too.

float16 and bfloat16 are stored in 16 bits. Each operation computes in float32, and its result is
rounded to the data type before the next one sees it: exact operations have NumPy's (ml_dtypes')
bits, others are within half a unit in the last place and the operation's bound in float32.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

__all__ = [
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

bool = np.bool
int8 = np.int8
int16 = np.int16
int32 = np.int32
int64 = np.int64
uint8 = np.uint8
uint16 = np.uint16
uint32 = np.uint32
uint64 = np.uint64
float16 = np.float16
bfloat16 = ml_dtypes.bfloat16
float32 = np.float32
float64 = np.float64
complex64 = np.complex64
complex128 = np.complex128
