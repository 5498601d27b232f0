"""The curves of an experiment or a trial: what a figure draws, without a figure library."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from det_native.client.handles import Experiment, Trial
from det_native.schema import numbers
from det_native.schema.drawn import has_running_means
from det_native.schema.metric_names import companions
from det_native.schema.rest import MetricRow

MAX_POINTS = 2_000
MAX_TRIALS = 50

Points = tuple[list[int], list[float]]
Columns = dict[str, Points]


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
    """Collect the curves of an experiment (of up to 50 trials, newest left out) or of a trial."""
    if isinstance(handle, Trial):
        curves = Curves(
            title=f"Trial {handle.number} of experiment {handle.experiment_id}",
            metric=handle.metric,
        )
        _add_trial(curves, handle, several=False, best=False)
        return curves
    trials = handle.trials
    curves = Curves(title=f"Experiment {handle.id}", metric=handle.metric)
    best = handle.best_trial.id if trials else None
    for trial in trials[:MAX_TRIALS]:
        _add_trial(curves, trial, several=len(trials) > 1, best=trial.id == best)
    if len(trials) > MAX_TRIALS:
        curves.notice = f"{MAX_TRIALS} of {len(trials)} trials"
    return curves


def trial_title(trial: Trial) -> str:
    """Return ``Trial 2 of experiment 7``."""
    return f"Trial {trial.number} of experiment {trial.experiment_id}"


def curves_of_several(handles: Sequence[Experiment]) -> Curves:
    """Collect the curves of the best trials of several experiments, to be overlaid; their places stand for trials."""
    curves = Curves(title=f"Experiments {', '.join(str(handle.id) for handle in handles)}", metric=handles[0].metric)
    for number, handle in enumerate(handles, 1):
        curves.labels[number] = f"experiment {handle.id}"
        if handle.trials:
            own = Curves(title="")
            _add_trial(own, handle.best_trial, several=True, best=False)
            curves.lines += [replace(line, trial=number) for line in own.lines]
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


def thin(batches: list[int], values: list[float], limit: int = MAX_POINTS) -> tuple[list[int], list[float]]:
    """Keep at most `limit` points: of each stretch its smallest and its largest value, so that no spike is lost.

    What is not a number is neither; a stretch of nothing else keeps one of them, which is a gap.
    """
    if len(batches) <= limit:
        return batches, values
    stretch = math.ceil(len(batches) / (limit // 2))
    kept: list[int] = []
    for start in range(0, len(batches), stretch):
        indices = range(start, min(start + stretch, len(batches)))
        numbers = [index for index in indices if not math.isnan(values[index])] or [start]
        kept.extend(sorted({min(numbers, key=values.__getitem__), max(numbers, key=values.__getitem__)}))
    return [batches[index] for index in kept], [values[index] for index in kept]


def isolated(values: Sequence[float]) -> list[int]:
    """Return the indices of numbers that have a gap, or nothing, on both sides."""
    gaps = [True, *map(math.isnan, values), True]
    return [at for at in range(len(values)) if gaps[at] and not gaps[at + 1] and gaps[at + 2]]


def _add_trial(curves: Curves, trial: Trial, *, several: bool, best: bool) -> None:
    source = trial.source
    experiment = source.experiment(trial.experiment_id)
    training = _series(source.metrics(trial.id, "training"))
    if has_running_means(experiment.framework):
        training |= {name: training.pop(companion) for name, companion in companions(training).items()}
    validated = source.metrics(trial.id, "validation") if experiment.validates else []
    validation = {
        name: points for name, points in _series(validated).items() if not _repeats(points, training.get(name))
    }
    for kind in (training, validation):
        for name, (batches, values) in sorted(kind.items()):
            number = trial.number if several else 0
            curve = Curve(name, kind is validation, *thin(batches, values), trial=number, best=best)
            curves.lines.append(curve)
    reported = {*training, *validation}
    for name, (batches, values) in sorted(_series(source.metrics(trial.id, "logged")).items()):
        line = logged_line(name, reported, *thin(batches, values), trial=trial.number if several else 0, best=best)
        curves.lines.append(line)


def _repeats(points: Points, others: Points | None) -> bool:
    """Whether points lie on a training curve: a run without validation data is "validated" by its training metrics."""
    if others is None:
        return False
    known = dict(zip(*others, strict=True))
    return all(known.get(batch) == value for batch, value in zip(*points, strict=True) if not math.isnan(value))


def _series(rows: Iterable[MetricRow]) -> Columns:
    """Return batches and values of every metric that is a finite number somewhere; where it is none, there is a gap."""
    return {
        name: (batches, [value if math.isfinite(value) else math.nan for value in values])
        for name, (batches, values) in _columns(rows).items()
        if any(map(math.isfinite, values))
    }


def _columns(rows: Iterable[MetricRow]) -> Columns:
    columns: Columns = {}
    for row in rows:
        for name, value in row.metrics.items():
            measured = numbers.number(value)  # not-a-number and infinities, which are gaps, stand there as words
            if measured is not None:
                batches, values = columns.setdefault(name, ([], []))
                batches.append(row.batch)
                values.append(measured)
    return columns
