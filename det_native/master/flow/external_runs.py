"""Trainings that have a name outside: a process with the same name goes on with what an earlier one has reported."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Any

from det_native.errors import RequestError
from det_native.master.flow.context import Context
from det_native.master.flow.resume import find_resume
from det_native.master.store import events, experiments, logs, runs, searches, trials
from det_native.master.store.database import Transaction
from det_native.schema.kernel_runs import KernelProcess, KernelRun, KernelRunRecorded
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.processes import is_alive, is_near
from det_native.schema.states import RunState
from det_native.search import Started
from det_native.search.journal import event_data

# So long a process that is gone is waited for to be noticed, and what it has left to be stored.
_NOTICED_SECONDS = 20.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Earlier:
    """What an earlier process of that name has reported to.

    Attributes
    ----------
    resume : CheckpointManifest or None
        Its furthest checkpoint.
    """

    experiment_id: int
    trial_id: int
    resume: CheckpointManifest | None


def key(asked: KernelRun) -> tuple[str, str] | None:
    """Return what an experiment is known by that goes by such a name; None without one."""
    if not asked.external:
        return None
    return f"external {hashlib.sha256(asked.external.encode()).hexdigest()}", "external"


def earlier(context: Context, owner: str, asked: KernelRun) -> Earlier | None:
    """Return what a training of that name has been recorded as, None if there is none.

    Raises
    ------
    RequestError
        If a process goes on with it.
    """
    known = key(asked)
    if known is None:
        return None
    with context.database.read() as connection:
        experiment_id = experiments.created_with(connection, owner, *known)
        if experiment_id is None:
            return None
        trial_id = trials.of_experiment(connection, experiment_id)[0].id
        if runs.get(connection, asked.run_id) is not None:
            return None
    _wait_for_end(context, trial_id)
    with context.database.read() as connection:
        experiment, trial = experiments.get(connection, experiment_id), trials.get(connection, trial_id)
    return Earlier(experiment_id, trial_id, find_resume(context, experiment, trial).checkpoint)


def go_on(transaction: Transaction, earlier: Earlier, asked: KernelRun, handle: dict[str, Any]) -> KernelRunRecorded:
    """Store a further run of the trial; from now on earlier ones are fenced off."""
    resume = earlier.resume
    runs.have_go_on(transaction, earlier.experiment_id, earlier.trial_id)
    events.forget_states(transaction, earlier.experiment_id)
    searches.begin_anew(transaction, earlier.experiment_id)
    searches.keep_event(transaction, earlier.experiment_id, 1, event_data(Started()))
    trials.update_row(transaction, earlier.trial_id, target_batches=asked.length)
    runs.create(
        transaction,
        earlier.trial_id,
        asked.run_id,
        token_hash=runs.hash_of(asked.token),
        slots=[],
        start_batch=0 if resume is None else resume.batch,
        resume=None if resume is None else resume.uuid,
        handle=handle,
    )
    where = "from the beginning" if resume is None else f"from checkpoint {resume.uuid} of step {resume.batch}"
    text = f"Process {asked.process.pid} goes on with it {where}."
    logs.add(transaction, earlier.trial_id, asked.run_id, "system", [text])
    return KernelRunRecorded(experiment_id=earlier.experiment_id, trial_id=earlier.trial_id, resume=resume)


def _wait_for_end(context: Context, trial_id: int) -> None:
    """Wait until the run of a process of this machine that is gone has ended here, too."""
    end = time.monotonic() + _NOTICED_SECONDS
    while True:
        with context.database.read() as connection:
            run = runs.of_trial(connection, trial_id)[-1]
            over = run.state is RunState.ENDED and experiments.get(connection, run.experiment_id).state.terminal
        process = KernelProcess.model_validate((run.handle or {})["kernel"])
        if over or not is_near(process.start, process.namespace) or time.monotonic() > end:
            return
        if run.state is not RunState.ENDED and run.exit is None and is_alive(process.pid, process.start):
            raise RequestError(
                409,
                f"Process {process.pid} of this machine goes on with this training: end it first, or give another "
                "external_trial_id",
            )
        time.sleep(_LOOK_SECONDS)
