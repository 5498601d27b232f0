"""Handles are tested on masters as the tests of the master have them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "master"))
