"""Where commands are looked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def search_path() -> str:
    """Return the PATH of what a worker starts: ``python3`` is the worker's own, and ``torchrun`` that beside it."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH") or os.defpath))
