"""Writes local experiments, of the kind that a run leaves, for tests of handles and of how they look."""

from __future__ import annotations

from typing import Any

from det_native.client.local_source import LocalSource
from det_native.local.store import LocalStore, now, trial_row

import det_native.display  # noqa: F401 (makes handles show themselves)
from det_native.client.handles import Experiment
from det_native.schema import rest
from det_native.schema.states import ExperimentState, TrialState


def write_experiment(
    *,
    name: str = "digits",
    trials: int = 1,
    hparams: dict[str, Any] | None = None,
    metric: str = "val_loss",
    error: rest.UserErrorInfo | None = None,
    rows: int = 4,
) -> Experiment:
    """Write a finished experiment into DET_HOME and return its handle."""
    store = LocalStore.create()
    state = ExperimentState.ERROR if error else ExperimentState.COMPLETED
    for number in range(1, trials + 1):
        trial = trial_row(store, number, {"lr": 0.1 * number} | (hparams or {}), 7, rows)
        store.write_trial(
            trial.model_copy(
                update={"state": TrialState.COMPLETED, "batches": rows, "best_validation": 1.0 / number, "error": error}
            )
        )
        batches = range(1, rows + 1)
        store.write_rows(
            number, "training", [rest.MetricRow(batch=batch, metrics={"loss": 2.0 / batch}) for batch in batches]
        )
        store.write_rows(number, "validation", [rest.MetricRow(batch=rows, metrics={metric: 1.0 / number})])
    store.write_experiment(
        rest.ExperimentDetail(
            id=store.number,
            name=name,
            state=state,
            config={"searcher": {"name": "random" if trials > 1 else "single"}, "records_per_epoch": 0},
            bundle_id=None,
            framework="keras",
            metric=metric,
            smaller_is_better=True,
            progress=1.0,
            trials=trials,
            best_validation=1.0 / trials,
            error=error,
            created=now(),
            started=now(),
            ended=now(),
        )
    )
    return Experiment(LocalSource(store), store.id)
