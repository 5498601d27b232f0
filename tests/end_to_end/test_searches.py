"""Searches that train in stages, with real trials: who is trained on continues where it was."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from faults import PATIENCE, Cluster, Kernel, events_until

from det_native.client.handles import Experiment
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.processes import wait_until_gone
from det_native.schema.states import ExperimentState, TrialState
from det_native.search import CreateTrial, Started, TrainTo, TrialCompleted, make_searcher

pytestmark = pytest.mark.slow

SEARCHED = """
class Searched(Digits):
    def evaluate_batch(self, batch):
        return {"error": self.context.get_hparam("x")}

def searched(**searcher):
    settings = {"x": {"type": "double", "minval": 0, "maxval": 1}}
    searcher = {"metric": "error", "max_length": {"batches": 16}, "divisor": 2} | searcher
    return configuration(searcher=searcher, hyperparameters=settings, min_validation_period={"batches": 0})

def decided(experiment):
    batches = lambda trial, kind: [row["batch"] for row in trial.metrics(kind)]
    rows = [[batches(trial, kind) for kind in ("training", "validation")] for trial in experiment.trials]
    return rows, [[trial.hparams["x"], trial.detail().stages, str(trial.state)] for trial in experiment.trials]
"""
ASHA = "searched(name='async_halving', num_rungs=3, max_trials=4, max_concurrent_trials=1)"
ADAPTIVE = "searched(name='adaptive_asha', max_trials=4, max_rungs=2, mode='conservative')"


def stages(config: dict[str, Any]) -> list[list[int]]:
    """Return to which batches each trial is trained, one stage after the other, if one trial runs at a time."""
    searcher = make_searcher(ExperimentConfig.model_validate(config))
    found: list[list[int]] = []
    drawn: list[float] = []
    waiting = searcher.handle(Started())
    while waiting:
        match waiting.pop(0):
            case CreateTrial(request, hparams, _, units):
                assert units is not None
                found.append([units])
                drawn.append(hparams["x"])
            case TrainTo(request, units):
                found[request].append(units)
            case _:
                continue
        waiting += searcher.handle(TrialCompleted(request, drawn[request], units))
    return found


def check_trials(experiment: Experiment, expected: list[list[int]]) -> None:
    """Assert that each trial has trained and validated as the search has asked, with no batch left out or twice."""
    assert len(experiment.trials) == len(expected)
    for trial, lengths in zip(experiment.trials, expected, strict=True):
        assert trial.state is TrialState.COMPLETED
        assert trial.detail().batches == trial.detail().target_batches == lengths[-1]
        assert [row["batch"] for row in trial.metrics("training")] == list(range(1, lengths[-1] + 1))
        assert [row["batch"] for row in trial.metrics("validation")] == lengths
        trained_on = [line.text for line in trial.logs() if "The search trains this trial on" in line.text]
        assert len(trained_on) == len(lengths) - 1


def test_trials_are_trained_on_where_they_were_here_too(cluster: Cluster, kernel: Kernel) -> None:
    kernel.run(SEARCHED)
    number = kernel.submit(f"experiment = det.experimental.create(Searched, {ASHA})")
    kernel.run("experiment.wait()")
    experiment = cluster.attach(number)
    assert experiment.state is ExperimentState.COMPLETED
    kernel.run(f"here = det.experimental.create(Searched, {ASHA}, local=True)")
    assert kernel.value("decided(here)") == kernel.value("decided(experiment)")
    expected = stages(experiment.config)
    assert sorted(map(len, expected))[-1] > 1, "somebody is trained on"
    check_trials(experiment, expected)
    best = min(experiment.trials, key=lambda trial: trial.hparams["x"])
    assert experiment.top_checkpoint().trial_id == best.id
    assert best.detail().batches == 16


@pytest.mark.long
def test_a_search_goes_on_as_if_the_master_had_not_been_killed(cluster: Cluster, kernel: Kernel) -> None:
    kernel.run(SEARCHED)
    number = kernel.submit(f"experiment = det.experimental.create(Searched, {ADAPTIVE})")
    experiment = cluster.attach(number)

    def trained_on(event: rest.Event) -> bool:
        return event.type == "trial" and event.data["state"] == "COMPLETED"

    for _ in range(2):
        events_until(experiment, trained_on)
        master = cluster.master
        os.kill(master.pid, signal.SIGKILL)
        assert wait_until_gone(master.pid, master.start, PATIENCE)
        cluster.start()
    experiment.wait(timeout=PATIENCE)
    assert experiment.state is ExperimentState.COMPLETED
    assert len(experiment.trials) == 4
    lengths = sorted(trial.detail().batches for trial in experiment.trials)
    assert lengths == [8, 8, 16, 16] or lengths == [8, 16, 16, 16], lengths
    for trial in experiment.trials:
        assert trial.detail().restarts == 0, str(experiment.logs())
        assert [row["batch"] for row in trial.metrics("training")] == list(range(1, trial.detail().batches + 1))


PRUNED = """
class Slow(Searched):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if self.context.get_hparam("x") > 0.5:
            time.sleep(0.02)
        return super().train_batch(batch, epoch_idx, batch_idx)

