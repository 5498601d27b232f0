"""A search without training: trials take as long, and come to such values, as the caller says."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from det_native.schema.config import ExperimentConfig
from det_native.search.base import Action, CreateTrial, Started, Stop, TrainTo, TrialCompleted, TrialValidated
from det_native.search.make import make_searcher


@dataclass
class SimulatedTrial:
    """What a trial was asked for, and when it had done it.

    Attributes
    ----------
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
    validations: int = 0,
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
        Of a trial at the end of a stage, or where it validates: its metric. `units` has then where it is.
    validations : int
        How often trials validate while they train, for searches that watch it; one that is stopped has taken as long
        as the others here.
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

    def stopped(request: int, trial: SimulatedTrial) -> bool:
        """Let a trial validate on its way; whether it is stopped there, `units` then being how far it came."""
        length = trial.units[-1]
        places = {length * number // (validations + 1) for number in range(1, validations + 1)} - {0}
        for units in sorted(places) if searcher.watches_validations else ():
            trial.units[-1] = units
            told = TrialValidated(request, units, value(request, trial))
            if any(isinstance(action, Stop) for action in searcher.handle(told)):
                return True
        trial.units[-1] = length
        return False

    metrics = len(getattr(config.searcher, "metrics", ())) or 1

    take(searcher.handle(Started()))
    while waiting or running:
        while waiting and (not workers or len(running) < workers):
            request = waiting.popleft()
            trained = [0, *trials[request].units]
            begun += 1
            heapq.heappush(running, (now + seconds(request, trained[-1] - trained[-2]), begun, request))
        now, _, request = heapq.heappop(running)
        trial = trials[request]
        over = stopped(request, trial)
        trial.ends.append(now)
        if until(request, trial):
            break
        values = tuple(value(request, trial) for _ in range(metrics))
        take(searcher.handle(TrialCompleted(request, values[0], trial.units[-1], over, values)))
    return trials
