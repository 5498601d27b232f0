"""The agents on the machines: made, found again, and served with what they ask."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import platform
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
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
_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 1.0
_REST_SECONDS = 300.0
_HUNG_SECONDS = 300.0
# An agent that could not be started is tried again so many seconds later: at first, and at most.
_AGAIN_SECONDS = (10.0, 60.0)
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
    runs : dict of str to list of int
        The ranks that it had when it was found.
    lost : str
        Why it is gone, a sentence; empty as long as it lives.
    standbys : dict of str to int
        How many of each framework it has ready.
    silent : bool
        Whether it has not answered for some seconds.
    dismissed : bool
        Whether it is to end, since its machine is being drained, or may be given back.
    """

    node_id: str
    name: str
    handle: Any
    facts: AgentFacts
    runs: dict[str, list[int]] = field(default_factory=dict)
    lost: str = ""
    standbys: dict[str, int] = field(default_factory=dict)
    silent: bool = False
    dismissed: bool = False
    # The numbers of what it has asked and has no answer to yet.
    asked: set[int] = field(default_factory=set)

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the agent.

        Raises
        ------
        AgentLostError
        DetError
            What the method has raised.
        """
        try:
            # Ray cannot take it that somebody stops waiting for a call.
            called = asyncio.ensure_future(getattr(self.handle, method).remote(*arguments))
            called.add_done_callback(_look_at)
            return await asyncio.shield(called)
        except ActorDiedError as error:
            raise AgentLostError(self.lost or lost_text(self.name, str(error))) from None
        except RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, DetError) else DetError(str(cause or error)) from None


class Agents:
    """All agents.

    Parameters
    ----------
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
        self._again: dict[str, tuple[float, float]] = {}  # when one is tried again, and how long that was put off
        self._idle_since: dict[str, float] = {}
        #: What machines are like whose agents have ended so that an autoscaler may take them away.
        self.resting: dict[str, AgentFacts] = {}

    def follow(self, machines: dict[str, Machine]) -> None:
        """Have an agent on each machine that lives; forget the others."""
        now = time.monotonic()
        for node_id, machine in machines.items():
            waits = node_id in self.resting or now < self._again.get(node_id, (0.0, 0.0))[0]
            if not (waits or node_id in self.living or node_id in self._making):
                self._making[node_id] = asyncio.create_task(self._make(machine))
        for node_id in [*self.living]:
            if node_id not in machines:
                self._lose(self.living[node_id], f"the machine {self.living[node_id].name} is gone")
        for node_id in {*self.troubles, *self.resting} - machines.keys():
            for kept in (self.troubles, self._again, self.resting, self._idle_since):
                kept.pop(node_id, None)

    async def settled(self, node_ids: Collection[str] | None = None) -> None:
        """Wait until these machines have an agent, or trouble; all that are known by default.

        A machine with trouble is tried again now and then; nobody waits for that.
        """
        while making := [
            task
            for node_id, task in self._making.items()
            if node_id not in self.troubles and (node_ids is None or node_id in node_ids)
        ]:
            await asyncio.wait(making)

    @property
    def busy(self) -> bool:
        """Whether an agent is being made."""
        return bool(self._making)

    async def warm(self, worker: Worker) -> None:
        """Have a standby of a kind ready soon, on all machines, those that come later among them."""
        self._warm[worker.framework] = worker
        await self.tell_all("warm", worker)

    def standbys(self) -> dict[str, int]:
        """Return how many standbys of each framework are ready, on all machines that answer together."""
        counts: Counter[str] = Counter()
        for agent in self.living.values():
            counts.update({} if agent.silent else agent.standbys)
        return dict(counts)

    async def tell_all(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all agents; return the answers of those that gave one in some seconds."""
        answers = await asyncio.gather(
            *(asyncio.wait_for(agent.call(method, *arguments), _ANSWER_SECONDS) for agent in self.living.values()),
            return_exceptions=True,
        )
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    def rest(self, idle: Collection[str]) -> None:
        """End the agents of these machines once nothing has been there for minutes; to be told again and again.

        To Ray a machine with an agent is busy, and an autoscaler would pay for it for ever.
        """
        now = time.monotonic()
        for node_id in self._idle_since.keys() - set(idle):
            del self._idle_since[node_id]
        for node_id in idle:
            agent = self.living.get(node_id)
            if agent is None or agent.dismissed:
                self._idle_since.pop(node_id, None)
            elif now - self._idle_since.setdefault(node_id, now) > _REST_SECONDS:
                agent.dismissed = True
                self._spawn(self._dismiss(agent, rests=True))

    def wake(self, machines: Iterable[Machine]) -> None:
        """Have an agent on these machines again; see :meth:`settled`."""
        for machine in machines:
            if self.resting.pop(machine.info.id, None) is not None:
                self._making[machine.info.id] = asyncio.create_task(self._make(machine))

    def dismiss(self, node_id: str) -> None:
        """End the agent of a machine that is being drained, once it has no processes: Ray ends what is idle then."""
        agent = self.living.get(node_id)
        if agent is not None and not agent.dismissed:
            agent.dismissed = True
            self._spawn(self._dismiss(agent))

    async def _dismiss(self, agent: Agent, *, rests: bool = False) -> None:
        try:
            if await agent.call("runs"):
                agent.dismissed = False  # too early
                return
            if rests and not agent.lost:
                agent.lost = "it has ended, since nothing was there to do"
                del self.living[agent.node_id]
                self.resting[agent.node_id] = agent.facts
            await agent.call("close", True)
            await self._cluster.end_actor(agent.handle)
        except (AgentLostError, DetError, RayError) as error:
            agent.dismissed = False  # it is tried again
            logger.info("the agent of %s is not ended: %s", agent.name, error)

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
            arguments = (folder, self._namespace, info.device, info.slots, machine.threads)
            # Ray starts nothing on a machine that is being drained.
            handle = await self._cluster.agent(self._kind, node_id, arguments, make=machine.seconds is None)
            async with asyncio.timeout(_START_SECONDS):
                facts: AgentFacts = await handle.facts.remote()
                runs: dict[str, list[int]] = await handle.runs.remote()
                trouble = trouble_of(facts)
                if trouble:
                    self._note_trouble(node_id, trouble)
                    if not runs:  # the next one finds what is installed there then
                        await self._cluster.end_actor(handle)
                    return
                agent = Agent(node_id, info.name, handle, facts, runs)
                for worker in self._warm.values():
                    await agent.call("warm", worker)
        except (RayError, AgentLostError, DetError, TimeoutError, ValueError) as error:
            self._note_trouble(node_id, start_trouble(str(error) or "it did not answer in time", info.name))
            logger.warning("no agent on %s: %s", info.name, error)
            return
        finally:
            del self._making[node_id]
        self.troubles.pop(node_id, None)
        self._again.pop(node_id, None)
        self.living[node_id] = agent
        self._spawn(self._serve(agent))
        self._spawn(self._watch(agent))

    async def _watch(self, agent: Agent) -> None:
        """Ask an agent for its standbys again and again: one that hangs is seen, and keeps nobody else waiting."""
        answered = time.monotonic()
        while not agent.lost:
            try:
                agent.standbys = await asyncio.wait_for(agent.call("standbys"), _ANSWER_SECONDS)
                agent.silent, answered = False, time.monotonic()
            except AgentLostError:
                return  # `_serve` sees to it
            except DetError as error:
                logger.warning("the agent of %s: %s", agent.name, error)
            except (RayError, TimeoutError):
                agent.silent = True
                if time.monotonic() - answered > _HUNG_SECONDS:  # nobody could end the runs there
                    logger.warning("the agent of %s hangs, and is ended with its workers", agent.name)
                    answered = time.monotonic()
                    with contextlib.suppress(RayError, ConnectionError):  # it is tried again
                        await self._cluster.end_actor(agent.handle)
            await asyncio.sleep(_LOOK_SECONDS)

    def _note_trouble(self, node_id: str, trouble: str) -> None:
        shortest, longest = _AGAIN_SECONDS
        pause = min(2 * self._again[node_id][1], longest) if node_id in self._again else shortest
        self._again[node_id] = time.monotonic() + pause, pause
        self.troubles[node_id] = trouble

    async def _serve(self, agent: Agent) -> None:
        """Take what an agent asks until it is gone."""
        name = self._bridge
        for number in itertools.count(1):
            if agent.lost:
                return
            try:
                asks: list[Ask] = await agent.call("asks", name)
            except AgentLostError as error:
                self._lose(agent, str(error))
                return
            except (RayError, DetError) as error:
                logger.info("the agent of %s does not answer now: %s", agent.name, error)
                # Its answer may be lost: under another name it gives all again that has no answer.
                name = f"{self._bridge}.{number}"
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            for ask in asks:
                if ask.number not in agent.asked:
                    agent.asked.add(ask.number)
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
                agent.asked.discard(ask.number)
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


def _look_at(called: asyncio.Future[Any]) -> None:
    """Take the error of a call for which nobody waits any more: asyncio would write it into the log."""
    if not called.cancelled():
        called.exception()


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
    if "unavailable" in text or "RpcError" in text:
        return f"The agent of det_native on {name} does not answer: see whether the machine hangs. It is tried again."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = lines[-1] if lines else "no reason is given"
    return f"The agent of det_native could not start on {name}: {reason} It is tried again; see Ray's logs there."


def lost_text(name: str, text: str) -> str:
    """Say that an agent has died; Ray does not tell at once whether its machine has.

    Parameters
    ----------
    name : str
        Of the machine.
    text : str
        What Ray says.
    """
    reason = re.search(r"Worker exit type: (\w+)", text)
    if reason is not None and "MEMORY" in reason[1]:
        return f"Ray has ended the agent of det_native on {name} because the machine is short of memory"
    return f"the machine {name} is gone"
