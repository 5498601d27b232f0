"""Parts for tests of agents: a bridge without Ray in a thread of the test, and a master at a socket."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import uvicorn
from fastapi import FastAPI

from det_native import PROTOCOL
from det_native.master.connections import UnknownConnections, counted_by
from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.asks.kinds import Ask, RankEnded, Reply, Share
from det_native.master.launch.ray.asks.serving import AskServer
from det_native.master.launch.ray.messages import Worker
from det_native.schema.job import CheckJob, Gang, TrialJob
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.sockets import short_path, url_of

DEADLINE = 60.0
WORKER = Worker(framework="python")
BUNDLE = BundleManifest(
    protocol=PROTOCOL,
    interpreter=Interpreter(python="3.11.0", executable=""),
    program=Program(kind="cells", framework="torch"),
)
#: Where ``launch_entries`` lies.
ENTRIES = str(Path(__file__).parents[1])
AWAY = "unix:/nowhere/master.sock"

T = TypeVar("T")


class ThreadBridge:
    """Asks agents what they want, has it performed, and brings the answers back; no Ray is between.

    Parameters
    ----------
    server : AskServer
    agents : sequence of NodeAgent
    name : str
    drop : callable
        Says for each ask whether its answer gets lost.
    hold : callable
        Says for each ask whether it is never performed.
    """

    def __init__(
        self,
        server: AskServer,
        agents: Sequence[NodeAgent],
        name: str = "bridge",
        *,
        drop: Callable[[Ask], bool] = lambda ask: False,
        hold: Callable[[Ask], bool] = lambda ask: False,
    ) -> None:
        self._server = server
        self._agents = agents
        self._name = name
        self._drop = drop
        self._hold = hold
        self._changed = threading.Condition()
        self.ends: dict[tuple[str, int], RankEnded] = {}
        self.seen: list[Ask] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-bridge")
        self._tasks: list[Future[None]] = []
        self._calls: list[Future[Any]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self._tasks = [asyncio.run_coroutine_threadsafe(self._serve(agent), self._loop) for agent in self._agents]
        return self

    def __exit__(self, *details: object) -> None:
        for task in (*self._tasks, *self._calls):
            task.cancel()
        self.call(_settled())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Call a method of an agent."""
        return self.begin(coroutine).result(DEADLINE)

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin to call a method of an agent; what is not done when the bridge ends is cancelled."""
        called = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self._calls.append(called)
        return called

    def wait_for(self, *ranks: tuple[str, int]) -> list[RankEnded]:
        """Wait until the ends of these processes have been told."""
        with self._changed:
            assert self._changed.wait_for(lambda: set(ranks) <= set(self.ends), DEADLINE), self.ends
            return [self.ends[rank] for rank in ranks]

    def wait_for_ask(self, fits: Callable[[Ask], bool]) -> Ask:
        """Wait until something has been asked."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(fits, self.seen)), DEADLINE), self.seen
            return next(ask for ask in self.seen if fits(ask))

    async def _serve(self, agent: NodeAgent) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                for ask in await agent.asks(self._name):
                    with self._changed:
                        self.seen.append(ask)
                        self._changed.notify_all()
                    if not self._hold(ask):
                        tasks.create_task(self._answer(agent, ask))

    async def _answer(self, agent: NodeAgent, ask: Ask) -> None:
        reply = await self._reply(agent, ask)
        if not self._drop(ask):
            await agent.answer([(ask.number, reply)])
        if isinstance(ask.what, RankEnded):
            with self._changed:
                self.ends[ask.what.run_id, ask.what.rank] = ask.what
                self._changed.notify_all()

    async def _reply(self, agent: NodeAgent, ask: Ask) -> Reply:
        if isinstance(ask.what, RankEnded):
            return None
        if isinstance(ask.what, Share):
            for other in self._agents:
                if other is not agent:
                    await other.share(ask.what.run_id, ask.what.name, ask.what.content)
            return None
        return await self._server.perform(ask.what)


async def _settled() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    await asyncio.gather(*others, return_exceptions=True)


def until(condition: Callable[[], T | None]) -> T:
    """Ask again until a condition gives something true, and return that."""
    deadline = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return value


def text_of(path: Path) -> str:
    """Return what a file has; nothing if there is none."""
    with suppress(FileNotFoundError):
        return path.read_text()
    return ""


def visible(folder: Path) -> list[str]:
    """Return the names in a folder, without hidden ones."""
    return [path.name for path in folder.iterdir() if not path.name.startswith(".")]


def trial_job(home: Path, run_id: str, action: str, *, rank: int = 0, machines: int = 1, **fields: Any) -> TrialJob:
    """Return a job for ``launch_entries`` as the master of a home would make it; `fields` are hyperparameters.

    With several `machines` it is that of the one process on a machine.
    """
    run = _made(home, run_id)
    gang = Gang(
        rank=rank,
        size=machines,
        local_rank=0,
        local_size=1,
        cross_rank=rank,
        cross_size=machines,
        rendezvous=str(run / "rendezvous"),
        address="127.0.0.1",
    )
    own = {name: fields.pop(name) for name in ("token", "bundle", "resume", "manifests") if name in fields}
    return TrialJob(
        protocol=PROTOCOL,
        directory=str(run if rank == 0 else run / f"rank-{rank}"),
        blobs=str(home / "blobs"),
        data=str(home / "data"),
        bundle=own.pop("bundle", BUNDLE),
        bundle_id="0" * 64,
        checkpoints=str(home / "checkpoints"),
        master_url="unix:/of/the/master",
        home=str(home),
        run_id=run_id,
        experiment_id=1,
        trial_id=2,
        config={},
        hparams={"action": action, **fields},
        trial_seed=0,
        gang=gang if machines > 1 else None,
        **own,
    )


def check_job(home: Path, run_id: str) -> CheckJob:
    """Return a check."""
    directory = str(_made(home, run_id))
    return CheckJob(protocol=PROTOCOL, directory=directory, blobs=str(home / "blobs"), bundle=BUNDLE)


def _made(home: Path, run_id: str) -> Path:
    """Return the folder of a run, made as the launcher makes it, where the home is a real one."""
    run = home / "runs" / run_id
    if home.is_dir():
        run.mkdir(parents=True, exist_ok=True)
        (home / "tensorboard" / "1" / "2").mkdir(parents=True, exist_ok=True)
    return run


@contextmanager
def at_a_socket(app: FastAPI, home: Path) -> Iterator[str]:
    """Serve a master at a Unix socket as ``det up`` does; gives its address."""
    path = short_path(f"test of {home}", ("/tmp",))
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path.unlink(missing_ok=True)
    listening.bind(str(path))
    listening.listen()
    kind = counted_by(UnknownConnections())
    config = uvicorn.Config(app, http=kind, loop="asyncio", log_level="warning", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="test-socket")
    thread.start()
    try:
        until(lambda: server.started)
        yield url_of(path)
    finally:
        server.should_exit = True
        thread.join(DEADLINE)
        listening.close()
        path.unlink(missing_ok=True)
