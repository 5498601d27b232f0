"""Runs that have begun in a process of the user's, mostly a notebook's kernel: they are recorded, as what they are."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from det_native.errors import ArgumentError, RequestError
from det_native.master.flow import external_runs
from det_native.master.flow.context import Context, tell_experiment, tell_trial
from det_native.master.flow.creation import readable
from det_native.master.flow.places_of_checkpoints import stored
from det_native.master.store import bundles, checkpoints, events, experiments, logs, runs, searches, secrets, trials
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import check_text, now
from det_native.schema.config import ExperimentConfig
from det_native.schema.kernel_runs import KernelProcess, KernelRun, KernelRunRecorded
from det_native.schema.routes import PATTERNS
from det_native.schema.states import ExperimentState, TrialState
from det_native.search import Started
from det_native.search.journal import event_data

logger = logging.getLogger(__name__)

#: In the handle of a run: the process of the user's that trains.
KERNEL = "kernel"
#: And that nothing was heard of it, so that it counted as ended.
SILENT = "silent"
_REQUEST = 0  # what its searcher calls the only trial


def process_of(run: runs.Run) -> KernelProcess | None:
    """Return the process of the user's in which a run trains; None for a run of a worker."""
    kernel = (run.handle or {}).get(KERNEL)
    return None if kernel is None else KernelProcess.model_validate(kernel)


def record(context: Context, owner: str, asked: KernelRun) -> tuple[KernelRunRecorded, bool]:
    """Store the experiment, trial and run of a training that goes on; return their numbers, and whether they are new.

    Raises
    ------
    ConfigurationError, ArgumentError
        If the configuration or something else of it is not valid. What a worker could not do, no worker is to do.
    NotFoundError
        If the master does not have the program.
    RequestError
        If a worker's run has the same id.
    """
    if not re.fullmatch(PATTERNS["run_id"], asked.run_id):
        raise ArgumentError(f"run_id: {asked.run_id!r} is not a ULID.")
    if re.split(r"[\\/]", asked.directory)[-1] != asked.run_id:  # files of other folders are not read
        raise ArgumentError(f"directory: {asked.directory!r} is not the folder of run {asked.run_id}.")
    config = readable(asked.config, asked.framework, local=True).with_some_seed()
    if config.searcher.name != "single":
        raise ArgumentError(f"searcher.name: a kernel trains a single trial, and no {config.searcher.name!r} search.")
    check_text(asked.model_dump(mode="json"))
    earlier = external_runs.earlier(context, owner, asked)
    with context.database.write() as transaction:
        known = _known(transaction.connection, asked.run_id)
        if known is not None:
            return known, False
        if earlier is not None:
            recorded = external_runs.go_on(transaction, earlier, asked, _handle(asked))
        else:
            recorded = _store(context, transaction, owner, asked, config)
        tell_experiment(transaction, recorded.experiment_id)
        tell_trial(transaction, recorded.trial_id)
    logger.info("experiment %d is recorded: it trains in process %d", recorded.experiment_id, asked.process.pid)
    return recorded, True


def revive(context: Context, run_id: str) -> bool:
    """Have a run that is heard of go on, if it had counted as ended for its silence; return whether it had."""
    with context.database.read() as connection:
        run = runs.get(connection, run_id)
        if run is None or SILENT not in (run.handle or {}):
            return False
    with context.database.write() as transaction:
        connection = transaction.connection
        run = runs.get(connection, run_id)
        if run is None or not (run.handle or {}).pop(SILENT, False):
            return False
        trial, experiment = trials.get(connection, run.trial_id), experiments.get(connection, run.experiment_id)
        if (trial.state, experiment.state) != (TrialState.CANCELED, ExperimentState.CANCELED):
            return False
        runs.revive(transaction, run)
        events.forget_states(transaction, experiment.id)
        logs.add(transaction, trial.id, run_id, "system", ["Its process was heard of again: it goes on."])
        tell_experiment(transaction, experiment.id)
        tell_trial(transaction, trial.id)
    return True


def _known(connection: Connection, run_id: str) -> KernelRunRecorded | None:
    run = runs.get(connection, run_id)
    if run is None:
        return None
    if process_of(run) is None:
        raise RequestError(409, f"A worker's run has the id {run_id}.")
    return KernelRunRecorded(experiment_id=run.experiment_id, trial_id=run.trial_id)


def _store(
    context: Context, transaction: Transaction, owner: str, asked: KernelRun, config: ExperimentConfig
) -> KernelRunRecorded:
    begun = _moment(asked.started)
    shown = stored(config, context.places, owner)
    program = None if asked.bundle_id is None else bundles.get(transaction.connection, asked.bundle_id).program
    experiment_id = experiments.create(
        transaction,
        experiments.NewExperiment(
            owner=owner,
            name=config.title,
            config={**shown, "notify": secrets.hide(transaction, owner, shown["notify"])},
            bundle_id=asked.bundle_id,
            framework=asked.framework,
            metric=config.metric,
            smaller_is_better=config.smaller_is_better,
            report=asked.report,
            test=asked.test,
            description=config.description or "",
            labels=tuple(dict.fromkeys(config.labels)),
            project=(config.project or "").strip("/"),
            in_kernel=True,
            no_program=asked.no_program,
            idempotency=external_runs.key(asked),
            created=begun,
        ),
    )
    if program is not None:
        checkpoints.note_uses(transaction, experiment_id, program.earlier_checkpoints)
    searches.keep_event(transaction, experiment_id, 1, event_data(Started()))  # so that it asks for no other trial
    trial_id = trials.create(
        transaction,
        experiment_id,
        request=_REQUEST,
        hparams=asked.hparams,
        seed=asked.trial_seed,
        target_batches=asked.length,
        warm_start=config.searcher.source_checkpoint_uuid,
        started=begun,
    )
    if not Path(asked.directory).is_dir():
        where = f"it trains on {asked.process.machine or 'another machine'}"
        text = f"{where}: its output stays there, and its checkpoints if they lie in a folder of that machine"
        trials.set_notice(transaction, trial_id, text)
    token = runs.hash_of(asked.token)
    runs.create(transaction, trial_id, asked.run_id, token_hash=token, slots=[], handle=_handle(asked), created=begun)
    return KernelRunRecorded(experiment_id=experiment_id, trial_id=trial_id)


def _handle(asked: KernelRun) -> dict[str, Any]:
    return {KERNEL: asked.process.model_dump(), "directory": asked.directory}


def _moment(text: str) -> str:
    """Return a moment as it is stored; nothing has begun later than now.

    Raises
    ------
    ArgumentError
        If it is none.
    """
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"started: {text!r} is not a time.") from error
    return min(moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"), now())
