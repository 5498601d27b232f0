"""Reading the growing output file of a worker."""

from __future__ import annotations

import ctypes
import logging
import os
from pathlib import Path

from det_native.master.launch.base import Output

logger = logging.getLogger(__name__)

MAXIMUM_READ = 1 << 20
_BLOCK = 1 << 16
# Of <linux/falloc.h>.
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


def read_output(path: Path, offset: int, *, ended: bool, maximum: int = MAXIMUM_READ) -> Output:
    """Return what was written since `offset` bytes, at most `maximum` bytes of it.

    Whole lines only while the worker may still write, except for a line longer than `maximum`, which comes in parts.
    Bytes that are no UTF-8 are replaced.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(maximum)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return Output("", offset)
    full = len(data) == maximum
    whole = data.rfind(b"\n") + 1
    if (full or not ended) and whole:
        data = data[:whole]
    elif full:
        data = data[: _character_boundary(data)]
    elif not ended:
        return Output("", offset)
    end = offset + len(data)
    return Output(data.decode("utf-8", errors="replace"), end, max(size - end, 0))


def punch_hole(path: Path, start: int, end: int) -> None:
    """Give back the disk space of a part of a file; its length stays, and zeros are read there.

    Where the file system cannot do that, nothing happens.
    """
    start, end = -(-start // _BLOCK) * _BLOCK, end // _BLOCK * _BLOCK
    if end <= start:
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        length = ctypes.c_int64(end - start)
        if libc.fallocate64(descriptor, _PUNCH_HOLE | _KEEP_SIZE, ctypes.c_int64(start), length) != 0:
            logger.debug("no hole is made in %s: %s", path, os.strerror(ctypes.get_errno()))
    finally:
        os.close(descriptor)


def tail(path: Path, lines: int, *, since: int = 0, maximum: int = 1 << 16) -> str:
    """Return the last lines of a text file, of what was written since byte `since`; empty if there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(max(since, path.stat().st_size - maximum))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _character_boundary(data: bytes) -> int:
    """Return where to cut so that no UTF-8 character is split."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
    return len(data)
