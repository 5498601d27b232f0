"""What the import of a framework draws from global streams: on a worker it has drawn that before any cell runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from det_native.process.streams import current_streams


class _Seen(Protocol):
    streams: dict[str, Any] | None


class ImportDraws:
    """Has the streams of the running cell begin after the import of a framework, where the cell itself has not drawn.

    TensorFlow 2.21 draws from numpy's stream while it is imported.

    Parameters
    ----------
    running : callable
        Gives what was seen of the execution that runs, None if none does.
    """

    def __init__(self, running: Callable[[], _Seen | None]) -> None:
        self._running = running
        self._untouched: set[str] = set()

    def begin(self) -> None:
        """The import begins: note which streams are where the cell found them, or are not there yet."""
        seen = self._running()
        noted = seen.streams if seen is not None else None
        if noted is not None:
            now = current_streams()
            self._untouched = {name for name in ("python", "numpy") if now.get(name) == noted.get(name)}

    def end(self) -> None:
        """The import has ended: what it has drawn is not the cell's."""
        seen = self._running()
        if seen is not None and seen.streams is not None:
            now = current_streams()
            seen.streams |= {name: now[name] for name in self._untouched if name in now}
        self._untouched = set()
