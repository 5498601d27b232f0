"""How far a training is that runs here, drawn from this process: no master is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from det_native.client import rendering

_LINE_SECONDS = 0.5
Observe = Callable[[int, Mapping[str, Any]], None]


@contextmanager
def progress_bar(target: int, metric: str | None) -> Iterator[Observe]:
    """Show a progress bar for the training in the block; gives what is told of each report.

    Parameters
    ----------
    target : int
        Batches; 0 where they are not known.
    metric : str or None
        The searcher's.
    """
    import det_native.display  # noqa: F401 (registers what shows progress)

    view = rendering.current().progress("Trial 1")
    newest: dict[str, Any] = {}

    def observe(batches: int, metrics: Mapping[str, Any]) -> None:
        from det_native.client.progress import newest_metrics

        newest.update(metrics)
        view.update(min(batches / max(target, 1), 1.0), newest_metrics(newest, metric))

    try:
        yield observe
    finally:
        view.close()


@contextmanager
def progress_line(target: int, metric: str | None, *, over: Callable[[], bool]) -> Iterator[Observe]:
    """Show the batch and the newest metrics in a line, as long as no master has the run that a view could show.

    Parameters
    ----------
    target, metric
        See :func:`progress_bar`.
    over : callable
        Whether a view shows the run by now.
    """
    import det_native.display  # noqa: F401

    line: rendering.LineInPlace | None = None
    newest: dict[str, Any] = {}
    last = time.monotonic()
    text = ""

    def observe(batches: int, metrics: Mapping[str, Any]) -> None:
        from det_native.client.progress import newest_metrics

        nonlocal last, text
        newest.update(metrics)
        text = f"batch {batches}{f' of {target}' if target else ''}: {newest_metrics(newest, metric)}"
        if time.monotonic() - last >= _LINE_SECONDS:
            say()

    def say() -> None:
        nonlocal line, last
        last = time.monotonic()
        if over():
            if line is not None:
                line.say("")
            return
        line = rendering.current().line_in_place() if line is None else line
        line.say(text)

    try:
        yield observe
    finally:
        if text:
            say()
