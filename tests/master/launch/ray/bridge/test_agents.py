"""How the bridge keeps to its agents: what they ask is performed once, and who hangs or fails keeps nobody waiting."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError

from det_native._version import PROTOCOL
from det_native.master.launch.ray.agent.ask_queue import AskQueue
from det_native.master.launch.ray.asks.kinds import AgentFacts, Ask, RankEnded, Reply, Request, Response
from det_native.master.launch.ray.bridge import agents as agents_module
from det_native.master.launch.ray.bridge.agents import Agent, Agents
from det_native.master.launch.ray.bridge.nodes import Machine
from det_native.schema.cluster import NodeInfo

# It imports Ray.
pytestmark = pytest.mark.slow

DEADLINE = 20.0


class Actor:
    """What Ray makes of an agent: its methods are called by ``remote``, and some of the calls fail.

    Its queue is the one of the real agent.
    """

    def __init__(self, version: str = "1", protocol: int = PROTOCOL, runs: dict[str, list[int]] | None = None) -> None:
        self.queue = AskQueue()
        self.fails: dict[str, list[Exception]] = {}
        self.hangs: set[str] = set()
        self.found_facts = AgentFacts("host", 1, platform.python_version(), version, protocol, "folder", 2)
        self.found_runs = runs or {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(Actor, f"do_{name}").__get__(self)

        async def remote(*arguments: Any) -> Any:
            if name in self.hangs:
                await asyncio.get_running_loop().create_future()
            answer = await method(*arguments)
            if self.fails.get(name):  # the answer is lost, what was called was done
                raise self.fails[name].pop(0)
            return answer

        return SimpleNamespace(remote=remote)

    async def do_asks(self, bridge: str) -> list[Ask]:
        return await self.queue.take(bridge, 64, 5.0)

    async def do_answer(self, replies: list[tuple[int, Reply]]) -> None:
        self.queue.answer(replies)

    async def do_facts(self) -> AgentFacts:
        return self.found_facts

    async def do_runs(self) -> dict[str, list[int]]:
        return self.found_runs

    async def do_close(self, kill_workers: bool) -> None: ...

    async def do_standbys(self) -> dict[str, int]:
        return {"torch": 1}


class ActorsByMachine:
    """The part of ``Cluster`` that makes and ends actors."""

    def __init__(self, *made: Actor | Exception) -> None:
        self.made = list(made)
        self.ended: list[Actor] = []

    async def agent(self, kind: type, node_id: str, arguments: Any, *, make: bool) -> Actor:
        actor = self.made.pop(0)
        if isinstance(actor, Exception):
            raise actor
        return actor

    async def end_actor(self, actor: Actor) -> None:
        self.ended.append(actor)


class Performer:
    """Performs asks once it is let go."""

    def __init__(self) -> None:
        self.performed: list[Any] = []
        self.open = asyncio.Event()

    async def perform(self, what: Any) -> Reply:
        self.performed.append(what)
        await self.open.wait()
        return Response(200, {}, b"done")


class Rig:
    """Agents on machines called by their ids."""

    def __init__(self, *made: Actor | Exception) -> None:
        self.cluster = ActorsByMachine(*made)
        self.server = Performer()
        self.ends: list[RankEnded] = []
        self.lost: list[str] = []

        async def on_end(agent: Agent, what: RankEnded) -> None:
            self.ends.append(what)

        async def on_share(agent: Agent, what: object) -> None: ...

        self.agents = Agents(
            self.cluster,  # type: ignore[arg-type]
            self.server,  # type: ignore[arg-type]
            object,
            "home",
            on_end=on_end,
            on_share=on_share,
            on_lost=lambda agent: self.lost.append(agent.lost),
        )

    def follow(self, *ids: str) -> None:
        self.agents.follow({node_id: machine(node_id) for node_id in ids})


def machine(node_id: str) -> Machine:
    info = NodeInfo(id=node_id, name=f"name-{node_id}", address="127.0.0.1", slots=2, free=2, device="cpu")
    return Machine(info, 1.0, 2.0, head=False)


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), DEADLINE)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    asyncio.run(bounded())


def unavailable() -> ActorUnavailableError:
    return ActorUnavailableError("The actor 510d is unavailable: RpcError", None)


REQUEST = Request("POST", "/api/v1/trials/1/reports", {}, b"rows")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_RETRY_SECONDS", 0.01), ("_LOOK_SECONDS", 0.01), ("_AGAIN_SECONDS", (0.02, 0.05))):
        monkeypatch.setattr(agents_module, name, seconds)


def test_what_was_lost_on_the_way_is_asked_again_and_what_is_in_work_is_not_done_twice() -> None:
    async def test() -> None:
        actor = Actor()
        rig = Rig(actor)
        rig.follow("a")
        await rig.agents.settled()
        early = asyncio.create_task(actor.queue.ask(REQUEST))
        await until(lambda: rig.server.performed)
        # The bridge hears nothing of what it was given now, while it still works on what came before.
        actor.fails["asks"] = [unavailable()]
        end = RankEnded("run", 0, 0)
        late = asyncio.create_task(actor.queue.ask(end))
        assert await late is None
        rig.server.open.set()
        answer = await early
        assert answer == Response(200, {}, b"done")
        assert (rig.server.performed, rig.ends) == ([REQUEST], [end])
        assert rig.lost == []

    run(test)


def test_an_answer_that_is_lost_is_given_again() -> None:
    async def test() -> None:
        actor = Actor()
        rig = Rig(actor)
        rig.server.open.set()
        rig.follow("a")
        await rig.agents.settled()
        actor.fails["answer"] = [unavailable(), unavailable()]
        await actor.queue.ask(REQUEST)
        await actor.queue.ask(REQUEST)
        assert rig.server.performed == [REQUEST, REQUEST]

    run(test)


def test_an_agent_that_hangs_is_silent_and_the_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_module, "_ANSWER_SECONDS", 0.1)

    async def test() -> None:
        hung, other = Actor(), Actor()
        rig = Rig(hung, other)
        rig.follow("a")
        await rig.agents.settled()
        rig.follow("a", "b")
        await rig.agents.settled()
        await until(lambda: rig.agents.standbys() == {"torch": 2})
        hung.hangs = {"standbys"}
        await until(lambda: rig.agents.living["a"].silent)
        assert rig.agents.standbys() == {"torch": 1}
        assert not rig.agents.living["b"].silent
        # What all are asked comes back from those who answer.
        assert await rig.agents.tell_all("runs") == [{}, {}]
        hung.hangs = {"runs"}
        assert await rig.agents.tell_all("runs") == [{}]
        await until(lambda: not rig.agents.living["a"].silent)
        assert rig.lost == []

    run(test)


def test_an_agent_that_hangs_for_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_module, "_ANSWER_SECONDS", 0.02)
    monkeypatch.setattr(agents_module, "_HUNG_SECONDS", 0.2)

    async def test() -> None:
        hung = Actor()
        rig = Rig(hung)
        rig.follow("a")
        await rig.agents.settled()
        hung.hangs = {"standbys"}
        await until(lambda: rig.agents.living["a"].silent)
        assert rig.cluster.ended == []
        await until(lambda: rig.cluster.ended == [hung])

    run(test)


def test_an_agent_that_could_not_be_started_is_tried_again() -> None:
    async def test() -> None:
        rig = Rig(ValueError("no room on the disk"), unavailable(), Actor())
        rig.follow("a")
        await rig.agents.settled()
        assert "no room on the disk" in rig.agents.troubles["a"]
        rig.follow("a")
        assert not rig.agents.busy, "it is tried again later only"

        def looked() -> object:
            rig.follow("a")
            return "does not answer: see whether the machine hangs" in rig.agents.troubles.get("a", "")

        await until(looked)
        await until(lambda: (rig.follow("a"), rig.agents.living)[1])
        assert rig.agents.troubles == {}

    run(test)


@pytest.mark.parametrize("has_runs", [False, True], ids=["idle", "working"])
def test_an_agent_of_another_version_makes_way_unless_it_works(has_runs: bool) -> None:
    async def test() -> None:
        old = Actor("0.1", PROTOCOL - 1, {"run": [0]} if has_runs else None)
        rig = Rig(old, old if has_runs else Actor())
        rig.follow("a")
        await rig.agents.settled()
        assert "another version of det-native (0.1)" in rig.agents.troubles["a"]
        assert rig.cluster.ended == ([] if has_runs else [old])
        if not has_runs:
            await until(lambda: (rig.follow("a"), rig.agents.living)[1])

    run(test)


def test_an_agent_that_dies_is_lost_once_and_made_anew() -> None:
    async def test() -> None:
        first, second = Actor(), Actor()
        rig = Rig(first, second)
        rig.follow("a")
        await rig.agents.settled()
        first.fails = {"asks": [ActorDiedError()], "standbys": [ActorDiedError()]}
        asked = asyncio.create_task(first.queue.ask(REQUEST))
        await until(lambda: rig.lost)
        rig.follow("a")
        await rig.agents.settled()
        assert rig.agents.living["a"].handle is second
        assert rig.lost == ["the machine name-a is gone"]
        assert not asked.done()

    run(test)


def test_a_machine_that_is_made_ready_keeps_only_those_waiting_who_need_it() -> None:
    async def test() -> None:
        slow = Actor()
        slow.hangs = {"facts"}
        rig = Rig(Actor(), slow)
        rig.follow("a")
        rig.follow("a", "b")
        await rig.agents.settled({"a"})
        assert list(rig.agents.living) == ["a"]
        needs_it = asyncio.create_task(rig.agents.settled())
        await asyncio.sleep(0)
        assert not needs_it.done()

    run(test)


def test_where_nothing_is_for_long_the_agent_ends_and_comes_again_for_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents_module, "_REST_SECONDS", 0.05)

    async def test() -> None:
        first, second = Actor(), Actor(runs={"run": [0]})
        rig = Rig(first, second)
        rig.follow("a")
        await rig.agents.settled()
        while "a" not in rig.agents.resting:
            rig.agents.rest(["a"])
            await asyncio.sleep(0.005)
        await until(lambda: rig.cluster.ended == [first])
        rig.follow("a")
        await rig.agents.settled()
        assert not rig.agents.living, "none is made as long as nobody wants it"
        assert rig.agents.resting["a"] == first.found_facts
        assert rig.lost == []
        rig.agents.wake([machine("a"), machine("b")])
        await rig.agents.settled({"a"})
        assert rig.agents.living["a"].handle is second
        assert not rig.agents.resting
        # Where a run is, of which the bridge has not heard, it stays.
        for _ in range(20):
            rig.agents.rest(["a"])
            await asyncio.sleep(0.005)
        assert rig.cluster.ended == [first]
        # A machine that was busy at one look starts to count from zero.
        rig.agents.rest([])
        rig.follow()
        assert not rig.agents.resting

    run(test)


def test_the_reason_that_ray_gives_is_said() -> None:
    text = "The actor is dead because its worker process has died. Worker exit type: NODE_OUT_OF_MEMORY Worker exit"
    assert agents_module.lost_text("gpu-1", text) == (
        "Ray has ended the agent of det_native on gpu-1 because the machine is short of memory"
    )
    assert agents_module.lost_text("gpu-1", "The node was terminated") == "the machine gpu-1 is gone"
