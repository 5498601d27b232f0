"""What a query asks of a local run: hyperparameters and metrics of its trials, from the rows that it has written."""

from __future__ import annotations

import math
from collections.abc import Iterable

from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.numbers import number
from det_native.schema.states import MetricKind
from det_native.schema.summaries import MetricSummary, TrialSummary


def summary_of(store: LocalStore, trial: rest.Trial) -> TrialSummary:
    """Return what is known of a trial without its rows."""
    metrics = [summary for kind in MetricKind for summary in summaries(kind, store.rows(trial.id, kind.value))]
    return TrialSummary(trial_id=trial.id, experiment_id=store.number, hparams=trial.hparams, metrics=metrics)


def summaries(kind: MetricKind, rows: Iterable[rest.MetricRow]) -> list[MetricSummary]:
    """Return the last value and the extremes of each metric, by name."""
    columns: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for name, given in row.metrics.items():
            value = number(given)
            if value is not None:
                columns.setdefault(name, []).append((row.batch, value))
    found = []
    for name, values in sorted(columns.items()):
        numbers = [value for _, value in values if not math.isnan(value)]
        batch, last = values[-1]
        found.append(
            MetricSummary(
                kind=kind,
                name=name,
                last_batch=batch,
                last=None if math.isnan(last) else last,
                minimum=min(numbers, default=None),
                maximum=max(numbers, default=None),
            )
        )
    return found
