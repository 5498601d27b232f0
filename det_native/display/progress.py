"""Progress bars: HTML in a notebook, a line by tqdm in a terminal."""

from __future__ import annotations

import time
from html import escape
from typing import Any

from det_native.client.rendering import LineInPlace, ProgressView
from det_native.client.short_forms import whole_percent

STEPS = 1000
_PERIOD = 0.1
_NOTEBOOK_PERIOD = 0.25
# The look of the live view's bar.
_BAR = "display:inline-block;height:4px;border-radius:2px;overflow:hidden;line-height:0"
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {text}"


class NotebookProgress(ProgressView):
    """A bar below a cell, with messages below it. It is HTML and no widget: a saved notebook shows it as it was.

    Parameters
    ----------
    title : str
        What stands before the bar.
    """

    def __init__(self, title: str) -> None:
        from IPython.display import display

        self._title = title
        self._fraction = 0.0
        self._text = ""
        self._drawn = time.monotonic()
        self._held_back = False
        self._shown = display(self._data(), raw=True, display_id=True)

    def update(self, fraction: float, text: str) -> None:
        """Show that `fraction` of 1 is done, and a short text; four times a second at most."""
        self._fraction, self._text = fraction, text
        self._held_back = time.monotonic() - self._drawn < _NOTEBOOK_PERIOD
        if not self._held_back:
            self._draw()

    def flush(self) -> None:
        """Show what the last update said, if it was held back."""
        if self._held_back:
            self._draw()

    def message(self, text: str) -> None:
        """Print text, at once."""
        print(text, flush=True)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._draw()

    def _draw(self) -> None:
        self._drawn, self._held_back = time.monotonic(), False
        self._shown.update(self._data(), raw=True)

    def _data(self) -> dict[str, Any]:
        words = f"{whole_percent(self._fraction)}% {self._text}".rstrip()
        percent = whole_percent(self._fraction)
        fill = f'<span style="{_BAR};width:{percent}%;background:#1976d2"></span>'
        bar = (
            f'<span role="progressbar" aria-valuemin="0" aria-valuemax="100" aria-valuenow="{percent}" '
            f'style="{_BAR};width:260px;background:rgba(128,128,128,.3);vertical-align:middle">{fill}</span>'
        )
        html = f'<div style="font-size:13px">{escape(self._title)} {bar} {escape(words)}</div>'
        return {"text/plain": f"{self._title}: {words}", "text/html": html}


class NotebookLine(LineInPlace):
    """A line below a cell that can change. It is HTML and no widget, as the bar is."""

    def __init__(self) -> None:
        self._shown: Any = None

    def say(self, text: str) -> None:
        """Show a text, in place of the one before."""
        from IPython.display import display

        data = {"text/plain": text, "text/html": f'<div style="font-size:13px">{escape(text)}</div>'}
        if self._shown is None:
            self._shown = display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)


class MessagesOnly(ProgressView):
    """Messages below a cell, where something else shows the progress or nothing is to."""

    def message(self, text: str) -> None:
        """Print text, at once."""
        print(text, flush=True)


class TqdmProgress(ProgressView):
    """A bar from 0 to 100 % in a terminal, with messages above it.

    Parameters
    ----------
    title : str
        What stands before the bar.
    """

    def __init__(self, title: str) -> None:
        self._drawn = 0.0
        self._bar = _bar_class()(total=STEPS, desc=title, leave=True, bar_format=_FORMAT)

    def update(self, fraction: float, text: str) -> None:
        """Show that `fraction` of 1 is done, and a short text; ten times a second at most."""
        self._bar.n = round(fraction * STEPS)
        self._bar.text = text
        if time.monotonic() - self._drawn >= _PERIOD:
            self.flush()

    def flush(self) -> None:
        """Show what the last update said."""
        self._drawn = time.monotonic()
        self._bar.refresh()

    def message(self, text: str) -> None:
        """Show text above the bar, at once."""
        self._bar.write(text)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._bar.refresh()
        self._bar.close()


def _bar_class() -> Any:
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[type-arg]
        """Without tqdm's monitoring thread, which wakes bars that count iterations; this one is set."""

        monitor_interval = 0
        text = ""

        @property
        def format_dict(self) -> Any:
            return {**super().format_dict, "text": self.text}

    return Bar
