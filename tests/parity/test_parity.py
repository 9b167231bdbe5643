"""Every function of the namespace gives what NumPy gives: values, data types, shapes, errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parity.expectations import assert_alike, numpy_outcome, outcome
from parity.rows import Row
from parity.table import ROWS


@pytest.mark.parametrize("row", ROWS, ids=str)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_parity(row: Row, data: Any) -> None:
    call = data.draw(row.calls)
    wanted = numpy_outcome(row.reference, *call.with_arrays("numpy"))
    assert_alike(outcome(row.function, *call.with_arrays("ours")), wanted)
