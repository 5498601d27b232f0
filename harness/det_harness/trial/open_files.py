"""Files that this process has open for writing: what is buffered is written out, and restored ones are gone on with."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import io
import itertools
import logging
import os
import stat
import types
import weakref
from collections.abc import Iterable
from typing import Any

from det_native.heap.ownership import is_users_module

logger = logging.getLogger("det_native")

_OF_WRITERS = ("flush", "close")
_MOST_INSIDE = 1000

# Device and inode.
Identity = tuple[int, int]

_STREAMS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)


class OpenFiles:
    """Finds the descriptors of files, and the objects of Python's that buffer for them."""

    def __init__(self) -> None:
        self._looked_for: frozenset[tuple[int, int]] = frozenset()
        self._streams: list[weakref.ref[io.IOBase]] = []

    def flush(self, files: set[Identity]) -> None:
        """Have what Python buffers for the files written out."""
        descriptors = _descriptors(files)
        open_now = frozenset(descriptors.items())
        if open_now != self._looked_for or any(_closed(stream()) for stream in self._streams):
            self._looked_for, self._streams = open_now, []
            # Nothing leads from a descriptor to the object that buffers for it.
            for each in gc.get_objects() if descriptors else ():
                if issubclass(type(each), _STREAMS) and _descriptor_of(each) in descriptors:
                    self._streams.append(weakref.ref(each))
        for reference in self._streams:
            stream = reference()
            if stream is not None and not stream.closed:
                stream.flush()

    def move_to_end(self, files: set[Identity]) -> None:
        """Let whoever has the files open go on at their ends."""
        for descriptor in _descriptors(files):
            with contextlib.suppress(OSError):
                os.lseek(descriptor, 0, os.SEEK_END)


def flush_writers(values: Iterable[Any]) -> None:
    """Have what writes files in its own way (a writer of events, an HDF5 file) write out what it holds back.

    That is what is of a library's class and can be flushed and closed, among the values, and in containers and objects
    of the user's among them. Code behind a training, which would close it, does not run on a worker.
    """
    several = list(values)
    for value in several:
        inside: Iterable[Any] = ()
        if isinstance(value, dict):
            inside = value.values()
        elif isinstance(value, list | tuple):
            inside = value
        elif is_users_module(type(value).__module__) and isinstance(getattr(value, "__dict__", None), dict):
            inside = vars(value).values()
        for each in (value, *itertools.islice(inside, _MOST_INSIDE)):
            kind = type(each)
            if is_users_module(kind.__module__) or not _can_be_flushed(kind):
                continue
            try:
                each.flush()
            except Exception as error:  # noqa: BLE001 - a library raises what it likes, of a closed one for example
                logger.debug("%s cannot be flushed: %s", kind.__qualname__, error)


def _can_be_flushed(kind: type) -> bool:
    names = (next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None) for name in _OF_WRITERS)
    return not issubclass(kind, type | types.ModuleType) and all(callable(member) for member in names)


def _descriptors(files: set[Identity]) -> dict[int, int]:
    """Return the descriptors of this process by which the files can be written, each with its file's inode."""
    found = {}
    for name in os.listdir("/dev/fd"):
        descriptor = int(name)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) not in files:
                continue
            if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                found[descriptor] = status.st_ino
        except OSError:  # closed meanwhile
            continue
    return found


def _closed(stream: io.IOBase | None) -> bool:
    return stream is None or stream.closed


def _descriptor_of(stream: io.IOBase) -> int | None:
    try:
        return None if stream.closed else stream.fileno()
    except (OSError, ValueError):
        return None
