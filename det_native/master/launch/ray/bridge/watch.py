"""Looks at the machines of the cluster again and again, and tells the launcher which can run workers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ray.exceptions import RayError

from det_native.errors import DetError
from det_native.master.launch.ray.bridge.agents import Agents
from det_native.master.launch.ray.bridge.cluster import Cluster
from det_native.master.launch.ray.bridge.nodes import Machine, Machines, head_of, replace_info, steadied, without_slots
from det_native.master.launch.ray.messages import Event, Lost, Nodes, Standbys
from det_native.schema.cluster import NodeInfo

logger = logging.getLogger(__name__)

_WATCH_SECONDS = 1.0
_ANSWER_SECONDS = 15.0
_GIVE_UP_SECONDS = 60.0
_FIRST_SECONDS = 20.0

SILENT = "The agent of det_native there does not answer: see whether the machine hangs."
DRAINED = "It is being drained: it will be taken out of the cluster."


class HeadAwayError(Exception):
    """The head of the cluster does not answer, and a new connection is to be tried."""


class Watch:
    """Keeps what is known of the machines.

    Parameters
    ----------
    who : str
        Whose master this is, for other masters.
    emit : callable
        Tells the launcher.
    exposure : callable
        Says, as a sentence, why nothing more may be started on a cluster with such machines; empty if it may.
    on_drain : callable
        Called at each look with a machine that will be gone soon.
    idle : callable
        Returns the ids of machines where nothing is and nothing begins, and that an autoscaler may take away.

    Attributes
    ----------
    present : dict of str to Machine
        The machines that live, by id.
    exposed : str
        Why nothing more may be started now, a sentence; empty if it may.
    """

    def __init__(
        self,
        cluster: Cluster,
        machines: Machines,
        agents: Agents,
        who: str,
        emit: Callable[[Event], None],
        *,
        exposure: Callable[[Iterable[Mapping[str, Any]]], str],
        on_drain: Callable[[Machine], None],
        idle: Callable[[], Collection[str]],
    ) -> None:
        self._cluster, self._machines, self._agents = cluster, machines, agents
        self._who, self._emit, self._exposure, self._on_drain, self._idle = who, emit, exposure, on_drain, idle
        self.present: dict[str, Machine] = {}
        self.exposed = ""
        self._read: dict[str, Machine] = {}
        self._heads: dict[str, str] = {}  # which head a machine was first seen with
        self._told: tuple[list[NodeInfo], list[str]] = [], []
        self._others: list[str] = []
        self._standbys: dict[str, int] = {}
        self._first_until: float | None = None
        self._introduced = False
        self._looked = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._follows = False

    @property
    def follows(self) -> bool:
        """Whether the agents hear of a look right now: what it has seen is new."""
        return self._follows

    @property
    def is_another_cluster(self) -> bool:
        """Whether none of the machines of before is left: the head was restarted without them."""
        return bool(self._machines.of_before) and not self._machines.of_before & set(self.present)

    async def first_look(self) -> None:
        """Wait until the machines have been looked at once."""
        await self._looked.wait()

    async def next_look(self) -> None:
        """Wait for a look that begins later than now."""
        look: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(look)
        await look

    def has_another_head(self, node_id: str) -> bool:
        """Return whether the head of the cluster is another one than when this machine was first seen."""
        return self._heads.get(node_id) != head_of(self.present)

    async def run(self) -> None:
        """Look until the head of the cluster is away for long.

        Raises
        ------
        HeadAwayError
        """
        answered = time.monotonic()
        lost = False
        while True:
            try:
                await asyncio.wait_for(self._look(), _ANSWER_SECONDS)
                answered, was_lost, lost = time.monotonic(), lost, False
                if was_lost:
                    self._emit(Lost(why=self.exposed))
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
            await self._cluster.introduce(self._who)
            self._introduced = True
        waiting, self._waiting = self._waiting, []
        try:
            table = await self._cluster.table()
        except BaseException:
            self._waiting += waiting
            raise
        self._others = table.others
        exposed, self.exposed = self.exposed, self._exposure(table.nodes)
        if exposed != self.exposed:  # a machine has joined, or left: what runs goes on
            self._emit(Lost(why=self.exposed))
        read = self._machines.read(table.nodes, table.available, table.own, table.draining)
        self.present = steadied(self._read, read)
        self._read = read
        for node_id in self.present:
            self._heads.setdefault(node_id, head_of(self.present))
        self._follows = True
        self._agents.follow(self.present)
        self._follows = False
        self._looked.set()
        for look in waiting:
            look.set_result(None)
        for machine in self.present.values():
            if machine.seconds is not None:
                self._on_drain(machine)
        self._agents.rest(self._idle())
        self.tell()

    def tell(self) -> None:
        """Tell what has changed of the machines, and of the standbys there."""
        if (counts := self._agents.standbys()) != self._standbys:
            self._standbys = counts
            self._emit(Standbys(counts=counts))
        if self._is_early():
            return
        nodes = []
        for node_id, machine in self.present.items():
            agent, trouble = self._agents.living.get(node_id), self._agents.troubles.get(node_id)
            facts = self._agents.resting.get(node_id) if agent is None else agent.facts
            if machine.seconds is not None:
                nodes.append(without_slots(machine.info, DRAINED))
            elif agent is not None and agent.silent:
                nodes.append(without_slots(machine.info, SILENT))
            elif facts is not None:
                nodes.append(replace_info(machine.info, python=facts.python, version=facts.version))
            elif trouble is not None:
                nodes.append(without_slots(machine.info, trouble))
            # Of a machine whose agent is being made nothing is told yet.
        if (nodes, self._others) != self._told:
            self._told = nodes, self._others
            self._emit(Nodes(nodes=nodes, others=self._others))
            if self.exposed:  # that there are machines does not mean that they may be used
                self._emit(Lost(why=self.exposed))

    def _is_early(self) -> bool:
        """Whether the first machines are still being prepared: they are told of together, unless some take long."""
        if self._told[0] or not self._agents.busy:
            return False
        now = time.monotonic()
        if self._first_until is None:
            self._first_until = now + _FIRST_SECONDS
        return now < self._first_until or not (self._agents.living or self._agents.troubles)
