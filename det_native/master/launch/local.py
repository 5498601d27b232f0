"""Worker processes on this machine, from warm standbys."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from det_native.master.launch.base import Exit, Output, WorkerKind
from det_native.master.launch.imports import well_known_imports
from det_native.master.launch.output import read_output
from det_native.master.launch.policy import Policy
from det_native.master.launch.pool import StandbyPool
from det_native.master.launch.process import Ended, WorkerProcess
from det_native.master.launch.standby import Recipe, SpawnError, Standby, job_line, resolved
from det_native.schema.job import CheckJob, TrialJob

logger = logging.getLogger(__name__)

ENTRY = "det_harness.worker:run_job"
OUTPUT_NAME = "output.log"
_CANNOT_EXECUTE = 127
_CLOSE_SECONDS = 10.0
_WITHOUT_PIDFD_SECONDS = 0.05
_MIB = 1 << 20
_MISSING = re.compile(r"No module named '?det_(harness|native)\b")


@dataclass
class _Worker:
    """A running worker. `standby` is None for an adopted one; `kill_at` is when SIGKILL is due."""

    run_id: str
    process: WorkerProcess
    kind: WorkerKind | None
    standby: Standby | None
    directory: Path
    asked_to_end: bool = False
    kill_at: float | None = None


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.threads = threads or max(1, len(os.sched_getaffinity(0)) // slots)
        self._policy = policy or Policy()
        base = os.environ if environment is None else environment
        recipe = Recipe(directory, device, self.threads, entry, base, umask)
        self._pool = StandbyPool(recipe, slots, self._policy, clock)
        self._workers: dict[str, _Worker] = {}
        self._stillborn: list[Exit] = []
        self._directories: dict[str, Path] = {}
        self._settling: dict[str, float] = {}
        self._closed = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def start(self, run_id: str, job: TrialJob | CheckJob, kind: WorkerKind) -> dict[str, Any]:
        """Start one worker on `job`; return a JSON-able handle from which ``adopt`` finds it again.

        A program that cannot be executed is reported by the next ``poll``, like any other end.
        """
        directory = Path(job.directory)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directories[run_id] = directory
        kind = resolved(kind)
        at_once = 1 + sum(worker.kind == kind for worker in self._workers.values())
        self._pool.want(kind, at_once, well_known_imports(job.bundle))
        waiting = self._pool.standbys
        try:
            standby = self._pool.take(kind)
        except SpawnError as error:
            self._stillborn.append(Exit(run_id, _CANNOT_EXECUTE, str(error)))
            self._append_output(directory, f"{error}\n")
            self.wake()
            return {"pid": None, "directory": str(directory)}
        standby.give(job_line(job.model_dump_json()))
        self._workers[run_id] = _Worker(run_id, standby.process, kind, standby, directory)
        self._settling[run_id] = time.monotonic() + self._policy.settle
        warmth = "ready" if standby.ready else "warming" if standby in waiting else "cold"
        return {**standby.process.handle, "directory": str(directory), "standby": warmth}

    def settled(self, run_id: str) -> None:
        """Say that a worker is through its start: standbys may warm up again, ``Policy.settle`` over or not."""
        self._settling.pop(run_id, None)

    def poll(self) -> list[Exit]:
        """Return the workers that ended since the last call, each once. Tops up the standbys."""
        self._pump()
        exits, self._stillborn = self._stillborn, []
        now = time.monotonic()
        for worker in list(self._workers.values()):
            ended = worker.process.ended()
            if ended is not None:
                exits.append(self._ended(worker, ended))
            elif worker.kill_at is not None and now >= worker.kill_at:
                worker.kill_at = None
                worker.process.signal(signal.SIGKILL)
        self._settling = {run_id: until for run_id, until in self._settling.items() if now < until}
        self._pool.maintain(quiet=not self._settling)
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
        """SIGTERM now and SIGKILL after `grace` seconds (``poll`` does the second), the worker's children included."""
        worker = self._workers.get(run_id)
        if worker is None:
            return
        worker.asked_to_end = True
        if grace > 0 and (worker.standby is None or worker.standby.picked_up):
            worker.process.signal(signal.SIGTERM)
            due = time.monotonic() + grace
            worker.kill_at = due if worker.kill_at is None else min(due, worker.kill_at)
        else:
            worker.process.signal(signal.SIGKILL)

    def logs(self, run_id: str, offset: int) -> Output:
        """Return what the worker has written since `offset` bytes, whole lines only unless it has ended."""
        directory = self._directories.get(run_id)
        if directory is None:
            return Output("", offset)
        return read_output(directory / OUTPUT_NAME, offset, ended=run_id not in self._workers)

    def adopt(self, run_id: str, handle: dict[str, Any]) -> bool:
        """Take up a worker started by an earlier master; False if it is gone. Its output can be read in either case."""
        directory = Path(handle["directory"])
        self._directories[run_id] = directory
        if run_id in self._workers:
            return True
        if handle.get("pid") is None:
            return False
        process = WorkerProcess.adopt(handle)
        if process is None:
            return False
        self._workers[run_id] = _Worker(run_id, process, None, None, directory)
        return True

    def warm(self, kind: WorkerKind) -> None:
        """Have a standby of this kind ready soon."""
        self._pool.want(kind)
        self._pool.maintain(quiet=not self._settling)

    def standbys(self) -> dict[str, int]:
        """Return how many standbys of each framework are ready."""
        return self._pool.ready()

    def close(self, *, kill_workers: bool) -> None:
        """Stop all standbys; running workers live on unless `kill_workers`."""
        self._pool.close()
        workers = list(self._workers.values())
        for worker in workers:
            if kill_workers:
                worker.process.signal(signal.SIGKILL)
            elif worker.standby is not None:
                self._finish_handover(worker)
        for worker in workers:
            if kill_workers:
                worker.process.wait(_CLOSE_SECONDS)
            worker.process.release()
            if worker.standby is not None:
                worker.standby.close()
        self._workers = {}
        if not self._closed:
            self._closed = True
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _finish_handover(self, worker: _Worker) -> None:
        """Let a worker that has not taken all of its job yet do so, or it would end with us."""
        assert worker.standby is not None
        deadline = time.monotonic() + _CLOSE_SECONDS
        worker.standby.pump()
        while worker.standby.sending and time.monotonic() < deadline:
            with selectors.DefaultSelector() as selector:
                selector.register(worker.standby.job_pipe, selectors.EVENT_WRITE)
                selector.select(deadline - time.monotonic())
            worker.standby.pump()

    def _ended(self, worker: _Worker, ended: Ended) -> Exit:
        del self._workers[worker.run_id]
        self._settling.pop(worker.run_id, None)
        detail = _describe(ended, asked_to_end=worker.asked_to_end)
        standby = worker.standby
        if standby is not None:
            standby.pump()
            if not standby.picked_up and not worker.asked_to_end:
                startup = standby.startup_output()
                self._append_output(worker.directory, startup)
                detail = _failed_start(standby.kind, startup, detail)
            standby.close()
        return Exit(worker.run_id, ended.code, detail)

    def _processes(self) -> list[WorkerProcess]:
        standbys = [standby.process for standby in self._pool.standbys]
        return [*(worker.process for worker in self._workers.values()), *standbys]

    def _next_due(self) -> float:
        """Return when ``poll`` has something to do though nothing happens, by the monotonic clock."""
        kills = [worker.kill_at for worker in self._workers.values() if worker.kill_at is not None]
        return min([*kills, *self._settling.values(), time.monotonic() + self._pool.next_change()])

    def _selector(self) -> selectors.BaseSelector:
        """Return a selector over all that can happen; the data of a key says whether it concerns ``poll``."""
        selector = selectors.DefaultSelector()
        selector.register(self._wake_read, selectors.EVENT_READ, True)
        for process in self._processes():
            if process.descriptor is not None:
                selector.register(process.descriptor, selectors.EVENT_READ, True)
        handed_over = [worker.standby for worker in self._workers.values() if worker.standby is not None]
        for standby in [*self._pool.standbys, *handed_over]:
            if standby.status_pipe >= 0:
                selector.register(standby.status_pipe, selectors.EVENT_READ, False)
            if standby.sending:
                selector.register(standby.job_pipe, selectors.EVENT_WRITE, False)
        return selector

    def _pump(self) -> None:
        for worker in self._workers.values():
            if worker.standby is not None:
                worker.standby.pump()
        for standby in self._pool.standbys:
            standby.pump()

    def _drain_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 4096):
                pass

    @staticmethod
    def _append_output(directory: Path, text: str) -> None:
        if not text:
            return
        try:
            descriptor = os.open(directory / OUTPUT_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(descriptor, "a", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError as error:  # the folder is gone or the disk full: the exit's detail still says it
            logger.warning("cannot write the output of a worker to %s: %s", directory, error)


def _describe(ended: Ended, *, asked_to_end: bool) -> str:
    peak = f"peak memory {ended.peak // _MIB} MiB" if ended.peak is not None else ""
    if ended.code is None:
        return "the worker is gone; it was started by an earlier master, so its exit code is not known"
    if ended.code >= 0:
        return f"exit code {ended.code}" + (f" ({peak})" if peak else "")
    name = signal.Signals(-ended.code).name
    if asked_to_end:
        return f"ended on request ({name})"
    text = f"killed by signal {-ended.code} ({name}); {peak}"
    if ended.out_of_memory:
        return f"{text}; the system had run out of memory"
    if ended.code == -signal.SIGKILL:
        return f"{text}; if nobody killed it, the system may have run out of memory"
    return text


def _failed_start(kind: WorkerKind, startup: str, detail: str) -> str:
    lines = [line for line in startup.splitlines() if line.strip()]
    if _MISSING.search(startup):
        return (
            f"the interpreter {kind.executable} has no det_native: install it there "
            f"({kind.executable} -m pip install det-native)"
        )
    last = f": {lines[-1].strip()}" if lines else ""
    return f"the worker did not start ({detail}){last}"
