"""Decisions of a search without training, over Optuna's successive halving: in memory, and each on the disk."""

from __future__ import annotations

import itertools
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from conftest import Paired

from det_native.master.flow.searchers import Searchers
from det_native.master.store import experiments
from det_native.master.store.database import Database
from det_native.schema.loading import load_config
from det_native.search import CreateTrial, Started, TrainTo, TrialCompleted, make_searcher

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "master"))
from store_parts import Fixture  # type: ignore[import-not-found]

TRIALS, DURABLE = 1000, 100
RUNGS = (1, 4, 16, 64)

# Decisions, and the processor time that they took: others who use this machine do not count.
Decided = tuple[int, float]


def _value(request: int) -> float:
    return (request * 7919 % 10007) / 10007


def _config() -> Any:
    searcher = {"name": "async_halving", "metric": "m", "max_length": {"batches": RUNGS[-1]}, "divisor": 4}
    searcher |= {"num_rungs": len(RUNGS), "max_trials": TRIALS, "max_concurrent_trials": 16}
    space = {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}}
    return load_config({"searcher": searcher, "hyperparameters": space}, warn=False).with_seed(1)


def _ours() -> Decided:
    """Run a search of 1000 trials in rungs of 1, 4, 16 and 64; return how often it decided."""
    begun = time.process_time()
    searcher, decisions = make_searcher(_config()), 0
    todo = deque(searcher.handle(Started()))
    while todo:
        action = todo.popleft()
        if isinstance(action, CreateTrial | TrainTo):
            decisions += 1
            todo += searcher.handle(TrialCompleted(action.request, _value(action.request), action.units))
    return decisions, time.process_time() - begun


def _optuna(trials: int = TRIALS, storage: str | None = None) -> Decided:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    begun, wall = time.process_time(), time.perf_counter()
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=4)
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(sampler=sampler, pruner=pruner, storage=storage)
    decisions = 0
    for number in range(trials):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        state = optuna.trial.TrialState.COMPLETE
        for step in RUNGS:
            trial.report(_value(number), step)
            decisions += 1
            if trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        study.tell(trial, _value(number) if state == optuna.trial.TrialState.COMPLETE else None, state=state)
    return decisions, time.process_time() - begun if storage is None else time.perf_counter() - wall


def _durably(database: Database) -> Decided:
    """Tell a search of 1000 trials of its first results, each in a transaction that is on the disk before the next."""
    fixture = Fixture(database)
    with database.read() as connection:
        found = experiments.get(connection, fixture.experiment_id)
    experiment = found.model_copy(update={"config": _config().model_dump(mode="json", exclude_none=True)})
    searchers, todo = Searchers(database), deque[tuple[int, int]]()
    with database.write() as transaction:
        actions = searchers.tell(transaction, experiment, Started())
    begun, decisions = time.perf_counter(), 0
    while decisions < DURABLE:
        todo += [
            (action.request, action.units)
            for action in actions
            if isinstance(action, CreateTrial | TrainTo) and action.units is not None
        ]
        request, units = todo.popleft()
        with database.write() as transaction:
            actions = searchers.tell(transaction, experiment, TrialCompleted(request, _value(request), units))
        decisions += 1
    return decisions, time.perf_counter() - begun


def _each(found: Decided, _: float) -> float:
    return found[1] / found[0]


def test_decisions(paired: Paired) -> None:
    pytest.importorskip("optuna")
    paired(
        f"one decision of a search of {TRIALS} trials in four rungs, in memory, over Optuna's (random, halving "
        "pruner); processor time",
        _ours,
        _optuna,
        goal=1 / 15,
        rounds=9,
        value=_each,
    )


def test_durable_decisions(paired: Paired, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    numbers = itertools.count()
    database = Database(f"sqlite:///{tmp_path / 'det.db'}")
    paired(
        f"one decision of a search of {TRIALS} trials, on the disk before the next, over Optuna's with SQLite",
        lambda: _durably(database),
        lambda: _optuna(20, f"sqlite:///{tmp_path / f'optuna{next(numbers)}.db'}"),
        goal=1 / 150,
        rounds=5,
        value=_each,
    )
    database.close()
