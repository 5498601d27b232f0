"""Decisions of a search without training: our async_halving, over Optuna's successive halving, in memory."""

from __future__ import annotations

import pytest
from conftest import Paired

from det_native.schema.loading import load_config
from det_native.search.simulation import simulate

TRIALS = 1000
RUNGS = (1, 4, 16, 64)


def _value(request: int) -> float:
    return (request * 7919 % 10007) / 10007


def _ours() -> int:
    """Run a search of 1000 trials in rungs of 1, 4, 16 and 64; return how often it decided."""
    searcher = {"name": "async_halving", "metric": "m", "max_length": {"batches": RUNGS[-1]}, "divisor": 4}
    searcher |= {"num_rungs": len(RUNGS), "max_trials": TRIALS, "max_concurrent_trials": 16}
    space = {"global_batch_size": 32, "x": {"type": "double", "minval": 0, "maxval": 1}}
    config = load_config({"searcher": searcher, "hyperparameters": space}, warn=False).with_seed(1)
    return sum(len(trial.ends) for trial in simulate(config, lambda request, _: _value(request), workers=16))


def _optuna() -> int:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=4)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), pruner=pruner)
    decisions = 0
    for number in range(TRIALS):
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
    return decisions


def test_decisions(paired: Paired) -> None:
    pytest.importorskip("optuna")
    paired(
        f"one decision of a search of {TRIALS} trials in four rungs, in memory, over Optuna's (random, halving pruner)",
        _ours,
        _optuna,
        goal=1 / 15,
        rounds=5,
        value=lambda decisions, seconds: seconds / decisions,
    )
