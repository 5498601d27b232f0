"""The processes of one run on this machine. They live and die together."""

from __future__ import annotations

import logging
import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from det_native.master.launch.base import Exit, WorkerKind
from det_native.master.launch.ends import RANK_GRACE_SECONDS, RankEnd, exit_of, has_failed
from det_native.master.launch.process import WorkerProcess
from det_native.master.launch.standby import Standby
from det_native.schema.endings import Ended, describe
from det_native.schema.job import EXIT_RANK_FAILED
from det_native.schema.ranks import rank_folder

logger = logging.getLogger(__name__)

OUTPUT_NAME = "output.log"
_MIB = 1 << 20
_MISSING = re.compile(r"No module named '?det_(harness|native)\b")


@dataclass
class Worker:
    """A running process of a run.

    `standby` is None for an adopted one; `kill_at` is when SIGKILL is due; `outlived` says that it was killed because
    it stayed on after another one of the run had failed.
    """

    rank: int
    process: WorkerProcess
    directory: Path
    standby: Standby | None = None
    asked_to_end: bool = False
    kill_at: float | None = None
    outlived: bool = False

    def kill(self, grace: float) -> None:
        """SIGTERM now and SIGKILL after `grace` seconds; SIGKILL at once for one that cannot handle the first yet."""
        self.asked_to_end = True
        if self.standby is not None:
            self.standby.pump()  # it may have taken its job since
        if grace > 0 and (self.standby is None or self.standby.picked_up):
            self.process.signal(signal.SIGTERM)
            self.end_by(time.monotonic() + grace)
        else:
            self.process.signal(signal.SIGKILL)

    def end_by(self, due: float) -> None:
        """Have it killed at that time at the latest, by the monotonic clock."""
        self.kill_at = due if self.kill_at is None else min(due, self.kill_at)

    def kill_if_due(self, now: float) -> None:
        """Kill it, with its children, if it is due."""
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = None
            self.outlived = not self.asked_to_end
            self.process.signal(signal.SIGKILL)


class LocalRun:
    """All processes of one run.

    Attributes
    ----------
    kind : WorkerKind or None
        What they run on; None for an adopted run.
    workers : dict of int to Worker
        Those that live, by rank.
    titles : list of str
        What each rank is, where processes have roles.
    """

    def __init__(
        self, run_id: str, directory: Path, size: int, kind: WorkerKind | None = None, titles: Sequence[str] = ()
    ) -> None:
        self.run_id = run_id
        self.directory = directory
        self.size = size
        self.kind = kind
        self.titles = list(titles)
        self.workers: dict[int, Worker] = {}
        self._ends: list[RankEnd] = []

    @classmethod
    def adopt(cls, run_id: str, handle: Mapping[str, Any]) -> LocalRun:
        """Take up the processes that an earlier launcher gave this handle for; `workers` are those that live."""
        handles = [handle, *handle.get("peers", [])]
        run = cls(run_id, Path(handle["directory"]), len(handles), titles=handle.get("titles", ()))
        for rank, one in enumerate(handles):
            process = None if one.get("pid") is None else WorkerProcess.adopt(one)
            folder = rank_folder(run.directory, rank)
            if process is None:
                run._note_end(rank, folder, None, "it ended while the master was away")
            else:
                run.workers[rank] = Worker(rank, process, folder)
        return run

    @property
    def handle(self) -> dict[str, Any]:
        """JSON-able facts from which `adopt` finds its processes again; complete right after the start only."""
        handles = [self.workers[rank].process.handle for rank in range(self.size)]
        others: dict[str, Any] = {"peers": handles[1:]} if self.size > 1 else {}
        if self.titles:
            others["titles"] = self.titles
        return {**handles[0], "directory": str(self.directory), **others}

    def add(self, rank: int, standby: Standby, job: bytes) -> None:
        """Have a standby run the job of a rank."""
        standby.process.begins_work()
        standby.give(job)
        self.workers[rank] = Worker(rank, standby.process, rank_folder(self.directory, rank), standby)

    def kill(self, grace: float) -> None:
        """End all of them; see ``Worker.kill``."""
        for worker in self.workers.values():
            worker.kill(grace)

    def poll(self) -> Exit | None:
        """Look after them; return how the run ended once all of them are gone."""
        for worker in list(self.workers.values()):
            ended = worker.process.ended()
            if ended is not None:
                self._ended(worker, ended)
        now = time.monotonic()
        if any(end.failed for end in self._ends):
            for worker in self.workers.values():
                worker.end_by(now + RANK_GRACE_SECONDS)
        for worker in self.workers.values():
            worker.kill_if_due(now)
        return None if self.workers else exit_of(self.run_id, self.size, self._ends, self.titles)

    def _ended(self, worker: Worker, ended: Ended) -> None:
        del self.workers[worker.rank]
        detail = describe(ended, asked_to_end=worker.asked_to_end)
        standby = worker.standby
        if standby is not None:
            standby.pump()
            if not standby.picked_up and not worker.asked_to_end:
                startup = standby.startup_output()
                append_output(worker.directory, startup)
                detail = _failed_start(standby.kind, startup, detail)
            standby.close()
        followed = worker.outlived or ended.code == EXIT_RANK_FAILED
        killed = ended.out_of_memory and not worker.asked_to_end
        memory = f"{(ended.peak or 0) // _MIB} MiB" if killed else ""
        self._note_end(worker.rank, worker.directory, ended.code, detail, followed=followed, memory=memory)

    def _note_end(
        self, rank: int, folder: Path, code: int | None, detail: str, *, followed: bool = False, memory: str = ""
    ) -> None:
        failed = has_failed(code, folder)
        self._ends.append(RankEnd(rank, code, detail, failed, followed, memory))


def append_output(directory: Path, text: str) -> None:
    """Write what a process said before it had an output file of its own to that file."""
    if not text:
        return
    try:
        descriptor = os.open(directory / OUTPUT_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:  # the folder is gone or the disk full: the exit's detail still says it
        logger.warning("cannot write the output of a worker to %s: %s", directory, error)


def _failed_start(kind: WorkerKind, startup: str, detail: str) -> str:
    lines = [line for line in startup.splitlines() if line.strip()]
    if _MISSING.search(startup):
        return (
            f"the interpreter {kind.executable} has no det_native: install it there "
            f"({kind.executable} -m pip install det-native)"
        )
    last = f": {lines[-1].strip()}" if lines else ""
    return f"the worker did not start ({detail}){last}"
