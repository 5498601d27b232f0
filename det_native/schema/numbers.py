"""Metrics as numbers, whatever JSON has made of them; and as they are shown everywhere."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

# A tie is rounded as JavaScript does it.
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_UP)


def number(value: Any) -> float | None:
    """Return a metric as a float, JSON's texts for what is not finite included; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float) or (isinstance(value, str) and value in {"NaN", "Infinity", "-Infinity"}):
        return float(value)
    return None


def words(value: Any) -> Any:
    """Return `value` with every not-a-number and infinity in it as a text, as they travel in JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: words(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [words(part) for part in value]
    return value


def shown_number(value: float) -> str:
    """Return four digits that count, as ``formatValue`` of the live view (``jupyter_ext/src/shared/format.ts``)."""
    if not math.isfinite(value):
        return f"{value:.4g}"
    whole = value == int(value)
    if whole and abs(value) < 1e6:
        return str(int(value))
    rounded = _FOUR_DIGITS.create_decimal(Decimal(value)).normalize()
    plain_form = not whole and 1e-3 <= abs(value) < 1e5
    return f"{rounded:f}" if plain_form else f"{rounded:e}"
