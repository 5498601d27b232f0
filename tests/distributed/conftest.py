"""The trials on scikit-learn's digits lie beside the tests of PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "pytorch"))
