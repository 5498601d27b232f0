"""Room on a disk: whether an error means that there is none, or no disk, and when there is more than before."""

from __future__ import annotations

import errno
import os
import time

from det_native.errors import DiskFailedError, DiskFullError, StorageError

_CODES = (errno.ENOSPC, errno.EDQUOT)
# What libraries say of it that hand on no number (HDF5, say).
_TEXTS = tuple(os.strerror(code) for code in _CODES)

# A file system that is read-only, has died, or is not mounted any more.
FAILED_CODES = frozenset(
    {errno.EROFS, errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ESHUTDOWN, errno.ENOTCONN}
)

# What a disk has more, before another attempt is worth it: a part of it, within limits. A large one has to have more
# than what the master gives up for decisions while it is full.
_GROWTH_SHARE, _LEAST_GROWTH, _MOST_GROWTH = 64, 64 << 10, 8 << 20
# A quota, or the room of another machine, cannot be seen from here: then it is tried this often.
BLIND_SECONDS = 20.0

# How every notice begins that says so of a trial.
WAITS_FOR_ROOM = "waits for disk space"
# The same where the disk takes nothing at all.
WAITS_FOR_DISK = "waits for the disk, which cannot be written,"


def lacks_room(error: BaseException | None) -> bool:
    """Return whether an error, or one that it came from, is that a disk or a quota is full."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, OSError) and (one.errno in _CODES or any(text in str(one) for text in _TEXTS)):
            return True
        waiting += [one.__cause__, one.__context__]
    return False


def storage_error(message: str, error: BaseException) -> StorageError:
    """Return the error for something that could not be written: one that says so where there is no room, or no disk."""
    if isinstance(error, DiskFullError) or lacks_room(error):
        return DiskFullError(message)
    failed = isinstance(error, OSError) and error.errno in FAILED_CODES
    return DiskFailedError(message) if failed else StorageError(message)


def free_bytes(path: str | os.PathLike[str]) -> int | None:
    """Return what may still be written to the disk of a path, or of the nearest folder above; None if nobody knows."""
    place = os.path.abspath(path)
    while True:
        try:
            found = os.statvfs(place)
        except FileNotFoundError:
            place = os.path.dirname(place)
        except OSError:
            return None
        else:
            return found.f_bavail * found.f_frsize


def device_of(path: str | os.PathLike[str]) -> int:
    """Return the number of the file system of a path, or of the nearest folder above that exists."""
    place = os.path.abspath(path)
    while True:
        try:
            return os.stat(place).st_dev
        except FileNotFoundError:
            place = os.path.dirname(place)


class RoomWatch:
    """Says whether another attempt at writing to a full disk is worth it.

    Parameters
    ----------
    path : path
        Where there was no room, after what was half written is gone.
    blind_seconds : float
        After so long it is worth it whatever is seen.
    """

    def __init__(self, path: str | os.PathLike[str], blind_seconds: float = BLIND_SECONDS) -> None:
        self._path = path
        self._lowest = free_bytes(path)
        self._growth = _growth(path)
        self._blind_at = time.monotonic() + blind_seconds

    def has_more(self) -> bool:
        """Return whether room has become free, or it is long since the last attempt."""
        free = free_bytes(self._path)
        if free is None or self._lowest is None or time.monotonic() >= self._blind_at:
            return time.monotonic() >= self._blind_at
        self._lowest = min(self._lowest, free)
        return free >= self._lowest + self._growth


def _growth(path: str | os.PathLike[str]) -> int:
    try:
        found = os.statvfs(path)
    except OSError:
        return _LEAST_GROWTH
    return min(max(found.f_blocks * found.f_frsize // _GROWTH_SHARE, _LEAST_GROWTH), _MOST_GROWTH)
