"""Parts that the tests of the master share: a launcher without processes, a master around it, and a worker's voice."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from fresh_databases import put_database

from det_native import PROTOCOL
from det_native.master.app import build
from det_native.master.connections import UnknownConnections, counted_by
from det_native.master.launch.base import Exit, Output, WorkerKind
from det_native.master.scheduling.facts import Policy
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS
from det_native.master.service import Service
from det_native.schema import rest
from det_native.schema.cluster import NodeInfo, SlotsWanted
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.manifests import BundleManifest, CheckpointManifest, Interpreter, Program
from det_native.schema.states import ExitReason, MetricKind
from det_native.storage.checkpoints import CheckpointStorage

DEADLINE = 60.0
URL = "http://127.0.0.1:1"
_NUMBERS = itertools.count()


class MemoryLauncher:
    """A launcher whose workers are entries in a dictionary; the test says when they end.

    A second launcher made from the same `world` finds the workers of the first, as after a restart of the master.
    """

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self._lock = threading.Lock()
        self._exits: list[Exit] = []
        self._own: set[str] = set()
        self.killed: list[tuple[str, float]] = []
        self.stacks_asked: list[str] = []
        self.warmed: list[WorkerKind] = []
        self.exit_on_kill = True
        self.check_result: dict[str, Any] | None = {"ok": True}

    def start(
        self, run_id: str, job: TrialJob | CheckJob, kind: WorkerKind, *, ranks: int = 1, slots: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Put a worker into the world; the first one speaks for all `ranks`."""
        Path(job.directory).mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._own.add(run_id)
        if isinstance(job, CheckJob):
            if self.check_result is not None:
                (Path(job.directory) / "result.json").write_text(json.dumps(self.check_result))
            self.end(run_id, 0)
        else:
            self.world.ranks[run_id] = ranks
            self.world.add(run_id, job)
        return {"run": run_id}

    def end(self, run_id: str, code: int | None, detail: str = "") -> None:
        """Have a worker end."""
        self.world.alive.discard(run_id)
        with self._lock:
            self._exits.append(Exit(run_id, code, detail))

    def poll(self) -> list[Exit]:
        """Return who ended."""
        with self._lock:
            exits, self._exits = self._exits, []
        return [one for one in exits if one.run_id in self._own]

    def kill(self, run_id: str, *, grace: float = 0.0) -> None:
        """End a worker at once."""
        self.killed.append((run_id, grace))
        if self.exit_on_kill and (run_id in self.world.alive or run_id not in self.world.jobs):
            self.end(run_id, -15, "ended on request (SIGTERM)")

    def ask_for_stacks(self, run_id: str) -> None:
        """Write something that stands for them."""
        self.stacks_asked.append(run_id)
        self.world.output[run_id] = self.world.output.get(run_id, "") + "Thread 0x1 (most recent call first):\n"

    def stopped(self, run_id: str) -> list[int]:
        """Return what the test says."""
        return self.world.stopped.get(run_id, [])

    def logs(self, run_id: str, offset: int, rank: int = 0) -> Output:
        """Return output that the test has put into the world, by run, or by run and rank."""
        text = self.world.output.get(f"{run_id}/{rank}" if rank else run_id, "")[offset:]
        return Output(text, offset + len(text))

    def adopt(self, run_id: str, handle: dict[str, Any]) -> bool:
        """Find a worker again."""
        self._own.add(run_id)
        return handle["run"] in self.world.alive

    def warm(self, kind: WorkerKind) -> None:
        """Remember what was asked for."""
        with self.world.changed:
            self.warmed.append(kind)
            self.world.changed.notify_all()

    def wait_for_warmed(self) -> WorkerKind:
        """Return what was asked for last, once there is something."""
        with self.world.changed:
            assert self.world.changed.wait_for(lambda: bool(self.warmed), DEADLINE), "nothing was asked for"
            return self.warmed[-1]

    def standbys(self) -> dict[str, int]:
        """Return none."""
        return {}

    def close(self, *, kill_workers: bool) -> None:
        """Leave the workers, or end them."""
        if kill_workers:
            self.world.alive.clear()


