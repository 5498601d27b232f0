"""Runs: started on slots, watched, and what becomes of their trials when they end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from det_native.errors import DetError, RequestError
from det_native.master.flow import spool
from det_native.master.flow.active import Active
from det_native.master.flow.context import OPEN_STATES, Context, tell_experiment, tell_trial
from det_native.master.flow.decide import (
    UNUSABLE,
    WORKER_STOPPED,
    Asked,
    Cancel,
    Complete,
    Decision,
    Facts,
    Fail,
    ProcessEnd,
    Refuse,
    Restart,
    Storage,
    Suspend,
    TrialFacts,
    decide,
)
from det_native.master.flow.decide_kernel import decide_kernel
from det_native.master.flow.jobs import ranks_of, trial_job, worker_kind
from det_native.master.flow.kernel_runs import KERNEL, SILENT, process_of
from det_native.master.flow.left_samples import store_left_samples
from det_native.master.flow.lost_files import LostFiles
from det_native.master.flow.output import OutputStore
from det_native.master.flow.places_of_checkpoints import address_of
from det_native.master.flow.resume import find_resume
from det_native.master.flow.room import RoomWaits
from det_native.master.flow.spool import DamagedSpoolError, has_begun
from det_native.master.flow.thread import Waiter
from det_native.master.flow.warm_start import earlier_of, source_of
from det_native.master.flow.watching import Watches
from det_native.master.launch.base import Exit
from det_native.master.store import bundles, checkpoints, experiments, logs, reports, summaries, trials
from det_native.master.store import runs as run_store
from det_native.master.store.columns import UNSTORABLE
from det_native.master.store.database import Transaction
from det_native.master.store.runs import Run
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.exit_report import exit_report_of_run
from det_native.schema.refused import refused_because
from det_native.schema.run_ids import made_at, new_id
from det_native.schema.states import MetricKind, RunState, TrialState
from det_native.schema.watchdog import Watchdog
from det_native.storage.backups import DamagedDatabaseError
from det_native.storage.room import WAITS_FOR_ROOM, free_bytes, lacks_room

logger = logging.getLogger(__name__)

# A worker that has sent its exit report is given this long to go, one that is killed this long to end by itself.
LINGER_SECONDS = 20.0
KILL_GRACE_SECONDS = 2.0
# A kernel's run is not ended, however long its user's code takes.
_NEVER = Watchdog(minutes=0)
# One that is asked to pause first ends its batch, or the validation that goes on, and writes a checkpoint.
PAUSE_GRACE_SECONDS = 120.0


class Runs:
    """All live runs. Used by the decision thread only.

    Parameters
    ----------
    on_trial_over : callable
        Called with the ids of experiment and trial when a trial has reached its end.
    has_stopped : callable
        Whether its search has had a trial end early, by the same ids.
    make_room : callable
        Called when a trial has to wait for room on a disk.
    """

    def __init__(
        self,
        context: Context,
        on_trial_over: Callable[[int, int], None],
        has_stopped: Callable[[int, int], bool] = lambda experiment_id, trial_id: False,
        make_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._context = context
        self._on_trial_over = on_trial_over
        self._has_stopped = has_stopped
        self._make_room = make_room
        self.active: dict[str, Active] = {}
        self.watches = Watches(context)
        self.without_room = RoomWaits()
        self.lost_files = LostFiles(context.blobs)
        self._output = OutputStore(context)

    def adopt_all(self) -> None:
        """Take up the workers that an earlier master has left, and deal with those that are gone."""
        with self._context.database.read() as connection:
            left = run_store.alive(connection)
        for run in left:
            self._adopt(run)

    def take_in(self, run_id: str) -> None:
        """Look after a run that has begun in a process of the user's, and is recorded now."""
        with self._context.database.read() as connection:
            run = run_store.get(connection, run_id)
        if run is not None and run.state is not RunState.ENDED and run_id not in self.active:
            self._adopt(run)

    def _adopt(self, run: Run) -> None:
        kernel = process_of(run)
        self.active[run.run_id] = Active(
            run.run_id, run.trial_id, run.experiment_id, run.trial_number, tuple(run.slots), run.log_offsets, kernel
        )
        if kernel is not None:
            self.watches.begin(run.run_id, _NEVER)
            self._context.kernels.add(run.run_id, kernel, Path((run.handle or {})["directory"]))
            if run.exit is not None:
                self._context.kernels.has_ended(run.run_id)
            return
        if run.stop_asked:
            self.active[run.run_id].ending = True
            self.active[run.run_id].pause_until = time.monotonic() + PAUSE_GRACE_SECONDS
        with self._context.database.read() as connection:
            self._watch(run.run_id, experiments.config_of(connection, run.experiment_id))
        if run.handle is None or not self._context.launcher.adopt(run.run_id, run.handle):
            self.ended(Exit(run.run_id, None, "it ended while the master was away", begun=has_begun(run.handle)))
        elif run.exit is not None:
            self.said_exit(run.run_id)

    def start(self, trial_id: int, slots: tuple[str, ...]) -> None:
        """Start the next run of a trial, from its latest checkpoint that is complete."""
        try:
            self._start(trial_id, slots)
        except DetError as error:
            self._cannot_start(trial_id, error)

    def _start(self, trial_id: int, slots: tuple[str, ...]) -> None:
        database = self._context.database
        run_id = new_id()
        token, token_hash = run_store.new_token()
        with database.read() as connection:
            trial = trials.get(connection, trial_id)
            experiment = experiments.get(connection, trial.experiment_id)
            assert experiment.bundle_id is not None
            bundle = bundles.get(connection, experiment.bundle_id)
            units = trials.units_of(connection, trial_id)
        found = find_resume(self._context, experiment, trial)
        resume = found.checkpoint
        warm_start = source_of(self._context, trial)
        earlier = earlier_of(self._context, bundle.program)
        config = ExperimentConfig.model_validate(experiment.config)
        ranks = ranks_of(config, bundle.program.framework, slots, self._context.slots.machines_of(slots))
        with database.write() as transaction:
            number = run_store.create(
                transaction,
                trial_id,
                run_id,
                token_hash=token_hash,
                slots=list(slots),
                ranks=ranks,
                start_batch=resume.batch if resume else 0,
                resume=resume.uuid if resume else None,
            )
            trials.set_state(transaction, trial_id, TrialState.RUNNING)
            trials.set_waiting(transaction, trial_id, "")
            trials.set_notice(transaction, trial_id, found.notice)
            if number > 1:
                lines = [*found.passed_over, f"Attempt {number} continues from {found.where}."]
                logs.add(transaction, trial_id, run_id, "system", lines)
            tell_trial(transaction, trial_id)
            experiments.set_waits_for(transaction, experiment.id, None)
            if experiment.started is None or experiment.notice or experiment.waits_for:
                tell_experiment(transaction, experiment.id)  # it is queued no longer
        self.active[run_id] = Active(run_id, trial_id, trial.experiment_id, trial.number, slots, [0] * ranks)
        self._watch(run_id, experiment.config)
        job = trial_job(
            self._context.places,
            experiment,
            bundle,
            trial,
            run_id=run_id,
            token=token,
            slots=slots,
            resume=resume,
            manifests=found.manifests,
            units=units,
            warm_start=warm_start,
            earlier=earlier,
            cluster_device=self._context.slots.device_of(slots) if self._context.slots.cluster else None,
        )
        try:
            handle = self._context.launcher.start(run_id, job, worker_kind(bundle), ranks=ranks, slots=slots)
        except OSError as error:
            self.ended(Exit(run_id, None, f"it could not be started: {error}"), full=lacks_room(error))
            return
        with database.write() as transaction:
            run_store.set_handle(transaction, run_id, handle)
        logger.info(
            "run %s of trial %s started on %s, process %s, standby %s",
            run_id,
            self.active[run_id].trial_name,
            ", ".join(slots) or "no slot",
            ", ".join(str(one.get("pid")) for one in [handle, *handle.get("peers", [])]),
            handle.get("standby", "unknown"),
        )

    def kill_experiment(self, experiment_id: int) -> None:
        """End all runs of an experiment now."""
        for run in self.active.values():
            if run.experiment_id == experiment_id:
                run.killed = True
                self._context.runner_of(run.run_id).kill(run.run_id, grace=KILL_GRACE_SECONDS)

    def ask_to_end(self, experiment_id: int) -> None:
        """Give all runs of an experiment, which the store has told to end, their time to do so."""
        until = time.monotonic() + PAUSE_GRACE_SECONDS
        for run in self.active.values():
            if run.experiment_id == experiment_id:
                run.ending = True
                run.pause_until = min(run.pause_until, until)

    def preempt(self, trial_id: int, experiment_id: int | None) -> None:
        """Have a trial checkpoint and end, as if it were paused, so that one of another experiment gets its slots.

        With None its own experiment holds more than its `max_slots`.
        """
        run = next(run for run in self.active.values() if run.trial_id == trial_id)
        if experiment_id is None:
            why = "its experiment holds more than its max_slots"
        else:
            why = f"experiment {experiment_id} comes before it"
        text = f"It is asked to save its state and give its slots up: {why}. It goes on later; no restart is counted."
        with self._context.database.write() as transaction:
            run_store.ask_run_to_stop(transaction, run.run_id)
            logs.add(transaction, trial_id, run.run_id, "system", [text])
        run.ending = True
        run.pause_until = min(run.pause_until, time.monotonic() + PAUSE_GRACE_SECONDS)
        logger.info("trial %s makes room: %s", run.trial_name, why)

    def end_stopped(self, experiment_id: int) -> None:
        """Give the runs whose trials their search has stopped their time to end."""
        until = time.monotonic() + PAUSE_GRACE_SECONDS
        for run in self.active.values():
            if run.experiment_id == experiment_id and not run.ending and self._has_stopped(experiment_id, run.trial_id):
                run.ending = True
                run.pause_until = min(run.pause_until, until)

    def said_exit(self, run_id: str) -> None:
        """The run has sent its exit report: decide at once, unless the trial must wait for its worker to be gone."""
        run = self.active.get(run_id)
        if run is None:
            return
        if run.kernel is not None:  # its process lives on: the run is over at once
            self._context.kernels.has_ended(run_id)
            return
        if run.linger_until == float("inf"):
            run.linger_until = time.monotonic() + LINGER_SECONDS
        self._store_output(run)
        with self._context.database.write() as transaction:
            decision = self._decide(transaction, run, Exit(run_id, None))
            if decision is None or isinstance(decision, Restart | Suspend) or _was_stopped(decision):
                return
            self._carry_out(transaction, run, decision)
        self._over(run, decision)

    def ended(self, exit: Exit, *, full: bool = False) -> Active | None:
        """A worker is gone: store what it left, decide what becomes of its trial, free its slots; return its run.

        `full` says that a full disk did not let it start.
        """
        run = self.active.get(exit.run_id)
        if run is None:
            return None
        self._store_output(run)
        self._store_left_reports(run)
        store_left_samples(self._context, run)
        decision = None
        try:
            with self._context.database.write() as transaction:
                decision = self._decide(transaction, run, exit, full=full)
                run_store.end(transaction, run.run_id)
                summaries.refresh(transaction, run.trial_id, [MetricKind.TRAINING])
                if decision is not None:
                    self._carry_out(transaction, run, decision)
                if run.kernel is not None and exit.interrupted and isinstance(decision, Cancel) and decision.error:
                    handle = {KERNEL: run.kernel.model_dump(), "directory": str(self._context.folder_of(run.run_id))}
                    run_store.set_handle(transaction, run.run_id, handle | {SILENT: True})
        except DamagedDatabaseError as error:  # its slots are free all the same
            logger.error("What becomes of trial %s cannot be decided: %s", run.trial_name, error)
        del self.active[run.run_id]
        self.watches.forget(run.run_id)
        self._output.forget(run.trial_id)
        logger.info(
            "run %s of trial %s is gone: %s", run.run_id, run.trial_name, exit.detail or f"exit code {exit.code}"
        )
        if decision is not None:
            self._over(run, decision)
        return run

    def tick(self) -> None:
        """Store new output; end workers that hang, and that stay on after their exit report or a request to pause."""
        for run in list(self.active.values()):
            self._store_output(run)
            if time.monotonic() > min(run.linger_until, run.pause_until):
                run.linger_until = run.pause_until = float("inf")
                self._context.runner_of(run.run_id).kill(run.run_id, grace=0.0)
            elif self.watches.look(run.run_id, run.trial_id):
                run.hung = True
                self._context.launcher.kill(run.run_id, grace=KILL_GRACE_SECONDS)

    @property
    def workers(self) -> list[Active]:
        """The runs that the master has started."""
        return [run for run in self.active.values() if run.kernel is None]

    @property
    def held(self) -> set[int]:
        """The trials that wait for room on a disk, or for files that were lost."""
        return self.without_room.trials | self.lost_files.trials

    def release_held(self) -> bool:
        """Let those of them go that may go on; return whether there are any."""
        released = [self.without_room.release(), self.lost_files.release(self._is_queued)]
        return any(released)

    def _is_queued(self, trial_id: int) -> bool:
        with self._context.database.read() as connection:
            return trials.get(connection, trial_id).state is TrialState.QUEUED

    def waits(self) -> dict[int, str]:
        """Return what experiments wait for though their workers live, or are about to, by experiment."""
        found: dict[int, str] = {}
        cluster = self._context.slots.cluster
        not_placed = cluster.waits() if cluster is not None else {}
        for run in self.active.values():
            note = not_placed.get(run.run_id) or self.watches.note(run.run_id)
            if note:
                found.setdefault(run.experiment_id, note)
        return found

    def _watch(self, run_id: str, config: Mapping[str, Any]) -> None:
        self.watches.begin(run_id, Watchdog.model_validate(config.get("watchdog", {})))

    def settled(self, run_id: str) -> None:
        """A run has reported metrics: its worker is through its start."""
        if isinstance(self._context.launcher, Waiter) and run_id in self.active:
            self._context.launcher.settled(run_id)

    def suspend_all(self) -> None:
        """The workers are killed with the master: their trials wait for the next one, and no restart is counted."""
        for run in self.workers:
            self._store_output(run)
            self._store_left_reports(run)
            with self._context.database.write() as transaction:
                run_store.end(transaction, run.run_id)
                summaries.refresh(transaction, run.trial_id, [MetricKind.TRAINING])
                trials.set_state(transaction, run.trial_id, TrialState.QUEUED)
                logs.add(transaction, run.trial_id, run.run_id, "system", ["The worker was ended with the master."])
                tell_trial(transaction, run.trial_id)
            del self.active[run.run_id]

    def _cannot_start(self, trial_id: int, error: DetError) -> None:
        logger.error("The trial with the id %d cannot be started: %s", trial_id, error)
        message = f"The trial cannot be started: {error}"
        info = rest.UserErrorInfo(type=type(error).__name__, message=message, traceback="")
        with self._context.database.write() as transaction:
            trials.set_state(transaction, trial_id, TrialState.ERROR, info)
            experiment_id = tell_trial(transaction, trial_id).experiment_id
        self._on_trial_over(experiment_id, trial_id)

    def _store_output(self, run: Active) -> None:
        found = self._output.store(run.trial_id, run.run_id, run.log_offsets)
        if found != run.log_offsets:
            run.log_offsets = found
            self.watches.wrote(run.run_id)

    def _store_left_reports(self, run: Active) -> None:
        """Take what the worker could not send before it ended."""
        database = self._context.database
        with database.read() as connection:
            known = run_store.get(connection, run.run_id)
        if known is None or known.exit is not None:
            return
        directory = self._context.folder_of(run.run_id)
        try:
            for batch in spool.left_batches(directory):
                with database.write() as transaction:
                    reports.accept(transaction, run.run_id, batch)
        except (RequestError, DamagedSpoolError, *UNSTORABLE) as error:  # the run ends all the same
            logger.warning("Reports that run %s left on disk are not taken: %s", run.run_id, error)
            with database.write() as transaction:
                logs.add(transaction, run.trial_id, run.run_id, "system", [str(error)])
        exit_report = exit_report_of_run(directory, run.ranks)
        if exit_report is not None:
            with database.write() as transaction:
                reports.accept_exit(transaction, run.run_id, exit_report)

    def _decide(self, transaction: Transaction, run: Active, exit: Exit, *, full: bool = False) -> Decision | None:
        """Return what becomes of the run's trial, None if that is decided already."""
        connection = transaction.connection
        trial = trials.get(connection, run.trial_id)
        if trial.state is not TrialState.RUNNING or trial.run_id != run.run_id:
            return None  # one that its search trains on waits for slots again, while this run's worker is still there
        experiment = experiments.get(connection, run.experiment_id)
        stored = run_store.get(connection, run.run_id)
        hung, may_restart = self.watches.end_of_hung(run.run_id) if run.hung else ("", True)
        batch_size = trial.hparams.get("global_batch_size")
        exit_report = stored.exit if stored else None
        recovered = self._context.database.recovered_at
        facts = Facts(
            exit_report,
            ProcessEnd(exit.detail, exit.begun, exit.interrupted, exit.memory, hung),
            Asked(
                killed=run.killed or experiment.state not in OPEN_STATES,
                paused=stored.stop_asked if stored else False,
                stopped_early=self._has_stopped(run.experiment_id, run.trial_id),
            ),
            TrialFacts(
                restarts=trial.restarts,
                max_restarts=int(experiment.config["max_restarts"]),
                may_restart=may_restart,
                fingerprint=trials.fingerprint(connection, run.trial_id),
                length=trial.target_batches or None,
                trained=trial.batches > 0,
                batch_size=batch_size if isinstance(batch_size, int) else None,
            ),
            Storage(
                last_row=stored.training_last if stored else -1,
                last_seq=stored.last_seq if stored else 0,
                full=full,
                lost_files=self.lost_files.sentence(connection, run.trial_id, experiment.bundle_id, exit_report),
                disk_failed=bool(recovered) and made_at(run.run_id) <= recovered,
            ),
        )
        return decide(facts) if run.kernel is None else decide_kernel(facts, run.kernel, trial.batches)

    def _carry_out(self, transaction: Transaction, run: Active, decision: Decision) -> None:
        experiment = experiments.get(transaction.connection, run.experiment_id)
        trials.set_waiting(transaction, run.trial_id, "")
        match decision:
            case Complete():
                trials.set_state(transaction, run.trial_id, TrialState.COMPLETED)
            case Cancel(error):
                trials.set_state(transaction, run.trial_id, TrialState.CANCELED, error)
            case Suspend(reason, for_room, for_files):
                trials.set_state(transaction, run.trial_id, TrialState.QUEUED)
                if for_room:
                    self._wait_for_room(transaction, run)
                if for_files and experiment.bundle_id is not None:
                    self.lost_files.add(transaction.connection, run.trial_id, experiment.bundle_id)
                    trials.set_waiting(transaction, run.trial_id, for_files)
                logs.add(transaction, run.trial_id, run.run_id, "system", [reason])
            case Refuse(error):
                text = refused_because(error)
                logs.add(transaction, run.trial_id, run.run_id, "system", [f"The trial ends: {text}."])
                trials.set_notice(transaction, run.trial_id, text)
                trials.set_state(transaction, run.trial_id, TrialState.CANCELED, error)
                reports.forget_best(transaction, run.trial_id)
            case Fail(error, reason):
                logs.add(transaction, run.trial_id, run.run_id, "system", [*error.message.splitlines()[:5], reason])
                trials.set_state(transaction, run.trial_id, TrialState.ERROR, error)
            case Restart(restarts, fingerprint, error, reason):
                trials.set_restarts(transaction, run.trial_id, restarts, fingerprint)
                trials.set_state(transaction, run.trial_id, TrialState.QUEUED, error)
                logs.add(transaction, run.trial_id, run.run_id, "system", [reason])
                self._give_up_checkpoint(transaction, run_store.get(transaction.connection, run.run_id), error)
        tell_trial(transaction, run.trial_id)
        if experiment.notice != experiments.get(transaction.connection, run.experiment_id).notice:
            tell_experiment(transaction, run.experiment_id)

    def _wait_for_room(self, transaction: Transaction, run: Active) -> None:
        experiment = experiments.get(transaction.connection, run.experiment_id)
        config = ExperimentConfig.model_validate(experiment.config)
        places = self._context.places
        folders = {address_of(config, places).url, str(places.home)}
        self.without_room.add(run.trial_id, folders)
        self._make_room()
        fullest = min(folders, key=lambda folder: free_bytes(folder) or 0)
        trials.set_waiting(transaction, run.trial_id, f"{WAITS_FOR_ROOM} in {fullest}")

    def _give_up_checkpoint(self, transaction: Transaction, run: Run | None, error: rest.UserErrorInfo) -> None:
        """Do not continue again from a checkpoint that turned out to be damaged."""
        if run is None or run.resume is None or error.type not in UNUSABLE:
            return
        checkpoints.set_deleted(transaction, [run.resume])
        text = f"Checkpoint {run.resume} cannot be used; the trial falls back to the one before."
        logs.add(transaction, run.trial_id, run.run_id, "system", [text])

    def _over(self, run: Active, decision: Decision) -> None:
        logger.info("trial %s: %s", run.trial_name, _summary(decision))
        if not isinstance(decision, Restart | Suspend):
            self._on_trial_over(run.experiment_id, run.trial_id)


def _was_stopped(decision: Decision) -> bool:
    """Return whether a run ended for a signal that the master did not ask for: its launcher may know where from."""
    return isinstance(decision, Fail) and decision.error.type == WORKER_STOPPED


def _summary(decision: Decision) -> str:
    """Return a decision as a line for the master's log."""
    match decision:
        case Complete():
            return "completed"
        case Cancel():
            return "stopped"
        case Suspend(reason=reason):
            return f"queued again. {reason}"
        case Refuse(error):
            return refused_because(error)
        case Fail(error, reason):
            return f"failed, {error.type}. {reason}"
        case Restart(reason=reason):
            return f"queued again. {reason}"
