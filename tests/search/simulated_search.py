"""A search without training: trials have the values that the test gives them, and end in the order it wants."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from det_native.schema.config import ExperimentConfig
from det_native.schema.loading import load_config
from det_native.search import (
    Action,
    Close,
    CreateTrial,
    Searcher,
    Shutdown,
    Started,
    TrainTo,
    TrialCompleted,
    TrialFailed,
    TrialRefused,
    make_searcher,
)

SPACE = {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}}


def configuration(seed: int = 1, space: Mapping[str, Any] = SPACE, **searcher: Any) -> ExperimentConfig:
    written = {"metric": "m", **searcher}
    return load_config({"searcher": written, "hyperparameters": dict(space)}).with_seed(seed)


@dataclass
class Ran:
    """What became of a search."""

    lengths: dict[int, list[int]] = field(default_factory=dict)
    """Of each request: to how many units in total it was asked to train, one after the other."""
    closed: set[int] = field(default_factory=set)
    created: list[CreateTrial] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    most_open: int = 0
    failed: bool | None = None

    @property
    def units(self) -> int:
        """Training in all."""
        return sum(lengths[-1] for lengths in self.lengths.values())


def run(
    config: ExperimentConfig,
    value: Callable[[int, int], float | None],
    *,
    fails: Callable[[int, int], bool] = lambda request, units: False,
    over: Callable[[int, int], bool] = lambda request, units: False,
    refuses: Callable[[int, int], bool] = lambda request, units: False,
    order: random.Random | None = None,
    restarts: random.Random | None = None,
) -> Ran:
    """Run a search to its end.

    Parameters
    ----------
    value, fails, over, refuses : callable
        Of a request and its units in total: its metric, whether it fails before, whether it ends there by itself,
        whether its code says on the way there that its hyperparameters are invalid.
    order : Random, optional
        Draws which of the running trials is done next; otherwise the one that was asked first.
    restarts : Random, optional
        Draws when the searcher is made anew from a snapshot that went through JSON.
    """
    searcher = make_searcher(config)
    ran, running = Ran(), []

    def do(actions: list[Action]) -> None:
        ran.actions += actions
        for action in actions:
            match action:
                case CreateTrial(request, _, _, units):
                    assert request == len(ran.created)
                    assert units is not None
                    ran.created.append(action)
                    ran.lengths[request] = [units]
                    running.append(request)
                case TrainTo(request, units):
                    assert request not in running
                    assert request not in ran.closed
                    assert units > ran.lengths[request][-1]
                    ran.lengths[request].append(units)
                    running.append(request)
                case Close(request):
                    assert request not in running
                    assert request not in ran.closed
                    ran.closed.add(request)
                case Shutdown(failed):
                    assert ran.failed is None
                    ran.failed = failed
        ran.most_open = max(ran.most_open, len(running))
        assert 0.0 <= searcher.progress({}) <= 1.0

    do(searcher.handle(Started()))
    while running:
        assert ran.failed is None
        request = running.pop(order.randrange(len(running)) if order else 0)
        units = ran.lengths[request][-1]
        if restarts and restarts.random() < 0.3:
            searcher = _again(config, searcher)
        if refuses(request, units):
            do(searcher.handle(TrialRefused(request)))
            assert searcher.handle(TrialRefused(request)) == [], "told twice"
        elif fails(request, units):
            do(searcher.handle(TrialFailed(request)))
        else:
            told = TrialCompleted(request, value(request, units), units, over(request, units))
            do(searcher.handle(told))
            assert searcher.handle(told) == [], "told twice"
    return ran


def _again(config: ExperimentConfig, searcher: Searcher) -> Searcher:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return make_searcher(config, json.loads(json.dumps(searcher.snapshot()), parse_constant=refuse))
