"""The rows of all chapters."""

from parity import (
    array_rows,
    creation_rows,
    elementwise_rows,
    extension_rows,
    factorization_rows,
    fft_rows,
    manipulation_rows,
    matrix_rows,
    order_rows,
    reduction_rows,
)

ROWS = [
    *array_rows.ROWS,
    *creation_rows.ROWS,
    *elementwise_rows.ROWS,
    *extension_rows.ROWS,
    *factorization_rows.ROWS,
    *fft_rows.ROWS,
    *manipulation_rows.ROWS,
    *matrix_rows.ROWS,
    *order_rows.ROWS,
    *reduction_rows.ROWS,
]
