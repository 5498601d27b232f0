"""A trial on scikit-learn's digits that uses every kind of state a checkpoint has to hold, and what runs it."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from det_harness.frameworks.torch.controller import PyTorchTrialController
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Outcome, Services
from det_harness.trial.warm_start import WarmStart
from rows_reporter import RowsReporter
from sklearn.datasets import load_digits
from torch import nn

from det_native.pytorch import DataLoader, LRScheduler, PyTorchCallback, PyTorchTrial, PyTorchTrialContext
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import WarmStartSource
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

torch.set_num_threads(1)
# The first optimizer of a process imports half of torch and makes a cache folder: here, before any test is watched.
torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)


@functools.cache
def _digits() -> Any:
    return load_digits(return_X_y=True)


class Digits(torch.utils.data.Dataset[Any]):
    """The 1797 images of 8 x 8; the last 297 for validation."""

    def __init__(self, train: bool, noise: float = 0.0) -> None:
        images, labels = _digits()
        part = slice(None, 1500) if train else slice(1500, None)
        self.images = torch.tensor(images[part] / 16, dtype=torch.float32)
        self.labels = torch.tensor(labels[part])
        self.noise = noise

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = self.images[index]
        if self.noise:
            image = image + self.noise * (torch.rand(64) + random.random() + np.random.rand())
        return image, self.labels[index]


class Counter(PyTorchCallback):
    """Counts validations; its state holds more than JSON does."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.events: list[str] = []

    def on_validation_step_start(self) -> None:
        self.events.append("step_start")

    def on_validation_start(self) -> None:
        self.events.append("start")

    def on_validation_step_end(self, metrics: dict[str, Any]) -> None:
        self.events.append("step_end")

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.events.append("end")
        self.seen.append((metrics["loss"], {1, 2}))

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        (Path(checkpoint_dir) / "extra.txt").write_text("by a callback")

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.seen = state_dict["seen"]


class DigitsTrial(PyTorchTrial):
    """Dropout, momentum, two schedulers, draws from every global generator in each batch."""

    done: ClassVar[int] = 0

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(
            nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 10))
        )
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9))
        self.other = context.wrap_model(nn.Linear(10, 10))
        self.adam = context.wrap_optimizer(torch.optim.AdamW(self.other.parameters(), lr=1e-3))
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.9), LRScheduler.StepMode.STEP_EVERY_EPOCH
        )
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.LambdaLR(self.adam, lambda step: 1 / (1 + step / 50)),
            LRScheduler.StepMode.STEP_EVERY_BATCH,
        )
        self.counter = Counter()

    def build_training_data_loader(self) -> DataLoader:
        hparams = self.context.get_hparams()
        workers = hparams.get("workers", 0)
        return DataLoader(
            Digits(True, noise=0.1),
            batch_size=self.context.get_per_slot_batch_size(),
            shuffle=True,
            num_workers=workers,
            drop_last=bool(hparams.get("drop_last", False)),
        )

    def build_validation_data_loader(self) -> torch.utils.data.DataLoader[Any]:
        return torch.utils.data.DataLoader(Digits(False), batch_size=100)

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"counter": self.counter}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        DigitsTrial.done = batch_idx + 1
        images, labels = batch
        images = images * (1 + 0.01 * random.random() + 0.01 * np.random.rand())
        output = self.other(self.model(images))
        loss = nn.functional.cross_entropy(output, labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip_grads=lambda p: nn.utils.clip_grad_norm_(p, 1.0))
        self.context.step_optimizer(self.adam)
        accuracy = (output.argmax(1) == labels).float().mean()
        return {"loss": loss, "accuracy": accuracy, "epoch": epoch_idx}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, labels = batch
        output = self.other(self.model(images))
        return {
            "loss": nn.functional.cross_entropy(output, labels),
            "accuracy": (output.argmax(1) == labels).float().mean().item(),
        }


def config(batches: int = 60, **changed: Any) -> dict[str, Any]:
    return {
        "searcher": {"name": "single", "metric": "loss", "smaller_is_better": True, "max_length": {"batches": batches}},
        "scheduling_unit": 10,
        **changed,
    }


class LocalRun:
    """Runs a trial class in this process with all services real, from scratch or from a checkpoint."""

    def __init__(
        self, directory: Path, *, batch_size: int = 64, hparams: dict[str, Any] | None = None, **made: Any
    ) -> None:
        self.environment = TrialEnvironment(
            config=config(**made), hparams={"global_batch_size": batch_size, **(hparams or {})}, trial_seed=5
        )
        self.storage = CheckpointStorage(str(directory))
        self.reporter = RowsReporter("loss")
        self.checkpoints: TrialCheckpoints | None = None

    def run(
        self,
        trial_class: type[PyTorchTrial],
        resume: CheckpointManifest | None = None,
        stop_at: int | None = None,
        started: Callable[[int], None] | None = None,
        begins_with: CheckpointManifest | None = None,
    ) -> Outcome:
        DigitsTrial.done = 0
        self.checkpoints = TrialCheckpoints(
            self.storage,
            CheckpointOwner("torch", self.environment.hparams),
            self.reporter,
            resume=resume,
            on_start=started,
        )
        services = Services(
            environment=self.environment,
            schedule=Schedule(periods_of(self.environment)),
            reporter=self.reporter,
            checkpoints=self.checkpoints,
            stop_requested=lambda: stop_at is not None and DigitsTrial.done >= stop_at,
            warm_start=None
            if begins_with is None
            else WarmStart(WarmStartSource(checkpoints=self.storage.uri, manifest=begins_with)),
        )
        return PyTorchTrialController(trial_class, services).run()

    def last(self) -> CheckpointManifest:
        return self.reporter.checkpoints[-1][1]

    def state(self) -> dict[str, Any]:
        """Return what the last checkpoint holds."""
        with self.storage.open(self.last().uuid, "state_dict.pth") as stream:
            found: dict[str, Any] = torch.load(stream, weights_only=True)
        return found


def bits(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor: what is not a number is equal to itself there."""
    return tensor.detach().reshape(-1).view(torch.uint8).cpu().numpy().tobytes() if tensor.numel() else b""


def same(first: Any, second: Any) -> bool:
    """Return whether two states are equal, bit for bit."""
    if isinstance(first, torch.Tensor):
        return first.dtype == second.dtype and first.shape == second.shape and bits(first) == bits(second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second)


class Full(PyTorchTrial):
    """Evaluates the whole data set at once, and returns a lone loss."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.model = context.wrap_model(nn.Linear(64, 10))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(Digits(True), batch_size=64, shuffle=True)

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(Digits(False), batch_size=64)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss

    def evaluate_full_dataset(self, data_loader: torch.utils.data.DataLoader[Any]) -> dict[str, Any]:
        assert isinstance(data_loader, torch.utils.data.DataLoader)
        assert not self.model.training
        return {"loss": sum(len(labels) for _, labels in data_loader)}


def with_method(**methods: Any) -> type[PyTorchTrial]:
    """Return ``Broken``: `Full` with these methods."""
    return type("Broken", (Full,), methods)
