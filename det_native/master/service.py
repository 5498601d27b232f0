"""The master as one object: what the interface asks it to do, and the thread in which it decides."""

from __future__ import annotations

import hmac
import logging
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.exc import OperationalError

from det_native._version import PROTOCOL, __version__
from det_native.errors import FencedError, MasterError, RequestError
from det_native.master.blobs_missing import MissingBlobsError
from det_native.master.events.broker import Broker
from det_native.master.flow import collection, life
from det_native.master.flow import data as data_flow
from det_native.master.flow.active import Active
from det_native.master.flow.checks import Checks
from det_native.master.flow.cleaning import Cleaner
from det_native.master.flow.collector import Collector
from det_native.master.flow.context import Context, tell_experiment, tell_trial
from det_native.master.flow.creation import Forked, Idempotency, check_protocol, create
from det_native.master.flow.deletion import Deletions
from det_native.master.flow.experiments import Experiments
from det_native.master.flow.jobs import usable_here, worker_kind
from det_native.master.flow.kernel_runs import record, revive
from det_native.master.flow.known import KnownBundles
from det_native.master.flow.left_files import LeftFiles
from det_native.master.flow.messages import Messages
from det_native.master.flow.notebook_runs import KeptNotebooks, NotebookRuns
from det_native.master.flow.old_local_runs import take_over
from det_native.master.flow.places import Places
from det_native.master.flow.runs import Runs
from det_native.master.flow.schedules import Schedules
from det_native.master.flow.scheduling import Scheduling
from det_native.master.flow.slots import Slots
from det_native.master.flow.stores import absent, learn_blobs, open_blobs, open_data
from det_native.master.flow.take_in import TakeIn, bring_home, show_events
from det_native.master.flow.thread import DecisionThread, Waiter
from det_native.master.flow.unneeded_blobs import BlobGuard
from det_native.master.hourly_backups import HourlyBackups
from det_native.master.launch import gpu_notices
from det_native.master.launch.base import Exit, HasModules, Launcher, dashboard_of, remarks_of
from det_native.master.launch.machine_modules import disagreements, of_any
from det_native.master.launch.packages import WorkerPackages
from det_native.master.notify.mail import SmtpServer
from det_native.master.outage import Outage
from det_native.master.reserve import SIZE, Reserve
from det_native.master.scheduling.facts import Policy
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS
from det_native.master.space_watch import SpaceWatch
from det_native.master.store import bundles, events, experiments, logs, queue, reports, summaries, system, unfinished
from det_native.master.store import runs as run_store
from det_native.master.store.database import Database, is_disk_full
from det_native.master.store.encoding import now
from det_native.schema import rest
from det_native.schema.cluster import MachineModules
from det_native.schema.datasets import DataSetCreate, DataSetInfo
from det_native.schema.introduction import Meeting
from det_native.schema.kernel_runs import KernelRun, KernelRunRecorded
from det_native.schema.launchers import LOCAL
from det_native.schema.life import Deletion, Retained, Retention
from det_native.schema.manifests import BundleManifest
from det_native.schema.query.moments import stored
from det_native.schema.queue import Queue
from det_native.schema.space import SpaceSettings
from det_native.schema.worker_environment import EnvironmentAnswer, EnvironmentQuestion
from det_native.storage.room import WAITS_FOR_ROOM, free_bytes

logger = logging.getLogger(__name__)

AnyExperiment = TypeVar("AnyExperiment", bound=rest.Experiment)
Asked = ParamSpec("Asked")

OWNER = "user"
LOG_NAME = "master.log"
RESERVE_NAME = "reserve"
_LOOK_PATIENCE = 1.0  # seconds
# So long the answer to a deletion waits for its end.
DELETION_SECONDS = 40.0
_MACHINES_SECONDS = 15.0
_LEFT_SECONDS = 10.0
#: Live runs are asked to report no more often in all; each of them gathers its rows so long.
REPORTS_PER_SECOND = 100.0
KILLED_ON_A_FULL_DISK = (
    "The disk of the master is full: the workers of experiment {} are ended now, and it is recorded as stopped as soon "
    "as there is room."
)


