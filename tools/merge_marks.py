"""Look for the marks of an unresolved merge in the files of git; ``make lint`` runs it.

A merge that leaves both sides in a page of prose breaks no program, so nothing else would say it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Not "=======": it underlines headings in reStructuredText, and never stands without the others.
_MARKS = "^(<{7}|[|]{7}|>{7})( |$)"
_NO_MATCH = 1


def main(root: Path = ROOT) -> int:
    """Print where marks are; return the exit status."""
    search = ["git", "grep", "--line-number", "-I", "--extended-regexp", _MARKS]
    process = subprocess.run(search, cwd=root, capture_output=True, text=True, check=False)
    if process.returncode == 0:
        print(f"{process.stdout}Marks of an unresolved merge: keep one side, or both, and delete the marks.")
        return 1
    if process.returncode != _NO_MATCH:
        print(f"Merge marks were not searched: {process.stderr.strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
