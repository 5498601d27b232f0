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

from det_native.master.launch.ray.asks.kinds import RankEnded, Share
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.master.launch.ray.bridge.agents import Agent, AgentLostError, Agents
from det_native.master.launch.ray.bridge.asking import demands_of
from det_native.master.launch.ray.bridge.cluster import Cluster
from det_native.master.launch.ray.bridge.gang import NOT_BEGUN, Gang
from det_native.master.launch.ray.bridge.nodes import Machine, Machines
from det_native.master.launch.ray.bridge.run import Run, Spot, failed_without_code, titles_of
from det_native.master.launch.ray.bridge.watch import Watch
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
    Modules,
    StartRun,
    Stopped,
    Want,
    Warm,
)
from det_native.schema.cluster import MachineModules

logger = logging.getLogger(__name__)

_ANSWER_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_HEARD_SECONDS = 120.0

HEAD_RESTARTED = "the head of the cluster was restarted"


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
    kind : type
        ``NodeAgent``.
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
        self._machines = machines
        self._watch = Watch(
            cluster,
            machines,
            self._agents,
            settings.who,
            emit,
            exposure=settings.exposure,
            on_drain=self._on_drain,
            idle=self._idle,
        )
        self._has_asked = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, commands: AsyncIterator[Command]) -> None:
        """Work until the launcher closes the bridge, or is gone.

        Raises
        ------
        HeadAwayError
        """
        watch = asyncio.create_task(self._watch.run())
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
        await self._watch.first_look()
        if self._watch.exposed:
            raise AgentLostError(self._watch.exposed)
        if not command.slots:
            if not self._agents.living:
                await self._agents.settled()
            return [self._spot_without_slots()]
        names = [slot.rpartition("/")[0] for slot in command.slots]
        by_name = {machine.info.name: machine for machine in self._watch.present.values()}
        machines = [by_name[name] for name in dict.fromkeys(names) if name in by_name]
        self._agents.wake(machines)
        await self._agents.settled({machine.info.id for machine in machines})
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
            return self._watch.present[node_id].info.slots - beside, self._watch.present[node_id].head

        stays = {node_id for node_id, machine in self._watch.present.items() if machine.seconds is None}
        usable = [node_id for node_id in self._agents.living if node_id in stays]
        if not usable:
            trouble = next(iter(self._agents.troubles.values()), "")
            raise AgentLostError(f"no machine of the cluster can run workers. {trouble}".rstrip())
        chosen = max(usable, key=room)
        return Spot(self._agents.living[chosen], self._watch.present[chosen], 0)

    async def _adopt(self, command: AdoptRun) -> None:
        if command.run_id in self._runs:
            return
        handle = command.handle
        run = self._new_run(command.run_id, handle.get("ranks", 1), handle["directory"], handle.get("titles", ()))
        run.adopting = True
        await self._watch.first_look()
        nodes = {place["rank"]: place for place in handle.get("places", ())}
        await self._until_heard({place["node"] for place in nodes.values()})
        run.adopted(
            {rank: agent for agent in self._agents.living.values() for rank in agent.runs.get(command.run_id, ())}
        )
        restarted = self._watch.is_another_cluster
        for rank in sorted(run.gang.living - set(run.agents)):
            place = nodes.get(rank)
            if restarted and not run.agents:
                run.missing([rank], HEAD_RESTARTED, interrupted=HEAD_RESTARTED)
            elif place is not None and place["node"] not in self._watch.present:
                run.missing([rank], f"the machine {place['name']} is gone")
            elif nodes or run.agents:
                run.missing([rank], "it ended while the master was away")
            else:
                run.missing([rank], NOT_BEGUN, begun=False)

    async def _until_heard(self, node_ids: set[str]) -> None:
        """Wait for the agents of these machines, as long as the machines live: only they know what still runs."""
        until = time.monotonic() + _HEARD_SECONDS
        await self._agents.settled(node_ids or None)
        while (node_ids & self._watch.present.keys()) - self._agents.living.keys() and time.monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)

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
        await self._watch.first_look()
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
            await self._watch.first_look()
            self._has_asked = True
        demands = demands_of(command.wanted, self._watch.present.values(), self._machines.rule)
        try:
            await self._cluster.want(demands)
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
        self._watch.tell()  # its slots are given to nobody from now on
        if self._watch.follows:
            self._lose(agent)
        else:
            self._spawn(self._lose_later(agent))

    async def _lose_later(self, agent: Agent) -> None:
        """Note that an agent is gone once it is known whether the head of the cluster, too, is another one."""
        await self._watch.next_look()
        self._lose(agent)

    def _lose(self, agent: Agent) -> None:
        restarted = self._watch.has_another_head(agent.node_id)
        for run in list(self._runs.values()):
            run.lost(agent, HEAD_RESTARTED if restarted else "")

    def _on_drain(self, machine: Machine) -> None:
        """Have the runs on a machine that will be gone soon end: they go on elsewhere."""
        here = [
            run for run in self._runs.values() if any(agent.node_id == machine.info.id for agent in run.agents.values())
        ]
        for run in here:
            run.drain(_is_drained(machine.info.name), machine.seconds or 0.0)
        if not here and all(run.agents for run in self._runs.values()):  # and none is about to begin there
            self._agents.dismiss(machine.info.id)

    def _idle(self) -> list[str]:
        """Return the machines that an autoscaler may take away, as far as we are concerned."""
        if not all(run.agents for run in self._runs.values()):  # it begins soon, somewhere
            return []
        used = {agent.node_id for run in self._runs.values() for agent in run.agents.values()}
        return [
            node_id
            for node_id, machine in self._watch.present.items()
            if machine.may_be_given_back and node_id not in used
        ]

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
