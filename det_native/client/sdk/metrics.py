"""Metrics as Determined's SDK has them: a record for each time that a trial reported some."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from det_native.client.arguments import checked_number
from det_native.client.history import as_numbers
from det_native.client.source import Source
from det_native.errors import ArgumentError
from det_native.schema import rest
from det_native.schema.clocks import TrialClock
from det_native.schema.states import MetricKind

TRAINING, VALIDATION = MetricKind.TRAINING.value, MetricKind.VALIDATION.value
#: What stands between the group and the name of a metric that code reports in a group of its own.
OF_GROUP = "/"


@dataclass
class TrialMetrics:
    """Metrics that a trial reported together.

    Attributes
    ----------
    trial_id : int
    trial_run_id : int or None
        None: by which attempt a row was reported is not kept.
    steps_completed : int
        Batches, or steps of the code's own, done then.
    end_time : datetime or None
        About when it was; None where that is not known.
    metrics : dict
    group : str
        ``"training"``, ``"validation"``, or one of the code's own.
    batch_metrics : list of dict, optional
        None: training metrics are kept by batch, each with a record of its own.
    """

    trial_id: int
    trial_run_id: int | None
    steps_completed: int
    end_time: datetime | None
    metrics: dict[str, Any]
    group: str
    batch_metrics: list[dict[str, Any]] | None = None

    @property
    def total_batches(self) -> int:
        """As `steps_completed`: the older name."""
        return self.steps_completed

    @total_batches.setter
    def total_batches(self, value: int) -> None:
        self.steps_completed = value


class TrainingMetrics(TrialMetrics):
    """Metrics of the group ``"training"``."""


class ValidationMetrics(TrialMetrics):
    """Metrics of the group ``"validation"``."""


_KINDS: dict[str, type[TrialMetrics]] = {TRAINING: TrainingMetrics, VALIDATION: ValidationMetrics}


def iter_metrics(source: Source, trial_ids: Iterable[int], group: str) -> Iterator[TrialMetrics]:
    """Return the metrics of trials, by trial and in the order of their steps.

    Raises
    ------
    ArgumentError
        If `group` is no text, or `trial_ids` are no numbers.
    """
    if not isinstance(group, str) or not group:
        raise ArgumentError(f"group must be a text such as 'training' or 'validation', not {group!r}.")
    if isinstance(trial_ids, str | int):
        raise ArgumentError(f"trial_ids must be a list of numbers: [{trial_ids}].")
    ids = [checked_number(trial_id, "trial_ids") for trial_id in trial_ids]
    return (record for trial_id in ids for record in _of_trial(source, trial_id, group))


def of_checkpoint(source: Source, checkpoint: rest.Checkpoint, group: str | None) -> Iterator[TrialMetrics]:
    """Return the metrics that a trial has reported at the batch of a checkpoint; see :func:`iter_metrics`."""
    batch = checkpoint.batch
    for each in (TRAINING, VALIDATION) if group is None else (group,):
        records = iter_metrics(source, [checkpoint.trial_id], each)
        yield from (record for record in records if record.steps_completed == batch)


def _of_trial(source: Source, trial_id: int, group: str) -> Iterator[TrialMetrics]:
    kind = _KINDS.get(group, TrialMetrics)
    stored = group if group in _KINDS else MetricKind.LOGGED.value
    clock: TrialClock | None = None
    for row in source.metrics(trial_id, stored):
        metrics = as_numbers(row.metrics)
        if stored is not group:
            prefix = f"{group}{OF_GROUP}"
            metrics = {name.removeprefix(prefix): value for name, value in metrics.items() if name.startswith(prefix)}
        if metrics:
            clock = clock or source.clock(trial_id)
            yield kind(trial_id, None, row.batch, moment(clock, row.batch), metrics, group)


def moment(clock: TrialClock, batch: int) -> datetime | None:
    """Return about when a trial had done so many batches; None where that is not known."""
    place = bisect_left(clock.batch, batch)
    if place == len(clock.batch):
        return None
    after, time = clock.batch[place], clock.time[place]
    if after != batch:
        before = clock.batch[place - 1] if place else 0
        since = clock.time[place - 1] if place else clock.started
        if since is not None:
            time = since + (time - since) * (batch - before) / (after - before)
    return datetime.fromtimestamp(time, UTC)


def summary(source: Source, experiment_id: int, trial_id: int) -> dict[str, Any]:
    """Return the last, smallest and largest value of each metric of a trial, by group and name."""
    groups: dict[str, Any] = {"avg_metrics": {}, "validation_metrics": {}}
    names = {TRAINING: "avg_metrics", VALIDATION: "validation_metrics"}
    for trial in source.summaries([experiment_id]):
        for metric in trial.metrics if trial.trial_id == trial_id else ():
            group = groups.setdefault(names.get(metric.kind, metric.kind), {})
            group[metric.name] = {"last": metric.last, "min": metric.minimum, "max": metric.maximum}
    return {group: values for group, values in groups.items() if values}