class ClusterLauncher(MemoryLauncher):
    """A launcher of several machines, whose slots come and go as the test says.

    A machine is given by its name and its number of slots; `accelerators` names the types of its GPUs, of those that
    have some.
    """

    def __init__(self, machines: dict[str, int], accelerators: dict[str, str] | None = None) -> None:
        super().__init__()
        self.accelerators = accelerators or {}
        self.labels: dict[str, dict[str, str]] = {}
        self.troubles: dict[str, str] = {}
        self.wanted: list[list[SlotsWanted]] = []
        self.unplaced: dict[str, str] = {}
        self.problem = ""
        self.slots_of: dict[str, tuple[str, ...]] = {}
        self.set_machines(machines)

    def set_machines(self, machines: dict[str, int]) -> None:
        """Have these machines from now on."""
        infos = []
        for name, count in machines.items():
            accelerator = self.accelerators.get(name, "")
            infos.append(
                NodeInfo(
                    id=f"id-of-{name}",
                    name=name,
                    slots=count,
                    free=count,
                    device="cuda" if accelerator else "cpu",
                    accelerator=accelerator,
                    labels=self.labels.get(name, {}),
                    trouble=self.troubles.get(name, ""),
                )
            )
        self._nodes = infos
        self._slots = [
            rest.SlotInfo(id=f"{info.name}/{number}", device=info.device, node=info.name, accelerator=info.accelerator)
            for info in infos
            for number in range(info.slots)
        ]

    def start(
        self, run_id: str, job: TrialJob | CheckJob, kind: WorkerKind, *, ranks: int = 1, slots: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Remember on which slots."""
        self.slots_of[run_id] = tuple(slots)
        return super().start(run_id, job, kind, ranks=ranks, slots=slots)

    def slots(self) -> list[rest.SlotInfo]:
        """Return the slots of the machines that the test has given."""
        return self._slots

    def nodes(self) -> list[NodeInfo]:
        """Return those machines."""
        return self._nodes

    def want(self, wanted: Sequence[SlotsWanted]) -> None:
        """Remember what is wanted."""
        with self.world.changed:
            self.wanted.append(list(wanted))
            self.world.changed.notify_all()

    def wait_until_wanted(self, wanted: list[SlotsWanted]) -> None:
        """Wait until that is wanted, and nothing else."""
        with self.world.changed:
            got = self.world.changed.wait_for(lambda: self.wanted[-1:] == [wanted], DEADLINE)
            assert got, f"wanted: {self.wanted}"

    def waits(self) -> dict[str, str]:
        """Return what the test says."""
        return self.unplaced

    def trouble(self) -> str:
        """Return what the test says."""
        return self.problem


@dataclass
class World:
    """Workers that outlive a launcher."""

    jobs: dict[str, TrialJob] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    alive: set[str] = field(default_factory=set)
    output: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, list[int]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, run_id: str, job: TrialJob) -> None:
        """Add a worker."""
        with self.changed:
            self.jobs[run_id] = job
            self.alive.add(run_id)
            self.changed.notify_all()

    def wait_for_jobs(self, count: int) -> list[TrialJob]:
        """Return all jobs so far, once there are `count` of them."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.jobs) >= count, DEADLINE), f"only {len(self.jobs)} jobs"
            return list(self.jobs.values())


@dataclass
class Master:
    """A master under test, spoken to over loopback."""

    service: Service
    app: FastAPI
    launcher: MemoryLauncher
    client: httpx.Client
    token: str

    @property
    def world(self) -> World:
        """The launcher's workers."""
        return self.launcher.world

    def get(self, path: str, **params: Any) -> Any:
        """Ask as the user."""
        response = self.client.get(f"/api/v1{path}", params=params)
        assert response.status_code == 200, response.text
        return response.json()

    def bundle(self, framework: str = "torch") -> str:
        """Send a bundle without files."""
        response = self.client.post("/api/v1/bundles", json=manifest(framework).model_dump(mode="json"))
        assert response.status_code == 200, response.text
        return str(response.json()["id"])

    def create(self, config: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """Create an experiment; 100 batches, metric ``loss``, by default."""
        body = {"protocol": PROTOCOL, "config": configuration(**(config or {})), "bundle_id": self.bundle(), **fields}
        response = self.client.post("/api/v1/experiments", json=body)
        assert response.status_code == 201, response.text
        experiment: dict[str, Any] = response.json()
        return experiment

    def until(self, path: str, fits: Callable[[Any], bool]) -> Any:
        """Ask again until the answer fits."""
        end = time.monotonic() + DEADLINE
        while not fits(answer := self.get(path)):
            assert time.monotonic() < end, f"{path} stays {answer}"
            time.sleep(0.01)
        return answer

    def until_state(self, experiment_id: int, state: str) -> dict[str, Any]:
        """Wait for an experiment's state."""
        found: dict[str, Any] = self.until(f"/experiments/{experiment_id}", lambda found: found["state"] == state)
        return found


class Worker:
    """Speaks for one run."""

    def __init__(self, master: Master, job: TrialJob) -> None:
        self.master = master
        self.job = job
        self.seq = 0

    def post(self, *reports: dict[str, Any]) -> httpx.Response:
        """Send reports as they are."""
        return self.master.client.post(
            f"/api/v1/runs/{self.job.run_id}/reports",
            json={"reports": list(reports)},
            headers={"Authorization": f"Bearer {self.job.token}"},
        )

    def send(self, *reports: dict[str, Any]) -> rest.ReportsAccepted:
        """Send reports, numbered."""
        numbered = []
        for report in reports:
            self.seq += 1
            numbered.append({"seq": self.seq, **report})
        response = self.post(*numbered)
        assert response.status_code == 200, response.text
        return rest.ReportsAccepted.model_validate(response.json())

    def start(self, batch: int = 0, **known: int) -> rest.ReportsAccepted:
        """Say that training begins."""
        return self.send({"type": "started", "batch": batch, **known})

    def train(self, first: int, last: int, **columns: list[float | None]) -> rest.ReportsAccepted:
        """Report training metrics of the batches `first` to `last`; a falling loss by default."""
        batches = list(range(first, last + 1))
        values = columns or {"loss": [1.0 / batch for batch in batches]}
        return self.send({"type": "metrics", "kind": "training", "batches": batches, "metrics": values})

    def validate(self, batch: int, **values: float) -> rest.ReportsAccepted:
        """Report a validation."""
        metrics = {name: [value] for name, value in values.items()}
        kind = MetricKind.VALIDATION.value
        return self.send({"type": "metrics", "kind": kind, "batches": [batch], "metrics": metrics})

    def checkpoint(self, batch: int) -> str:
        """Publish a small checkpoint and report it."""
        uuid, report = publish(self.job, batch)
        self.send(report)
        return uuid

    def exit(
        self,
        reason: ExitReason = ExitReason.COMPLETED,
        *,
        batch: int = 0,
        message: str | None = None,
        early: bool = False,
    ) -> None:
        """Say the last word, and end."""
        error = {"type": "ValueError", "message": message, "traceback": "...", "batch": batch} if message else None
        self.send({"type": "exit", "reason": reason, "batch": batch, "error": error, "early": early})
        self.master.launcher.end(self.job.run_id, 0 if message is None else 1)

    def complete(self, batches: int = 100, loss: float = 0.5) -> None:
        """Do all that a trial does."""
        self.start()
        self.train(1, batches)
        self.validate(batches, loss=loss)
        self.exit(batch=batches)


def publish(job: TrialJob, batch: int) -> tuple[str, dict[str, Any]]:
    """Publish a checkpoint of a run; return its uuid and the report of it."""
    uuid = f"00000000-0000-4000-8000-{next(_NUMBERS):012d}"
    storage = CheckpointStorage(job.checkpoints, job.checkpoint_options)
    folder = storage.workspace()
    (folder / "weights").write_text(f"weights after {batch}")
    described = CheckpointManifest(
        uuid=uuid,
        framework="torch",
        framework_version="2",
        det_version="0",
        batch=batch,
        experiment_id=job.experiment_id,
        trial_id=job.trial_id,
        run_id=job.run_id,
        bundle_id=job.bundle_id,
        hparams=job.hparams,
        created="2026-01-01T00:00:00Z",
    )
    location, complete = storage.publish(folder, described)
    return uuid, {"type": "checkpoint", "location": location, "manifest": complete.model_dump(mode="json")}


def manifest(framework: str = "torch") -> BundleManifest:
    """Return a bundle without files."""
    return BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python="3.11.7", executable=""),
        program=Program(kind="cells", framework=framework),  # type: ignore[arg-type]
    )


