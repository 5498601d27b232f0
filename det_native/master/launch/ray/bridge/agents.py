"""The agents on the machines: made, found again, and served with what they ask."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ray.exceptions import ActorDiedError, RayError, RayTaskError

from det_native._version import PROTOCOL
from det_native.errors import DetError
from det_native.master.launch.ray.asks.kinds import AgentFacts, Ask, Problem, RankEnded, Reply, Share
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.master.launch.ray.bridge.cluster import Cluster
from det_native.master.launch.ray.bridge.nodes import Machine
from det_native.master.launch.ray.messages import Worker

logger = logging.getLogger(__name__)

_START_SECONDS = 180.0
_RETRY_SECONDS = 1.0
_FOLDER = "~/.cache/det_native/agents"


class AgentLostError(Exception):
    """The machine of an agent is gone, or the agent itself; the message is a sentence."""


@dataclass(eq=False)
class Agent:
    """The agent of one machine.

    Attributes
    ----------
    node_id, name : str
        Of the machine.
    handle : Any
        The actor.
    facts : AgentFacts
    runs : dict of str to list of int
        The ranks that it had when it was found.
    """

    node_id: str
    name: str
    handle: Any
    facts: AgentFacts
    runs: dict[str, list[int]] = field(default_factory=dict)
    lost: str = ""

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the agent.

        Raises
        ------
        AgentLostError
        DetError
            What the method has raised.
        """
        try:
            return await getattr(self.handle, method).remote(*arguments)
        except ActorDiedError:
            raise AgentLostError(self.lost or f"the machine {self.name} is gone") from None
        except RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, DetError) else DetError(str(cause or error)) from None


