"""What a saved notebook keeps of a live view: the last state as a line, as HTML and as a picture."""

from __future__ import annotations

import math
import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from det_native.client.handles import Experiment
from det_native.client.source import Source
from det_native.client.trial import Trial
from det_native.display.curves import Curve, Curves, logged_line, trial_title
from det_native.display.failures import failures_of
from det_native.display.feed import media_of, outputs_trial
from det_native.display.html import experiment_html, trial_html
from det_native.display.outputs import pictures_html
from det_native.display.text import experiment_line, experiment_state, trial_line
from det_native.schema import rest
from det_native.schema.states import MetricKind


def last_state(handle: Experiment | Trial, *, picture: bool = True) -> dict[str, Any]:
    """Return the last state of an experiment or a trial by MIME type; of what goes on, with the time.

    Curves are those that the master has reduced, so this costs the same however long the training is.

    Parameters
    ----------
    handle : Experiment or Trial
    picture : bool
        Whether to draw the curves, which takes a while.
    """
    curves = reduced_curves(handle) if picture else None
    png = _draw(curves) if curves is not None and curves.lines else None
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
    bundle = {"text/plain": line, "text/html": html}
    if png is not None:
        bundle["image/png"] = b64encode(png).decode("ascii")
    return bundle


def _pictures(source: Source, trial: rest.Trial | None) -> str:
    return "" if trial is None else pictures_html(source, media_of(source, trial.id))


def _as_of(experiment_id: int) -> str:
    """Say for which time it is told, and how to see what has become of it since."""
    return f"as of {time.strftime('%Y-%m-%d %H:%M')}; det.attach({experiment_id}) shows what it does now"


def _draw(curves: Curves) -> bytes:
    from det_native.display.figure import draw  # loads matplotlib

    return draw(curves).png()


def reduced_curves(handle: Experiment | Trial) -> Curves:
    """Return the curves of an experiment or a trial as their source has reduced them."""
    source = handle.source
    if isinstance(handle, Trial):
        found = source.curves(handle.experiment_id, handle.id)
        return _as_curves(found, Curves(title=trial_title(handle), metric=handle.metric), None, {})
    trials = source.trials(handle.id)
    found = source.curves(handle.id)
    curves = Curves(title=f"Experiment {handle.id}", metric=handle.metric)
    shown = len({curve.trial_id for curve in found})
    if shown < len(trials) and shown > 1:
        curves.notice = f"{shown} of {len(trials)} trials"
    best = handle.best_trial.id if trials else None
    numbers = {trial.id: trial.shown_number for trial in trials} if len(trials) > 1 else {}
    return _as_curves(found, curves, best, numbers)


def _as_curves(found: list[rest.MetricCurve], curves: Curves, best: int | None, numbers: Mapping[int, int]) -> Curves:
    """Add the lines; `numbers` has those of the trials by id, none where there is only one trial."""
    training = {
        (curve.trial_id, curve.name): dict(zip(curve.batch, curve.mean, strict=True))
        for curve in found
        if curve.kind is MetricKind.TRAINING
    }
    reported = {curve.name for curve in found if curve.kind is not MetricKind.LOGGED}
    for curve in found:
        validated = curve.kind is MetricKind.VALIDATION
        points = _extremes(curve)
        twin = training.get((curve.trial_id, curve.name))
        if not points or (validated and twin is not None and _repeats(points, twin)):
            continue
        places = [batch for batch, _ in points], [value for _, value in points]
        trial: dict[str, Any] = {"trial": numbers.get(curve.trial_id, 0), "best": curve.trial_id == best}
        if curve.kind is MetricKind.LOGGED:
            line = logged_line(curve.name, reported, *places, **trial)
        else:
            line = Curve(curve.name, validated, *places, **trial)
        curves.lines.append(line)
    return curves


def _repeats(points: list[tuple[int, float]], twin: dict[int, float | None]) -> bool:
    """Whether points lie on a training curve, as those of an experiment of before that did not validate."""
    return all(twin.get(batch) == value for batch, value in points if math.isfinite(value))


def _extremes(curve: rest.MetricCurve) -> list[tuple[int, float]]:
    """Return the points of a reduced curve: of each stretch the smallest and the largest value, so no peak is lost.

    A stretch without a number is a gap. Of a curve without any there is no point.
    """
    points: list[tuple[int, float]] = []
    for batch, low, high in zip(curve.batch, curve.minimum, curve.maximum, strict=True):
        ends = (value if value is not None and math.isfinite(value) else math.nan for value in (low, high))
        points += [(batch, value) for value in dict.fromkeys(ends)]
    return points if any(math.isfinite(value) for _, value in points) else []