def configuration(**sections: Any) -> dict[str, Any]:
    """Return a configuration of a single trial over 100 batches."""
    searcher = {"name": "single", "metric": "loss", "max_length": {"batches": 100}, **sections.get("searcher", {})}
    if searcher["name"] == "pbt":
        del searcher["max_length"]
    return {"hyperparameters": {"global_batch_size": 32}, **sections, "searcher": searcher}


def client_of(url: str, headers: dict[str, str]) -> httpx.Client:
    """Return a client for plain HTTP; reading the certificates of all authorities would take longer than a test."""
    return httpx.Client(base_url=url, headers=headers, timeout=DEADLINE, verify=False)


@contextmanager
def running_master(
    home: Path,
    *,
    slots: int = 2,
    launcher: MemoryLauncher | None = None,
    database_url: str | None = None,
    policy: Policy = Policy.PRIORITY,
    without_slots: int = MOST_WITHOUT_SLOTS,
    **place: Any,
) -> Iterator[Master]:
    """Run a master around a launcher without processes."""
    launcher = launcher or MemoryLauncher()
    if database_url is None:
        put_database(home / "det.db")
    infos = [rest.SlotInfo(id=f"cpu:{number}", device="cpu") for number in range(slots)]
    if isinstance(launcher, ClusterLauncher):
        infos, place = [], {"launched_by": "ray", **place}
    service, app = build(
        home, launcher, infos, URL, database_url=database_url, policy=policy, without_slots=without_slots, **place
    )
    token = (home / "token").read_text().strip()
    service.start()
    try:
        headers = {"Authorization": f"Bearer {token}"}
        with served(app, service) as url, client_of(url, headers) as client:
            yield Master(service, app, launcher, client, token)
    finally:
        service.close()


class _Trusting(counted_by(UnknownConnections())):  # type: ignore[misc]
    """Takes a token in the clear, so that tests can send what they like."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Pass for a connection that nobody else can read."""
        super().connection_made(transport)
        self.in_the_clear = False


@contextmanager
def served(app: FastAPI, service: Service) -> Iterator[str]:
    """Serve a master on loopback; gives its address. Streams end with the service's broker."""
    with served_beside(app, service.broker.close) as url:
        yield url


@contextmanager
def served_beside(app: FastAPI, end_streams: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Serve an application on loopback; gives its address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, http=_Trusting, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    started = threading.Event()
    startup = server.startup

    async def tell_when_up(sockets: Any = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = tell_when_up  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, name="test-uvicorn")
    thread.start()
    try:
        assert started.wait(DEADLINE)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        end_streams()
        server.should_exit = True
        thread.join(DEADLINE)
