"""``experiment.load_into()`` and what is behind it: PyTorch objects of this process, after a run in it."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from native_line import CONFIG, Line, loader_of, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.errors import (  # noqa: E402
    ArgumentError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    ExperimentFailedError,
    NotFoundError,
)
from det_native.home.result import load_state  # noqa: E402
from det_native.pytorch import PyTorchCallback  # noqa: E402
from det_native.pytorch.native_call import TorchCall  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]


class Zeroing(PyTorchCallback):
    """Makes the weights zero when the process stops training, as one that puts others back would."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def on_trial_shutdown(self) -> None:
        with torch.no_grad():
            self.model.weight.zero_()


class Plain(torch.optim.Optimizer):
    """An optimizer as people write one, with one setting."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad, alpha=group["lr"])


class Restoring(PyTorchCallback):
    """Puts the first weights back after every validation, as one does that keeps the best."""

    def __init__(self, model: Any) -> None:
        self.model, self.first = model, copy.deepcopy(model.state_dict())

    def on_validation_end(self, metrics: Any) -> None:
        self.model.load_state_dict(self.first)


def call_of(line: Line) -> TorchCall:
    return TorchCall.of(
        line.context,
        "fit",
        train_loader=loader_of(),
        validation_loader=None,
        train_batch=line.train_batch,
        evaluate_batch=None,
        epochs=2,
        callbacks=None,
    )


def values_of(module: Any) -> list[list[float]]:
    return [value.flatten().tolist() for value in module.state_dict().values()]


def configured(**changed: Any) -> dict[str, Any]:
    return CONFIG | {"searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 2}}} | changed


def test_the_number_of_a_checkpoint_is_of_the_weights_that_a_callback_has_put_back() -> None:
    line = Line(configured(perform_initial_validation=True))
    experiment = line.fit(callbacks=[Restoring(line.model)])
    first, last = experiment.metrics(kind="validation")[0], experiment.metrics(kind="validation")[-1]
    assert first["val_loss"] != last["val_loss"]
    assert experiment.checkpoints[-1].metrics["val_loss"] == pytest.approx(first["val_loss"], rel=1e-6)


def test_weights_that_were_made_when_the_trial_had_ended_have_no_number() -> None:
    line = Line()
    experiment = line.fit(callbacks=[Zeroing(line.model)])
    assert experiment.metrics(kind="validation")
    assert experiment.checkpoints[-1].metrics == {}


def test_modules_and_optimizers_get_the_state_after_the_end() -> None:
    line = Line()
    experiment = line.fit(callbacks=[Zeroing(line.model)])
    trained, momentum = values_of(line.model), line.optimizer.state_dict()["param_groups"][0]["lr"]
    assert trained[0] == [0.0]
    fresh = torch.nn.Linear(1, 1).eval()
    optimizer = torch.optim.SGD(fresh.parameters(), lr=9.0)
    held = fresh.weight
    loaded = det.experiment(experiment.id).load_into({"model": fresh}, [optimizer])
    assert values_of(fresh) == trained
    assert held is fresh.weight
    assert not fresh.training
    assert optimizer.param_groups[0]["lr"] == momentum
    assert loaded.batch == 6
    assert values_of(experiment.checkpoint(loaded.uuid).load()) == trained
    # What a trial would go on from is as it was: the checkpoint before has it.
    first, last = experiment.checkpoints[-2:]
    assert first.batch == last.batch == 6
    assert values_of(first.load())[0] != [0.0]


def test_a_run_whose_end_changes_nothing_ends_with_one_checkpoint() -> None:
    experiment = Line().fit(callbacks=[PyTorchCallback()])
    assert [checkpoint.batch for checkpoint in experiment.checkpoints] == [6]


def test_what_was_submitted_gets_it_by_its_call() -> None:
    trained = Line()
    experiment = trained.fit()
    at_end = torch.get_rng_state()
    waiting = Line()
    loaded, _ = load_state(experiment, call_of(waiting), experiment.detail())
    assert loaded.batch == 6
    assert values_of(waiting.model) == values_of(trained.model)
    assert torch.equal(torch.get_rng_state(), at_end)


@pytest.mark.parametrize("weights", ["last", "best"])
def test_the_configuration_says_which_weights(weights: str) -> None:
    config = configured(weights=weights, checkpoint_policy="all", min_validation_period={"epochs": 1})
    config["searcher"] |= {"smaller_is_better": False}  # so that the first validation is the best
    line = Line(config)
    experiment = line.fit()
    fresh = Line()
    loaded, _ = load_state(experiment, call_of(fresh), experiment.detail())
    wanted = {"last": 6, "best": 3}[weights]
    assert loaded.batch == wanted
    assert values_of(fresh.model) == values_of(experiment.checkpoint(loaded.uuid).load())
    assert experiment.load_into(fresh.model).batch == wanted


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    experiment = Line().fit()
    small, wide = torch.nn.Linear(1, 1), torch.nn.Linear(2, 1)
    before = copy.deepcopy((values_of(small), values_of(wide)))
    with pytest.raises(CheckpointError, match=r"Linear.*weight \(1, 1\), this one has weight \(1, 2\).*top_checkpoint"):
        experiment.load_into(wide)
    with pytest.raises(CheckpointError, match="has trained 1 model"):
        experiment.load_into([small, wide])
    with pytest.raises(CheckpointError, match="is no Adam: it has lr, momentum"):
        experiment.load_into(small, torch.optim.Adam(small.parameters()))
    with pytest.raises(CheckpointError, match=r"groups of \[2\] parameters, this one of \[1\]"):
        experiment.load_into(small, torch.optim.SGD([small.weight], lr=1.0))
    with pytest.raises(ArgumentError, match=r"takes a PyTorch module.* not Linear: "):
        experiment.load_into(torch.nn.Linear)
    with pytest.raises(ArgumentError, match=r"takes a PyTorch module.* not a dict"):
        experiment.load_into([{}])
    assert (values_of(small), values_of(wide)) == before
    other = Line()
    other.context.wrap_model(torch.nn.Linear(1, 1))
    with pytest.raises(CheckpointError, match="trained with 1 model"):
        load_state(experiment, call_of(other), experiment.detail())


def test_an_optimizer_can_get_state_twice() -> None:
    line = Line()
    line.context.optimizers.clear()
    line.context.as_wrapped.groups.clear()
    line.optimizer = line.context.wrap_optimizer(Plain(line.model.parameters()))
    experiment = line.fit()
    fresh = torch.nn.Linear(1, 1)
    optimizer = Plain(fresh.parameters())
    experiment.load_into(fresh, optimizer)
    assert "differentiable" in optimizer.defaults  # of torch, when state is put in place
    assert experiment.load_into(fresh, optimizer).batch == 6


def test_a_last_checkpoint_that_was_not_kept_is_named() -> None:
    storage = {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 0}
    config = configured(checkpoint_storage=storage, checkpoint_policy="all", min_validation_period={"epochs": 1})
    config["searcher"] |= {"smaller_is_better": False}
    experiment = Line(config).fit()
    with pytest.raises(CheckpointNotFoundError, match=r"of batch 6, was deleted: .*save_trial_latest"):
        experiment.load_into(torch.nn.Linear(1, 1))
    assert experiment.load_into(torch.nn.Linear(1, 1), checkpoint=experiment.top_checkpoint()).batch == 3


def test_a_damaged_checkpoint_is_not_loaded_and_another_one_is_named() -> None:
    from pathlib import Path

    line = Line(configured(min_checkpoint_period={"batches": 2}, checkpoint_storage={"save_trial_latest": 2}))
    experiment = line.fit()
    first, last = experiment.checkpoints[-2:]
    (Path(last.facts.location) / "state_dict.pth").write_bytes(b"?")
    fresh = torch.nn.Linear(1, 1)
    before = values_of(fresh)
    with pytest.raises(CheckpointCorruptError, match=f"Nothing is loaded; that of batch {first.batch} is whole"):
        experiment.load_into(fresh)
    assert values_of(fresh) == before
    assert experiment.load_into(fresh, checkpoint=first.uuid[:8]).batch == first.batch


def test_a_failed_run_gives_its_last_checkpoint_by_hand_only() -> None:
    line = Line(configured(min_checkpoint_period={"batches": 2}))

    def failing(batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == 5:
            raise ValueError("no more")
        return line.train_batch(batch, epoch_idx, batch_idx)

    with pytest.raises(ValueError, match="no more"):
        line.fit(train_batch=failing)
    experiment = line.context.experiment
    fresh = Line()
    before = values_of(fresh.model)
    with pytest.raises(ExperimentFailedError, match="no more"):
        load_state(experiment, call_of(fresh), experiment.detail())
    assert values_of(fresh.model) == before
    with pytest.warns(UserWarning, match="is Failed: what is loaded is its last checkpoint, of batch 5 of 6"):
        assert experiment.load_into(fresh.model).batch == 5


def test_a_run_without_a_checkpoint_raises_why() -> None:
    line = Line()

    def failing(batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        raise ValueError("not one batch")

    with pytest.raises(ValueError, match="not one batch"):
        line.fit(train_batch=failing)
    with pytest.raises(ExperimentFailedError, match="not one batch"):
        line.context.experiment.load_into(line.model)


def test_an_experiment_that_is_gone_is_said() -> None:
    line = Line()
    experiment = line.fit()
    handle = det.experiment(experiment.id)
    handle.source.delete(handle.id)
    with warnings.catch_warnings(), pytest.raises(NotFoundError, match=f"{handle.id}"):
        handle.load_into(line.model)
