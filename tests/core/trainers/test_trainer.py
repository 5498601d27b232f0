"""``det.pytorch.Trainer`` outside of an experiment: trains, continues, and says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import det_native as det
from det_native import pytorch
from det_native.errors import ArgumentError, TrialDefinitionError


class Line(pytorch.PyTorchTrial):
    """Fits a plane to 64 points."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(4, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), context.get_hparam("lr")))
        x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
        self.data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(self.data, batch_size=8, shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(self.data, batch_size=32)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        loss = (self.model(batch[0]) - batch[1]).square().mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        return {"error": (self.model(batch[0]) - batch[1]).square().mean()}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a fresh home, and return it."""
    monkeypatch.setenv("DET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))  # any optimizer makes it
    return tmp_path / "home"


@pytest.fixture
def context() -> Iterator[Any]:
    """Give the context of a Trainer."""
    with det.pytorch.init(hparams={"lr": 0.1}) as made:
        yield made


def _checkpoints(home: Path) -> list[str]:
    return [folder.name for folder in (home / "checkpoints").glob("*-*")]


def _step(line: str) -> int:
    return int(line.partition(":")[0].split()[-1])


def test_continues_with_the_same_numbers(home: Path) -> None:
    """A training that begins with a checkpoint of another goes on as if it had not ended."""

    def trained(epochs: int, **fit: Any) -> torch.Tensor:
        with det.pytorch.init(hparams={"lr": 0.1}) as context:
            trial = Line(context)
            pytorch.Trainer(trial, context).fit(max_length=pytorch.Epoch(epochs), **fit)
            weights: torch.Tensor = trial.model.weight.detach().clone()
            return weights

    whole = trained(3)
    before = set(_checkpoints(home))
    first = trained(2)
    (latest,) = set(_checkpoints(home)) - before
    assert not torch.equal(first, whole)
    assert torch.equal(trained(3, latest_checkpoint=latest), whole)
    # The hyperparameters are those of the context, which nobody records.
    with pytest.raises(ArgumentError, match="PyTorchTrial class"):
        pytorch.load_trial_from_checkpoint_path(home / "checkpoints" / latest)
    with pytest.raises(ArgumentError, match="has no checkpoint"):
        pytorch.load_trial_from_checkpoint_path(home, Line)


def test_units_and_policy(home: Path, context: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Lengths in batches and in epochs of the trial's own data are due when they say."""
    caplog.set_level("INFO", logger="det_native.core")
    pytorch.Trainer(Line(context), context).fit(
        max_length=pytorch.Batch(20),
        validation_period=pytorch.Epoch(1),
        checkpoint_period=pytorch.Batch(5),
        checkpoint_policy="none",
        step_zero_validation=True,
    )
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(":")[0][-2:].strip() for line in lines if line.startswith("validation")] == [
        "0",
        "8",
        "16",
        "20",
    ]
    assert sorted(int(line.split(":")[0].split()[-1]) for line in lines if line.startswith("checkpoint")) == [
        5,
        10,
        15,
        20,
    ]


def test_mode_of_one_batch(home: Path, context: Any) -> None:
    """``test_mode`` makes one batch, one validation and one checkpoint."""
    trial = Line(context)
    pytorch.Trainer(trial, context).fit(max_length=pytorch.Epoch(1000), test_mode=True)
    assert len(_checkpoints(home)) == 1
    assert context.core.run.steps == 1


def test_refuses(context: Any) -> None:
    """What makes no sense is refused before any batch."""
    trainer = pytorch.Trainer(Line(context), context)
    with pytest.raises(TrialDefinitionError, match="max_length"):
        trainer.fit()
    with pytest.raises(ArgumentError, match=r"Epoch\(n\)"):
        trainer.fit(max_length=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="best, all, none"):
        trainer.fit(max_length=pytorch.Epoch(1), checkpoint_policy="some")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="at least 1"):
        pytorch.Epoch(0)
    with pytest.raises(ArgumentError, match="made with the context"):
        pytorch.Trainer(Line, context)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"det\.experimental\.pytorch\.init"), det.pytorch.init({"name": "x"}):
        pass
