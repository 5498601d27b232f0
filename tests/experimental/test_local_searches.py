"""``local=True`` with a search: the trials of a class in this process, one stage after the other."""

import importlib
import os
import signal
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.client.handles import Experiment  # noqa: E402
from det_native.client.state_words import trial_word  # noqa: E402
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext  # noqa: E402
from det_native.schema.config import ExperimentConfig  # noqa: E402
from det_native.schema.loading import ConfigurationWarning  # noqa: E402
from det_native.schema.states import ExperimentState, TrialState  # noqa: E402
from det_native.search import (  # noqa: E402
    CreateTrial,
    Started,
    Stop,
    TrainTo,
    TrialCompleted,
    TrialFailed,
    TrialValidated,
    make_searcher,
)

pytestmark = pytest.mark.slow

PBT = {
    "name": "pbt",
    "population_size": 4,
    "num_rounds": 3,
    "length_per_round": {"batches": 4},
    "replace_function": {"truncate_fraction": 0.25},
    "explore_function": {"resample_probability": 0.5, "perturb_factor": 0.2},
}
SEARCHES: dict[str, dict[str, Any]] = {
    "async_halving": {"num_rungs": 3, "max_trials": 9, "max_concurrent_trials": 3},
    "sync_halving": {"num_rungs": 2, "budget": {"batches": 64}},
    "adaptive_asha": {"max_trials": 8, "max_rungs": 3},
    "adaptive_simple": {"max_trials": 6, "max_rungs": 2},
    "pbt": PBT,
}


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


