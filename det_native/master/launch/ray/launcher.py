"""Workers on the machines of a Ray cluster, through a bridge."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from det_native.master.launch.base import Exit, Output, WorkerKind
from det_native.master.launch.ends import RANK_GRACE_SECONDS
from det_native.master.launch.local_run import OUTPUT_NAME
from det_native.master.launch.output import punch_hole, read_output
from det_native.master.launch.ray import identity
from det_native.master.launch.ray.bridge_process import BridgeProcess
from det_native.master.launch.ray.connection import Connection
from det_native.master.launch.ray.installed import check_ray
from det_native.master.launch.ray.machine_slots import open_slots
from det_native.master.launch.ray.messages import (
    AdoptRun,
    AllKnown,
    AskForStacks,
    Ended,
    Event,
    KillRun,
    LookForStopped,
    Modules,
    Nodes,
    Standbys,
    Started,
    StartRun,
    Stopped,
    Waiting,
    Want,
    Warm,
    Worker,
)
from det_native.master.launch.ray.questions import Answer, Questions
from det_native.schema.cluster import NodeInfo, SlotsWanted
from det_native.schema.home import Home
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.ranks import rank_folder
from det_native.schema.rest import SlotInfo

__all__ = ["RayLauncher", "check_ray"]

logger = logging.getLogger(__name__)


@dataclass
class _Known:
    """A run that has not ended.

    `command` is how it was started; None if an earlier master has done that.
    """

    handle: dict[str, Any]
    command: StartRun | None
    begun: bool = False

    @property
    def slots(self) -> list[str]:
        return list(self.handle.get("slots", ()))


class RayLauncher:
    """Runs workers on the machines of a Ray cluster (a ``Launcher``, ``Waiter`` and ``Cluster``).

    Parameters
    ----------
    home : Home
        The master's.
    url : str or callable
        Where the master listens, or what says that.
    address : str
        ``auto``, ``host:port`` or ``ray://host:port``.
    slots : str, optional
        Slots of each machine: ``4``, ``cpu:4`` or ``cuda:4``; its GPUs, or else its processors, by default.
    trusted : bool
        Whether a cluster is used though everybody who reaches it can run code on it.
    threads : int, optional
        Threads a worker computes with; the cores of its machine shared out over the slots there by default.
    umask : int
        Of files in the folders of runs here; -1 for this process's.
    agent : str
        ``"module:class"`` of the agents; that of this package if empty.
    """

    #: What a folder of this machine keeps, workers elsewhere cannot read: the master warns of that.
    several_machines = True

    def __init__(
        self,
        home: Home,
        url: str | Callable[[], str],
        address: str,
        *,
        slots: str | None = None,
        trusted: bool = False,
        threads: int | None = None,
        umask: int = -1,
        agent: str = "",
    ) -> None:
        self.address = address
        self._home, self._url, self._setting = home, url, slots
        self._trusted, self._threads, self._umask, self._agent = trusted, threads, umask, agent
        self._identity = identity.identify(home)
        self._questions = Questions()
        self._connection = Connection(address, self._arguments, self._greet, self._questions.drop)
        self._runs: dict[str, _Known] = {}
        self._directories: dict[str, Path] = {}
        self._exits: list[Exit] = []
        self._changed = False
        self._all_known = False
        self._nodes: list[NodeInfo] = []
        self._others: list[str] = []
        self._open: tuple[tuple[list[NodeInfo], frozenset[str]], list[SlotInfo]] | None = None
        self._waits: dict[str, str] = {}
        self._stopped: dict[str, list[int]] = {}
        self._standbys: dict[str, int] = {}
        self._warm: dict[str, Warm] = {}
        self._wanted: list[SlotsWanted] = []
        self._told_wanted = False
        self._closed = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def start(
        self, run_id: str, job: TrialJob | CheckJob, kind: WorkerKind, *, ranks: int = 1, slots: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Start `ranks` workers on `job`; return a JSON-able handle from which ``adopt`` finds them again."""
        directory = Path(job.directory)
        for rank in range(ranks):
            rank_folder(directory, rank).mkdir(parents=True, exist_ok=True, mode=0o700)
        if isinstance(job, TrialJob) and job.home:  # agents write there only as long as it is there
            events = Path(job.home) / "tensorboard" / str(job.experiment_id) / str(job.trial_id)
            events.mkdir(parents=True, exist_ok=True, mode=0o700)
        command = StartRun(run_id=run_id, job=job, worker=_worker(kind), ranks=ranks, slots=list(slots))
        handle = {"ray": run_id, "directory": str(directory), "ranks": ranks, "slots": list(slots)}
        self._directories[run_id] = directory
        self._runs[run_id] = _Known(handle, command)
        self._connection.hurry()
        self._connection.send(command)
        self._tell_wanted()
        return dict(handle)

    def adopt(self, run_id: str, handle: dict[str, Any]) -> bool:
        """Take up the workers started by an earlier master; False if another launcher has started them."""
        self._directories[run_id] = Path(handle["directory"])
        if run_id in self._runs:
            return True
        if "ray" not in handle:
            return False
        known = self._runs[run_id] = _Known(dict(handle), None, begun=True)
        self._connection.hurry()
        self._connection.send(AdoptRun(run_id=run_id, handle=known.handle))
        return True

    def poll(self) -> list[Exit]:
        """Return the runs that ended since the last call, each once."""
        if not self._all_known:
            self._all_known = True
            self._connection.send(AllKnown())
        self._pump()
        exits, self._exits = self._exits, []
        self._changed = False
        return exits

    def wait(self, timeout: float) -> bool:
        """Wait until a run has ended, the machines have changed, ``wake`` is called, or `timeout` seconds have passed.

        Returns
        -------
        bool
            Whether there is something for ``poll`` to look at.
        """
        deadline = time.monotonic() + timeout
        while True:
            self._pump()
            if self._exits or self._changed:
                return True
            pause = deadline - time.monotonic()
            if pause <= 0:
                return False
            with selectors.DefaultSelector() as selector:
                selector.register(self._wake_read, selectors.EVENT_READ)
                selector.select(self._connection.register(selector, pause))
            if self._drain_wake():
                return True

    def wake(self) -> None:
        """Make a ``wait`` in progress return; the one method that other threads may call."""
        if not self._closed:
            with contextlib.suppress(BlockingIOError):  # it is full of wakes already
                os.write(self._wake_write, b"w")

    def settled(self, run_id: str) -> None:
        """A worker is through its start; the agents see that by themselves."""

    def kill(self, run_id: str, *, grace: float = 0.0) -> None:
        """SIGTERM now and SIGKILL after `grace` seconds, the workers' children included."""
        if run_id in self._runs:
            self._runs[run_id].handle["kill"] = grace
            self._connection.send(KillRun(run_id=run_id, grace=grace))

    def ask_for_stacks(self, run_id: str) -> None:
        """Have its processes write the stack of every thread to their output."""
        if run_id in self._runs:
            self._connection.send(AskForStacks(run_id=run_id))

    def stopped(self, run_id: str) -> list[int]:
        """Return the numbers of its processes that a signal has stopped, as of the last call."""
        if run_id in self._runs:
            self._connection.send(LookForStopped(run_id=run_id))
        return self._stopped.get(run_id, [])

    def logs(self, run_id: str, offset: int, rank: int = 0) -> Output:
        """Return what a worker has written since `offset` bytes, whole lines only unless the run has ended."""
        directory = self._directories.get(run_id)
        if directory is None:
            return Output("", offset)
        return read_output(rank_folder(directory, rank) / OUTPUT_NAME, offset, ended=run_id not in self._runs)

    def release_output(self, run_id: str, rank: int, start: int, end: int) -> None:
        """Give back the disk space of these bytes of a worker's output: nobody reads them again."""
        directory = self._directories.get(run_id)
        if directory is not None:
            punch_hole(rank_folder(directory, rank) / OUTPUT_NAME, start, end)

    def warm(self, kind: WorkerKind) -> None:
        """Have a standby of this kind ready soon, on each machine."""
        if kind.packages:
            return
        command = self._warm[kind.framework] = Warm(worker=_worker(kind))
        if self._connection.bridge is not None:
            self._connection.send(command)
        else:
            self._pump()

    def standbys(self) -> dict[str, int]:
        """Return how many standbys of each framework are ready, on all machines together."""
        return dict(self._standbys)

    def close(self, *, kill_workers: bool) -> None:
        """Stop all standbys; running workers live on unless `kill_workers`."""
        if self._closed:
            return
        if kill_workers and self._runs and self._connection.connected is None:
            logger.warning(
                "The Ray cluster at %s is not connected: workers of %d runs there may go on for a while.",
                self.address,
                len(self._runs),
            )
        self._connection.close(kill_workers=kill_workers, has_runs=bool(self._runs))
        self._questions.drop()
        self._closed = True
        os.close(self._wake_read)
        os.close(self._wake_write)

    def slots(self) -> list[SlotInfo]:
        """Return the slots that exist now and that nobody outside of this master uses, those of a node together."""
        held = frozenset(slot for run in self._runs.values() for slot in run.slots)
        if self._open is None or self._open[0] != (self._nodes, held):
            self._open = (self._nodes, held), open_slots(self._nodes, held)
        return self._open[1]

    def nodes(self) -> list[NodeInfo]:
        """Return the machines, those that cannot run workers among them, each with the reason."""
        return list(self._nodes)

    def look_for_modules(self, executable: str, names: Sequence[str]) -> Answer:
        """Ask which of these modules the machines can import; machines that do not answer are left out."""
        return self._questions.ask(self._connection.bridge, executable, names)

    def want(self, wanted: Sequence[SlotsWanted]) -> None:
        """Say what waits for more slots than there are, so that an autoscaler can add machines; empty for nothing."""
        if list(wanted) == self._wanted:
            return
        self._wanted = list(wanted)
        self._tell_wanted()

    def waits(self) -> dict[str, str]:
        """Return what runs that were started wait for before they can begin, in words, by run."""
        return dict(self._waits)

    def trouble(self) -> str:
        """Return why the cluster cannot be used now, a sentence; empty if it can."""
        return self._connection.trouble

    @property
    def remarks(self) -> list[str]:
        """Sentences on who else uses the cluster; any thread may ask."""
        return [
            f"Another master uses the Ray cluster at {self.address}, that of {other}; both share its slots."
            for other in self._others
        ]

    @property
    def refused(self) -> bool:
        """Whether the cluster has refused us for a reason that trying again does not change."""
        return self._connection.refused

    @property
    def is_away(self) -> bool:
        """Whether nobody has answered at its address."""
        return self._connection.is_away

    @property
    def was_reached(self) -> bool:
        """Whether a cluster has answered at its address, now or to an earlier master of this home."""
        return self._connection.connected is not None or self.address in self._identity.addresses

    @property
    def dashboard(self) -> str:
        """Address of Ray's dashboard, empty where there is none."""
        connected = self._connection.connected
        return "" if connected is None else connected.dashboard

    def _tell_wanted(self) -> None:
        """Say what has to be there: what an autoscaler is told is all, what runs hold among it."""
        if self._connection.bridge is None or (not self._wanted and not self._told_wanted):
            return
        self._told_wanted = bool(self._wanted)
        held: Counter[str] = Counter()
        accelerators = {slot.id: slot.accelerator if slot.device == "cuda" else "cpu" for slot in self.slots()}
        for run in self._runs.values():
            held.update(accelerators.get(slot, "") for slot in run.slots)
        kept = [SlotsWanted(slots=count, accelerator=name) for name, count in sorted(held.items())]
        self._connection.send(Want(wanted=[*kept, *self._wanted] if self._wanted else []))

    def _pump(self) -> None:
        """Take what the bridge says."""
        if self._closed:
            return
        trouble = self._connection.trouble
        for event in self._connection.pump():
            self._take(event)
        self._changed = self._changed or trouble != self._connection.trouble

    def _greet(self, bridge: BridgeProcess) -> None:
        for warm in self._warm.values():
            bridge.send(warm)
        for run_id, known in self._runs.items():
            if known.begun or known.command is None:
                bridge.send(AdoptRun(run_id=run_id, handle=known.handle))
            else:
                bridge.send(known.command)
            if "kill" in known.handle:
                bridge.send(KillRun(run_id=run_id, grace=known.handle["kill"]))
        self._tell_wanted()
        if self._all_known:
            bridge.send(AllKnown())

    def _arguments(self) -> list[str] | None:
        url = self._url if isinstance(self._url, str) else self._url()
        if not url:  # the master does not listen yet
            return None
        arguments = ["--address", self.address, "--namespace", self._identity.namespace, "--url", url]
        arguments += ["--home", str(self._home.path), "--names", json.dumps(self._identity.names)]
        arguments += ["--rank-grace", str(RANK_GRACE_SECONDS)]
        arguments += ["--slots", self._setting] if self._setting else []
        arguments += ["--threads", str(self._threads)] if self._threads else []
        arguments += ["--trusted"] if self._trusted else []
        arguments += ["--agent", self._agent] if self._agent else []
        return arguments

    def _take(self, event: Event) -> None:
        match event:
            case Modules():
                self._questions.take(event)
            case Nodes():
                self._nodes = event.nodes
                self._take_others(event.others)
                self._connection.say_ready()
                self._identity.remember(self._home, {node.id: node.name for node in event.nodes}, self.address)
                self._tell_wanted()
                self._changed = True
            case Started() if event.run_id in self._runs:
                known = self._runs[event.run_id]
                known.begun = True
                known.handle["places"] = [place.model_dump() for place in event.places]
                self._waits.pop(event.run_id, None)
            case Waiting() if event.run_id in self._runs:
                if event.why:
                    self._waits[event.run_id] = event.why
                else:
                    self._waits.pop(event.run_id, None)
                self._changed = True
            case Ended() if event.run_id in self._runs:
                for kept in (self._runs, self._waits, self._stopped):
                    kept.pop(event.run_id, None)
                self._exits.append(Exit(**event.model_dump(exclude={"kind"})))
                self._tell_wanted()
            case Stopped() if event.run_id in self._runs:
                self._stopped[event.run_id] = event.pids
            case Standbys():
                self._standbys = event.counts
                self._changed = True

    def _take_others(self, others: list[str]) -> None:
        if others != self._others:
            self._others = others
            for remark in self.remarks:
                logger.warning("%s", remark)

    def _drain_wake(self) -> bool:
        woken = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 4096):
                woken = True
        return woken


def _worker(kind: WorkerKind) -> Worker:
    return Worker(
        framework=kind.framework, executable=kind.executable, fingerprint=kind.fingerprint, packages=kind.packages
    )
