"""The bridge: does what the launcher says, and tells it what happens in the cluster."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray.exceptions import RayError

from det_native.errors import DetError
from det_native.master.launch.ray.asks.kinds import RankEnded, Share
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.master.launch.ray.bridge.agents import Agent, AgentLostError, Agents
from det_native.master.launch.ray.bridge.asking import bundles_of
from det_native.master.launch.ray.bridge.cluster import Cluster
from det_native.master.launch.ray.bridge.gang import NOT_BEGUN, Gang
from det_native.master.launch.ray.bridge.nodes import Machine, Machines, head_of, replace_info, steadied, without_slots
from det_native.master.launch.ray.bridge.run import Run, Spot, failed_without_code, titles_of
from det_native.master.launch.ray.messages import (
    AdoptRun,
    AllKnown,
    AskForStacks,
    Close,
    Command,
    Ended,
    Event,
    KillRun,
    LookForModules,
    LookForStopped,
    Lost,
    Modules,
    Nodes,
    Standbys,
    StartRun,
    Stopped,
    Want,
    Warm,
)
from det_native.schema.cluster import MachineModules, NodeInfo

logger = logging.getLogger(__name__)

_WATCH_SECONDS = 1.0
_ANSWER_SECONDS = 15.0
_GIVE_UP_SECONDS = 60.0
_FIRST_SECONDS = 20.0

DRAINED = "It is being drained: it will be taken out of the cluster."
HEAD_RESTARTED = "the head of the cluster was restarted"


class HeadAwayError(Exception):
    """The head of the cluster does not answer, and a new connection is to be tried."""


@dataclass(frozen=True)
class Settings:
    """What the bridge is started with.

    Attributes
    ----------
    namespace : str
        Of the master's home.
    who : str
        Whose master this is, for other masters.
    threads : int or None
        What each process of a run computes with; the cores of its machine shared over the slots there by default.
    rank_grace : float
        Seconds that the processes of a run have once one of them has failed.
    exposure : callable
        Says, as a sentence, why nothing more may be started on a cluster with such machines; empty if it may.
    """

    namespace: str
    who: str
    threads: int | None
    rank_grace: float
    exposure: Callable[[Iterable[Mapping[str, Any]]], str]


class Bridge:
    """All runs in one cluster.

    Parameters
    ----------
    cluster : Cluster
    server : AskServer
    kind : type
        ``NodeAgent``.
    machines : Machines
    settings : Settings
    emit : callable
        Tells the launcher.
    """

    def __init__(
        self,
        cluster: Cluster,
        server: AskServer,
        kind: type,
        machines: Machines,
        settings: Settings,
        emit: Callable[[Event], None],
    ) -> None:
        self._cluster = cluster
        self._machines = machines
        self._settings = settings
        self._emit = emit
        self._agents = Agents(
            cluster,
            server,
            kind,
            settings.namespace,
            on_end=self._on_end,
            on_share=self._on_share,
            on_lost=self._on_lost,
        )
        self._runs: dict[str, Run] = {}
        self._known = asyncio.Event()
        self._read: dict[str, Machine] = {}
        self._present: dict[str, Machine] = {}
        self._told: tuple[list[NodeInfo], list[str]] = [], []
        self._others: list[str] = []
        self._exposed = ""
        self._first_until: float | None = None
        self._introduced = False
        self._has_asked = False
        self._standbys: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._looked = asyncio.Event()
        # Those who wait for a look that begins later than now; and which head a machine was first seen with.
        self._waiting: list[asyncio.Future[None]] = []
        self._following = False
        self._heads: dict[str, str] = {}

    async def run(self, commands: AsyncIterator[Command]) -> None:
        """Work until the launcher closes the bridge, or is gone.

        Raises
        ------
        HeadAwayError
        """
        watch = asyncio.create_task(self._watch())
        follow = asyncio.create_task(self._follow(commands))
        try:
            await asyncio.wait({watch, follow}, return_when=asyncio.FIRST_COMPLETED)
            for task in (follow, watch):
                if task.done():
                    task.result()
        finally:
            for task in (watch, follow, *self._tasks):
                task.cancel()

    async def _follow(self, commands: AsyncIterator[Command]) -> None:
        async for command in commands:
            if isinstance(command, Close):
                await self._close(command)
                break
            self._obey(command)
        if self._has_asked:  # closed, or the master is gone: machines that nobody waits for are given back
            await asyncio.wait([asyncio.create_task(self._want(Want(wanted=[])))], timeout=_ANSWER_SECONDS)

    def _obey(self, command: Command) -> None:
        match command:
            case StartRun():
                self._spawn(self._start(command))
            case AdoptRun():
                self._spawn(self._adopt(command))
            case AllKnown():
                self._spawn(self._clean_up())
            case KillRun() if command.run_id in self._runs:
                self._runs[command.run_id].kill(command.grace)
            case AskForStacks() if command.run_id in self._runs:
                self._spawn(self._runs[command.run_id].tell("stacks", command.run_id))
            case LookForStopped() if command.run_id in self._runs:
                self._spawn(self._look_for_stopped(self._runs[command.run_id]))
            case Warm():
                self._spawn(self._agents.warm(command.worker))
            case Want():
                self._spawn(self._want(command))
            case LookForModules():
                self._spawn(self._look_for_modules(command))

    async def _start(self, command: StartRun) -> None:
        if command.run_id in self._runs:
            return
        run = self._new_run(command.run_id, command.ranks, command.job.directory, titles_of(command))
        try:
            spots = await self._spots(command)
        except AgentLostError as error:
            why = str(error)
            run.missing(range(command.ranks), why, begun=False, interrupted=why if command.slots else "")
            return
        if not run.done.done():
            run.start(command, spots, self._settings.threads)

    async def _spots(self, command: StartRun) -> list[Spot]:
        """Return the machines of a run, once they have agents.

        Raises
        ------
        AgentLostError
            If one of them is gone.
        """
        await self._looked.wait()
        await self._agents.settled()
        if self._exposed:
            raise AgentLostError(self._exposed)
        if not command.slots:
            return [self._spot_without_slots()]
        names = [slot.rpartition("/")[0] for slot in command.slots]
        by_name = {machine.info.name: machine for machine in self._present.values()}
        spots = []
        for name in dict.fromkeys(names):
            machine = by_name.get(name)
            if machine is not None and machine.seconds is not None:
                raise AgentLostError(_is_drained(name))
            agent = None if machine is None else self._agents.living.get(machine.info.id)
            if machine is None or agent is None:
                trouble = "" if machine is None else self._agents.troubles.get(machine.info.id, "")
                raise AgentLostError(trouble or f"the machine {name} is gone")
            spots.append(Spot(agent, machine, names.count(name)))
        return spots

    def _spot_without_slots(self) -> Spot:
        """Return the machine with the most room; the head's where several have as much."""

        def room(node_id: str) -> tuple[int, bool]:
            beside = sum(agent.node_id == node_id for run in self._runs.values() for agent in run.agents.values())
            return self._present[node_id].info.slots - beside, self._present[node_id].head

        stays = {node_id for node_id, machine in self._present.items() if machine.seconds is None}
        usable = [node_id for node_id in self._agents.living if node_id in stays]
        if not usable:
            trouble = next(iter(self._agents.troubles.values()), "")
            raise AgentLostError(f"no machine of the cluster can run workers. {trouble}".rstrip())
        chosen = max(usable, key=room)
        return Spot(self._agents.living[chosen], self._present[chosen], 0)

    async def _adopt(self, command: AdoptRun) -> None:
        if command.run_id in self._runs:
            return
        handle = command.handle
        run = self._new_run(command.run_id, handle.get("ranks", 1), handle["directory"], handle.get("titles", ()))
        run.adopting = True
        await self._looked.wait()
        await self._agents.settled()
        run.adopted(
            {rank: agent for agent in self._agents.living.values() for rank in agent.runs.get(command.run_id, ())}
        )
        nodes = {place["rank"]: place for place in handle.get("places", ())}
        # Another head knows none of the machines of before.
        restarted = bool(self._machines.of_before) and not self._machines.of_before & set(self._present)
        for rank in sorted(run.gang.living - set(run.agents)):
            place = nodes.get(rank)
            if restarted and not run.agents:
                run.missing([rank], HEAD_RESTARTED, interrupted=HEAD_RESTARTED)
            elif place is not None and place["node"] not in self._present:
                run.missing([rank], f"the machine {place['name']} is gone")
            else:
                run.missing([rank], "it ended while the master was away" if nodes or run.agents else NOT_BEGUN)

    def _new_run(self, run_id: str, ranks: int, directory: str, titles: Sequence[str]) -> Run:
        gang = Gang(run_id, ranks, titles, failed_without_code(directory), self._settings.rank_grace)
        run = self._runs[run_id] = Run(run_id, gang, self._cluster, self._emit)
        self._spawn(self._see_through(run))
        return run

    async def _see_through(self, run: Run) -> None:
        ended = await asyncio.shield(run.done)
        await run.close()
        del self._runs[run.run_id]
        self._emit(Ended(**dataclasses.asdict(ended)))

    async def _clean_up(self) -> None:
        """Give back what runs hold that nobody knows, and end their processes."""
        await self._looked.wait()
        await self._agents.settled()
        self._known.set()
        for run_id in set(await self._cluster.groups()) - set(self._runs):
            logger.warning("the slots of run %s, which the master does not know, are given back", run_id)
            await self._cluster.release(run_id)
        for agent in list(self._agents.living.values()):
            for run_id in set(agent.runs) - set(self._runs):
                logger.warning("run %s, which the master does not know, is ended", run_id)
                await agent.call("kill", run_id, 0.0)

    async def _look_for_stopped(self, run: Run) -> None:
        self._emit(Stopped(run_id=run.run_id, pids=await run.stopped()))

    async def _look_for_modules(self, command: LookForModules) -> None:
        agents = list(self._agents.living.values())
        answers = await asyncio.gather(
            *(agent.call("modules", command.executable, command.names) for agent in agents), return_exceptions=True
        )
        machines = [
            MachineModules(name=agent.name, **answer)
            for agent, answer in zip(agents, answers, strict=True)
            if not isinstance(answer, BaseException)
        ]
        self._emit(Modules(number=command.number, machines=machines))

    async def _want(self, command: Want) -> None:
        if command.wanted:  # how large a slot is, is seen at the machines
            await self._looked.wait()
            self._has_asked = True
        bundles = bundles_of(command.wanted, self._present.values(), self._machines.rule)
        try:
            await self._cluster.want(bundles)
        except (RayError, ConnectionError, RuntimeError) as error:
            logger.warning("the autoscaler is not told what is waited for: %s", error)

    async def _close(self, command: Close) -> None:
        if command.kill_workers:
            runs = list(self._runs.values())
            for run in runs:
                run.kill(0.0)
            await asyncio.wait([asyncio.create_task(self._agents.close(kill_workers=True))], timeout=_ANSWER_SECONDS)
            for run in runs:
                await run.close()
        else:
            await asyncio.wait([asyncio.create_task(self._agents.close(kill_workers=False))], timeout=_ANSWER_SECONDS)

    async def _on_end(self, agent: Agent, what: RankEnded) -> None:
        run = self._runs.get(what.run_id)
        if run is None:
            await self._known.wait()  # it may be adopted yet
            run = self._runs.get(what.run_id)
        if run is not None:
            await run.ended(what)

    async def _on_share(self, agent: Agent, what: Share) -> None:
        run = self._runs.get(what.run_id)
        if run is not None:
            await run.share(agent, what)

    def _on_lost(self, agent: Agent) -> None:
        if self._following:
            self._lose(agent)
        else:
            self._spawn(self._lose_later(agent))

    async def _lose_later(self, agent: Agent) -> None:
        """Note that an agent is gone once it is known whether the head of the cluster, too, is another one."""
        look: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(look)
        await look
        self._lose(agent)

    def _lose(self, agent: Agent) -> None:
        restarted = self._heads.get(agent.node_id) != head_of(self._present)
        for run in list(self._runs.values()):
            run.lost(agent, HEAD_RESTARTED if restarted else "")

    async def _watch(self) -> None:
        answered = time.monotonic()
        lost = False
        while True:
            try:
                await asyncio.wait_for(self._look(), _ANSWER_SECONDS)
                answered, was_lost, lost = time.monotonic(), lost, False
                if was_lost:
                    self._emit(Lost(why=self._exposed))
            except (RayError, ConnectionError, TimeoutError, RuntimeError, DetError) as error:
                logger.warning("the head of the cluster does not answer: %s", error)
                if not lost:
                    lost = True
                    self._emit(Lost(why="The head of the Ray cluster does not answer. Runs go on where they can."))
                if time.monotonic() - answered > _GIVE_UP_SECONDS:
                    raise HeadAwayError("The head of the Ray cluster does not answer.") from error
            await asyncio.sleep(_WATCH_SECONDS)

    async def _look(self) -> None:
        if not self._introduced:
            await self._cluster.introduce(self._settings.who)
            self._introduced = True
        waiting, self._waiting = self._waiting, []
        try:
            table = await self._cluster.table()
        except BaseException:
            self._waiting += waiting
            raise
        self._others = table.others
        exposed, self._exposed = self._exposed, self._settings.exposure(table.nodes)
        if exposed != self._exposed:  # a machine has joined, or left: what runs goes on
            self._emit(Lost(why=self._exposed))
        read = self._machines.read(table.nodes, table.available, table.own, table.draining)
        self._present = steadied(self._read, read)
        self._read = read
        for node_id in self._present:
            self._heads.setdefault(node_id, head_of(self._present))
        self._following = True
        self._agents.follow(self._present)
        self._following = False
        self._looked.set()
        for look in waiting:
            look.set_result(None)
        self._drain()
        self._tell_nodes()
        counts = await self._agents.standbys()
        if counts != self._standbys:
            self._standbys = counts
            self._emit(Standbys(counts=counts))

    def _drain(self) -> None:
        """Have the runs end that are on machines that will be gone soon: they go on elsewhere."""
        for machine in self._present.values():
            if machine.seconds is None:
                continue
            for run in list(self._runs.values()):
                if any(agent.node_id == machine.info.id for agent in run.agents.values()):
                    run.drain(_is_drained(machine.info.name), machine.seconds)

    def _tell_nodes(self) -> None:
        if self._is_early():
            return
        told = []
        for node_id, machine in self._present.items():
            agent, trouble = self._agents.living.get(node_id), self._agents.troubles.get(node_id)
            if machine.seconds is not None:
                told.append(without_slots(machine.info, DRAINED))
            elif agent is not None:
                told.append(replace_info(machine.info, python=agent.facts.python, version=agent.facts.version))
            elif trouble is not None:
                told.append(without_slots(machine.info, trouble))
            # Of a machine whose agent is being made nothing is told yet.
        if (told, self._others) != self._told:
            self._told = told, self._others
            self._emit(Nodes(nodes=told, others=self._others))
            if self._exposed:  # that there are machines does not mean that they may be used
                self._emit(Lost(why=self._exposed))

    def _is_early(self) -> bool:
        """Whether the first machines are still being prepared: they are told of together, unless some take long."""
        if self._told[0] or not self._agents.busy:
            return False
        now = time.monotonic()
        if self._first_until is None:
            self._first_until = now + _FIRST_SECONDS
        return now < self._first_until or not (self._agents.living or self._agents.troubles)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a task of the bridge failed", exc_info=error)


def _is_drained(name: str) -> str:
    return f"the machine {name} is being drained"
