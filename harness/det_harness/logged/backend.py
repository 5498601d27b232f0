"""A backend of matplotlib for processes that train: a figure that is shown is kept as a picture of the trial.

A worker chooses it where the user has chosen none. What a notebook shows under the cell is not lost there; the figure
is closed then, as the notebook's own backend does.
"""

from __future__ import annotations

from typing import Any

from matplotlib import pyplot
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from det_native.logged.place import taker_or_none

NAME = f"module://{__name__}"


class FigureManager(FigureManagerBase):
    """A figure of pyplot, without a window."""

    def show(self) -> None:
        """Keep the figure (``figure.show()``)."""
        _keep(self.canvas.figure)

    @classmethod
    def pyplot_show(cls, *, block: bool | None = None) -> None:
        """Keep all figures, and close them (``plt.show()``), unless they go on being drawn (``plt.pause()``)."""
        for manager in Gcf.get_all_fig_managers():
            _keep(manager.canvas.figure)
        if block is not False:
            pyplot.close("all")


class FigureCanvas(FigureCanvasAgg):  # type: ignore[misc]  # matplotlib has types that mypy is not shown
    """What such a figure is drawn on."""

    manager_class = FigureManager


def _keep(figure: Any) -> None:
    taker = taker_or_none()
    if taker is not None:
        taker.show(figure)
