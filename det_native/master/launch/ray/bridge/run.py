"""One run: its place in the cluster, its processes, and their ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup

from det_native.errors import DetError
from det_native.master.launch.base import Exit
from det_native.master.launch.ends import has_failed
from det_native.master.launch.ray.asks.kinds import RankEnded, Share
from det_native.master.launch.ray.bridge.agents import Agent, AgentLostError
from det_native.master.launch.ray.bridge.cluster import Bundle, Cluster
from det_native.master.launch.ray.bridge.gang import Gang
from det_native.master.launch.ray.bridge.nodes import Machine
from det_native.master.launch.ray.messages import Event, RankPlace, Started, StartRun, Waiting
from det_native.schema.job import TrialJob
from det_native.schema.ranks import Place, placed_rank_jobs, rank_folder
from det_native.schema.roles import role_title

logger = logging.getLogger(__name__)

_LOOK_SECONDS = (0.02, 0.25)
_PATIENCE_SECONDS = 2.0
_CANNOT_START = 127
_RETRY_SECONDS = 1.0
# What a run has to end where its machine is being drained: at least, since clocks differ, and at most.
_DRAIN_SECONDS = (5.0, 600.0)


@dataclass(frozen=True)
class Spot:
    """A machine of a run: its agent, what Ray tells of it, and how many slots the run has there."""

    agent: Agent
    machine: Machine
    slots: int


@dataclass(eq=False)
class Run:
    """A run.

    Attributes
    ----------
    agents : dict of int to Agent
        Where each rank is.
    done : asyncio.Future
        Its end.
    adopting : bool
        Whether its processes are still looked for.
    kill_grace : float or None
        Seconds that it has to end once somebody has asked for that; None if nobody has.
    """

    run_id: str
    gang: Gang
    cluster: Cluster
    emit: Callable[[Event], None]
    agents: dict[int, Agent] = field(default_factory=dict)
    kill_grace: float | None = None
    adopting: bool = False
    done: asyncio.Future[Exit] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    # Ranks whose processes may have begun.
    _begun: set[int] = field(default_factory=set)
    _due: asyncio.TimerHandle | None = None
    _group: asyncio.Task[PlacementGroup] | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self, command: StartRun, spots: Sequence[Spot], threads: int | None) -> None:
        """Begin: `spots` are the machines of its slots, in the order of ranks, or the one that it is to be on."""
        self._spawn(self._start(command, spots, threads))

    def kill(self, grace: float) -> None:
        """End the processes."""
        if self.kill_grace is None or grace < self.kill_grace:
            self.kill_grace = grace
        if self.adopting:  # `adopted` sees to it
            return
        if not self.agents:  # nothing has been started yet, and nothing will be
            for rank in sorted(self.gang.living):
                self.gang.end(rank, -9, time.monotonic(), detail="ended on request (SIGKILL)")
            self._look()
        self._spawn(self.tell("kill", self.run_id, grace))

    def drain(self, why: str, seconds: float) -> None:
        """Have it end with a checkpoint, once: a machine of it will be gone in so many seconds."""
        if not self.gang.interrupted:
            self.gang.interrupted = why
            self.kill(min(max(seconds, _DRAIN_SECONDS[0]), _DRAIN_SECONDS[1]))

    def adopted(self, agents: Mapping[int, Agent]) -> None:
        """Note where the processes are that an earlier bridge has started."""
        self.agents.update(agents)
        self._begun.update(agents)
        self.adopting = False
        if self.kill_grace is not None:
            self._spawn(self.tell("kill", self.run_id, self.kill_grace))

    async def tell(self, method: str, *arguments: Any) -> None:
        """Call a method of the agents where processes of the run live."""
        agents = {self.agents[rank] for rank in self.gang.living if rank in self.agents}
        await asyncio.gather(*(agent.call(method, *arguments) for agent in agents), return_exceptions=True)

    async def stopped(self) -> list[int]:
        """Return the numbers of its processes that a signal has stopped."""
        agents = set(self.agents.values())
        found = await asyncio.gather(*(agent.call("stopped", self.run_id) for agent in agents), return_exceptions=True)
        return [pid for pids in found if not isinstance(pids, BaseException) for pid in pids]

    async def share(self, source: Agent, what: Share) -> None:
        """Send a file to the other machines of the run."""
        others = {agent for agent in self.agents.values() if agent is not source and not agent.lost}
        await asyncio.gather(
            *(agent.call("share", self.run_id, what.name, what.content) for agent in others), return_exceptions=True
        )

    async def ended(self, what: RankEnded) -> None:
        """Note the end of a process; return once the run's end has been passed on, for then it may be forgotten."""
        now = time.monotonic()
        self.gang.end(what.rank, what.code, now, detail=what.detail, memory=what.memory, begun=what.begun)
        self._look()
        await asyncio.shield(self.done)

    def lost(self, agent: Agent, interrupted: str = "") -> None:
        """Note that an agent is gone, and the processes there with it; see ``Exit`` for `interrupted`."""
        if agent in self.agents.values():
            self.gang.interrupted = self.gang.interrupted or interrupted
        for rank, place in self.agents.items():
            if place is agent:
                self.gang.lost([rank], agent.lost, time.monotonic(), begun=rank in self._begun)
        self._look()

    def missing(self, ranks: Sequence[int], why: str, *, begun: bool = True, interrupted: str = "") -> None:
        """Note that processes are gone, of which no agent knows; see ``Exit``."""
        self.gang.interrupted = self.gang.interrupted or interrupted
        self.gang.lost(ranks, why, time.monotonic(), begun=begun)
        self._look()

    async def close(self) -> None:
        """Give back what it holds."""
        if self._due is not None:
            self._due.cancel()
        if self._group is not None:  # one that is being made would stay
            await asyncio.wait([self._group])
        for task in self._tasks:
            task.cancel()
        try:
            await self.cluster.release(self.run_id)
        except (RayError, ConnectionError) as error:
            logger.warning("the slots of run %s are not given back: %s", self.run_id, error)

    def _look(self) -> None:
        """Act on what the gang says now."""
        ended = self.gang.exit
        if ended is not None:
            if not self.done.done():
                self.done.set_result(ended)
            return
        now = time.monotonic()
        if self.gang.is_due(now):
            self._spawn(self.tell("kill", self.run_id, 0.0))
        elif self.gang.kill_at is not None:
            if self._due is not None:
                self._due.cancel()
            pause = max(self.gang.kill_at - now, 0.0) + 0.001
            self._due = asyncio.get_running_loop().call_later(pause, self._look)

    async def _start(self, command: StartRun, spots: Sequence[Spot], threads: int | None) -> None:
        try:
            devices = await self._reserve(command, spots)
            if self.done.done():  # it was killed meanwhile
                return
            await self._start_ranks(command, spots, devices, threads)
        except AgentLostError as error:
            logger.warning("run %s does not start: %s", self.run_id, error)
            self.missing(sorted(self.gang.living), str(error), begun=False, interrupted=str(error))
        except (DetError, RayError, ConnectionError, ValueError) as error:
            logger.warning("run %s does not start: %s", self.run_id, error)
            self._failed(sorted(self.gang.living - set(self.agents)), str(error))
        except Exception as error:  # whatever it is, the run must not wait for ever
            logger.exception("run %s does not start", self.run_id)
            self._failed(sorted(self.gang.living), f"it could not be started: {type(error).__name__}: {error}")
            await self.tell("kill", self.run_id, 0.0)

    async def _reserve(self, command: StartRun, spots: Sequence[Spot]) -> dict[str, list[str]]:
        """Hold the slots; return the devices on each machine, by its id, where Ray tells.

        Raises
        ------
        AgentLostError
            If a machine goes meanwhile: Ray would wait for it for ever.
        """
        bundles = [
            Bundle(spot.machine.info.id, spot.machine.resource, spot.slots, spot.machine.share)
            for spot in spots
            if spot.slots
        ]
        if not bundles:
            return {}
        spread = len(bundles) > 1
        self._group = asyncio.create_task(self.cluster.make_group(self.run_id, bundles, spread=spread))
        group = await asyncio.shield(self._group)
        # The actors wait in Ray for the group, and their processes start meanwhile.
        holders = await self._hold(group, bundles)
        pause, longest = _LOOK_SECONDS
        patient_until, told = time.monotonic() + _PATIENCE_SECONDS, False
        made = await self.cluster.wait_for_group(group)
        while not made:
            if self.done.done():
                return {}
            if lost := next((spot.agent.lost for spot in spots if spot.agent.lost), ""):
                raise AgentLostError(lost)
            if time.monotonic() > patient_until and not told:
                told = True
                self.emit(Waiting(run_id=self.run_id, why=_waits(spots)))
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)
            made = await self.cluster.group_is_made(group)
        if told:
            self.emit(Waiting(run_id=self.run_id, why=""))
        if not holders:
            return {}
        found = await asyncio.gather(*(holder.gpus.remote() for holder in holders))
        return {bundle.node_id: gpus for bundle, gpus in zip(bundles, found, strict=True)}

    async def _hold(self, group: PlacementGroup, bundles: Sequence[Bundle]) -> list[Any]:
        if not any(bundle.resource == "GPU" for bundle in bundles):
            return []
        return await self.cluster.hold(self.run_id, group, bundles)

    async def _start_ranks(
        self, command: StartRun, spots: Sequence[Spot], devices: Mapping[str, list[str]], threads: int | None
    ) -> None:
        placed = places_of(command, spots, devices, threads)
        jobs = placed_rank_jobs(command.job, [place for _, place in placed])
        self.agents.update({rank: spot.agent for rank, (spot, _) in enumerate(placed)})
        for agent in {spot.agent for spot, _ in placed if spot.agent.lost}:  # while the slots were being reserved
            self.lost(agent, agent.lost)

        async def start(rank: int) -> tuple[RankPlace, str] | None:
            agent = self.agents[rank]
            if agent.lost:
                return None
            self._begun.add(rank)
            while True:
                try:
                    found = await agent.call("start", self.run_id, rank, jobs[rank].model_dump_json(), command.worker)
                    break
                except AgentLostError:
                    return None  # `lost` has noted it, or will
                except DetError as error:
                    self._failed([rank], str(error))
                    return None
                except RayError as error:  # the process may have begun: what is called again, the agent does once
                    if agent.lost or self.done.done():
                        return None
                    logger.info("the agent of %s does not answer now: %s", agent.name, error)
                    await asyncio.sleep(_RETRY_SECONDS)
            info = placed[rank][0].machine.info
            place = RankPlace(rank=rank, node=info.id, name=info.name, address=info.address, pid=found["pid"] or 0)
            return place, str(found.get("standby", ""))

        found = await asyncio.gather(*(start(rank) for rank in range(len(jobs))))
        begun = [each for each in found if each is not None]
        if len(begun) == len(jobs):
            standby = ", ".join(warmth for _, warmth in begun)
            self.emit(Started(run_id=self.run_id, places=[place for place, _ in begun], standby=standby))
        if self.kill_grace is not None:
            await self.tell("kill", self.run_id, self.kill_grace)

    def _failed(self, ranks: Sequence[int], why: str) -> None:
        for rank in ranks:
            self.gang.end(rank, _CANNOT_START, time.monotonic(), detail=why)
        self._look()

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def places_of(
    command: StartRun, spots: Sequence[Spot], devices: Mapping[str, list[str]], threads: int | None
) -> list[tuple[Spot, Place]]:
    """Return where each process of a run is to be, and with what.

    Ranks beyond the slots, which have roles without one, are with the first rank. Where there are fewer ranks than
    slots, each is on a machine of its own and has all slots there.
    """
    slotted = [spot for spot in spots for _ in range(spot.slots)]
    by_machine = command.ranks < len(slotted)
    slotted = [spot for spot in spots if spot.slots] if by_machine else slotted
    left = {spot.machine.info.id: list(devices.get(spot.machine.info.id, ())) for spot in spots}
    own = list(command.job.devices) if isinstance(command.job, TrialJob) and not devices else []
    placed = []
    for rank in range(command.ranks):
        has_slot = rank < len(slotted)
        spot = slotted[rank] if has_slot else spots[0]
        node_id = spot.machine.info.id
        each = spot.slots if by_machine else 1
        mine = left[node_id][:each] if has_slot else []
        left[node_id] = left[node_id][len(mine) :]
        share = threads or spot.machine.threads or max(1, spot.agent.facts.cores // max(spot.machine.info.slots, 1))
        given = mine or (own[rank : rank + 1] if command.ranks > 1 else own)
        variables = {"OMP_NUM_THREADS": spot.agent.facts.threads} if spot.agent.facts.threads else {}
        placed.append((spot, Place(node_id, spot.machine.info.address, given, share * each, variables, each)))
    return placed


def titles_of(command: StartRun) -> list[str]:
    """Return what each rank is, where processes have roles."""
    if not isinstance(command.job, TrialJob) or command.ranks == 1:
        return []
    titles = [role_title(command.job.config, rank) for rank in range(command.ranks)]
    return [title for title in titles if title is not None]


def failed_without_code(directory: str) -> Callable[[int], bool]:
    """Return whether a process of a run failed, by its exit report in the master's folder of the run."""
    return lambda rank: has_failed(None, rank_folder(Path(directory), rank))


def _waits(spots: Sequence[Spot]) -> str:
    machines = ", ".join(spot.machine.info.name for spot in spots)
    return f"waits for Ray: slots on {machines} are held by another program of the cluster"
