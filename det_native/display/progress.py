"""Progress bars with tqdm: a widget in a notebook, a line in a terminal."""

from __future__ import annotations

import warnings
from typing import Any

STEPS = 1000


class TqdmProgress:
    """A bar from 0 to 100 %, with messages above it.

    Parameters
    ----------
    title : str
        What stands before the bar.
    """

    def __init__(self, title: str) -> None:
        self._bar = _tqdm()(
            total=STEPS, desc=title, leave=True, bar_format="{desc}: {percentage:3.0f}%|{bar}| {postfix}"
        )

    def update(self, fraction: float, text: str) -> None:
        """Show that `fraction` of 1 is done, and a short text."""
        self._bar.n = round(fraction * STEPS)
        self._bar.set_postfix_str(text, refresh=True)

    def message(self, text: str) -> None:
        """Show text above the bar, at once."""
        self._bar.write(text)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._bar.close()


def _tqdm() -> Any:
    with warnings.catch_warnings():
        # tqdm.auto warns that it is experimental, and where a notebook has no ipywidgets that it falls back to text.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[type-arg]
        """Without tqdm's monitoring thread, which wakes bars that count iterations; this one is set."""

        monitor_interval = 0

    return Bar
