"""The renderer that handles are given; its parts load when something is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from det_native.client.rendering import ProgressView

if TYPE_CHECKING:
    from det_native.client.handles import Experiment, Trial
    from det_native.display.figure import CurvesFigure


class DisplayRenderer:
    """Shows handles as text, HTML and figures."""

    def mimebundle(self, handle: Experiment | Trial) -> dict[str, Any]:
        """Return text, HTML and, where there are metrics, the figure as PNG.

        The PNG is what a saved notebook still shows where HTML is not trusted.
        """
        from det_native.display.mimebundle import make_mimebundle

        return make_mimebundle(handle)

    def figure(self, handle: Experiment | Trial, metrics: Sequence[str] | None) -> CurvesFigure:
        """Return the figure of the handle's curves."""
        from det_native.display.curves import curves_of
        from det_native.display.figure import draw

        return draw(curves_of(handle), metrics)

    def progress(self, title: str) -> ProgressView:
        """Open a progress bar, in a notebook a widget."""
        from det_native.display.progress import TqdmProgress

        return TqdmProgress(title)