def pruned():
    pruner = {"name": "threshold", "upper": 0.5}
    found = searched(name="optuna", sampler="random", max_trials=5, pruner=pruner, max_length={"batches": 1000})
    del found["searcher"]["divisor"]
    return found | {"min_validation_period": {"batches": 100}, "min_checkpoint_period": {"batches": 0}}
"""


@pytest.mark.soak
def test_the_pruner_of_optuna_stops_trials_while_they_train(cluster: Cluster, kernel: Kernel) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    kernel.run(SEARCHED)
    kernel.run(PRUNED)
    number = kernel.submit("experiment = det.experimental.create(Slow, pruned())")
    kernel.run("experiment.wait()")
    experiment = cluster.attach(number)
    assert experiment.state is ExperimentState.COMPLETED
    stopped = 0
    for trial in experiment.trials:
        detail = trial.detail()
        assert (trial.state, detail.restarts) == (TrialState.COMPLETED, 0), str(trial.logs())
        if trial.hparams["x"] > 0.5:
            stopped += 1
            assert 100 <= detail.batches < 1000
            assert detail.notice.startswith("stopped early by the search, after ")
            assert trial.checkpoints[-1].batch == detail.batches
        else:
            assert (detail.batches, detail.notice) == (1000, "")
    assert 0 < stopped < 5


COUNTING = """
class Counting(Searched):
    def __init__(self, context):
        super().__init__(context)
        self.model.register_buffer("batches", torch.zeros(()))

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.model.batches += 1
        return super().train_batch(batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch):
        return {"error": self.context.get_hparam("x"), "batches": self.model.batches}

def population():
    replace, explore = {"truncate_fraction": 0.5}, {"resample_probability": 0.0, "perturb_factor": 0.2}
    rounds = {"population_size": 2, "num_rounds": 3, "length_per_round": {"batches": 4}}
    found = searched(name="pbt", replace_function=replace, explore_function=explore, **rounds)
    del found["searcher"]["max_length"], found["searcher"]["divisor"]
    return found
"""


@pytest.mark.long
def test_copies_of_the_best_go_on_with_their_weights(cluster: Cluster, kernel: Kernel) -> None:
    kernel.run(SEARCHED)
    kernel.run(COUNTING)
    number = kernel.submit("experiment = det.experimental.create(Counting, population())")
    kernel.run("experiment.wait()")
    experiment = cluster.attach(number)
    assert experiment.state is ExperimentState.COMPLETED
    found = experiment.trials
    assert len(found) == 4
    begun_with = {}
    for trial in found:
        detail = trial.detail()
        rows = trial.metrics("validation")
        assert [row["batch"] for row in rows] == list(range(4, detail.batches + 1, 4))
        before = 0
        if detail.warm_start is not None:
            [source] = [each for other in found for each in other.checkpoints if each.uuid == detail.warm_start]
            begun_with[trial.id] = source.trial_id
            before = begun_with[source.trial_id, source.batch]
        for row in rows:
            assert row["batches"] == before + row["batch"]
            begun_with[trial.id, row["batch"]] = before + row["batch"]
    assert sorted(key for key in begun_with if isinstance(key, int)) == [found[2].id, found[3].id]
    totals = [begun_with[trial.id, trial.detail().batches] for trial in found]
    assert max(totals) == 12
