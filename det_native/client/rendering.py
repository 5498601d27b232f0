"""The seam between handles and how they look.

Handles know no figure library and no HTML. ``det_native.display`` registers itself here when it is imported, which
``det_native.experimental`` does; without it, handles show plain text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from det_native.client.arguments import Show
from det_native.errors import ArgumentError, DetError
from det_native.schema import rest

#: Asks whether the user has said that the training is to go on without being waited for.
IsLeft = Callable[[], bool]
Handle = TypeVar("Handle", contravariant=True)


class ProgressView(Protocol):
    """A progress bar with room for messages above it."""

    def update(self, fraction: float, text: str) -> None:
        """Show that `fraction` of 1 is done, and a short text; may be held back while more follows at once."""

    def flush(self) -> None:
        """Show what is held back: for now, nothing follows."""

    def message(self, text: str) -> None:
        """Show text above the bar, at once."""

    def close(self) -> None:
        """Leave the bar as it is; nothing follows."""


class LineInPlace(Protocol):
    """A line that can change."""

    def say(self, text: str) -> None:
        """Show a text, in place of the one before."""


class Outputs(Protocol):
    """Shows what a training prints and shows where it is waited for."""

    def take(self, event: rest.Event) -> None:
        """Show the change that an event reports."""

    def finish(self) -> None:
        """Show what is not shown yet: the training has ended."""


class NoOutputs:
    """Where nothing is to be shown."""

    def take(self, event: rest.Event) -> None:
        """Show nothing."""

    def finish(self) -> None:
        """Show nothing."""


class Renderer(Protocol[Handle]):
    """How handles are shown: experiments and trials, which are not imported here, since they import this."""

    def mimebundle(self, handle: Handle) -> dict[str, Any]:
        """Return the display data of a handle by MIME type."""

    def line(self, handle: Handle) -> str:
        """Return how a handle stands, in one line."""

    def figure(self, handle: Handle, metrics: Sequence[str] | None) -> Any:
        """Return a matplotlib figure of the handle's curves."""

    def overlaid(self, handles: Sequence[Handle], metrics: Sequence[str] | None) -> Any:
        """Return a matplotlib figure of the curves of several handles."""

    def progress(self, title: str) -> ProgressView:
        """Open a progress bar."""

    def follow(self, handle: Handle, show: Show) -> ProgressView:
        """Show how a handle goes on: as a live view where that can be seen, a progress bar, or messages only."""

    def line_in_place(self) -> LineInPlace:
        """Return what shows a line that can change."""

    def outputs(self, handle: Handle, show: Show) -> Outputs:
        """Return what shows what the training prints and shows."""

    def waiting(self, handle: Handle) -> AbstractContextManager[IsLeft]:
        """While this process waits for a handle: gives what asks whether the user wants it left running."""


class PlainProgress:
    """Messages on stderr, no bar."""

    def update(self, fraction: float, text: str) -> None:
        """Show nothing: plain text cannot be updated in place."""

    def flush(self) -> None:
        """Nothing is held back."""

    def message(self, text: str) -> None:
        """Print to stderr."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is open."""


class PrintedLine:
    """A line where nothing can be shown in the place of another: the next one stands below it."""

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, flush=True)


class PlainRenderer:
    """Text only."""

    def mimebundle(self, handle: object) -> dict[str, Any]:
        """Return the handle's one-line form."""
        return {"text/plain": repr(handle)}

    def line(self, handle: object) -> str:
        """Return what the handle is of."""
        return repr(handle)

    def figure(self, handle: object, metrics: Sequence[str] | None) -> Any:
        """Say what draws figures."""
        raise ArgumentError("Figures are drawn by det_native.display; import it first.")

    def overlaid(self, handles: Sequence[object], metrics: Sequence[str] | None) -> Any:
        """Say what draws figures."""
        return self.figure(handles, metrics)

    def progress(self, title: str) -> ProgressView:
        """Show messages only."""
        return PlainProgress()

    def follow(self, handle: object, show: Show) -> ProgressView:
        """Show messages only."""
        return PlainProgress()

    def line_in_place(self) -> LineInPlace:
        """Return what prints a line for each text."""
        return PrintedLine()

    def outputs(self, handle: object, show: Show) -> Outputs:
        """Show nothing: the log has it."""
        return NoOutputs()

    def waiting(self, handle: object) -> AbstractContextManager[IsLeft]:
        """Return what nobody can press."""
        return nullcontext(lambda: False)


def line_of(handle: object) -> str:
    """Return how a handle stands, in one line; what it is of, where that cannot be asked now."""
    try:
        return _renderer.line(handle)
    except DetError:
        return repr(handle)


_renderer: Renderer[Any] = PlainRenderer()


def register(renderer: Renderer[Any]) -> None:
    """Make `renderer` the one that shows handles from now on."""
    global _renderer
    _renderer = renderer


def current() -> Renderer[Any]:
    """Return the renderer in use."""
    return _renderer