class Counting(PyTorchTrial):
    """Its error is known before: it hangs on `x` and the batches done. Its weights count all batches."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.model.register_buffer("batches", torch.zeros(()))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
        self.own = 0
        if context.get_hparams().get("highest", 1) < context.get_hparam("x"):
            raise det.InvalidHP("x is too high")

    def build_training_data_loader(self) -> DataLoader:
        x = torch.arange(8.0).reshape(-1, 1)
        return DataLoader(torch.utils.data.TensorDataset(x, x), batch_size=2)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx + 1 == self.context.get_hparam("interrupted_at"):
            os.kill(os.getpid(), signal.SIGINT)
        self.model.batches += 1
        self.own = batch_idx + 1
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": float("nan") if self.context.get_hparam("x") > 0.95 else loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        return {"error": error(self.context.get_hparam("x"), self.own), "batches": self.model.batches.item()}


def error(x: float, batches: int) -> float:
    """Return what a trial comes to; who is first after 4 batches is not first in the end."""
    return float(torch.tensor(x + 3.0 * (1 - x) / max(batches, 1)))


def configuration(name: str) -> dict[str, Any]:
    searcher = {"name": name, "metric": "error", **SEARCHES[name]}
    if name != "pbt":
        searcher |= {"max_length": {"batches": 16}, "divisor": 2}
    return {
        "searcher": searcher,
        "hyperparameters": {"global_batch_size": 2, "x": det.Double(0, 1), "interrupted_at": 0},
        "reproducibility": {"experiment_seed": 5},
        "checkpoint_storage": {"save_trial_latest": 9},
    }


def decisions(config: dict[str, Any]) -> tuple[list[list[int]], list[dict[str, Any]], list[int | None]]:
    """Return the stages, the hyperparameters and the parent of every trial, as the pure searcher has it on one slot."""
    searcher = make_searcher(ExperimentConfig.model_validate(config))
    units: list[list[int]] = []
    made: list[CreateTrial] = []
    waiting: list[int] = []
    actions = searcher.handle(Started())
    while True:
        for action in actions:
            match action:
                case CreateTrial():
                    assert action.units is not None
                    made.append(action)
                    units.append([action.units])
                    waiting.append(action.request)
                case TrainTo(request, until):
                    units[request].append(until)
                    waiting.append(request)
        if not waiting:
            return units, [each.hparams for each in made], [each.parent for each in made]
        waiting.sort()
        request = waiting.pop(0)
        x = made[request].hparams["x"]
        done = units[request][-1]
        actions = searcher.handle(
            TrialFailed(request) if x > 0.95 else TrialCompleted(request, error(x, done), done, over=False)
        )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name not in ("async_halving", "pbt"))) for name in SEARCHES]
)
def test_it_decides_as_the_pure_searcher_on_one_slot(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = det.experimental.create(Counting, configuration(name), local=True)
    assert experiment.state is ExperimentState.COMPLETED
    assert experiment.detail().progress == 1
    units, hparams, parents = decisions(experiment.config)
    assert [trial.detail().stages for trial in experiment.trials] == units
    assert [trial.hparams for trial in experiment.trials] == hparams
    assert max(map(len, units)) > 1, "somebody is trained on"
    length = ExperimentConfig.model_validate(experiment.config).searcher.max_length.units
    for trial, stages in zip(experiment.trials, units, strict=True):
        detail, short = trial.detail(), stages[-1] < length
        assert detail.stopped_early == (short and trial.state is TrialState.COMPLETED)
        assert trial_word(detail) == ("Stopped early" if detail.stopped_early else detail.state.value)
    check_training(experiment, units, parents)
    said = capsys.readouterr().out
    goes_on = next(number for number, lengths in enumerate(units, start=1) if len(lengths) > 1)
    assert f"Trial {goes_on} goes on, to batch {units[goes_on - 1][1]}." in said
    assert experiment.plot("search").axes
    assert experiment.best_trial.detail().best_validation == experiment.detail().best_validation


def check_training(experiment: Experiment, units: list[list[int]], parents: list[int | None]) -> None:
    """Assert that each trial has trained and validated as the search has asked, with no batch left out or twice."""
    counted: dict[tuple[int, int], float] = {}
    for trial, lengths, parent in zip(experiment.trials, units, parents, strict=True):
        if trial.hparams["x"] > 0.95:
            assert trial.state is TrialState.ERROR
            continue
        detail = trial.detail()
        assert trial.state is TrialState.COMPLETED
        assert detail.batches == detail.target_batches == lengths[-1]
        assert [row["batch"] for row in trial.metrics("training")] == list(range(1, lengths[-1] + 1))
        assert [row["batch"] for row in trial.metrics("validation")] == lengths
        lines = trial.logs()
        assert sum("The search trains this trial on" in line.text for line in lines) == len(lengths) - 1
        assert len({line.id for line in lines}) == len(lines)
        before = 0.0
        assert (detail.warm_start is None) == (parent is None)
        if parent is not None:
            found = [each for other in experiment.trials for each in other.checkpoints]
            [source] = [each for each in found if each.uuid == detail.warm_start]
            assert source.trial_id == parent + 1
            before = counted[source.trial_id, source.batch]
        for row in trial.metrics("validation"):
            assert row["batches"] == before + row["batch"]
            counted[trial.id, row["batch"]] = row["batches"]


def test_an_interrupt_ends_the_search_with_a_checkpoint() -> None:
    config = configuration("async_halving")
    config["hyperparameters"] |= {"interrupted_at": 6}  # in the second stage of a trial
    experiment = det.experimental.create(Counting, config, local=True)
    detail = experiment.detail()
    assert (detail.state, detail.error and detail.error.type) == (ExperimentState.CANCELED, "Stopped")
    [stopped] = [trial for trial in experiment.trials if trial.state is TrialState.CANCELED]
    assert stopped.detail().batches == 6
    assert stopped.detail().stages == [4, 8]
    assert stopped.checkpoints[-1].batch == 6
    assert f"after batch 6 of {stopped.detail().target_batches}" in str(detail.error)
    assert 0 < detail.progress < 1


@pytest.mark.long
def test_a_trial_that_refuses_its_hyperparameters_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    config = configuration("async_halving")
    config["hyperparameters"] |= {"highest": 0.7}
    experiment = det.experimental.create(Counting, config, local=True)
    assert experiment.state is ExperimentState.COMPLETED
    refused = [trial for trial in experiment.trials if trial.hparams["x"] > 0.7]
    assert refused
    assert {trial.state for trial in refused} == {TrialState.CANCELED}
    assert {trial.detail().notice for trial in refused} == {"invalid hyperparameters: x is too high"}
    assert len(experiment.trials) == 9 + len(refused)
    assert experiment.detail().failed_trials == 0
    said = f"Trial {refused[0].id} has invalid hyperparameters, and the search goes on: x is too high"
    assert said in capsys.readouterr().out


def pruned_decisions(config: dict[str, Any], every: int) -> list[tuple[dict[str, Any], int]]:
    """Return the hyperparameters of every trial and where it ends, as the pure searcher has it one trial at a time."""
    searcher = make_searcher(ExperimentConfig.model_validate(config))
    found: list[tuple[dict[str, Any], int]] = []
    waiting = searcher.handle(Started())
    while waiting:
        action = waiting.pop(0)
        if not isinstance(action, CreateTrial):
            continue
        x, done = action.hparams["x"], 16
        for units in range(every, 16, every) if x <= 0.95 else ():
            told = searcher.handle(TrialValidated(action.request, units, error(x, units)))
            if any(isinstance(each, Stop) for each in told):
                done = units
                break
        found.append((action.hparams, done))
        ended = TrialCompleted(action.request, error(x, done), over=done < 16)
        waiting += searcher.handle(TrialFailed(action.request) if x > 0.95 else ended)
    return found


@pytest.mark.long
def test_a_pruner_stops_trials_here_as_the_pure_searcher_says() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    pruner = {"name": "median", "n_startup_trials": 2}
    searcher = {"name": "optuna", "sampler": "tpe", "max_trials": 8, "max_concurrent_trials": 1, "pruner": pruner}
    config = configuration("adaptive_asha")
    config["searcher"] = {**searcher, "metric": "error", "max_length": {"batches": 16}}
    with pytest.warns(ConfigurationWarning, match="searcher.pruner sees nothing of these trials"):
        det.experimental.create(Counting, config | {"searcher": config["searcher"] | {"max_trials": 1}}, local=True)
    config["min_validation_period"] = {"batches": 4}
    experiment = det.experimental.create(Counting, config, local=True)
    assert experiment.state is ExperimentState.COMPLETED
    expected = pruned_decisions(experiment.config, 4)
    found = [(trial.hparams, trial.detail().batches) for trial in experiment.trials]
    assert [hparams for hparams, _ in found] == [hparams for hparams, _ in expected]
    for trial, (hparams, done) in zip(experiment.trials, expected, strict=True):
        if hparams["x"] <= 0.95:
            detail = trial.detail()
            assert (trial.state, detail.batches) == (TrialState.COMPLETED, done)
            assert ("stopped early by the search, after" in detail.notice) == (done < 16)
            assert trial.checkpoints[-1].batch == done
    assert any(done < 16 for _, done in expected)
