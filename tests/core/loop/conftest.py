"""Where tests of loops of the Core API find what they have in common with those of whole programs."""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).parents[2]
sys.path += [str(_TESTS / "end_to_end")]
