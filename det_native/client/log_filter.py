"""Which lines of a log are wanted: by their level, and by what stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from det_native.errors import ArgumentError
from det_native.schema.rest import LogLine

LEVELS = ("debug", "info", "warning", "error", "critical")

_NAMES = {"warn": "warning", "fatal": "critical"}
# As logging, absl and most loops write it: "WARNING:root:", "[INFO]", "2026-01-01 12:00:00 - ERROR - ", "| error |".
_NAMED = re.compile(r"(?:^|[\s\[|:(-])(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)(?:$|[\s\]|:),-])")
_WARNING = re.compile(r"\b\w*Warning: ")
_TRACEBACK = "Traceback (most recent call last):"
# A level stands at the beginning of a line, after the time and the name of a logger.
_BEGINNING = 80


class LogFilter:
    """Tells which lines of a log are wanted; lines are shown to it in their order.

    What says no level is ``info``; a traceback is ``error``, with all of its lines.

    Parameters
    ----------
    level : str or None
        The least level that is wanted, such as ``"warning"``, in any case.
    pattern : str or None
        A regular expression that is looked for, whatever the case of letters.

    Raises
    ------
    ArgumentError
        If there is no such level, or the pattern is no regular expression.
    """

    def __init__(self, level: str | None = None, pattern: str | None = None) -> None:
        name = None if level is None else _NAMES.get(str(level).lower(), str(level).lower())
        if name is not None and name not in LEVELS:
            raise ArgumentError(f"level: {level!r} is none; there are {', '.join(LEVELS)}.")
        self._least = 0 if name is None else LEVELS.index(name)
        try:
            self._pattern = None if pattern is None else re.compile(pattern, re.IGNORECASE)
        except re.error as error:
            raise ArgumentError(f"{pattern!r} is no regular expression: {error}.") from None
        self._in_traceback: set[tuple[int, int | None]] = set()

    def wanted(self, lines: Iterable[LogLine]) -> list[LogLine]:
        """Return the lines that are wanted."""
        return [line for line in lines if self._passes(line)]

    def _passes(self, line: LogLine) -> bool:
        level = self._level(line)
        return LEVELS.index(level) >= self._least and (self._pattern is None or bool(self._pattern.search(line.text)))

    def _level(self, line: LogLine) -> str:
        writer = (line.trial_id, line.rank)
        if line.text.strip().startswith(_TRACEBACK):
            self._in_traceback.add(writer)
            return "error"
        if writer in self._in_traceback:
            if not line.text.startswith((" ", "\t")):  # the exception itself is its last line
                self._in_traceback.discard(writer)
            return "error"
        named = _NAMED.search(line.text[:_BEGINNING])
        if named is not None:
            return _NAMES.get(named[1].lower(), named[1].lower())
        return "warning" if _WARNING.search(line.text) else "info"
