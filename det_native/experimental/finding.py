"""Experiments side by side and as data frames, with what shows their curves."""

from __future__ import annotations

import det_native.display  # noqa: F401 (comparisons draw by what it registers)
from det_native.client.comparing import Comparison, compare
from det_native.client.frames import to_dataframe

__all__ = ["Comparison", "compare", "to_dataframe"]
