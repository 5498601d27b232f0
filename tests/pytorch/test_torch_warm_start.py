"""A trial that begins with the weights of another one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from digits_trials import Full, LocalRun, same, with_method
from torch import nn

from det_native.errors import CheckpointError, CheckpointNotFoundError
from det_native.pytorch import PyTorchCallback

pytestmark = pytest.mark.slow


def looking(seen: list[Any], rate: float = 0.1) -> Any:
    """Return a trial that notes what each batch begins with."""

    class Startup(PyTorchCallback):
        def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
            seen.append((first_batch_idx, checkpoint_uuid))

    def made(self: Any, context: Any) -> None:
        Full.__init__(self, context)
        self.optimizer = context.optimizers[0]
        self.optimizer.param_groups[0].update(lr=rate, momentum=0.9)

    def train_batch(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        optimizer = self.optimizer
        state = {name: value.clone() for name, value in self.model.state_dict().items()}
        seen.append((batch_idx, epoch_idx, state, len(optimizer.state), optimizer.param_groups[0]["lr"]))
        return Full.train_batch(self, batch, epoch_idx, batch_idx)

    return with_method(__init__=made, train_batch=train_batch, build_callbacks=lambda self: {"startup": Startup()})


def test_it_takes_the_weights_and_nothing_else(tmp_path: Path) -> None:
    first = LocalRun(tmp_path, batches=30)
    first.run(looking([]))
    source = first.last()
    seen: list[Any] = []
    second = LocalRun(tmp_path, batches=2)
    second.run(looking(seen, rate=0.25), begins_with=source)
    assert seen[0] == (0, source.uuid)
    batch, epoch, weights, optimizer_entries, rate = seen[1]
    assert (batch, epoch, optimizer_entries, rate) == (0, 0, 0, 0.25)
    assert same(weights, first.state()["models_state_dict"][0])
    assert [row.batch for row in second.reporter.training_rows] == [1, 2]


def test_a_checkpoint_of_its_own_comes_first(tmp_path: Path) -> None:
    first = LocalRun(tmp_path, batches=30)
    first.run(looking([]))
    second = LocalRun(tmp_path, batches=5)
    second.run(looking([]), begins_with=first.last())
    own = second.last()
    third, seen = LocalRun(tmp_path, batches=7), []  # type: ignore[var-annotated]
    third.run(looking(seen), begins_with=first.last(), resume=own)
    assert seen[0] == (5, own.uuid)
    assert seen[1][:2] == (5, 0)
    assert same(seen[1][2], second.state()["models_state_dict"][0])


def test_weights_that_do_not_fit_or_are_gone_are_told(tmp_path: Path) -> None:
    first = LocalRun(tmp_path, batches=5)
    first.run(Full)

    def other(self: Any, context: Any) -> None:
        self.context = context
        self.model = context.wrap_model(nn.Linear(64, 11))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    with pytest.raises(CheckpointError, match="model"):
        LocalRun(tmp_path, batches=5).run(with_method(__init__=other), begins_with=first.last())
    shutil.rmtree(tmp_path / first.last().uuid)
    with pytest.raises(CheckpointNotFoundError, match=first.last().uuid):
        LocalRun(tmp_path, batches=5).run(Full, begins_with=first.last())
