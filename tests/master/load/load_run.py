"""A master under load: its own process, workers and views in others, and what is measured of it."""

from __future__ import annotations

import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil
from load_home import configuration, manifest

from det_native import PROTOCOL
from det_native.client.session import Session
from det_native.schema import routes
from det_native.schema.rest import ExperimentCreate
from det_native.schema.sockets import path_of

HERE = Path(__file__).parent
PATIENCE = 300.0


@dataclass
class Figures:
    """What was measured.

    Attributes
    ----------
    times : dict
        Seconds that requests took, by kind.
    processor : float
        Seconds of the master's own processor time for each second of the load.
    memory : list of (float, float)
        When the master took how many MiB.
    rows : int
        Rows that each trial has reported.
    """

    times: dict[str, list[float]] = field(default_factory=dict)
    processor: float = 0.0
    seconds: float = 0.0
    memory: list[tuple[float, float]] = field(default_factory=list)
    rows: dict[int, int] = field(default_factory=dict)
    events: int = 0
    errors: list[str] = field(default_factory=list)

    def percentile(self, kind: str, share: float) -> float:
        """Return how long `share` of the requests of a kind took at most, in milliseconds."""
        times = sorted(self.times[kind])
        return 1000 * times[min(math.ceil(share * len(times)), len(times)) - 1]

    def summary(self) -> dict[str, dict[str, float]]:
        """Return the number of requests of each kind and what they took, in milliseconds."""
        return {
            kind: {
                "count": len(self.times[kind]),
                **{f"p{round(100 * share)}": round(self.percentile(kind, share), 1) for share in (0.5, 0.95, 0.99)},
            }
            for kind in sorted(self.times)
        }

    @property
    def slope(self) -> float:
        """MiB by which the memory grew in an hour, by least squares over the second half."""
        points = self.memory[len(self.memory) // 2 :]
        mean_time = sum(time for time, _ in points) / len(points)
        mean = sum(size for _, size in points) / len(points)
        spread = sum((time - mean_time) ** 2 for time, _ in points)
        return 3600 * sum((time - mean_time) * (size - mean) for time, size in points) / spread if spread else 0.0


class LoadedMaster:
    """A master in a process of its own, whose runs others speak for."""

    def __init__(self, process: subprocess.Popen[str], begun: float) -> None:
        assert process.stdout is not None
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), name="load-master")
        self._reader.start()
        self.process = psutil.Process(process.pid)
        address = self._lines.get(timeout=PATIENCE)
        self.seconds_to_start = time.monotonic() - begun
        self.url, self.token = address["url"], address["token"]
        self.session = Session(self.url, self.token)

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(json.loads(line))

    def submit(self, count: int) -> list[float]:
        """Create experiments of one trial each; return how long each took."""
        created = self.session.call(routes.CREATE_BUNDLE, manifest())
        body = ExperimentCreate(protocol=PROTOCOL, config=configuration(), bundle_id=created.id)
        times = []
        for _ in range(count):
            begun = time.perf_counter()
            self.session.call(routes.CREATE_EXPERIMENT, body)
            times.append(time.perf_counter() - begun)
        return times

    def runs(self, count: int) -> list[dict[str, Any]]:
        """Return the next so many runs that the master has started."""
        return [self._lines.get(timeout=PATIENCE) for _ in range(count)]

    def processor_seconds(self) -> float:
        """Return how much processor time the master has taken."""
        used = self.process.cpu_times()
        return float(used.user + used.system)

    def until_calm(self) -> float:
        """Wait until the decision thread has done what it has to do; return how long that took."""
        begun = time.monotonic()
        # It does one step after the other, and this is one.
        self.session.call(routes.RESUME_EXPERIMENT, experiment_id=self._any_id(), timeout=PATIENCE)
        return time.monotonic() - begun

    def _any_id(self) -> int:
        return self.session.call(routes.LIST_EXPERIMENTS, limit=1)[0].id


@contextmanager
def loaded_master(home: Path, slots: int, database_url: str | None = None) -> Iterator[LoadedMaster]:
    """Run a master for the block."""
    command = [sys.executable, str(HERE / "load_master.py"), str(home), str(slots), *filter(None, [database_url])]
    begun = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    master = None
    try:
        master = LoadedMaster(process, begun)
        yield master
    finally:
        process.stdin.close()
        process.wait(PATIENCE)
        if master is not None:
            master.session.close()
            master._reader.join(PATIENCE)
        process.stdout.close()


class Generator:
    """A process that loads the master, at a lower priority than its own, until it is ended."""

    def __init__(self, script: str, given: dict[str, Any]) -> None:
        command = ["nice", "-n", "5", sys.executable, str(HERE / script)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()

    def until_ready(self) -> None:
        """Wait until it loads the master."""
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline()) == {"ready": True}

    def end(self) -> dict[str, Any]:
        """End it and return what it has measured."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        with self._process.stdout as stream:
            answer: dict[str, Any] = json.loads(stream.readline())
        self._process.wait(PATIENCE)
        return answer


def load(
    master: LoadedMaster,
    folder: Path,
    runs: Sequence[dict[str, Any]],
    *,
    views: int,
    panels: int,
    seconds: float,
    processes: int = 2,
    rows_per_second: float = 10,
) -> Figures:
    """Have workers report and views look for so long."""
    base = {"url": master.url, "folder": str(folder), "rows_per_second": rows_per_second}
    workers = [Generator("load_workers.py", {**base, "runs": runs[start::processes]}) for start in range(processes)]
    shown = [
        {"experiment_id": runs[index % len(runs)]["experiment_id"], "trial_id": runs[index % len(runs)]["trial_id"]}
        for index in range(views)
    ]
    viewers = Generator(
        "load_views.py",
        {"socket": str(path_of(master.url)), "token": master.token, "views": shown, "panels": panels},
    )
    for generator in (*workers, viewers):
        generator.until_ready()
    figures = Figures()
    begun, used = time.monotonic(), master.processor_seconds()
    while (passed := time.monotonic() - begun) < seconds:
        figures.memory.append((passed, master.process.memory_info().rss / 2**20))
        time.sleep(min(1.0, max(seconds - passed, 0.0)))
    figures.seconds = time.monotonic() - begun
    figures.processor = (master.processor_seconds() - used) / figures.seconds
    seen = viewers.end()
    figures.times = dict(seen["times"])
    figures.events, figures.errors = seen["events"], seen["errors"]
    figures.times["report"] = []
    for worker in workers:
        said = worker.end()
        figures.times["report"] += [seconds for seconds, _ in said["times"]]
        figures.rows |= dict.fromkeys(said["trials"], said["rows"])
        if not said["complete"]:
            figures.errors.append("reports are left that the master has not taken")
    return figures


def setting(name: str, default: float) -> float:
    """Return a number from the environment."""
    return float(os.environ.get(name, default))
