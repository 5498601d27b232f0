"""A Ray cluster of two nodes for what is measured on machines, and launchers whose gangs are timed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1] / "tests" / "master" / "launch"
sys.path[:0] = [str(TESTS), str(TESTS / "ray")]

from launcher_contract import KIND, trial_job, until  # type: ignore[import-not-found]  # noqa: E402
from ray_cluster import RayCluster  # type: ignore[import-not-found]  # noqa: E402

from det_native.master.launch.base import Launcher  # noqa: E402
from det_native.master.launch.local_run import OUTPUT_NAME  # noqa: E402
from det_native.schema.ranks import rank_folder  # noqa: E402

#: Slots of each of the two nodes.
EACH = 2


@contextmanager
def cluster_of_two(**environment: str) -> Iterator[RayCluster]:
    """Run a cluster of two nodes; this process and what it starts can use it."""
    cluster = RayCluster(EACH, **environment)
    try:
        cluster.add_node(EACH)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in cluster.environment.items():
                if name.startswith("RAY_"):
                    patch.setenv(name, value)
            yield cluster
    finally:
        cluster.stop()


class TimedGangs:
    """Starts gangs of two by a launcher, and times them until each process has written its first line.

    Parameters
    ----------
    launcher : Launcher
    folder : Path
        Of the runs.
    outputs : callable
        Returns the files that the processes of a run write to, on their machines.
    standbys : int
        So many are ready before a gang is started.
    """

    def __init__(
        self, launcher: Any, folder: Path, outputs: Callable[[str], list[Path]] | None = None, standbys: int = 2
    ) -> None:
        self._launcher: Launcher = launcher
        self._folder = folder
        self._outputs = outputs or (
            lambda run_id: [rank_folder(folder / run_id, rank) / OUTPUT_NAME for rank in (0, 1)]
        )
        self._standbys = standbys
        self._number = 0

    def settle(self) -> None:
        """Have enough standbys ready."""
        self._launcher.warm(KIND)

        def ready() -> bool:
            self._launcher.poll()
            return self._launcher.standbys().get("python", 0) >= self._standbys

        until(ready, self._launcher)

    def start(self, slots: tuple[str, ...]) -> float:
        """Return the seconds from the start of a gang to the first lines of both; it is ended afterwards."""
        self._number += 1
        run_id = f"r{self._number}"
        job = trial_job(self._folder, run_id, "wait")
        files = self._outputs(run_id)
        begin = time.perf_counter()
        self._launcher.start(run_id, job, KIND, ranks=2, slots=slots)
        while not all(file.exists() and file.stat().st_size for file in files):
            self._launcher.wait(0.005)  # type: ignore[attr-defined]
            assert time.perf_counter() - begin < 60, "the gang has not begun"
        seconds = time.perf_counter() - begin
        self._launcher.settled(run_id)
        self._launcher.kill(run_id)
        until(lambda: any(ended.run_id == run_id for ended in self._launcher.poll()), self._launcher)
        return seconds
