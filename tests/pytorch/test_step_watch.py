"""An optimizer that is never stepped trains nothing: that is told once it is certain, and nothing where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from digits_trials import Full, LocalRun
from torch import nn

from det_native.errors import TrialDefinitionError

pytestmark = pytest.mark.slow

EPOCH = 24  # batches of 64 records


class Evaluated(Full):
    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
        return {"loss": 0.5}

    def loss(self, batch: Any) -> torch.Tensor:
        images, labels = batch
        return nn.functional.cross_entropy(self.model(images), labels)


class Forgets(Evaluated):
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.context.backward(loss)
        self.optimizer.zero_grad()
        return loss


class ForgetsBoth(Forgets):
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> torch.Tensor:
        loss = self.loss(batch)
        loss.backward()
        return loss


class Baseline(Evaluated):
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> torch.Tensor:
        return self.loss(batch).detach()


class Steps(Evaluated):
    """What is no mistake: steps by torch, at the end only, by hand, or left out by a scaler."""

    how = "torch"

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.scaler = context.wrap_scaler(torch.amp.GradScaler("cpu", init_scale=1e38, backoff_factor=0.99))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> torch.Tensor:
        loss = self.loss(batch)
        if self.how == "scaler":
            self.context.backward(self.scaler.scale(loss * 1e6))
            self.context.step_optimizer(self.optimizer, scaler=self.scaler)
            self.scaler.update()
            return loss
        loss.backward()
        if self.how == "torch" or (self.how == "rarely" and batch_idx == EPOCH + 10):
            self.optimizer.step()
        elif self.how == "by hand":
            for parameter in self.model.parameters():
                parameter.data -= 0.1 * parameter.grad
        return loss


class Two(Forgets):
    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.other = context.wrap_model(nn.Linear(10, 1))
        self.unused = context.wrap_optimizer(torch.optim.Adam(self.other.parameters()))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "step" in record.message]


@pytest.mark.parametrize("trial_class", [Forgets, ForgetsBoth])
def test_a_training_that_steps_no_optimizer_is_no_success(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, trial_class: type[Full]
) -> None:
    words = rf"{trial_class.__name__}\.train_batch\(\) has stepped no optimizer in 30 batches.*call context\.step_optim"
    with pytest.raises(TrialDefinitionError, match=words):
        LocalRun(tmp_path, batches=30).run(trial_class)
    [early] = told(caplog)
    assert f"in {EPOCH} batches" in early


def test_less_than_an_epoch_without_a_step_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    LocalRun(tmp_path, batches=3).run(Forgets)
    [message] = told(caplog)
    assert message.startswith("Forgets.train_batch() has stepped no optimizer in 3 batches, and the weights are what")


def test_a_baseline_that_trains_nothing_ends_well_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    LocalRun(tmp_path, batches=30).run(Baseline)
    [message] = told(caplog)
    assert "If it is to train, call context.step_optimizer(optimizer)" in message


def test_the_optimizer_that_was_not_stepped_among_others_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    LocalRun(tmp_path, batches=30).run(Two)
    [message] = told(caplog)
    assert message.startswith("Adam, optimizer 2 of 2 was never stepped, and its weights are what they were before")


@pytest.mark.parametrize("how", ["torch", pytest.param("by hand", marks=pytest.mark.long), "scaler"])
def test_other_ways_to_train_are_told_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str) -> None:
    LocalRun(tmp_path, batches=30).run(type("Steps", (Steps,), {"how": how}))
    assert not told(caplog)


def test_one_step_of_the_gradients_of_many_batches_is_enough(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    LocalRun(tmp_path, batches=2 * EPOCH).run(type("Steps", (Steps,), {"how": "rarely"}))
    [message] = told(caplog)
    assert "Where one step is to come of more batches, all is well" in message


def test_a_frequency_above_the_length_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    LocalRun(tmp_path, batches=30, optimizations={"aggregation_frequency": 40}).run(Full)
    [message] = told(caplog)
    assert message.startswith("optimizations.aggregation_frequency = 40 makes one step of as many batches")
