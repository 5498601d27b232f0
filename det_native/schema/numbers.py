"""Metrics as numbers, whatever JSON has made of them."""

from __future__ import annotations

from typing import Any


def number(value: Any) -> float | None:
    """Return a metric as a float, JSON's texts for what is not finite included; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float) or (isinstance(value, str) and value in {"NaN", "Infinity", "-Infinity"}):
        return float(value)
    return None
