"""What a query asks of a local run: hyperparameters and metrics of its trials, from the rows that it has written."""

from __future__ import annotations

import math
from collections.abc import Iterable

from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.numbers import number
from det_native.schema.query.matching import Facts
from det_native.schema.ranking import trials_best_first
from det_native.schema.states import MetricKind
from det_native.schema.summaries import MetricSummary, TrialSummary

#: Whose the runs of this machine's own are: as a master calls its user.
OWNER = "user"


def facts_of_run(store: LocalStore, *, with_trials: bool) -> Facts:
    """Return what is known of a run; without what its trials have, where nobody asks for that."""
    experiment = store.experiment()
    best = None
    if with_trials:
        ranked = trials_best_first(store.trials(), smaller_is_better=experiment.smaller_is_better)
        best = summary_of(store, ranked[0]) if ranked else None
    return Facts(
        experiment,
        store.id,
        OWNER,
        {} if best is None else best.hparams,
        () if best is None else best.metrics,
    )


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
