"""What a run prints in this process, copied into its log while it goes where it went before."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any


@contextmanager
def copied_output(path: Path) -> Iterator[Callable[[str], None]]:
    """Copy what is printed in the block into a file, that of loggers included, as the output of a worker lies there.

    Gives what writes a text into the file alone.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:  # a full disk: no line of a log is worth the training
        yield lambda text: None
        return
    with ExitStack() as stack:
        stack.callback(os.close, file)
        for name in ("stdout", "stderr"):
            stack.enter_context(_copied(name, file))
        yield partial(_write, file)


@contextmanager
def _copied(name: str, file: int) -> Iterator[None]:
    original = getattr(sys, name)
    if original is None:  # a process without a console
        yield
        return
    copying = _Copying(original, file)
    setattr(sys, name, copying)
    handlers = [handler for handler in _handlers() if handler.stream is original]
    for handler in handlers:
        handler.setStream(copying)
    try:
        yield
    finally:
        copying.end()
        for handler in handlers:
            if handler.stream is copying:
                handler.setStream(original)
        if getattr(sys, name) is copying:  # else the user's code has put something in its place
            setattr(sys, name, original)


def _handlers() -> list[logging.StreamHandler[Any]]:
    """Return the handlers of all loggers that write to a stream: they keep the stream that they were made with."""
    named = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    found = {id(handler): handler for logger in (logging.root, *named) for handler in logger.handlers}
    return [handler for handler in found.values() if isinstance(handler, logging.StreamHandler)]


def _write(file: int, text: str) -> None:
    with suppress(OSError):
        os.write(file, text.encode("utf-8", "backslashreplace"))


class _Copying:
    """A stream that writes to another one, and the same into a file; all else is the other one's."""

    def __init__(self, original: Any, file: int) -> None:
        self._original = original
        self._file: int | None = file
        self._pid = os.getpid()

    def write(self, text: str) -> Any:
        """Write to the other stream, then to the file."""
        written = self._original.write(text)
        # What a process prints that was forked from this one is not the run's.
        if self._file is not None and isinstance(text, str) and os.getpid() == self._pid:
            _write(self._file, text)
        return written

    def writelines(self, lines: Any) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def end(self) -> None:
        """Copy no more."""
        self._file = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._original)
