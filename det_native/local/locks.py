"""Whether somebody holds a lock file, asked without getting into anybody's way."""

from __future__ import annotations

import sys
from pathlib import Path

from filelock import FileLock, Timeout


def is_locked(path: Path) -> bool:
    """Return whether a process holds the ``FileLock`` of a path; several may ask at the same moment."""
    if sys.platform == "win32":
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
        return False
    import fcntl

    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