class Agents:
    """All agents.

    Parameters
    ----------
    cluster : Cluster
    server : AskServer
        Performs what they ask of the master.
    kind : type
        ``NodeAgent``.
    namespace : str
        Of the master's home and the cluster.
    on_end, on_share, on_lost
        Called with the ends of processes, files for other machines, and an agent that is gone.
    """

    def __init__(
        self,
        cluster: Cluster,
        server: AskServer,
        kind: type,
        namespace: str,
        *,
        on_end: Callable[[Agent, RankEnded], Awaitable[None]],
        on_share: Callable[[Agent, Share], Awaitable[None]],
        on_lost: Callable[[Agent], None],
    ) -> None:
        self._cluster = cluster
        self._server = server
        self._kind = kind
        self._namespace = namespace
        self._on_end, self._on_share, self._on_lost = on_end, on_share, on_lost
        self._bridge = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._making: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._warm: dict[str, Worker] = {}
        self.living: dict[str, Agent] = {}
        self.troubles: dict[str, str] = {}

    def follow(self, machines: dict[str, Machine]) -> None:
        """Have an agent on each machine that lives; forget the others."""
        for node_id, machine in machines.items():
            if node_id not in self.living and node_id not in self._making and node_id not in self.troubles:
                self._making[node_id] = asyncio.create_task(self._make(machine))
        for node_id in [*self.living]:
            if node_id not in machines:
                self._lose(self.living[node_id], f"the machine {self.living[node_id].name} is gone")
        for node_id in [*self.troubles]:
            if node_id not in machines:
                del self.troubles[node_id]

    async def settled(self) -> None:
        """Wait until all machines that are known have an agent, or trouble."""
        while self._making:
            await asyncio.wait(self._making.values())

    @property
    def busy(self) -> bool:
        """Whether an agent is being made."""
        return bool(self._making)

    async def warm(self, worker: Worker) -> None:
        """Have a standby of a kind ready soon, on all machines, those that come later among them."""
        self._warm[worker.framework] = worker
        await self.tell_all("warm", worker)

    async def standbys(self) -> dict[str, int]:
        """Return how many standbys of each framework are ready, on all machines together."""
        counts: dict[str, int] = {}
        for found in await self.tell_all("standbys"):
            for framework, count in found.items():
                counts[framework] = counts.get(framework, 0) + count
        return counts

    async def tell_all(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all agents; return the answers of those that gave one."""
        found = await asyncio.gather(
            *(agent.call(method, *arguments) for agent in self.living.values()), return_exceptions=True
        )
        return [answer for answer in found if not isinstance(answer, BaseException)]

    async def close(self, *, kill_workers: bool) -> None:
        """Stop the standbys, and the workers if asked; agents without workers end."""

        async def end(agent: Agent) -> None:
            try:
                await agent.call("close", kill_workers)
                if kill_workers or not await agent.call("runs"):
                    await self._cluster.end_actor(agent.handle)
            except (AgentLostError, DetError, RayError) as error:
                logger.info("the agent of %s is not closed: %s", agent.name, error)

        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(end(agent) for agent in self.living.values()))

    async def _make(self, machine: Machine) -> None:
        node_id, info = machine.info.id, machine.info
        folder = f"{_FOLDER}/{self._namespace}/{node_id[:16]}"
        try:
            arguments = (folder, self._namespace, info.device, info.slots)
            handle = await self._cluster.agent(self._kind, node_id, arguments)
            facts: AgentFacts = await asyncio.wait_for(handle.facts.remote(), _START_SECONDS)
            trouble = trouble_of(facts)
            if trouble:
                self.troubles[node_id] = trouble
                return
            agent = Agent(node_id, info.name, handle, facts, await handle.runs.remote())
            for worker in self._warm.values():
                await agent.call("warm", worker)
        except (RayError, AgentLostError, DetError, TimeoutError, ValueError) as error:
            self.troubles[node_id] = start_trouble(str(error) or "it did not answer in time", info.name)
            logger.warning("no agent on %s: %s", info.name, error)
            return
        finally:
            del self._making[node_id]
        self.living[node_id] = agent
        self._spawn(self._serve(agent))

    async def _serve(self, agent: Agent) -> None:
        """Take what an agent asks until it is gone."""
        while not agent.lost:
            try:
                asks: list[Ask] = await agent.call("asks", self._bridge)
            except AgentLostError:
                self._lose(agent, f"the machine {agent.name} is gone")
                return
            except (RayError, DetError) as error:
                logger.info("the agent of %s does not answer now: %s", agent.name, error)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            for ask in asks:
                self._spawn(self._answer(agent, ask))

    async def _answer(self, agent: Agent, ask: Ask) -> None:
        reply: Reply
        try:
            if isinstance(ask.what, RankEnded):
                await self._on_end(agent, ask.what)
                reply = None
            elif isinstance(ask.what, Share):
                await self._on_share(agent, ask.what)
                reply = None
            else:
                reply = await self._server.perform(ask.what)
        except Exception as error:
            logger.exception("an ask of the agent of %s failed", agent.name)
            reply = Problem(str(error), type(error).__name__)
        while not agent.lost:
            try:
                await agent.call("answer", [(ask.number, reply)])
                return
            except AgentLostError:
                return
            except (RayError, DetError) as error:
                logger.info("the agent of %s does not take an answer now: %s", agent.name, error)
                await asyncio.sleep(_RETRY_SECONDS)

    def _lose(self, agent: Agent, why: str) -> None:
        if not agent.lost:
            agent.lost = why
            self.living.pop(agent.node_id, None)
            self._on_lost(agent)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def trouble_of(facts: AgentFacts) -> str:
    """Return why workers cannot run beside an agent, a sentence; empty if they can."""
    own = ".".join(platform.python_version_tuple()[:2])
    theirs = ".".join(facts.python.split(".")[:2])
    if theirs != own:
        return f"It has Python {theirs}, the master Python {own}: install Python {own} there, with det-native."
    if facts.protocol != PROTOCOL:
        return f"It has another version of det-native ({facts.version}): install the master's version there."
    return ""


def start_trouble(text: str, name: str) -> str:
    """Say why no agent could be started on a machine, and what to do."""
    if "No module named 'det_" in text:
        return "It has no det_native: install the master's version there (pip install det-native)."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"The agent could not start on {name}: {lines[-1] if lines else 'no reason is given'}"
