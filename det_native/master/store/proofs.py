"""Whether what reaches an experiment's training call has been compared with the notebook yet."""

from __future__ import annotations

from sqlalchemy import Connection

from det_native.errors import InputDiffersError, NotFoundError
from det_native.master.store import bundles, experiments, runs, trials
from det_native.schema.states import RunState, TrialState


def is_pending(connection: Connection, run_id: str, bundle_id: str) -> bool:
    """Return whether a run has to wait: its program may be replaced, or was.

    Only while the trial that compares is on its way to the training call; one that waits for slots is not waited for.

    Raises
    ------
    NotFoundError
        If there is no such run.
    """
    run = runs.get(connection, run_id)
    if run is None:
        raise NotFoundError(f"There is no run {run_id}.")
    experiment = experiments.get(connection, run.experiment_id)
    if experiment.bundle_id != bundle_id:
        return True  # it will be ended
    proof = bundles.get(connection, bundle_id).proof
    for trial in trials.of_experiment(connection, run.experiment_id):
        if proof is None or trial.seed != proof.seed or trial.id == run.trial_id:
            continue
        if trial.state is TrialState.ERROR and trial.error is not None:
            return trial.error.type == InputDiffersError.__name__  # this run will be ended
        current = runs.get(connection, trial.run_id) if trial.run_id is not None else None
        comparing = current is not None and current.resume is None and current.state is RunState.STARTING
        return comparing and trial.state is TrialState.RUNNING
    return False
