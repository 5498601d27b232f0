"""Log lines that read as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

from det_native.client.log_filter import LogFilter
from det_native.schema.rest import LogLine


class Logs(Sequence[LogLine]):
    """The lines of a log, oldest first: a sequence of ``LogLine`` that prints as the text it is.

    Parameters
    ----------
    empty : str
        What to print where there is no line.
    numbers : mapping of int to int, optional
        The numbers of trials inside their experiment, by their ids.
    """

    def __init__(self, lines: Iterable[LogLine], empty: str = "", numbers: Mapping[int, int] | None = None) -> None:
        self._lines = list(lines)
        self._empty = empty
        self._numbers = numbers or {}

    def __str__(self) -> str:
        if not self._lines:
            return self._empty
        several = len({line.trial_id for line in self._lines}) > 1
        return "\n".join(shown(line, of_several=several, numbers=self._numbers) for line in self._lines)

    def __repr__(self) -> str:
        return str(self) or "(no log lines)"

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[LogLine]:
        return iter(self._lines)

    @overload
    def __getitem__(self, index: int) -> LogLine: ...

    @overload
    def __getitem__(self, index: slice) -> Logs: ...

    def __getitem__(self, index: int | slice) -> LogLine | Logs:
        return Logs(self._lines[index], numbers=self._numbers) if isinstance(index, slice) else self._lines[index]

    def only(self, level: str | None = None, contains: str | None = None) -> Logs:
        """Return the lines of at least a level, and those that contain a text; all where neither is given."""
        if level is None and contains is None:
            return self
        chosen = LogFilter(level, None if contains is None else re.escape(contains))
        return Logs(chosen.wanted(self._lines), empty="no such log lines", numbers=self._numbers)

    def tail(self, count: int) -> Logs:
        """Return the last `count` lines."""
        return self[-count:] if count > 0 else Logs([])


def shown(line: LogLine, *, of_several: bool, numbers: Mapping[int, int] | None = None) -> str:
    """Return a line as text, with the trial where there are several, and the process where the trial has several.

    `numbers` has the numbers of the trials inside their experiment, by their ids.
    """
    marks = [f"trial {(numbers or {}).get(line.trial_id, line.trial_id)}"] if of_several else []
    if line.rank is not None:
        marks.append(line.role or f"rank {line.rank}")
    return f"[{', '.join(marks)}] {line.text}" if marks else line.text