class Service:
    """A master. Its methods may be called from any thread; decisions are made in one thread of its own.

    Parameters
    ----------
    places : Places
        Folder, address and slots of the master.
    launcher : Launcher
        Runs the workers.
    token : str
        The user's bearer token.
    database_url : str
        SQLAlchemy URL of the database.
    policy : Policy
        By what experiments come before others.
    without_slots : int
        How many trials that need no slot may run at the same time.
    budget : int or None
        Bytes that the home may take from now on, 0 for as many as the disk has; None for what was said before.
    launched_by : str
        What the launcher is called: ``local``, ``ray``.

    Raises
    ------
    MasterStartError
        If another master has the database, or a newer version has written it.
    """

    def __init__(
        self,
        places: Places,
        launcher: Launcher,
        *,
        token: str,
        database_url: str,
        policy: Policy = Policy.PRIORITY,
        without_slots: int = MOST_WITHOUT_SLOTS,
        budget: int | None = None,
        launched_by: str = LOCAL,
    ) -> None:
        self.places = places
        self.broker = Broker()
        self.database = Database(database_url, on_commit=self._publish)
        with self.database.read() as connection:
            self.broker = Broker(events.last_id(connection))
        self.blobs = open_blobs(places)
        self.data = open_data(places)
        self.guard = BlobGuard(self.blobs)
        self._bundles = KnownBundles(self.blobs, self.guard)
        self._packages = WorkerPackages()
        self.on_shutdown: Callable[[], None] = lambda: None
        self.kill_workers = False
        self._launcher = launcher
        self._launched_by = launched_by
        self._token = token
        self._token_hashes: dict[str, str] = {}
        self._started_at = now()
        self._standbys: dict[str, int] = {}
        self._unscheduled = True
        self._closed = threading.Event()
        self._touched_lock = threading.Lock()
        self._touched: set[tuple[str, bool]] = set()
        self._published: set[str] = set()
        waiter = launcher if isinstance(launcher, Waiter) else None
        self._reserve = Reserve(places.home / RESERVE_NAME)
        self._thread = DecisionThread(self._tick, self._busy, waiter, self._make_room)
        self._context = Context(self.database, launcher, places, self._thread.post, self.blobs)
        self._slots = self._context.slots
        self._looks_often = self._slots.cluster is not None and waiter is None
        self.collector = Collector(self._context)
        self.deletions = Deletions(self._context, self.blobs, self._bundles.forget)
        self.space = SpaceWatch(
            self.database,
            places,
            self.blobs,
            Cleaner(self._context, self.blobs, self.guard),
            self.collector.make_room,
            OWNER,
            partial(collection.clear_old_runs, self._context),
            self._finish_deletions,
            self.deletions.waiting,
        )
        if budget is not None:
            self.space.change(SpaceSettings(budget=budget or None))
        self.messages = Messages(self.database, OWNER, places.url, smtp=SmtpServer.of())
        self.notebook_runs = NotebookRuns(places.home)
        self.schedules = Schedules(
            self.database,
            OWNER,
            self.notebook_runs,
        )
        self.notebooks = KeptNotebooks(self.database, self.blobs, self.guard)
        self.files_left = LeftFiles(self._context, self.blobs, self.collector.submit)
        self.take_in = TakeIn(
            self._context, OWNER, lambda run_id, heard: self._thread.post(partial(self._end_taken_in, run_id, heard))
        )
        self._looked_for_left = float("-inf")
        self.outage = Outage(places.home, self.database, self._tell_outage)
        self.database.on_fault = lambda: self._thread.post(self.outage.look)
        self._last_active = self._listed = 0
        self._experiments = Experiments(self._context)
        self._runs = Runs(
            self._context, self._trial_over, lambda *ids: self._experiments.has_stopped(*ids), self.collector.make_room
        )
        asked = f"{launched_by.capitalize()}'s autoscaler"
        self._scheduling = Scheduling(self.database, self._slots, policy, self._runs, without_slots, asked)
        self._checks = Checks(self._context)
        self._backups = None if self.database.file is None else HourlyBackups(self.database.file)

    @property
    def log(self) -> Path:
        """The master's log file, which an internal error points to."""
        return self.places.home / LOG_NAME

    @property
    def slots(self) -> Slots:
        """The slots that exist now."""
        return self._slots

    @property
    def context(self) -> Context:
        """What the parts of the master share."""
        return self._context

    def not_needed_any_more(self, experiment_id: int) -> None:
        """A checkpoint is not pinned or registered any more: the configuration of its experiment says if it stays."""
        with self.database.read() as connection:
            ended = experiments.get(connection, experiment_id).state.terminal
        if ended:
            self.collector.ended(experiment_id)
        else:
            self.collector.published(experiment_id)

    def start(self) -> None:
        """Take up what an earlier master has left, and begin to decide."""
        self._thread.post(self._take_up)
        self._thread.start()
        self.collector.submit(learn_blobs, self.blobs)
        self.collector.submit(data_flow.drop_left, self.database, self.data)
        self.collector.submit(self.deletions.finish_all)
        self.collector.submit(self._summarise_earlier)
        self.collector.submit(take_over, self._context, OWNER)
        if self._backups is not None:
            self._backups.start()
        self.space.start()
        self.messages.start()
        self.schedules.start()

    def close(self, *, kill_workers: bool | None = None) -> None:
        """End; workers live on unless they are to be killed (as ``POST /master/shutdown`` said, by default)."""
        if self._closed.is_set():
            return
        self._closed.set()
        self.broker.close()
        self._thread.close()
        self._checks.abandon()
        kill = self.kill_workers if kill_workers is None else kill_workers
        self._launcher.close(kill_workers=kill)
        if kill:
            self._runs.suspend_all()
        self._runs.lost_files.close()
        self.collector.close()
        self.schedules.close()
        self.space.close()
        self.messages.close()
        if self._backups is not None:
            self._backups.close()
        self.database.close()

    def shutdown(self, *, kill_workers: bool) -> None:
        """Have the process that serves this master end; it then calls :meth:`close`."""
        self.kill_workers = kill_workers
        self.broker.close()
        self.on_shutdown()

    # What the interface asks.

    def health(self) -> rest.Health:
        """Return that the master lives."""
        return rest.Health(version=__version__, protocol=PROTOCOL)

    def info(self) -> rest.MasterInfo:
        """Return who the master is and what it has."""
        if not self._busy():  # otherwise each tick looks
            with suppress(TimeoutError, MasterError):
                self._thread.call(self.outage.look).result(_LOOK_PATIENCE)
        try:
            with self.database.read() as connection:
                self._last_active, self._listed = unfinished.count(connection), unfinished.listed(connection)
        except OperationalError:  # that is said here: see `outage`
            if not self.outage.lasts:
                raise
        return rest.MasterInfo(
            version=__version__,
            protocol=PROTOCOL,
            pid=os.getpid(),
            python=sys.executable,
            started=self._started_at,
            home=str(self.places.home),
            slots=self._slots_now(),
            standbys=self._standbys,
            active_experiments=self._last_active,
            experiments=self._listed,
            outage=self.outage.sentence or self._slots.trouble,
            launcher=self._launched_by,
            nodes=list(self._slots.nodes),
            remarks=remarks_of(self._launcher),
            dashboard=dashboard_of(self._launcher),
        )

    def clean(self, owner: str, days: int | None) -> rest.Cleaned:
        """Rewrite the database without the room that it does not use; delete old output before, if `days` are given."""
        before, lines = self.database.size, 0
        if days is not None:
            with self.database.write() as transaction:
                lines = logs.delete_ended_before(transaction, owner, datetime.now(UTC) - timedelta(days=days))
        self.database.vacuum()
        return rest.Cleaned(before=before, after=self.database.size, lines=lines)

    @property
    def devices(self) -> dict[str, str]:
        """Model and memory of the GPUs, by slot; those of which the driver tells nothing are left out."""
        return {slot.id: slot.model for slot in self._slots.now if slot.model}

    def _slots_now(self) -> list[rest.SlotInfo]:
        taken = self._scheduling.taken
        return [_held(slot, taken.get(slot.id)) for slot in self._slots.with_held(taken)]

    def queue(self, limit: int) -> Queue:
        """Return the first experiments that have not ended, in the order of the scheduler."""
        taken, policy = self._scheduling.taken, self._scheduling.policy
        held: dict[int, list[str]] = {}
        existing = self._slots.with_held(taken)
        for slot in existing:
            if (run := taken.get(slot.id)) is not None:
                held.setdefault(run.experiment_id, []).append(slot.id)
        with self.database.read() as connection:
            found = queue.entries(connection, held, by_priority=policy is Policy.PRIORITY)
        slots = len(existing)
        return Queue(
            policy=policy.value,
            slots=slots,
            free=slots - sum(map(len, held.values())),
            entries=found[:limit],
            more=max(len(found) - limit, 0),
        )

    def environment(self, asked: EnvironmentQuestion) -> EnvironmentAnswer:
        """Return what the Python has that would run a bundle of this interpreter."""
        launcher = self._launcher
        if isinstance(launcher, HasModules):
            machines = self._of_thread(lambda: launcher.look_for_modules(asked.executable, asked.modules))
            notices = [*disagreements(machines, asked.modules), *self.space.notices, *self._slots.notices]
            first = machines[0] if machines else None
            return EnvironmentAnswer(
                python=first.python if first else platform.python_version(),
                executable=first.executable if first else sys.executable,
                # What nobody can tell now is not told to be missing.
                modules=of_any(machines, asked.modules) if first else {name: {} for name in asked.modules},
                notices=notices,
                place="the Ray cluster",
            )
        executable = usable_here(asked.executable)
        installed, modules = self._packages.modules(executable, asked.modules)
        return EnvironmentAnswer(
            python=installed.python,
            executable=executable or sys.executable,
            modules=modules,
            notices=[*gpu_notices.notices(self._slots_now()), *self.space.notices, *self._slots.notices],
        )

    def create_data(self, body: DataSetCreate) -> DataSetInfo:
        """Give files of the store a name; see :func:`flow.data.create` for what can be wrong."""
        return data_flow.create(self.database, self.data, body)

    def remove_data(self, name: str) -> None:
        """Remove data from the store; see :func:`flow.data.remove` for what can be wrong."""
        data_flow.remove(self.database, self.data, name)

    def is_user(self, token: str) -> bool:
        """Whether a token is the user's."""
        return hmac.compare_digest(token.encode(), self._token.encode())

    def introduction(self, meeting: Meeting) -> rest.Introduction:
        """Prove to a client that this master knows the user's token."""
        proof = meeting.proof_of_master(self._token)
        return rest.Introduction(nonce=meeting.master, address=meeting.address, proof=proof)

    def knows_token(self, meeting: Meeting, proof: str) -> bool:
        """Whether a client has proved that it knows the user's token."""
        return hmac.compare_digest(meeting.proof_of_client(self._token).encode(), proof.encode())

    def is_run(self, run_id: str, token: str) -> bool:
        """Whether a token is that of a run."""
        known = self._token_hashes.get(run_id)
        if known is None:
            with self.database.read() as connection:
                known = run_store.token_hash(connection, run_id)
            if known is None:
                return False
            self._token_hashes[run_id] = known
        return hmac.compare_digest(run_store.hash_of(token), known)

    def add_bundle(self, manifest: BundleManifest) -> rest.BundleCreated:
        """Keep a bundle's manifest, and have a worker warm up for it.

        Raises
        ------
        MissingBlobsError
            If blobs of it are not here.
        """
        with self.deletions.storing:
            checked = self._keep(manifest)
        self._thread.post(lambda: self._launcher.warm(worker_kind(manifest)))
        return rest.BundleCreated(id=manifest.id, checked=checked)

    def _keep(self, manifest: BundleManifest) -> bool:
        """Keep a bundle's manifest, while nothing is deleted; return whether it has passed the check."""
        missing = absent(self.blobs, sorted(manifest.hashes()))
        if missing:
            raise MissingBlobsError(missing)
        with self.database.write() as transaction:
            return bundles.add(transaction, manifest)

    def bundle_created(self, bundle_id: str) -> rest.BundleCreated:
        """Return whether a bundle is here, with its blobs, and has passed the check; a worker warms up for it."""
        with self.database.read() as connection:
            kind = self._bundles.kind_of(connection, bundle_id)
            checked = bundles.is_checked(connection, bundle_id)
        self._thread.post(lambda: self._launcher.warm(kind))
        return rest.BundleCreated(id=bundle_id, checked=checked)

    def check_bundle(self, bundle_id: str) -> Future[rest.BundleChecked]:
        """Have a bundle loaded in a fresh process."""
        waiting: Future[rest.BundleChecked] = Future()
        begun = self._thread.call(partial(self._checks.begin, bundle_id, waiting))

        def pass_on(done: Future[None]) -> None:
            error = done.exception()
            if error is not None and not waiting.done():
                waiting.set_exception(error)

        begun.add_done_callback(pass_on)
        return waiting

    def _of_thread(self, ask: Callable[[], Future[list[MachineModules]]]) -> list[MachineModules]:
        """Ask machines of a cluster, and wait until they have answered; those that do not in time have not."""
        try:
            return self._thread.call(ask).result(_MACHINES_SECONDS).result(_MACHINES_SECONDS)
        except TimeoutError:
            logger.warning("the machines of the cluster do not say which packages they have")
            return []

    def create_experiment(
        self,
        owner: str,
        body: rest.ExperimentCreate,
        idempotency: Idempotency | None,
        *,
        forked: Forked | None = None,
    ) -> rest.Experiment:
        """Store an experiment and have it begin; see :func:`flow.creation.create` for what can be wrong.

        A bundle whose blobs have been lost is refused as one that is not there: the client then sends it again.
        """
        with self.deletions.storing:
            with self.database.read() as connection:
                self._bundles.kind_of(connection, body.bundle_id)
            experiment, new = create(self._context, owner, body, idempotency, forked=forked)
        if new:
            kind = "test of " if body.test else ""
            logger.info("experiment %d submitted: %s%r", experiment.id, kind, experiment.name)
            self._thread.post(partial(self._begin, experiment.id))
        return experiment

    def record_kernel_run(self, owner: str, asked: KernelRun) -> KernelRunRecorded:
        """Record a run that has begun in a process of the user's; see :func:`flow.kernel_runs.record`."""
        check_protocol(asked.protocol)
        with self.deletions.storing:
            if asked.bundle is not None:  # no worker is to warm up for it
                self._keep(asked.bundle)
                asked = asked.model_copy(update={"bundle_id": asked.bundle.id})
            elif asked.bundle_id is not None:
                with self.database.read() as connection:
                    self._bundles.kind_of(connection, asked.bundle_id)
            recorded, _ = record(self._context, owner, asked)
        self._thread.post(partial(self._take_in_run, asked.run_id, recorded))
        return recorded

    def decide(
        self, decide: Callable[Concatenate[Service, Asked], rest.Experiment], *asked: Asked.args, **more: Asked.kwargs
    ) -> Future[rest.Experiment]:
        """Have the thread decide, by one of the methods below that are its own: ``Service.kill_experiment``, say."""
        return self._thread.call(partial(decide, self, *asked, **more))

    def describe_experiment(self, owner: str, experiment_id: int, change: rest.ExperimentChange) -> rest.Experiment:
        """Change what people write of an experiment; see :func:`flow.life.describe` for what can be wrong."""
        return life.describe(self._context, experiment_id, owner, change)

    def retain(self, owner: str, experiment_id: int, wanted: Retention) -> Retained:
        """Change how many checkpoints of an experiment stay; files of those that go are deleted behind that."""
        retained = life.retain(self._context, experiment_id, owner, wanted)
        if retained.going_on:
            self.collector.published(experiment_id)
        else:
            self.collector.ended(experiment_id)
        return retained

    def delete_experiment(self, owner: str, experiment_id: int) -> Deletion:
        """Delete an experiment; see :meth:`flow.deletion.Deletions.begin` for what can be wrong.

        Its files are gone with the answer, unless they cannot be removed now, or take very long.
        """
        with self.deletions.storing:
            freed = self.deletions.begin(experiment_id, owner)
        self.reschedule()
        done = threading.Event()
        pending = "its files are being removed still"

        def finish() -> None:
            nonlocal pending
            try:
                pending = self.deletions.finish(experiment_id)
            finally:
                done.set()

        self.collector.submit(finish)
        done.wait(DELETION_SECONDS)
        return freed.model_copy(update={"pending": pending})

    def _finish_deletions(self) -> None:
        if self.deletions.waiting():
            self.collector.again(self.deletions.finish_all)

    def reschedule(self) -> None:
        """Experiments have come, gone or changed elsewhere: look again at what may begin."""

        def again() -> None:
            self._unscheduled = True

        self._thread.post(again)

    def report(self, run_id: str, batch: rest.ReportBatch) -> rest.ReportsAccepted:
        """Store a worker's reports; see :func:`store.reports.accept` for what can be wrong."""
        # What its processes use is told by a run that hangs, too.
        telling = any(not isinstance(report, rest.SystemReport) for report in batch.reports)
        self._runs.watches.heard(run_id, reports=telling, counter=batch.progress)
        if not batch.reports and batch.waiting is None:
            return self._answer(self._revived(run_id, partial(self._standing, run_id)))
        accepted = self._revived(run_id, partial(self._accept, run_id, batch))
        with self._touched_lock:
            self._touched.add((run_id, any(isinstance(report, rest.MetricsReport) for report in batch.reports)))
            if any(isinstance(report, rest.CheckpointReport) for report in batch.reports):
                self._published.add(run_id)
        if batch.waiting is not None and batch.waiting.startswith(WAITS_FOR_ROOM):
            self.collector.make_room()
        if accepted.decisive:
            self._thread.post(partial(self._runs.said_exit, run_id))
        return self._answer(accepted)

    def _standing(self, run_id: str) -> reports.Accepted:
        with self.database.read() as connection:
            return reports.standing(connection, run_id)

    def _revived(self, run_id: str, take: Callable[[], reports.Accepted]) -> reports.Accepted:
        """Take reports; those of a run that had counted as ended, since nothing was heard of it, have it go on."""
        try:
            accepted = take()
            if not accepted.stop or not revive(self._context, run_id):
                return accepted
        except FencedError:
            if not revive(self._context, run_id):
                raise
        self._thread.post(partial(self._runs.take_in, run_id))
        return take()

    def _answer(self, accepted: reports.Accepted) -> rest.ReportsAccepted:
        interval = len(self._runs.active) / REPORTS_PER_SECOND
        return rest.ReportsAccepted(through=accepted.through, stop=accepted.stop, interval=interval)

    def _accept(self, run_id: str, batch: rest.ReportBatch) -> reports.Accepted:
        """Store reports; on a full disk only those that decide something, in the room that is kept for that.

        Metrics wait with their worker then. What its processes use is lost: nothing that decides may wait behind it.
        """
        small = not any(isinstance(report, rest.MetricsReport) for report in batch.reports)
        if not self._reserve.held and (free_bytes(self.places.home) or 0) < SIZE:
            batch = system.without_samples(batch)
            if not small:
                raise RequestError(
                    507, "The disk of the master is full: metrics wait with the worker until there is room."
                )
        try:
            with self.database.write() as transaction:
                return reports.accept(transaction, run_id, batch)
        except OperationalError as error:
            if not small or not is_disk_full(error) or not self._make_room():
                raise
        with self.database.write() as transaction:
            return reports.accept(transaction, run_id, system.without_samples(batch))

    # What the thread does.

    def _publish(self, emitted: list[tuple[str, rest.Event]]) -> None:
        self.broker.publish(emitted)
        self.messages.wake({event.experiment_id for _, event in emitted})

    def as_told(self, found: AnyExperiment) -> AnyExperiment:
        """Return an experiment with what keeps it from going on, if the master can store nothing."""
        notice = "" if found.state.terminal else self.outage.notice or self._slots.trouble
        return found.model_copy(update={"notice": notice}) if notice else found

    def _tell_outage(self) -> None:
        """Tell those who watch experiments that an outage has begun, or is over; no event of it can be stored."""
        try:
            with self.database.read() as connection:
                told = [
                    (
                        experiments.owner_of(connection, number),
                        events.unstored(self.as_told(experiments.get(connection, number))),
                    )
                    for number in unfinished.ids(connection)
                ]
        except (OperationalError, MasterError) as error:
            logger.error("Who watches an experiment cannot be told: %s", error)
            return
        self.broker.tell(told)

    def _take_up(self) -> None:
        with self.database.read() as connection:
            ended, going_on = experiments.uncollected(connection), unfinished.ids(connection)
        self._runs.adopt_all()
        self.files_left.look_at_all()
        over = self._experiments.take_up_all({run.trial_id for run in self._runs.active.values()})
        for experiment_id in {run.experiment_id for run in self._runs.active.values()}:
            if self._experiments.is_failing(experiment_id):
                self._runs.kill_experiment(experiment_id)
        for experiment_id in {*ended, *over}:
            self._over(experiment_id)
        for experiment_id in going_on:
            self.collector.published(experiment_id)
        self._scheduling.take_up()
        self._unscheduled = True

    def _take_in(self) -> None:
        with self.deletions.storing:
            self.take_in.look()

    def _summarise_earlier(self) -> None:
        """Summarise the metrics of trials of an earlier version, step by step: other writers take turns with it."""
        if summaries.summarise_earlier(self.database):
            self.collector.submit(self._summarise_earlier)

    def _over(self, experiment_id: int) -> None:
        """An experiment has ended: what is superfluous goes, and what was to come after it begins or ends."""
        self.collector.ended(experiment_id)
        self._unscheduled = True

    def _begin(self, experiment_id: int) -> None:
        if self._experiments.take_up(experiment_id):
            self._over(experiment_id)
        self._unscheduled = True

    def kill_experiment(self, owner: str, experiment_id: int) -> rest.Experiment:
        """End an experiment now."""
        live = {run.trial_id for run in self._runs.active.values()}
        try:
            experiment, over = self._experiments.kill(experiment_id, owner, live)
        except OperationalError as error:
            if not is_disk_full(error) or self._reserve.held:
                raise
            self._runs.kill_experiment(experiment_id)
            self._thread.post(lambda: self._kill_later(owner, experiment_id))
            raise RequestError(507, KILLED_ON_A_FULL_DISK.format(experiment_id)) from error
        self._runs.kill_experiment(experiment_id)
        if over:
            self._over(experiment_id)
        return experiment

    def _kill_later(self, owner: str, experiment_id: int) -> None:
        """Record that an experiment was killed, whose workers have been ended without that; tried until it is done."""
        live = {run.trial_id for run in self._runs.active.values()}
        if self._experiments.kill(experiment_id, owner, live)[1]:
            self._over(experiment_id)

    def stop_experiment(self, owner: str, experiment_id: int) -> rest.Experiment:
        """End an experiment, its workers with a checkpoint."""
        live = {run.trial_id for run in self._runs.active.values()}
        experiment, over = self._experiments.stop(experiment_id, owner, live)
        self._runs.ask_to_end(experiment_id)
        if over:
            self._over(experiment_id)
        return experiment

    def pause_experiment(self, owner: str, experiment_id: int) -> rest.Experiment:
        """Pause an experiment; see :meth:`flow.experiments.Experiments.pause` for what can be wrong."""
        experiment = self._experiments.pause(experiment_id, owner)
        self._runs.ask_to_end(experiment_id)
        return experiment

    def resume_experiment(self, owner: str, experiment_id: int) -> rest.Experiment:
        """Go on with a paused experiment."""
        experiment = self._experiments.resume(experiment_id, owner)
        self._unscheduled = True
        return experiment

    def change_experiment(self, owner: str, experiment_id: int, changes: rest.ResourcesChange) -> rest.Experiment:
        """Change the priority, weight or limit of an experiment that goes on."""
        experiment = self._experiments.change(experiment_id, owner, changes)
        self._unscheduled = True
        return experiment

    def _trial_over(self, experiment_id: int, trial_id: int) -> None:
        live = {run.trial_id for run in self._runs.active.values()}
        if self._experiments.fail_by_proof(experiment_id, trial_id, live):
            self._runs.kill_experiment(experiment_id)
        if self._experiments.trial_over(experiment_id, trial_id):
            self._over(experiment_id)
        else:
            self._end_if_broken(experiment_id)
        self._unscheduled = True

    def _take_in_run(self, run_id: str, recorded: KernelRunRecorded) -> None:
        self._runs.take_in(run_id)
        show_events(self._context, run_id, recorded)

    def _end_taken_in(self, run_id: str, heard: float) -> None:
        """Decide what has become of a run that was over before it was recorded."""
        self._runs.take_in(run_id)
        self._ended(Exit(run_id, None, "it ended before a master was there"))
        moment = datetime.fromtimestamp(heard, UTC)
        with self.database.write() as transaction:
            run = run_store.get(transaction.connection, run_id)
            if run is not None:
                run_store.date_back(transaction, run, stored(moment))
                tell_experiment(transaction, run.experiment_id)
                tell_trial(transaction, run.trial_id)

    def _end_if_broken(self, experiment_id: int) -> None:
        """End the trials of an experiment whose search cannot go on."""
        if not self._experiments.is_failing(experiment_id):
            return
        self._runs.kill_experiment(experiment_id)
        if self._experiments.take_up(experiment_id, {run.trial_id for run in self._runs.active.values()}):
            self._over(experiment_id)

    def _make_room(self) -> bool:
        """The disk is full: have what is superfluous deleted; whether there is some room at once."""
        given = self._reserve.give_up()
        if given:
            self.collector.make_room()
        return given

    def _busy(self) -> bool:
        waiting = self._runs.held
        return bool(
            self._runs.active
            or waiting
            or self._checks.active
            or self._touched
            or self._unscheduled
            or self.outage.lasts
            or self._looks_often
        )

    def _tick(self) -> None:
        self.outage.look()
        for exit in [*self._launcher.poll(), *self._context.kernels.poll(self._runs.watches.silence)]:
            self._thread.post(partial(self._ended, exit))
        if time.monotonic() > self._looked_for_left + _LEFT_SECONDS:
            self._looked_for_left = time.monotonic()
            self.collector.again(self._take_in)
        self._look_at_cluster()
        self._reserve.hold()
        self._runs.tick()
        self._checks.tick()
        self._take_touched()
        self._experiments.refresh_progress()
        if self._runs.release_held():
            self._unscheduled = True
        if self._unscheduled or self._scheduling.outdated:
            self._unscheduled = False
            self._scheduling.schedule()
            for experiment_id, reason in self._scheduling.refused.items():
                if self._experiments.cannot_begin(experiment_id, reason):
                    self._over(experiment_id)
        if self._scheduling.untold:  # in steps of its own, between which others' come
            self._thread.post(self._scheduling.tell)
        self._standbys = self._launcher.standbys()

    def _look_at_cluster(self) -> None:
        """See which slots there are now, and tell those who watch if the cluster cannot be used, or can be again."""
        trouble = self._slots.trouble
        if self._slots.look(self._scheduling.taken):
            self._unscheduled = True
        if self._slots.trouble != trouble:
            logger.warning("the cluster: %s", self._slots.trouble or "it can be used again")
            self._tell_outage()

    def _ended(self, exit: Exit) -> None:
        if self._checks.ended(exit):
            return
        ending = self._runs.active.get(exit.run_id)
        expected = ending is not None and self.files_left.expect(ending.run_id, ending.trial_id, ending.ranks)
        run = self._runs.ended(exit)
        self._unscheduled = True
        if expected and ending is not None:  # before its working directory is cleared
            self.files_left.look_at(ending.run_id, ending.trial_id, ending.ranks)
        if run is not None:
            if run.kernel is not None:
                recorded = KernelRunRecorded(experiment_id=run.experiment_id, trial_id=run.trial_id)
                self.collector.submit(bring_home, self._context, run.run_id, recorded)
            self.collector.submit(collection.clear_work, self._context, run.run_id, run.experiment_id)
            self.collector.submit(collection.clear_old_runs, self._context)

    def _take_touched(self) -> None:
        with self._touched_lock:
            touched, self._touched = self._touched, set()
            published, self._published = self._published, set()
        for run_id, has_metrics in touched:
            run = self._runs.active.get(run_id)
            if run is not None:
                self._experiments.touch(run.experiment_id)
                if has_metrics and self._experiments.watches(run.experiment_id):
                    self._experiments.validated(run.experiment_id, run.trial_id)
                    self._end_if_broken(run.experiment_id)
                    self._runs.end_stopped(run.experiment_id)
            if run is not None and run_id in published:
                self.collector.published(run.experiment_id, run.trial_id)
            if has_metrics:
                self._runs.settled(run_id)


def _held(slot: rest.SlotInfo, run: Active | None) -> rest.SlotInfo:
    """Return a slot with the trial that holds it."""
    if run is None:
        return slot.model_copy(update={"trial_id": None, "experiment_id": None, "trial_number": None})
    holder = {"trial_id": run.trial_id, "experiment_id": run.experiment_id, "trial_number": run.trial_number}
    return slot.model_copy(update=holder)
