"""The curves of an experiment or a trial: what a figure draws, without a figure library."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from det_native.client.handles import Experiment, Trial
from det_native.schema.rest import MetricCurve
from det_native.schema.states import MetricKind


@dataclass(frozen=True)
class Curve:
    """One line: values of the metric `name` after so many batches of `trial`, which is 0 where there is only one.

    `logged` says that the user's own code has logged it.
    """

    name: str
    validation: bool
    batches: list[int]
    values: list[float]
    trial: int = 0
    best: bool = False
    logged: bool = False


@dataclass
class Curves:
    """Lines, by panels: training and validation of one metric share a panel.

    `metric` is the searcher's; `notice` says what was left out. `labels` are what legends
    call the lines of a `trial` where these are of no trials.
    """

    title: str
    lines: list[Curve] = field(default_factory=list)
    notice: str = ""
    metric: str = ""
    labels: dict[int, str] = field(default_factory=dict)

    @property
    def panels(self) -> dict[str, list[Curve]]:
        """The lines of each panel, by its name."""
        panels: dict[str, list[Curve]] = {}
        names = {name: self.panel_with(name) for name in {line.name for line in self.lines}}
        for line in self.lines:
            panels.setdefault(names[line.name], []).append(line)
        return panels

    def panel_with(self, name: str) -> str:
        """Return the panel of a metric: its own where two of one kind, ``val_x`` and ``validation_x``, would meet."""
        panel = panel_of(name)
        names = {(line.validation, line.name) for line in self.lines if panel_of(line.name) == panel}
        return name if len(names) > len({validation for validation, _ in names}) else panel

    @property
    def ordered(self) -> dict[str, list[Curve]]:
        """The panels as they are shown: that of the searcher's metric first."""
        first = self.panel_with(self.metric)
        return dict(sorted(self.panels.items(), key=lambda panel: panel[0] != first))


def curves_of(handle: Experiment | Trial) -> Curves:
    """Return the curves of an experiment (its newest 50 trials) or of a trial, as their source has reduced them."""
    source = handle.source
    if isinstance(handle, Trial):
        found = source.curves(handle.experiment_id, handle.id)
        return _with_lines(Curves(title=trial_title(handle), metric=handle.metric), found, None, {})
    trials = source.trials(handle.id)
    found = source.curves(handle.id)
    curves = Curves(title=f"Experiment {handle.id}", metric=handle.metric)
    shown = len({curve.trial_id for curve in found})
    if shown < len(trials) and shown > 1:
        curves.notice = f"{shown} of {len(trials)} trials"
    best = handle.best_trial.id if trials else None
    numbers = {trial.id: trial.shown_number for trial in trials} if len(trials) > 1 else {}
    return _with_lines(curves, found, best, numbers)


def trial_title(trial: Trial) -> str:
    """Return ``Trial 2 of experiment 7``."""
    return f"Trial {trial.number} of experiment {trial.experiment_id}"


def curves_of_several(handles: Sequence[Experiment]) -> Curves:
    """Collect the curves of the best trials of several experiments, to be overlaid; their places stand for trials."""
    curves = Curves(title=f"Experiments {', '.join(str(handle.id) for handle in handles)}", metric=handles[0].metric)
    for number, handle in enumerate(handles, 1):
        curves.labels[number] = f"experiment {handle.id}"
        if handle.trials:
            curves.lines += [replace(line, trial=number) for line in curves_of(handle.best_trial).lines]
    return curves


def panel_of(name: str) -> str:
    """Return the panel that a metric belongs to: its name without what marks it as a validation metric."""
    for prefix in ("val_", "validation_"):
        if name.startswith(prefix) and name != prefix:
            return name.removeprefix(prefix)
    return name


def logged_line(name: str, reported: Collection[str], batches: list[int], values: list[float], **known: Any) -> Curve:
    """Return the line of a logged metric: in a panel of its own, also where the training reports one of that name."""
    validation = panel_of(name) != name
    if panel_of(name) in map(panel_of, reported):
        name = f"{name} (logged)"
    return Curve(name, validation, batches, values, logged=True, **known)


def isolated(values: Sequence[float]) -> list[int]:
    """Return the indices of numbers that have a gap, or nothing, on both sides."""
    gaps = [True, *map(math.isnan, values), True]
    return [at for at in range(len(values)) if gaps[at] and not gaps[at + 1] and gaps[at + 2]]


def _with_lines(curves: Curves, found: Sequence[MetricCurve], best: int | None, numbers: Mapping[int, int]) -> Curves:
    """Add the lines; `numbers` has those of the trials by id, none where there is only one trial."""
    reported = {curve.name for curve in found if curve.kind is not MetricKind.LOGGED}
    for curve in found:
        points = _extremes(curve)
        if not points:
            continue
        places = [batch for batch, _ in points], [value for _, value in points]
        trial: dict[str, Any] = {"trial": numbers.get(curve.trial_id, 0), "best": curve.trial_id == best}
        if curve.kind is MetricKind.LOGGED:
            line = logged_line(curve.name, reported, *places, **trial)
        else:
            line = Curve(curve.name, curve.kind is MetricKind.VALIDATION, *places, **trial)
        curves.lines.append(line)
    return curves


def _extremes(curve: MetricCurve) -> list[tuple[int, float]]:
    """Return the points of a reduced curve: of each stretch the smallest and the largest value, so no peak is lost.

    A stretch without a number is a gap; a curve without a number has no points.
    """
    points: list[tuple[int, float]] = []
    for batch, low, high in zip(curve.batch, curve.minimum, curve.maximum, strict=True):
        ends = (value if value is not None and math.isfinite(value) else math.nan for value in (low, high))
        points += [(batch, value) for value in dict.fromkeys(ends)]
    return points if any(math.isfinite(value) for _, value in points) else []
