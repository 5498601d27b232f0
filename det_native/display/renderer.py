"""The renderer that handles are given; its parts load when something is shown."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from det_native.client import ended
from det_native.client.arguments import Show
from det_native.client.rendering import IsLeft, LineInPlace, Outputs, ProgressView, Renderer
from det_native.display.environment import in_notebook, running_shell
from det_native.errors import MasterUnreachableError, NotRecordedError

if TYPE_CHECKING:
    from det_native.client.handles import Experiment, Trial
    from det_native.display.figure import CurvesFigure


#: What ``plot()`` is asked for instead of a metric, to draw a search.
SEARCH = "search"


class DisplayRenderer(Renderer):
    """Shows handles as text, HTML and figures."""

    def mimebundle(self, handle: Experiment | Trial) -> dict[str, Any]:
        """Return text, HTML and, where there are metrics, the figure as PNG.

        The PNG is what a saved notebook still shows where HTML is not trusted. Without a master it is a
        sentence: showing a handle must not fail the cell.
        """
        from det_native.display.fallback import make_mimebundle

        try:
            return make_mimebundle(handle)
        except MasterUnreachableError as error:
            if isinstance(error, NotRecordedError):
                return {"text/plain": f"{handle}\n{error}"}
            return {"text/plain": f"{handle!r}: {error}"}

    def line(self, handle: Experiment | Trial) -> str:
        """Return how a handle stands, in one line."""
        from det_native.client.handles import Experiment
        from det_native.display.text import experiment_line, experiment_state, trial_line

        if isinstance(handle, Experiment):
            detail = handle.detail()
            return experiment_line(detail.id, detail)
        trial = handle.detail()
        return trial_line(trial, trial.experiment_id, handle.metric, state=experiment_state(handle, trial))

    def figure(self, handle: Experiment | Trial, metrics: Sequence[str] | None) -> CurvesFigure:
        """Return the figure of the handle's curves."""
        from det_native.client.handles import Experiment
        from det_native.display.curves import curves_of
        from det_native.display.figure import draw

        if metrics is not None and list(metrics) == [SEARCH] and isinstance(handle, Experiment):
            from det_native.client.pareto import compared, last_values
            from det_native.display.search_figure import draw_search

            detail, trials = handle.detail(), handle.source.trials(handle.id)
            several = len(compared(detail)) > 1
            return draw_search(detail, trials, last_values(handle.source, detail, trials) if several else {})
        return draw(curves_of(handle), metrics)

    def overlaid(self, handles: Sequence[Experiment], metrics: Sequence[str] | None) -> CurvesFigure:
        """Return the figure of the curves of several experiments, each of its best trial."""
        from det_native.display.curves import curves_of_several
        from det_native.display.figure import draw

        return draw(curves_of_several(handles), metrics)

    def progress(self, title: str) -> ProgressView:
        """Open a progress bar."""
        from det_native.display.progress import NotebookProgress, TqdmProgress

        return NotebookProgress(title) if in_notebook() else TqdmProgress(title)

    def follow(self, handle: Experiment | Trial, show: Show) -> ProgressView:
        """Show a live view in a notebook, once under a cell; elsewhere, or where it is asked for, a progress bar."""
        from det_native.client.handles import Experiment
        from det_native.display.progress import MessagesOnly

        if show == "none":
            return MessagesOnly()
        if show == "view" and in_notebook():
            from det_native.display.live import show_once

            if not show_once(handle):  # it has ended
                running_shell().display_pub.publish(self.mimebundle(handle))
            return MessagesOnly()
        return self.progress(f"{'Experiment' if isinstance(handle, Experiment) else 'Trial'} {handle.id}")

    def line_in_place(self) -> LineInPlace:
        """Return what shows a line that can change; outside of a notebook, a line for each text."""
        from det_native.display.progress import NotebookLine

        return NotebookLine() if in_notebook() else LineInPlace()

    def outputs(self, handle: Experiment | Trial, show: Show) -> Outputs:
        """In a notebook, show it in the cell that waits, where this process has submitted the training."""
        result = ended.result_of(handle)
        if result is None or show == "none" or not in_notebook():
            return Outputs()
        if result.outputs is None:
            from det_native.display.cell_outputs import CellOutputs

            result.outputs = CellOutputs(handle.source, result.experiment.id)
        return result.outputs

    def waiting(self, handle: Experiment | Trial) -> AbstractContextManager[IsLeft]:
        """While a cell waits, have its live view offer to leave the training running."""
        if not in_notebook():
            return nullcontext(lambda: False)
        from det_native.display.leaving import waiting

        return waiting(handle)


def show_live() -> None:
    """Have IPython, where it runs here, show handles of what goes on as live views; all else stays as it is."""
    shell = running_shell()
    if shell is None:
        return
    formatter = shell.display_formatter.ipython_display_formatter
    for module, name in (("det_native.client.handles", "Experiment"), ("det_native.client.trial", "Trial")):
        formatter.for_type_by_name(module, name, _show_live)


def _show_live(handle: Experiment | Trial) -> None:
    """Show a handle as a live view, once under a cell, or leave it to its MIME bundle.

    Raises
    ------
    NotImplementedError
        If there is no live view to show, which is how IPython is told to go on.
    """
    from det_native.display.live import show_once

    if not show_once(handle):
        raise NotImplementedError
