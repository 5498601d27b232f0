"""This process as the parent of what its descendants leave: forks of a zygote, and children of workers that are gone.

The kernel gives a process that has lost its parent to the nearest ancestor that asks for it: a "child subreaper".
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
from contextlib import suppress

from det_native.master.launch import tree

logger = logging.getLogger(__name__)

_SET_CHILD_SUBREAPER = 36

# Children of this process that somebody looks after by their number.
_own: set[int] = set()
_lock = threading.Lock()
_users = 0


def begin() -> bool:
    """Take in processes that lose their parent, until as many calls of `end`; whether this system can do that."""
    global _users
    with _lock:
        if not _users and not _set(True):
            return False
        _users += 1
        return True


def end() -> None:
    """Undo one `begin`."""
    global _users
    with _lock:
        _users -= 1
        if not _users:
            _set(False)


def own(pid: int) -> None:
    """Note a child that is reaped by whoever started it."""
    _own.add(pid)


def disown(pid: int) -> None:
    """Note that a child was reaped."""
    _own.discard(pid)


def reap_strays() -> None:
    """Reap what has ended of the processes that were taken in and that nobody looks after."""
    if not _users:
        return
    for pid in tree.ended_strays() - _own:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _set(on: bool) -> bool:
    if sys.platform != "linux":
        return False
    try:
        done: int = ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
    except (OSError, AttributeError) as error:  # a C library without it
        logger.info("processes that lose their parent cannot be taken in: %s", error)
        return False
    return done == 0
