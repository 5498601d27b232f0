"""What a loop changes of models and optimizers in mid-training is in checkpoints, and comes home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from det_harness.frameworks.torch import changed, trial_state  # noqa: E402 (after the check for torch)
from loop_run import LoopRun  # noqa: E402
from native_line import Line, loader_of, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

from det_native.errors import CheckpointError, TrialDefinitionError  # noqa: E402
from det_native.pytorch import LRScheduler  # noqa: E402
from det_native.pytorch.native_call import TorchCall  # noqa: E402

pytestmark = pytest.mark.slow

PERIODS = {"min_checkpoint_period": {"batches": 4}}


class FineTuned(LoopRun):
    """Trains the last layer; from batch 5 on the first one too, in a group of its own, with less dropout."""

    named = False

    def _make(self, dropout: float) -> None:
        super()._make(dropout)
        self.context.optimizers.clear()
        self.context.lr_schedulers.clear()
        self.context.as_wrapped.groups.clear()
        self.model[0].requires_grad_(False)
        self.model[2].scale = 1.0
        last = self.model[3].named_parameters() if self.named else self.model[3].parameters()
        self.optimizer = self.context.wrap_optimizer(torch.optim.SGD(last, lr=0.05, momentum=0.9))
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)
        self.context.wrap_lr_scheduler(self.scheduler, LRScheduler.StepMode.STEP_EVERY_BATCH)

    def loss(self, batch: Any) -> Any:
        return super().loss(batch) * self.model[2].scale

    def changes(self) -> None:
        self.model[0].requires_grad_(True)
        self.model[3].bias.requires_grad_(False)
        self.model[2].p = 0.05
        self.model[2].scale = 0.5
        self.model[2].noted = ("kept", None, 3, True)
        self.optimizer.noted = self.context.batch_idx
        first = self.model[0].named_parameters() if self.named else self.model[0].parameters()
        self.optimizer.add_param_group({"params": list(first), "lr": 0.01})

    def train(self, stop_at: int = 0) -> None:
        for batch in self.batches():
            if self.context.batch_idx == 5:
                self.changes()
            self.step(batch)
            self.stop = self.context.batch_idx + 1 == stop_at

    def everything(self) -> dict[str, Any]:
        return self.result() | {
            "optimizer": self.optimizer.state_dict(),
            "frozen": [name for name, value in self.model.named_parameters() if not value.requires_grad],
            "attributes": [self.model[2].p, self.model[2].scale, self.model[2].noted, self.optimizer.noted],
            "training": [(row.batch, row.metrics) for row in self.reporter.training_rows],
        }


class Named(FineTuned):
    named = True


def flat(value: Any) -> Any:
    """A nesting with tensors as lists, for a comparison."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: flat(part) for key, part in value.items()}
    return [flat(part) for part in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize(("kind", "stop"), [(FineTuned, 7), (FineTuned, 14), (FineTuned, 4), (Named, 9)])
def test_a_trial_that_was_stopped_after_its_changes_ends_with_the_same_bits(
    tmp_path: Path, kind: type[FineTuned], stop: int
) -> None:
    whole = kind(tmp_path / "whole", epochs=2, **PERIODS)
    whole.train()
    first = kind(tmp_path / "parts", epochs=2, **PERIODS)
    first.train(stop_at=stop)
    rest = kind(tmp_path / "parts", epochs=2, resume=first.last(), **PERIODS)
    rest.train()
    expected, found = whole.everything(), rest.everything()
    rows = [(row.batch, row.metrics) for row in first.reporter.training_rows]
    found["training"] = rows + found["training"]
    for name in ("model", "optimizer", "frozen", "attributes", "rate", "training"):
        assert flat(found[name]) == flat(expected[name]), name
    assert expected["frozen"] == ["3.bias"]
    assert [len(group["params"]) for group in rest.optimizer.param_groups] == [2, 2]
    assert rest.optimizer.param_groups[1]["lr"] < 0.01


class Killed(FineTuned):
    def step(self, batch: Any, *, report: bool = True) -> None:
        if self.context.batch_idx == 11:
            raise KeyboardInterrupt
        super().step(batch, report=report)


@pytest.mark.long
def test_a_trial_that_was_killed_after_its_changes_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole = FineTuned(tmp_path / "whole", epochs=2, **PERIODS)
    whole.train()
    first = Killed(tmp_path / "parts", epochs=2, **PERIODS)
    with pytest.raises(KeyboardInterrupt):
        first.train()
    first.services.checkpoints.wait()
    assert first.last().batch == 8
    rest = FineTuned(tmp_path / "parts", epochs=2, resume=first.last(), **PERIODS)
    rest.train()
    assert flat(rest.everything()["model"]) == flat(whole.everything()["model"])
    assert flat(rest.everything()["optimizer"]) == flat(whole.everything()["optimizer"])


def saved(run: LoopRun) -> Path:
    run.services.checkpoints.wait()
    return Path(run.storage.uri) / run.reporter.checkpoints[-1][1].uuid


def test_the_file_of_the_weights_stays_one_that_loads_without_pickle(tmp_path: Path) -> None:
    run = FineTuned(tmp_path)
    run.train(stop_at=7)
    state = torch.load(saved(run) / "state_dict.pth", weights_only=True)
    settings = {"2": {"p": 0.05, "scale": 0.5, "noted": ("kept", None, 3, True)}, "3": {"bias.requires_grad": False}}
    assert state["module_settings"] == [settings]
    assert state["parameter_groups"][0]["now"] == [[[0, "3.weight"], [0, "3.bias"]], [[0, "0.weight"], [0, "0.bias"]]]


def test_attributes_that_the_training_has_not_changed_stay_those_of_this_machine(tmp_path: Path) -> None:
    first, again = FineTuned(tmp_path), FineTuned(tmp_path)
    first.model[0].place = "/there"
    again.model[0].place = "/here"
    first.context.as_wrapped.settings[0]["0"]["place"] = "/there"
    first.train(stop_at=7)
    state = trial_state.read(saved(first))
    changed.regroup(again.context.optimizers, state, again.context.models, again.context.as_wrapped)
    trial_state.restore(state | {"callbacks": {}}, again.context, {})
    assert (again.model[0].place, again.model[2].p) == ("/here", 0.05)


def test_a_checkpoint_of_before_has_none_of_it_and_loads(tmp_path: Path) -> None:
    run = LoopRun(tmp_path)
    run.train(stop_at=3)
    state = trial_state.read(saved(run))
    for name in ("module_settings", "parameter_groups"):
        del state[name]
    again = LoopRun(tmp_path)
    again.model[0].bias.requires_grad_(False)
    changed.regroup(again.context.optimizers, state, again.context.models, again.context.as_wrapped)
    trial_state.restore(state | {"callbacks": {}}, again.context, {})
    assert flat(again.model.state_dict()) == flat(run.model.state_dict())
    assert not again.model[0].bias.requires_grad


def test_groups_of_other_code_are_refused_as_before(tmp_path: Path) -> None:
    run = FineTuned(tmp_path)
    run.train(stop_at=7)
    other = LoopRun(tmp_path, resume=run.last())
    with pytest.raises(CheckpointError, match=r"optimizer number 1 .* does not fit"):
        other.train()


def test_a_group_of_no_wrapped_model_is_named_at_the_checkpoint() -> None:
    line = Line()

    def adding(batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        if batch_idx == 1:
            line.optimizer.add_param_group({"params": list(torch.nn.Linear(1, 1).parameters())})
        return {"loss": line.step(batch)}

    with pytest.raises(TrialDefinitionError, match=r"SGD was given parameters .* no wrapped model.*wrap their model"):
        line.fit(train_batch=adding)


class Wide(Line):
    """Two layers, of which the second is trained from the second epoch on."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        head = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(1, 1)).requires_grad_(False)
        self.head = self.context.wrap_model(head)

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return torch.nn.functional.mse_loss(self.head(self.model(x)), y)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == 3:
            self.head[1].requires_grad_(True)
            self.head[0].p = 0.1
            self.optimizer.add_param_group({"params": list(self.head.parameters()), "lr": 0.01})
        return super().train_batch(batch, epoch_idx, batch_idx)


@pytest.mark.usefixtures("recorded")
def test_what_a_training_has_changed_comes_home() -> None:
    from det_native.home.result import load_state

    trained = Wide()
    experiment = trained.fit()
    waiting = Wide()
    load_state(
        experiment,
        TorchCall.of(
            waiting.context,
            "fit",
            train_loader=loader_of(),
            validation_loader=None,
            train_batch=waiting.train_batch,
            evaluate_batch=None,
            epochs=2,
            callbacks=None,
        ),
        experiment.detail(),
    )
    assert flat(waiting.optimizer.state_dict()) == flat(trained.optimizer.state_dict())
    assert waiting.optimizer.param_groups[1]["params"][0] is waiting.head[1].weight
    assert all(parameter.requires_grad for parameter in waiting.head.parameters())
    assert waiting.head[0].p == 0.1
    models = [torch.nn.Linear(1, 1), torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(1, 1))]
    models[0].bias.requires_grad_(False)
    models[1].requires_grad_(False)
    optimizer = torch.optim.SGD(models[0].parameters(), lr=9.0)
    experiment.load_into(models, optimizer)
    assert flat(optimizer.state_dict()) == flat(trained.optimizer.state_dict())
    assert (models[1][0].p, models[1][1].weight.requires_grad) == (0.1, True)
    assert not models[0].bias.requires_grad, "the training has not changed it: it is as the user has it"
