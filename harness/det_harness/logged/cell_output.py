"""What a training prints and shows, in order, for the cell that waits for it.

Each line and each display has a number, which goes on from that of the checkpoint where a run continues: so a cell
shows once what a restarted run prints again.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Literal

from det_harness.logged.limits import CELL_BYTES, CELL_ITEMS, CELL_LINE
from det_native.schema.outputs import CellItem

SEND_SECONDS = 1.0
# Later they are sent in larger parts: some thousands of parts in ten days.
_PARTS = 500
_FULL = "[The cell shows no more of what the training prints; the log of the trial has all: experiment.logs()]\n"
_REPRESENTATIONS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
    "image/svg+xml": "_repr_svg_",
}

Stream = Literal["stdout", "stderr"]


class CellOutput:
    """Takes lines and displays from any thread of the training; gives what is to be sent.

    Attributes
    ----------
    number : int
        Of the next line or display.
    """

    def __init__(self) -> None:
        self.number = 0
        self._lock = threading.Lock()
        self._items: list[CellItem] = []
        self._rest: dict[Stream, str] = {}
        self._room = CELL_BYTES
        self._begun = self._sent = time.monotonic()
        self._ended = False

    def printed(self, stream: Stream, text: str) -> None:
        """Take text; a line counts once it is complete, by what it shows last where it is rewritten in place."""
        with self._lock:
            *lines, rest = (self._rest.get(stream, "") + text).split("\n")
            for line in lines:
                self._add(CellItem(stream=stream, text=f"{_last_shown(line)[:CELL_LINE]}\n"), len(line))
            self._rest[stream] = _last_shown(rest)[:CELL_LINE]

    def show(self, item: CellItem, size: int) -> None:
        """Take a display of so many bytes."""
        with self._lock:
            self._add_rests()
            self._add(item, size)

    def clear(self) -> None:
        """Take note that the cell was cleared: what is not sent yet is never shown."""
        with self._lock:
            self._rest, self._items, self._room = {}, [], CELL_BYTES
            self._add(CellItem(clear=True), 0)

    def end(self) -> None:
        """Take nothing more: what the program prints now is not the training's."""
        with self._lock:
            self._add_rests()
            self._ended = True

    @property
    def is_due(self) -> bool:
        """Whether there is something that is to be sent now."""
        now = time.monotonic()
        return bool(self._items) and now - self._sent >= max(SEND_SECONDS, (now - self._begun) / _PARTS)

    def take(self) -> tuple[int, list[CellItem]]:
        """Return what is to be sent, with the number of the first; complete lines only."""
        with self._lock:
            items, self._items, self._sent = self._items, [], time.monotonic()
            return self.number - len(items), items

    def _add_rests(self) -> None:
        for stream, text in self._rest.items():
            if text:
                self._add(CellItem(stream=stream, text=text), len(text))
        self._rest = {}

    def _add(self, item: CellItem, size: int) -> None:
        if self._ended:
            return
        self.number += 1
        before, self._room = self._room, self._room - size - CELL_BYTES // CELL_ITEMS
        if self._room > 0:
            self._items.append(item)
        elif before > 0:
            self._items.append(CellItem(stream="stderr", text=_FULL))
        elif self._items:  # numbers have no gaps: an empty item stands for what is left out
            self._items.append(CellItem())


def mime_data(shown: Any) -> dict[str, Any]:
    """Return what a notebook shows of an object, by mime type."""
    data: dict[str, Any] = {"text/plain": repr(shown)[:CELL_LINE]}
    for mime, name in _REPRESENTATIONS.items():
        if callable(getattr(type(shown), name, None)) and isinstance(text := getattr(shown, name)(), str):
            data[mime] = text
    if callable(getattr(type(shown), "_repr_mimebundle_", None)):
        bundle = shown._repr_mimebundle_(include=None, exclude=None)
        data |= bundle[0] if isinstance(bundle, tuple) else bundle or {}
    return data


def _last_shown(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
