"""What a run prints in this process, copied into its log while it goes where it went before."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal

from det_native.local.log import LogWriter

Name = Literal["stdout", "stderr"]

_LONGEST_PARTIAL = 1 << 16


@contextmanager
def copied_output(log: LogWriter) -> Iterator[None]:
    """Copy what is printed in the block into a log, that of loggers included."""
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stack.enter_context(_copied(name, log))
        yield


@contextmanager
def _copied(name: Name, log: LogWriter) -> Iterator[None]:
    original = getattr(sys, name)
    if original is None:  # a process without a console
        yield
        return
    copying = _Copying(original, log, name)
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


class _Copying:
    """A stream that writes to another one and copies whole lines into a log; all else is the other one's."""

    def __init__(self, original: Any, log: LogWriter, name: Name) -> None:
        self._original = original
        self._log: LogWriter | None = log
        self._name: Name = name
        self._pid = os.getpid()
        self._partial = ""

    def write(self, text: str) -> Any:
        """Write to the other stream, then to the log."""
        written = self._original.write(text)
        # A process that was forked from this one writes nothing to the log: its lines would get numbers twice.
        if self._log is not None and isinstance(text, str) and os.getpid() == self._pid:
            with suppress(OSError):  # a full disk: no line of a log is worth the training
                self._copy(text)
        return written

    def writelines(self, lines: Any) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def end(self) -> None:
        """Copy what has no end of line yet, and nothing more."""
        log, self._log = self._log, None
        if log is not None and self._partial.strip():
            with suppress(OSError):
                log.write(self._partial, self._name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._original)

    def _copy(self, text: str) -> None:
        log = self._log
        assert log is not None
        *lines, rest = text.split("\n")
        for line in lines:
            log.write(self._partial + line, self._name)
            self._partial = ""
        # A bar that is written over in place may be so all day long: what it showed before is forgotten.
        cut = max(rest.rfind("\r"), rest.rfind("\b"))
        self._partial = rest[cut + 1 :] if -1 < cut < len(rest) - 1 else self._partial + rest
        if len(self._partial) > _LONGEST_PARTIAL:
            log.write(self._partial, self._name)
            self._partial = ""
