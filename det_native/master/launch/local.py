"""Worker processes on this machine, from warm standbys."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from det_native.master.launch import reaper
from det_native.master.launch.base import Exit, Output, WorkerKind
from det_native.master.launch.imports import well_known_imports
from det_native.master.launch.local_run import OUTPUT_NAME, LocalRun, Worker, append_output
from det_native.master.launch.output import punch_hole, read_output
from det_native.master.launch.policy import Policy
from det_native.master.launch.pool import StandbyPool
from det_native.master.launch.process import WorkerProcess
from det_native.master.launch.recipe import Recipe, SpawnError, resolved
from det_native.master.launch.standby import Standby, job_line
from det_native.schema.job import STACKS_SIGNAL, CheckJob, TrialJob
from det_native.schema.processes import is_stopped
from det_native.schema.ranks import rank_folder, rank_jobs

Job = TrialJob | CheckJob

ENTRY = "det_harness.worker.job:run_job"
_CANNOT_EXECUTE = 127
_CLOSE_SECONDS = 10.0
_WITHOUT_PIDFD_SECONDS = 0.05


class LocalLauncher:
    """Runs workers as processes of this machine (a ``Launcher``).

    Parameters
    ----------
    directory : Path
        An empty folder for standbys to wait in; it is made if need be.
    slots : int
        Slots of the master: no more standbys than these are kept, plus one for checks.
    device : str
        ``"cpu"`` or ``"cuda"``, what the slots are.
    threads : int, optional
        Threads a worker computes with; the cores shared out over the slots by default. Give it to the jobs too.
    entry : str
        ``"module:function"`` that a worker runs its job with.
    environment : mapping, optional
        Base of the workers' environment, this process's by default; secrets of the master are taken out.
    umask : int
        Of the workers, this process's by default.
    policy : Policy
        How many standbys to keep.
    forks : bool
        Whether CPU workers are forked from a process that has imported their framework; otherwise, and with GPUs, each
        is a fresh process.
    clock : callable
        Monotonic seconds by which unused standbys retire.
    """

    def __init__(
        self,
        directory: Path,
        *,
        slots: int = 1,
        device: str = "cpu",
        threads: int | None = None,
        entry: str = ENTRY,
        environment: Mapping[str, str] | None = None,
        umask: int = -1,
        policy: Policy | None = None,
        forks: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.threads = threads or max(1, len(os.sched_getaffinity(0)) // slots)
        self._policy = policy or Policy()
        base = os.environ if environment is None else environment
        recipe = Recipe(directory, device, self.threads, entry, base, umask)
        self._inherits = forks and device == "cpu" and reaper.begin()
        self._pool = StandbyPool(recipe, slots, self._policy, self._inherits, clock)
        self._runs: dict[str, LocalRun] = {}
        self._stillborn: list[Exit] = []
        self._directories: dict[str, Path] = {}
        self._settling: dict[str, float] = {}
        self._closed = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def start(
        self, run_id: str, job: TrialJob | CheckJob, kind: WorkerKind, *, ranks: int = 1, slots: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Start `ranks` workers on `job`; return a JSON-able handle from which ``adopt`` finds them again.

        A program that cannot be executed is reported by the next ``poll``, like any other end.
        """
        directory = Path(job.directory)
        jobs = rank_jobs(job, ranks)
        for one in jobs:
            Path(one.directory).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directories[run_id] = directory
        kind = resolved(kind)
        if kind.packages:
            return self._start_prepared(run_id, directory, kind, jobs)
        at_once = ranks + sum(len(run.workers) for run in self._runs.values() if run.kind == kind)
        self._pool.want(kind, at_once, well_known_imports(job.bundle))
        waiting = self._pool.standbys
        try:
            standbys = self._pool.take(kind, ranks)
        except SpawnError as error:
            return self._cannot_start(run_id, directory, error)
        run = self._run_on(standbys, run_id, directory, kind, jobs)
        self._settling[run_id] = time.monotonic() + self._policy.settle
        warmth = [
            ("ready" if one.ready else "warming") if one in waiting else "forked" if one.zygote else "cold"
            for one in standbys
        ]
        return {**run.handle, "standby": ", ".join(warmth)}

    def _run_on(
        self, standbys: Sequence[Standby], run_id: str, directory: Path, kind: WorkerKind, jobs: Sequence[Job]
    ) -> LocalRun:
        gangs = [one.gang for one in jobs if isinstance(one, TrialJob)]
        titles = [gang.role for gang in gangs if gang is not None and gang.role is not None]
        run = self._runs[run_id] = LocalRun(run_id, directory, len(jobs), kind, titles)
        for rank, (standby, one) in enumerate(zip(standbys, jobs, strict=True)):
            run.add(rank, standby, job_line(one.model_dump_json()))
        return run

    def _cannot_start(self, run_id: str, directory: Path, error: SpawnError) -> dict[str, Any]:
        self._stillborn.append(Exit(run_id, _CANNOT_EXECUTE, str(error)))
        append_output(directory, f"{error}\n")
        self.wake()
        return {"pid": None, "directory": str(directory)}

    def _start_prepared(self, run_id: str, directory: Path, kind: WorkerKind, jobs: Sequence[Job]) -> dict[str, Any]:
        """Start workers in an environment of their own, which the first of them makes if need be."""
        started: list[Standby] = []
        try:
            for one in jobs:
                started.append(self._pool.fresh(kind, Path(one.directory)))
        except SpawnError as error:
            for standby in started:
                standby.process.signal(signal.SIGKILL)
                standby.close()
            return self._cannot_start(run_id, directory, error)
        return {**self._run_on(started, run_id, directory, kind, jobs).handle, "standby": "environment of its own"}

    def settled(self, run_id: str) -> None:
        """Say that a worker is through its start: standbys may warm up again, ``Policy.settle`` over or not."""
        self._settling.pop(run_id, None)

    def poll(self) -> list[Exit]:
        """Return the workers that ended since the last call, each once. Tops up the standbys."""
        self._pump()
        exits, self._stillborn = self._stillborn, []
        for run in list(self._runs.values()):
            ended = run.poll()
            if ended is not None:
                del self._runs[run.run_id]
                self._settling.pop(run.run_id, None)
                exits.append(ended)
        now = time.monotonic()
        self._settling = {run_id: until for run_id, until in self._settling.items() if now < until}
        self._pool.maintain(idle=not self._settling)
        return exits

    def wait(self, timeout: float) -> bool:
        """Wait until something happens to a process, ``wake`` is called, or `timeout` seconds have passed.

        A standby that has become ready is something, and so is an end of time that ``poll`` acts on: of a worker's
        grace, of its start, of the use of a kind of standbys.

        Returns
        -------
        bool
            Whether there is something for ``poll`` to look at.
        """
        deadline = time.monotonic() + timeout
        while True:
            due = self._next_due()
            pause = max(0.0, min(deadline, due) - time.monotonic())
            blind = any(item.descriptor is None for item in self._processes())
            with self._selector() as selector:
                ready = selector.select(min(pause, _WITHOUT_PIDFD_SECONDS) if blind else pause)
            self._drain_wake()
            self._pump()
            if blind or any(key.data for key, _ in ready) or time.monotonic() >= due or self._pool.changed:
                return True
            if time.monotonic() >= deadline:
                return bool(self._stillborn)

    def wake(self) -> None:
        """Make a ``wait`` in progress return; the one method that other threads may call."""
        if not self._closed:
            with contextlib.suppress(BlockingIOError):  # it is full of wakes already
                os.write(self._wake_write, b"w")

    def kill(self, run_id: str, *, grace: float = 0.0) -> None:
        """SIGTERM now and SIGKILL after `grace` seconds (``poll`` does the second), the workers' children included."""
        run = self._runs.get(run_id)
        if run is not None:
            run.kill(grace)

    def ask_for_stacks(self, run_id: str) -> None:
        """Have its processes write the stack of every thread to their output; they may hang, and go on after it."""
        run = self._runs.get(run_id)
        for worker in run.workers.values() if run is not None else ():
            if worker.standby is None or worker.standby.picked_up:  # before that it would end by the signal
                worker.process.signal_itself(STACKS_SIGNAL)

    def stopped(self, run_id: str) -> list[int]:
        """Return the numbers of its processes that a signal has stopped."""
        run = self._runs.get(run_id)
        processes = [worker.process for worker in run.workers.values()] if run is not None else []
        return [process.pid for process in processes if is_stopped(process.pid)]

    def logs(self, run_id: str, offset: int, rank: int = 0) -> Output:
        """Return what a worker has written since `offset` bytes, whole lines only unless it has ended."""
        directory = self._directories.get(run_id)
        if directory is None:
            return Output("", offset)
        run = self._runs.get(run_id)
        ended = run is None or rank not in run.workers
        return read_output(rank_folder(directory, rank) / OUTPUT_NAME, offset, ended=ended)

    def release_output(self, run_id: str, rank: int, start: int, end: int) -> None:
        """Give back the disk space of these bytes of a worker's output: nobody reads them again."""
        directory = self._directories.get(run_id)
        if directory is not None:
            punch_hole(rank_folder(directory, rank) / OUTPUT_NAME, start, end)

    def adopt(self, run_id: str, handle: dict[str, Any]) -> bool:
        """Take up the workers started by an earlier master; False if all are gone. Their output can be read anyway."""
        self._directories[run_id] = Path(handle["directory"])
        if run_id in self._runs:
            return True
        run = LocalRun.adopt(run_id, handle)
        if not run.workers:
            return False
        self._runs[run_id] = run
        return True

    def warm(self, kind: WorkerKind) -> None:
        """Have a standby of this kind ready soon."""
        if kind.packages:
            return
        self._pool.want(kind)
        self._pool.maintain(idle=not self._settling)

    def standbys(self) -> dict[str, int]:
        """Return how many standbys of each framework are ready."""
        return self._pool.ready()

    def end_standbys(self) -> None:
        """Stop all standbys; there are new ones once a worker is started, or one is asked for."""
        self._pool.forget()

    def close(self, *, kill_workers: bool) -> None:
        """Stop all standbys; running workers live on unless `kill_workers`."""
        self._pool.close()
        workers = list(self._workers())
        for worker in workers:
            if kill_workers:
                worker.kill(0.0)
            elif worker.standby is not None:
                self._finish_handover(worker)
        for worker in workers:
            if kill_workers:
                worker.process.wait(_CLOSE_SECONDS)
            worker.process.release()
            if worker.standby is not None:
                worker.standby.close()
        self._runs = {}
        if not self._closed:
            self._closed = True
            if self._inherits:
                reaper.end()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _finish_handover(self, worker: Worker) -> None:
        """Let a worker that has not taken all of its job yet do so, or it would end with us."""
        assert worker.standby is not None
        deadline = time.monotonic() + _CLOSE_SECONDS
        worker.standby.pump()
        while worker.standby.sending and time.monotonic() < deadline:
            with selectors.DefaultSelector() as selector:
                selector.register(worker.standby.job_pipe, selectors.EVENT_WRITE)
                selector.select(deadline - time.monotonic())
            worker.standby.pump()

    def _workers(self) -> Iterator[Worker]:
        for run in self._runs.values():
            yield from run.workers.values()

    def _processes(self) -> list[WorkerProcess]:
        waiting = [standby.process for standby in self._pool.standbys]
        zygotes = [zygote.process for zygote in self._pool.zygotes]
        return [*(worker.process for worker in self._workers()), *waiting, *zygotes]

    def _next_due(self) -> float:
        """Return when ``poll`` has something to do though nothing happens, by the monotonic clock."""
        kills = [worker.kill_at for worker in self._workers() if worker.kill_at is not None]
        return min([*kills, *self._settling.values(), time.monotonic() + self._pool.next_change()])

    def _selector(self) -> selectors.BaseSelector:
        """Return a selector over all that can happen; the data of a key says whether it concerns ``poll``."""
        selector = selectors.DefaultSelector()
        selector.register(self._wake_read, selectors.EVENT_READ, True)
        for process in self._processes():
            if process.descriptor is not None:
                selector.register(process.descriptor, selectors.EVENT_READ, True)
        for zygote in self._pool.zygotes:
            selector.register(zygote.connection, selectors.EVENT_READ, False)
        handed_over = [worker.standby for worker in self._workers() if worker.standby is not None]
        for standby in [*self._pool.standbys, *handed_over]:
            if standby.status_pipe >= 0:
                selector.register(standby.status_pipe, selectors.EVENT_READ, False)
            if standby.sending:
                selector.register(standby.job_pipe, selectors.EVENT_WRITE, False)
        return selector

    def _pump(self) -> None:
        for worker in self._workers():
            if worker.standby is not None:
                worker.standby.pump()
                self._pool.look_at(worker.standby)
        self._pool.pump()

    def _drain_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 4096):
                pass
