"""Graphs of elementwise operations to C++ text: pure, without processes, devices or arrays."""

from __future__ import annotations

from pathlib import Path

__all__ = ["INCLUDE"]

# The headers that a translation unit includes.
INCLUDE = Path(__file__).parent / "include"
