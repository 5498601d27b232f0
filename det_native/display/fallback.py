"""What a notebook shows of a handle, and keeps of a live view: text, HTML and the curves as PNG."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import Any

from det_native.client.handles import Experiment
from det_native.client.source import Source
from det_native.client.trial import Trial
from det_native.display.curves import Curves, curves_of
from det_native.display.failures import failures_of
from det_native.display.feed import outputs_trial
from det_native.display.html import experiment_html, trial_html
from det_native.display.outputs import pictures_html
from det_native.display.text import experiment_line, experiment_state, experiment_text, trial_line, trial_text
from det_native.schema import rest


def last_state(handle: Experiment | Trial, *, picture: bool = True) -> dict[str, Any]:
    """Return the last state of an experiment or a trial by MIME type; of what goes on, with the time.

    Curves are those that the master has reduced, so this costs the same however long the training is.

    Parameters
    ----------
    picture : bool
        Whether to draw the curves, which takes a while.
    """
    png = _draw(curves_of(handle)) if picture else None
    if isinstance(handle, Experiment):
        detail = handle.detail()
        note = "" if detail.state.terminal else _as_of(handle.id)
        trials = handle.source.trials(handle.id)
        failures = failures_of(trials)
        line = experiment_line(handle.id, detail, note, failures)
        shown = outputs_trial(trials, smaller_is_better=detail.smaller_is_better) if picture else None
        html = experiment_html(handle, png, note=note, pictures=_pictures(handle.source, shown))
    else:
        trial = handle.detail()
        experiment_id = trial.experiment_id
        note = "" if trial.state.terminal else _as_of(experiment_id)
        line = trial_line(trial, experiment_id, handle.metric, note, experiment_state(handle, trial))
        html = trial_html(handle, png, note=note, pictures=_pictures(handle.source, trial if picture else None))
    return _bundle(line, html, png)


def _pictures(source: Source, trial: rest.Trial | None) -> str:
    return "" if trial is None else pictures_html(source, source.media(trial.id))


def _as_of(experiment_id: int) -> str:
    """Say for which time it is told, and how to see what has become of it since."""
    return f"as of {time.strftime('%Y-%m-%d %H:%M')}; det.attach({experiment_id}) shows what it does now"


def _draw(curves: Curves) -> bytes | None:
    from det_native.display.figure import draw  # loads matplotlib

    return draw(curves).png() if curves.lines else None


def make_mimebundle(handle: Experiment | Trial) -> dict[str, Any]:
    """Return the display data of an experiment or a trial by MIME type.

    Front ends prefer the HTML, which holds the picture too; the PNG of its own is for those that show no HTML, and for
    a saved notebook that is not trusted.
    """
    png = _draw(curves_of(handle))
    if isinstance(handle, Experiment):
        return _bundle(experiment_text(handle), experiment_html(handle, png), png)
    return _bundle(trial_text(handle), trial_html(handle, png), png)


def _bundle(text: str, html: str, png: bytes | None) -> dict[str, Any]:
    picture = {} if png is None else {"image/png": b64encode(png).decode("ascii")}
    return {"text/plain": text, "text/html": html, **picture}
