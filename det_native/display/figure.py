"""Curves as a matplotlib figure, without pyplot: nothing global is touched, no window opens, any thread may draw."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from det_native.client.short_forms import shortened
from det_native.client.tables import plain
from det_native.display.curves import Curve, Curves, isolated
from det_native.errors import ArgumentError

COLUMNS = 2
PANEL_WIDTH = 4.6
PANEL_HEIGHT = 3.0
LEGEND_ROW_HEIGHT = 0.2
# Characters of a title or label. matplotlib takes 10 s to lay out 10,000, which a figure has no room for.
LONGEST_TEXT = 120
LEGEND_COLUMNS = 4  # for each column of panels
OTHER_TRIALS_COLOUR = "#b8b8b8"
# Of all text and lines that are no curve. As the background is transparent, it is read on white (4.5:1) and the black
# of JupyterLab's dark theme (4.2:1); no colour has more on both.
INK = "#767676"
# Those of the live view in a light theme (`jupyter_ext/src/shared/parts.css`). Where there are more trials than
# colours, the best one has the first colour and the others are grey.
TRIAL_COLOURS = ("#4c78a8", "#d9534f", "#3f9142", "#e07b0c", "#8a5fbf", "#149494", "#c95597", "#8c6d31")
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
    styles = _styles(panels)
    legend = _trial_legend(panels, styles, curves.labels)
    legend_rows = -(-len(legend) // (LEGEND_COLUMNS * columns))
    height = PANEL_HEIGHT * rows + LEGEND_ROW_HEIGHT * legend_rows
    title = f"{curves.title} ({curves.notice})" if curves.notice else curves.title
    figure = new_figure(PANEL_WIDTH * columns, height, title)
    if not panels:
        figure.text(0.5, 0.45, "no metrics yet", ha="center", color=INK)
        return figure
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, (name, lines) in zip(axes, panels.items(), strict=False):
        _draw_panel(axis, name, lines, styles)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    if legend:
        columns_of_legend = min(LEGEND_COLUMNS * columns, len(legend))
        figure.legend(
            handles=legend,
            loc="outside lower center",
            ncols=columns_of_legend,
            fontsize=7,
            frameon=False,
            labelcolor=INK,
            handlelength=3,
        )
    return figure


def _chosen(curves: Curves, metrics: Sequence[str] | None) -> dict[str, list[Curve]]:
    if metrics is None:
        return curves.ordered
    panels = curves.panels
    wanted = {name: curves.panel_with(name) for name in metrics}
    unknown = [name for name, panel in wanted.items() if panel not in panels]
    if unknown:
        known = ", ".join(panels) or "none yet"
        has, it_has = ("have", "they have") if curves.labels else ("has", "it has")
        raise ArgumentError(f"{curves.title} {has} no metric {', '.join(map(repr, unknown))}; {it_has}: {known}.")
    return {panel: panels[panel] for panel in wanted.values()}


@dataclass(frozen=True)
class _Style:
    """How the curves of one trial look."""

    colour: str
    width: float
    best: bool


def _styles(panels: Mapping[str, Sequence[Curve]]) -> dict[int, _Style]:
    """Return how each trial looks, the same in all panels; empty for the curves of a single trial."""
    best = {line.trial: line.best for lines in panels.values() for line in lines}
    if set(best) <= {0}:
        return {}
    if len(best) <= len(TRIAL_COLOURS):
        colours = dict(zip(sorted(best), TRIAL_COLOURS, strict=False))
    else:
        colours = {trial: TRIAL_COLOURS[0] if best[trial] else OTHER_TRIALS_COLOUR for trial in best}
    return {trial: _Style(colours[trial], 2.2 if best[trial] else 1.0, best[trial]) for trial in sorted(best)}


def _trial_legend(
    panels: Mapping[str, Sequence[Curve]], styles: Mapping[int, _Style], labels: Mapping[int, str]
) -> list[Line2D]:
    """Return an entry for each trial that has a colour, the best one first, and one for each kind of line if both."""
    entries = [
        Line2D([], [], color=style.colour, linewidth=style.width, label=labels.get(trial) or _trial_label(trial, style))
        for trial, style in sorted(styles.items(), key=lambda item: not item[1].best)
        if style.colour != OTHER_TRIALS_COLOUR
    ]
    if styles and len(entries) < len(styles):
        entries.append(Line2D([], [], color=OTHER_TRIALS_COLOUR, label=f"{len(styles) - len(entries)} other trials"))
    if styles and any(_has_both_kinds(lines) for lines in panels.values()):
        entries.append(Line2D([], [], color=INK, linewidth=1.2, marker="o", markersize=3, label="validation"))
        entries.append(Line2D([], [], color=INK, linewidth=1.0, linestyle="--", alpha=0.6, label="training"))
    return entries


def _trial_label(trial: int, style: _Style) -> str:
    return f"trial {trial} (best)" if style.best else f"trial {trial}"


def _has_both_kinds(lines: Sequence[Curve]) -> bool:
    return len({line.validation for line in lines}) == 2


def _draw_panel(axis: Any, name: str, lines: Sequence[Curve], styles: Mapping[int, _Style]) -> None:
    both = _has_both_kinds(lines)
    for line in sorted(lines, key=lambda line: (line.best, line.validation)):
        style = styles.get(line.trial)
        beside = style is not None and both and not line.validation
        solid = line.validation or (line.logged and not both)
        # No line goes through a point with a gap, or nothing at all, on both sides.
        alone = None if line.validation else isolated(line.values)
        axis.plot(
            line.batches,
            line.values,
            color=style.colour if style else TRIAL_COLOURS[0],
            linewidth=min(style.width if style else 1.4, 1.4 if beside else 2.2),
            linestyle="-" if solid else "--",
            alpha=0.5 if beside else 1.0 if solid else 0.8,
            marker="o" if line.validation or alone else None,
            markevery=alone or None,
            markersize=4 if style and style.best else 3,
            label="validation" if line.validation else "logged" if line.logged else "training",
        )
    batches = {batch for line in lines for batch in line.batches}
    if len(batches) == 1:
        (only,) = batches
        axis.set_xlim(only - 1, only + 1)  # room for its neighbours, as in the live view
    axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axis.set_xlabel("batches", fontsize=8, color=INK)
    style_panel(axis, name)
    if not styles:
        axis.legend(fontsize=7, frameon=False, labelcolor=INK)


def style_panel(axis: Any, title: str) -> Any:
    """Give a panel its title and the look of all panels; return it."""
    axis.set_facecolor("none")
    axis.set_title(plain_text(title), fontsize=9, color=INK)
    axis.tick_params(labelsize=8, colors=INK)
    axis.grid(visible=True, alpha=0.25)
    axis.spines[:].set_color(INK)
    axis.spines[["top", "right"]].set_visible(False)
    return axis


def new_figure(width: float, height: float, title: str) -> CurvesFigure:
    """Return an empty figure of a size in inches."""
    figure = CurvesFigure(figsize=(width, height), layout="constrained", facecolor="none")
    FigureCanvasAgg(figure)
    figure.suptitle(plain_text(title), fontsize=10, color=INK)
    return figure


def plain_text(text: str) -> str:
    """Keep matplotlib from reading a user's text as mathematics, or hiding a label that begins with ``_``.

    Control characters, which no SVG may have, and the middle of a long text are left out.
    """
    return shortened(plain(text), LONGEST_TEXT).replace("$", r"\$").lstrip("_") or "?"
