"""The runs of a machine: their processes are started, ended and cleared away. All of it happens in one event loop."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from det_native.errors import CheckpointError, DetError, StorageError
from det_native.master.launch.base import Exit, WorkerKind
from det_native.master.launch.local import LocalLauncher
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.cleaning import settle_run
from det_native.master.launch.ray.agent.downloads import Downloads
from det_native.master.launch.ray.agent.folders import AgentFolders, remove_folder
from det_native.master.launch.ray.agent.job_paths import JOB, Job, job_here
from det_native.master.launch.ray.agent.launcher_thread import LauncherThread
from det_native.master.launch.ray.agent.mirror import Mirror
from det_native.master.launch.ray.agent.rank_end import RankEnds
from det_native.master.launch.ray.agent.runs_here import Phase, RankHere, RunHere
from det_native.master.launch.ray.asks.kinds import RankEnded
from det_native.schema.ranks import is_shared
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.paths import UnsafePathError, check_relative

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REMEMBERED = 2_000


class Machine:
    """Starts and ends processes of runs here.

    Parameters
    ----------
    runs : dict
        The runs with processes here, by id.
    master_url : str
        Address of the socket that is the master to workers here.
    """

    def __init__(
        self,
        asks: AskQueue,
        downloads: Downloads,
        mirror: Mirror,
        ends: RankEnds,
        folders: AgentFolders,
        runs: dict[str, RunHere],
        master_url: str,
    ) -> None:
        self._asks = asks
        self._downloads = downloads
        self._mirror = mirror
        self._ends = ends
        self._folders = folders
        self._runs = runs
        self._master_url = master_url
        self.launcher: LauncherThread | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # What starts that are over have returned, and files that came before the run they are for.
        self._over: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()
        self._early: OrderedDict[str, dict[str, bytes]] = OrderedDict()
        self._removals: dict[str, asyncio.Task[None]] = {}

    async def start(self, run_id: str, rank: int, job: str, kind: WorkerKind) -> dict[str, Any]:
        """Start a process, or wait for its start that is under way; see ``NodeAgent.start``."""
        over = self._over.get((run_id, rank))
        if over is not None:
            return over
        run = self._runs.get(run_id)
        known = run.ranks.get(rank) if run is not None else None
        if known is None:
            check_relative(run_id)
            run, known = self._add(run_id, rank, JOB.validate_json(job), kind)
        assert known.start is not None
        return await asyncio.shield(known.start)

    async def kill(self, run_id: str, grace: float) -> None:
        """End the processes of a run, those too that are being started."""
        run = self._runs.get(run_id)
        for rank in list(run.ranks.values()) if run is not None else ():
            if rank.phase is Phase.STARTING:
                rank.killed = True
                if rank.start is not None and not rank.start.done():
                    rank.start.cancel()
            elif rank.phase is Phase.RUNNING:
                name = _name(run_id, rank.rank)
                await self._call(partial(LocalLauncher.kill, run_id=name, grace=grace))
            else:
                rank.killed = True

    async def stacks(self, run_id: str) -> None:
        """Have the processes of a run write their stacks."""
        for rank in self._ranks(run_id):
            name = _name(run_id, rank)
            await self._call(partial(LocalLauncher.ask_for_stacks, run_id=name))

    async def stopped(self, run_id: str) -> list[int]:
        """Return which processes of a run a signal has stopped."""
        pids: list[int] = []
        for rank in self._ranks(run_id):
            name = _name(run_id, rank)
            pids += await self._call(partial(LocalLauncher.stopped, run_id=name))
        return pids

    async def share(self, run_id: str, name: str, content: bytes) -> None:
        """Put a file of another machine where the processes of a run look for it."""
        check_relative(run_id)
        check_relative(name)
        if not is_shared(name):
            raise UnsafePathError(f"{name!r} is no file by which the processes of a run find each other.")
        run = self._runs.get(run_id)
        if run is None and any(known == run_id for known, _ in self._over):
            return
        digest = await asyncio.to_thread(self._mirror.put, run, run_id, name, content)
        if run is None:
            self._early.setdefault(run_id, {})[name] = digest
            while len(self._early) > _REMEMBERED:
                forgotten, _ = self._early.popitem(last=False)
                await asyncio.to_thread(remove_folder, self._folders.run(forgotten))

    async def runs(self) -> dict[str, list[int]]:
        """Return the ranks here, by run."""
        return {run_id: sorted(run.ranks) for run_id, run in self._runs.items() if run.ranks}

    def ended(self, exit: Exit) -> None:
        """Take note that a process has ended."""
        run_id, _, rank = exit.run_id.rpartition(".")
        run = self._runs[run_id]
        here = run.ranks[int(rank)]
        here.phase = Phase.ENDING
        self._later(self._bring_end(run, here, exit))

    def _add(self, run_id: str, rank: int, job: Job, kind: WorkerKind) -> tuple[RunHere, RankHere]:
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = RunHere.of(run_id, job)
            run.shared.update(self._early.pop(run_id, {}))
        run.need(job)
        here = RankHere(rank, job_here(job, run_id, rank, self._folders, self._master_url))
        run.ranks[rank] = here
        here.start = asyncio.create_task(self._started(run, here, job, kind))
        here.start.add_done_callback(lambda task: None if task.cancelled() else task.exception())
        return run, here

    async def _started(self, run: RunHere, here: RankHere, job: Job, kind: WorkerKind) -> dict[str, Any]:
        bridge, name = self._asks.bridge, _name(run.run_id, here.rank)
        try:
            removal = self._removals.get(run.run_id)
            if removal is not None:
                await asyncio.shield(removal)
            await self._downloads.bring(job)
            here.phase = Phase.RUNNING
            handle = await self._call(lambda launcher: launcher.start(name, here.job, kind))
        except (DetError, OSError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not here.killed:
                raise  # the agent is closed
            sentence = "ended on request before it had begun" if here.killed else str(error)
            await self._failed_to_start(run, here, sentence, bridge)
            raise StorageError(sentence) from error
        if run.mirror is None:
            run.mirror = asyncio.create_task(self._mirror.follow(run))
        return {"pid": handle["pid"], "standby": handle.get("standby", "")}

    async def _failed_to_start(self, run: RunHere, here: RankHere, sentence: str, bridge: str) -> None:
        if bridge == self._asks.bridge:  # it waits for the start, and gets the error
            await self._forget(run, here)
            return
        here.phase = Phase.ENDING
        self._later(self._tell_failure(run, here, sentence))

    async def _tell_failure(self, run: RunHere, here: RankHere, sentence: str) -> None:
        await self._asks.ask(RankEnded(run.run_id, here.rank, None, sentence, begun=False))
        await self._forget(run, here)

    async def _bring_end(self, run: RunHere, here: RankHere, exit: Exit) -> None:
        await self._ends.bring(run, here, exit)
        if here.start is not None:
            self._over[run.run_id, here.rank] = await here.start
            while len(self._over) > _REMEMBERED:
                self._over.popitem(last=False)
        await self._forget(run, here)

    async def _forget(self, run: RunHere, here: RankHere) -> None:
        """Let go of a process; with the last one of its run goes all that the run has left here."""
        run.ranks.pop(here.rank, None)
        if run.ranks:
            return
        self._runs.pop(run.run_id, None)
        if run.mirror is not None:
            run.mirror.cancel()
            await asyncio.gather(run.mirror, return_exceptions=True)
        needed = {uuid for other in self._runs.values() for uuid in other.needs}
        same_trial = any(other.trial == run.trial for other in self._runs.values())
        removal = asyncio.create_task(asyncio.to_thread(self._remove_files, run, needed, same_trial))
        self._removals[run.run_id] = removal
        try:
            await asyncio.shield(removal)
        finally:
            del self._removals[run.run_id]

    def _remove_files(self, run: RunHere, needed: set[str], same_trial: bool) -> None:
        settle_run(self._folders, run.run_id)
        remove_folder(self._folders.run(run.run_id))
        if run.trial is not None and not same_trial:
            remove_folder(self._folders.tensorboard.joinpath(*map(str, run.trial)))
            with suppress(OSError):  # another trial of the experiment writes there
                self._folders.tensorboard.joinpath(str(run.trial[0])).rmdir()
        self._folders.remove_unfinished()
        for uuid in (run.needs | self._own_checkpoints(run)) - needed:
            remove_folder(self._folders.checkpoints / uuid)

    def _own_checkpoints(self, run: RunHere) -> set[str]:
        storage = CheckpointStorage(str(self._folders.checkpoints))
        own: set[str] = set()
        for folder in _folders(self._folders.checkpoints):
            with suppress(CheckpointError):
                if storage.manifest(folder.name).run_id == run.run_id:
                    own.add(folder.name)
        return own

    def _ranks(self, run_id: str) -> list[int]:
        run = self._runs.get(run_id)
        return [rank.rank for rank in run.ranks.values() if rank.phase is Phase.RUNNING] if run is not None else []

    async def _call(self, order: Callable[[LocalLauncher], T]) -> T:
        assert self.launcher is not None
        return await self.launcher.call(order)

    def _later(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_log_failure)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("A step of the agent has failed.", exc_info=task.exception())


def _folders(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]


def _name(run_id: str, rank: int) -> str:
    return f"{run_id}.{rank}"
