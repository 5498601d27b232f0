"""Curves as a matplotlib figure, without pyplot: nothing global is touched, no window opens, any thread may draw."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from det_native.display.curves import Curve, Curves, panel_of
from det_native.errors import ArgumentError

COLUMNS = 2
PANEL_WIDTH = 4.6
PANEL_HEIGHT = 3.0
TRAINING_COLOUR = "#4c78a8"
VALIDATION_COLOUR = "#e45756"
OTHER_TRIALS_COLOUR = "#b8b8b8"
DOTS_PER_INCH = 96


class CurvesFigure(Figure):
    """A matplotlib figure that a notebook shows as a picture, whether pyplot was imported or not."""

    def png(self) -> bytes:
        """Return the figure as PNG."""
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            # A name in a script that the font lacks is drawn as boxes; the text and HTML forms have it.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            self.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
        return buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self.png()


def draw(curves: Curves, metrics: Sequence[str] | None = None) -> CurvesFigure:
    """Draw a panel for each metric, training and validation together.

    Parameters
    ----------
    curves : Curves
    metrics : sequence of str, optional
        The panels to draw, by name (``"loss"`` or ``"val_loss"``); all by default.

    Raises
    ------
    ArgumentError
        If a name has no curve.
    """
    panels = _chosen(curves, metrics)
    columns = min(COLUMNS, max(len(panels), 1))
    rows = max(-(-len(panels) // columns), 1)
    figure = CurvesFigure(figsize=(PANEL_WIDTH * columns, PANEL_HEIGHT * rows), layout="constrained")
    FigureCanvasAgg(figure)
    title = f"{curves.title} ({curves.notice})" if curves.notice else curves.title
    figure.suptitle(_plain(title), fontsize=10)
    if not panels:
        figure.text(0.5, 0.45, "no metrics yet", ha="center", color="#707070")
        return figure
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, (name, lines) in zip(axes, panels.items(), strict=False):
        _draw_panel(axis, name, lines)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    return figure


def _chosen(curves: Curves, metrics: Sequence[str] | None) -> dict[str, list[Curve]]:
    if metrics is None:
        return curves.panels
    unknown = [name for name in metrics if panel_of(name) not in curves.panels]
    if unknown:
        known = ", ".join(curves.panels) or "none yet"
        raise ArgumentError(f"{curves.title} has no metric {', '.join(map(repr, unknown))}; it has: {known}.")
    return {panel_of(name): curves.panels[panel_of(name)] for name in metrics}


def _draw_panel(axis: Any, name: str, lines: list[Curve]) -> None:
    several = len({(line.label, line.validation) for line in lines}) > 2
    for line in sorted(lines, key=lambda line: line.best):
        colour = VALIDATION_COLOUR if line.validation else TRAINING_COLOUR
        faded = several and not line.best
        axis.plot(
            line.batches,
            line.values,
            color=OTHER_TRIALS_COLOUR if faded else colour,
            linewidth=0.8 if faded else 1.4,
            marker="o" if line.validation or len(line.batches) == 1 else None,
            markersize=3,
            label=None if faded else _plain(line.label),
        )
    axis.set_title(_plain(name), fontsize=9)
    axis.set_xlabel("batches", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(visible=True, alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    if axis.get_legend_handles_labels()[1]:
        axis.legend(fontsize=7, frameon=False)


def _plain(text: str) -> str:
    """Keep matplotlib from reading a user's text as mathematics, or hiding a label that begins with ``_``."""
    return text.replace("$", r"\$").lstrip("_") or "?"
