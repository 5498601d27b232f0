"""The seam between handles and how they look.

Handles know no figure library and no HTML. ``det_native.display`` registers itself here when it is imported, which
``det_native.experimental`` does; without it, handles show plain text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from det_native.client.arguments import Show
from det_native.errors import ArgumentError, DetError

if TYPE_CHECKING:
    from det_native.schema import rest

#: Asks whether the user has said that the training is to go on without being waited for.
IsLeft = Callable[[], bool]


class ProgressView:
    """A progress bar with room for messages above it; this one has messages on stderr, and no bar."""

    def update(self, fraction: float, text: str) -> None:
        """Show that `fraction` of 1 is done, and a short text; may be held back while more follows at once."""

    def flush(self) -> None:
        """Show what is held back: for now, nothing follows."""

    def message(self, text: str) -> None:
        """Show text above the bar, at once."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the bar as it is; nothing follows."""


class LineInPlace:
    """A line that can change; where nothing can be shown in the place of another, the next one stands below it."""

    def say(self, text: str) -> None:
        """Show a text, in place of the one before."""
        print(text, flush=True)


class Outputs:
    """Shows what a training prints and shows where it is waited for; this one shows nothing, the log has it."""

    def take(self, event: rest.Event) -> None:
        """Show the change that an event reports."""

    def finish(self) -> None:
        """Show what is not shown yet: the training has ended."""


NoOutputs = Outputs


class Renderer:
    """How handles are shown: experiments and trials, which are not imported here, since they import this. As text."""

    def mimebundle(self, handle: Any) -> dict[str, Any]:
        """Return the display data of a handle by MIME type."""
        return {"text/plain": repr(handle)}

    def line(self, handle: Any) -> str:
        """Return how a handle stands, in one line."""
        return repr(handle)

    def figure(self, handle: Any, metrics: Sequence[str] | None) -> Any:
        """Return a matplotlib figure of the handle's curves."""
        raise ArgumentError("Figures are drawn by det_native.display; import it first.")

    def overlaid(self, handles: Sequence[Any], metrics: Sequence[str] | None) -> Any:
        """Return a matplotlib figure of the curves of several handles."""
        return self.figure(handles, metrics)

    def progress(self, title: str) -> ProgressView:
        """Open a progress bar."""
        return ProgressView()

    def follow(self, handle: Any, show: Show) -> ProgressView:
        """Show how a handle goes on: as a live view where that can be seen, a progress bar, or messages only."""
        return ProgressView()

    def line_in_place(self) -> LineInPlace:
        """Return what shows a line that can change."""
        return LineInPlace()

    def outputs(self, handle: Any, show: Show) -> Outputs:
        """Return what shows what the training prints and shows."""
        return Outputs()

    def waiting(self, handle: Any) -> AbstractContextManager[IsLeft]:
        """While this process waits for a handle: gives what asks whether the user wants it left running."""
        return nullcontext(lambda: False)


def line_of(handle: object) -> str:
    """Return how a handle stands, in one line; what it is of, where that cannot be asked now."""
    try:
        return _renderer.line(handle)
    except DetError:
        return repr(handle)


_renderer = Renderer()


def register(renderer: Renderer) -> None:
    """Make `renderer` the one that shows handles from now on."""
    global _renderer
    _renderer = renderer


def current() -> Renderer:
    """Return the renderer in use."""
    return _renderer
