"""The agent of a machine: an actor whose methods the bridge calls. It imports no Ray; the bridge makes it an actor."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from det_native._version import PROTOCOL, __version__
from det_native.master.launch.base import Exit, WorkerKind
from det_native.master.launch.local import ENTRY, LocalLauncher
from det_native.master.launch.packages import WorkerPackages
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.agent.cleaning import keep_clean
from det_native.master.launch.ray.agent.downloads import Downloads
from det_native.master.launch.ray.agent.event_loop import LoopThread
from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.master.launch.ray.agent.guarding import Guard
from det_native.master.launch.ray.agent.launcher_thread import LauncherThread
from det_native.master.launch.ray.agent.machine import Machine
from det_native.master.launch.ray.agent.mirror import Mirror
from det_native.master.launch.ray.agent.rank_end import RankEnds
from det_native.master.launch.ray.agent.relay import Relay
from det_native.master.launch.ray.agent.reports import ReportPasser
from det_native.master.launch.ray.agent.runs_here import RunHere
from det_native.master.launch.ray.agent.uploads import Uploads
from det_native.master.launch.ray.asks.kinds import AgentFacts, Ask, Reply
from det_native.master.launch.ray.messages import Worker
from det_native.schema.sockets import url_of

logger = logging.getLogger(__name__)

#: ``module:function`` that workers run their job with, where it is not the harness.
ENTRY_VARIABLE = "DET_AGENT_ENTRY"
_ASK_SECONDS = 5.0
# What Ray sets for its own processes. Among it are keys of the cluster.
_PREFIX_OF_RAY = "RAY_"
_THREADS = "OMP_NUM_THREADS"


class NodeAgent:
    """Runs workers on this machine for one master.

    All methods are coroutines and return soon, but for :meth:`asks`, which waits. What is called twice, since an
    answer was lost, is done once.

    Parameters
    ----------
    folder : str
        The agent's own folder on this machine; ``~`` is this user's home. Others of this machine share its parent.
    cluster : str
        Name of the master's home and of the Ray cluster, for the files of other masters not to be mixed up.
    device : str
        What the slots here are: ``cpu`` or ``cuda``.
    slots : int
        How many there are.
    entry : str, optional
        ``module:function`` that workers run their job with; of ``DET_AGENT_ENTRY``, or the harness.
    threads : int
        With how many each slot computes; 0 for a share of the machine's cores.
    environment : mapping, optional
        Base of the workers' environment, this process's by default.

    Raises
    ------
    StorageError
        If the folder is another agent's, or cannot be used.
    """

    def __init__(
        self,
        folder: str,
        cluster: str,
        device: str,
        slots: int,
        threads: int = 0,
        *,
        entry: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folders = AgentFolders(Path(folder).expanduser().absolute())
        self._lock = self._folders.prepare(cluster)
        self._closed = False
        try:
            listening, self._socket = self._folders.listen()
        except BaseException:
            self._lock.release()
            raise
        self._loop = LoopThread()
        self._runs: dict[str, RunHere] = {}
        self._asks = AskQueue()
        uploads = Uploads(self._asks, self._folders)
        passer = ReportPasser(self._asks, uploads, self._folders)
        mirror = Mirror(self._asks, uploads, self._folders)
        ends = RankEnds(self._asks, passer, mirror, uploads, self._folders)
        downloads = Downloads(self._asks, self._folders)
        self._machine = Machine(self._asks, downloads, mirror, ends, self._folders, self._runs, url_of(self._socket))
        self._relay = Relay(self._asks, passer, self._runs)
        self._loop.run(self._relay.open(listening))
        self._cleaning = asyncio.run_coroutine_threadsafe(keep_clean(self._folders), self._loop.loop)
        self._guard = Guard()
        self._environment = _own_environment() if environment is None else _without_ray(environment)
        launcher = LocalLauncher(
            self._folders.standby,
            slots=max(1, slots),
            device=device,
            threads=threads or None,
            entry=entry or os.environ.get(ENTRY_VARIABLE, ENTRY),
            environment={**self._environment, **self._guard.variables},
        )
        self._launcher = LauncherThread(launcher, self._ended, self._guard.look_after)
        self._machine.launcher = self._launcher
        self._facts: AgentFacts | None = None
        self._packages = WorkerPackages()

    def _ended(self, ended: Exit) -> None:
        self._loop.loop.call_soon_threadsafe(self._machine.ended, ended)

    async def facts(self) -> AgentFacts:
        """Return what this machine is like."""
        if self._facts is None:
            self._facts = AgentFacts(
                host=platform.node(),
                pid=os.getpid(),
                python=platform.python_version(),
                version=__version__,
                protocol=PROTOCOL,
                folder=str(self._folders.root),
                cores=len(os.sched_getaffinity(0)),
                threads=self._environment.get(_THREADS, ""),
                packages={each.name: each.version for each in metadata.distributions() if each.name},
            )
        return self._facts

    async def modules(self, executable: str, names: Sequence[str]) -> dict[str, object]:
        """Return what the Python of workers has here of these modules: fields of ``MachineModules`` but the name.

        Parameters
        ----------
        executable : str
            Interpreter of the notebook: workers take it where it is here, too.

        Raises
        ------
        DetError
            If it does not answer.
        """
        chosen = _usable(executable)
        installed, modules = await asyncio.to_thread(self._packages.modules, chosen, names)
        return {"python": installed.python, "executable": chosen or sys.executable, "modules": modules}

    async def asks(self, bridge: str, most: int = 64) -> list[Ask]:
        """Return asks once there are some; an empty list after some seconds.

        Parameters
        ----------
        bridge : str
            Name of the process that asks. When another one comes, all that is unanswered is given to that one. Who may
            have missed asks that were returned comes under another name.
        """
        return await self._loop.call(self._asks.take(bridge, most, _ASK_SECONDS))

    async def answer(self, replies: Sequence[tuple[int, Reply]]) -> None:
        """Take answers to asks, by their numbers."""
        self._loop.loop.call_soon_threadsafe(self._asks.answer, list(replies))

    async def start(self, run_id: str, rank: int, job: str, worker: Worker) -> dict[str, object]:
        """Start one process of a run.

        Parameters
        ----------
        job : str
            The job of this process as JSON, its gang filled in, its paths those of the master's machine.

        Returns
        -------
        dict
            ``pid``, and ``standby``: how warm the process was. `pid` is None if it could not be executed; its end tells
            why.

        Raises
        ------
        DetError
            If the files that it needs cannot be had, or it was ended before it had begun. ``RankEnded`` then comes only
            to another bridge than the one that is connected when it is called.
        """
        return await self._loop.call(self._machine.start(run_id, rank, job, _kind(worker)))

    async def kill(self, run_id: str, grace: float = 0.0) -> None:
        """SIGTERM the processes of a run here now, SIGKILL them after `grace` seconds; ``RankEnded`` comes for each.

        The start of one that has not begun fails.
        """
        await self._loop.call(self._machine.kill(run_id, grace))

    async def stacks(self, run_id: str) -> None:
        """Have the processes of a run here write the stack of every thread to their output."""
        await self._loop.call(self._machine.stacks(run_id))

    async def stopped(self, run_id: str) -> list[int]:
        """Return the numbers of the processes of a run here that a signal has stopped."""
        return await self._loop.call(self._machine.stopped(run_id))

    async def share(self, run_id: str, name: str, content: bytes) -> None:
        """Put a file of another machine of the run where the processes here look for it."""
        await self._loop.call(self._machine.share(run_id, name, content))

    async def runs(self) -> dict[str, list[int]]:
        """Return the ranks that live here or whose end was not answered yet, by run."""
        return await self._loop.call(self._machine.runs())

    async def warm(self, worker: Worker) -> None:
        """Have a standby of this kind ready soon."""
        await self._loop.call(self._launcher.call(lambda launcher: launcher.warm(_kind(worker))))

    async def standbys(self) -> dict[str, int]:
        """Return how many standbys of each framework are ready."""
        return await self._loop.call(self._launcher.call(lambda launcher: launcher.standbys()))

    async def close(self, kill_workers: bool) -> None:
        """Stop the standbys, and the workers too if asked.

        With its workers the agent ends for good: nothing of it may be called then. Otherwise it goes on, for the next
        master; the workers end with the process that the agent is in.
        """
        if self._closed:
            return
        if not kill_workers:
            await self._loop.call(self._launcher.call(lambda launcher: launcher.end_standbys()))
            return
        self._closed = True
        self._launcher.close()
        self._guard.close()
        await self._loop.call(self._relay.close(self._socket))
        self._loop.close()
        self._lock.release()


def _kind(worker: Worker) -> WorkerKind:
    """Return what a worker runs on; an interpreter that is only on the master's machine is this agent's own here."""
    return WorkerKind(worker.framework, _usable(worker.executable), worker.fingerprint, tuple(worker.packages))


def _usable(executable: str) -> str:
    """Return an interpreter if it is here and another one than the agent's own, which is empty."""
    return executable if executable != sys.executable and os.access(executable, os.X_OK) else ""


def _without_ray(base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for workers without what Ray has set for this process."""
    return {name: value for name, value in base.items() if not name.startswith(_PREFIX_OF_RAY)}


def _own_environment() -> dict[str, str]:
    """Return that of this process; of the number of threads only what it was started with, since Ray sets it later."""
    kept = _without_ray(os.environ)
    started_with = Path("/proc/self/environ").read_bytes().split(b"\0")
    if not any(entry.startswith(f"{_THREADS}=".encode()) for entry in started_with):
        kept.pop(_THREADS, None)
    return kept
