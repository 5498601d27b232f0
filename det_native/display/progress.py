"""Progress bars with tqdm: a widget in a notebook, a line in a terminal."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

STEPS = 1000
_PERIOD = 0.1
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {text}"


class TqdmProgress:
    """A bar from 0 to 100 %, with messages above it.

    Parameters
    ----------
    title : str
        What stands before the bar.
    """

    def __init__(self, title: str) -> None:
        bar_class = _bar_class()
        options: dict[str, Any] = {"total": STEPS, "desc": title, "leave": True, "bar_format": _FORMAT}
        self._title = title
        self._drawn = 0.0
        self._shown: Any = None
        if _is_widget(bar_class):
            from IPython.display import display

            self._bar = bar_class(**options, display=False)
            self._shown = display(self._data(), raw=True, display_id=True)
        else:
            self._bar = bar_class(**options)

    def update(self, fraction: float, text: str) -> None:
        """Show that `fraction` of 1 is done, and a short text; ten times a second at most."""
        self._bar.n = round(fraction * STEPS)
        self._bar.text = text
        now = time.monotonic()
        if now - self._drawn >= _PERIOD:
            self._drawn = now
            self._bar.refresh()

    def message(self, text: str) -> None:
        """Show text above the bar, at once."""
        self._bar.write(text)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._bar.refresh()
        self._bar.close()
        if self._shown is not None:
            self._shown.update(self._data(), raw=True)

    def _data(self) -> dict[str, Any]:
        """Return the widget, and for readers of the saved notebook, who see no widget, the same in words."""
        data: dict[str, Any] = self._bar.container._repr_mimebundle_()
        return data | {"text/plain": f"{self._title}: {self._bar.n / STEPS:.0%} {self._bar.text}".rstrip()}


def _bar_class() -> Any:
    with warnings.catch_warnings():
        # tqdm.auto warns that it is experimental, and where a notebook has no ipywidgets that it falls back to text.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[type-arg]
        """Without tqdm's monitoring thread, which wakes bars that count iterations; this one is set."""

        monitor_interval = 0
        text = ""

        @property
        def format_dict(self) -> Any:
            return {**super().format_dict, "text": self.text}

    return Bar


def _is_widget(bar_class: type) -> bool:
    notebook = sys.modules.get("tqdm.notebook")
    return notebook is not None and issubclass(bar_class, notebook.tqdm)
