"""Empty databases that have had all migrations: these run once in a process, for they take longer than a short test.

What the migrations themselves do, and that a master runs them, is tried in ``test_migrations.py``.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from det_native.master.store.database import Database


def put_database(path: Path) -> str:
    """Put an empty SQLite database that has had all migrations at `path`, where none is; return its URL."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        # As SQLite does: what lies in the page cache only is lost where a test lets the disk fail.
        with path.open("wb") as file:
            file.write(_migrated())
            file.flush()
            os.fsync(file.fileno())
    return f"sqlite:///{path}"


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "det.db"
        Database(f"sqlite:///{path}").close()
        assert [each.name for each in path.parent.iterdir() if each.name.startswith("det.db-")] == []
        return path.read_bytes()
