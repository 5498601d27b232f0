"""How long killed trainings take to go on: seconds from a kill to the next report that the master accepts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from det_native.client.connect import connect
from det_native.client.events import EventStream
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.errors import MasterUnreachableError
from det_native.schema import rest
from det_native.schema.states import TrialState


@dataclass
class _Kill:
    """A kill after which nothing was reported yet. `run` is the one whose worker was killed; None for the master."""

    at: float
    run: str | None


class Recovery:
    """Follows experiments that are killed at, until they have ended.

    A kill counts until the next report, whatever is killed besides until then; after that of a worker, until the first
    report of the run that follows. A kill after which a training reports no more has nothing to recover.

    Parameters
    ----------
    experiments
        Those to follow.
    """

    def __init__(self, experiments: Iterable[Experiment]) -> None:
        #: Seconds of each kill of a master from which a training has recovered, and of each kill of a worker.
        self.of_masters: list[float] = []
        self.of_workers: list[float] = []
        self._lock = threading.Lock()
        self._kills: dict[int, list[_Kill]] = {}
        self._runs: dict[int, dict[int, str]] = {}  # of the trials that run, by their experiments
        self._closed = False
        self._source = HttpSource(connect(start=False))
        self._streams: dict[int, EventStream] = {}
        self._threads: list[threading.Thread] = []
        for experiment in experiments:
            number = int(experiment.id)
            self._kills[number], self._runs[number] = [], {}
            self._streams[number] = self._source.events(number)
            self._threads.append(threading.Thread(target=self._follow, args=(number,)))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._closed = True
            for stream in self._streams.values():
                stream.close()
        for thread in self._threads:
            thread.join()

    def master_killed(self, at: float) -> None:
        """Say when the master was killed (of ``time.monotonic``), once the next one runs."""
        with self._lock:
            for number, runs in self._runs.items():
                if runs:  # one that waits for a slot has nothing to recover
                    self._kills[number].append(_Kill(at, None))

    def worker_killed(self, run: str) -> None:
        """Say that a worker of a run is killed now."""
        with self._lock:
            for number, runs in self._runs.items():
                if run in runs.values():
                    self._kills[number].append(_Kill(time.monotonic(), run))

    def _follow(self, number: int) -> None:
        last = 0
        while not self._closed:
            try:
                for event in self._streams[number]:
                    last = max(last, event.id)
                    self._take(number, event, time.monotonic())
                return
            except MasterUnreachableError:  # on a busy machine the next master takes long to start
                self._streams[number] = self._source.events(number, last)

    def _take(self, number: int, event: rest.Event, now: float) -> None:
        with self._lock:
            runs = self._runs[number]
            if event.type == "trial" and event.trial_id is not None:
                runs.pop(event.trial_id, None)
                if TrialState(event.data["state"]) is TrialState.RUNNING:
                    runs[event.trial_id] = event.data["run_id"]
            elif event.type == "metrics":
                self._reported(number, now)

    def _reported(self, number: int, now: float) -> None:
        waiting = []
        for kill in self._kills[number]:
            if kill.run is None:
                self.of_masters.append(now - kill.at)
            elif kill.run not in self._runs[number].values():
                self.of_workers.append(now - kill.at)
            else:
                waiting.append(kill)  # its run had reported this before
        self._kills[number] = waiting
