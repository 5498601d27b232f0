"""A search without training: trials take as long, and come to such values, as the caller says."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from det_native.schema.config import ExperimentConfig
from det_native.search.base import Action, CreateTrial, Started, TrainTo, TrialCompleted
from det_native.search.make import make_searcher


@dataclass
class SimulatedTrial:
    """What a trial was asked for, and when it had done it.

    Attributes
    ----------
    hparams : dict
    parent : int or None
        The trial whose weights it begins with.
    units : list of int
        Its training in total at the end of each stage.
    ends : list of float
        When each stage ended.
    """

    hparams: dict[str, Any]
    parent: int | None = None
    units: list[int] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)


def simulate(
    config: ExperimentConfig,
    value: Callable[[int, SimulatedTrial], float | None],
    *,
    workers: int = 0,
    seconds: Callable[[int, int], float] = lambda request, units: float(units),
    until: Callable[[int, SimulatedTrial], bool] = lambda request, trial: False,
) -> list[SimulatedTrial]:
    """Run a search on workers that take one stage of a trial at a time, in the order they were asked for.

    Parameters
    ----------
    config : ExperimentConfig
        With its seed fixed.
    value : callable
        Of a trial at the end of a stage: its metric.
    workers : int
        0 for as many as there are trials.
    seconds : callable
        Of a trial and a number of units: how long it trains for them.
    until : callable
        Whether the simulation may end, of a trial that has just come to the end of a stage.

    Returns
    -------
    list of SimulatedTrial
        By request.
    """
    searcher = make_searcher(config)
    whole = config.searcher.max_length.units
    trials: list[SimulatedTrial] = []
    waiting: deque[int] = deque()
    running: list[tuple[float, int, int]] = []
    now, begun = 0.0, 0

    def take(actions: list[Action]) -> None:
        for action in actions:
            match action:
                case CreateTrial(request, hparams, _, units, parent):
                    trials.append(SimulatedTrial(hparams, parent, [whole if units is None else units]))
                    waiting.append(request)
                case TrainTo(request, units):
                    trials[request].units.append(units)
                    waiting.append(request)

    take(searcher.handle(Started()))
    while waiting or running:
        while waiting and (not workers or len(running) < workers):
            request = waiting.popleft()
            trained = [0, *trials[request].units]
            begun += 1
            heapq.heappush(running, (now + seconds(request, trained[-1] - trained[-2]), begun, request))
        now, _, request = heapq.heappop(running)
        trial = trials[request]
        trial.ends.append(now)
        if until(request, trial):
            break
        take(searcher.handle(TrialCompleted(request, value(request, trial), trial.units[-1])))
    return trials
