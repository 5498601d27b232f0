"""The process of a run: ``python -P -m det_native.notebook_runs FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from det_native.notebook_runs.execute import execute
from det_native.notebook_runs.folders import RunFolder

if __name__ == "__main__":
    sys.exit(execute(RunFolder(Path(sys.argv[1]))))
