"""Trials in the style of the documents and of old repositories, trained on real data to a stated result.

They import ``determined``, as such code does.
"""

from __future__ import annotations

from typing import Any

import det_native.compat  # noqa: F401 (before `determined`)

import determined as det  # isort: skip
from determined.experimental import create  # isort: skip
from determined.pytorch import (  # isort: skip
    DataLoader,
    LRScheduler,
    MetricReducer,
    PyTorchCallback,
    PyTorchTrial,
    PyTorchTrialContext,
    Reducer,
)
from determined.tensorboard.metric_writers.pytorch import TorchWriter  # isort: skip

import numpy as np
import pytest
import torch
from digits_trials import Digits
from torch import nn
from torch.nn import functional as F  # noqa: N812 (as everybody writes it)

from det_native.client.tensorboard import event_folders

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]


@pytest.fixture(scope="module", autouse=True)
def tensorboard_is_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import what the first writer imports, before any test is watched."""
    with det.tensorboard.place.writing_to(tmp_path_factory.mktemp("events")):
        TorchWriter()


class GANTrial(PyTorchTrial):
    """A generator and a discriminator that take turns, after the DCGAN examples; digits of 8 x 8."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.logger = TorchWriter()
        self.latent = context.get_hparam("latent_dim")
        self.generator = context.wrap_model(
            nn.Sequential(nn.Linear(self.latent, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())
        )
        self.discriminator = context.wrap_model(
            nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(64, 1))
        )
        lr, betas = context.get_hparam("lr"), (0.5, 0.999)
        self.opt_g = context.wrap_optimizer(torch.optim.Adam(self.generator.parameters(), lr=lr, betas=betas))
        self.opt_d = context.wrap_optimizer(torch.optim.Adam(self.discriminator.parameters(), lr=lr, betas=betas))

    def sample(self, count: int) -> torch.Tensor:
        return self.generator(self.context.to_device(np.random.randn(count, self.latent).astype(np.float32)))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, torch.Tensor]:
        images, _ = batch
        valid, fake = self.context.to_device((torch.ones(len(images), 1), torch.zeros(len(images), 1)))

        # Train generator.
        for parameter in self.discriminator.parameters():
            parameter.requires_grad = False
        g_loss = F.binary_cross_entropy_with_logits(self.discriminator(self.sample(len(images))), valid)
        self.context.backward(g_loss)
        self.context.step_optimizer(self.opt_g)

        # Train discriminator.
        for parameter in self.discriminator.parameters():
            parameter.requires_grad = True
        real_loss = F.binary_cross_entropy_with_logits(self.discriminator(images), valid)
        fake_loss = F.binary_cross_entropy_with_logits(self.discriminator(self.sample(len(images)).detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        self.context.backward(d_loss)
        self.context.step_optimizer(self.opt_d)
        self.logger.writer.add_scalar("d_loss", d_loss.item(), batch_idx)
        return {"g_loss": g_loss, "d_loss": d_loss}

    def evaluate_full_dataset(self, data_loader: torch.utils.data.DataLoader) -> dict[str, Any]:
        images = torch.cat([self.context.to_device(images) for images, _ in data_loader])
        made = self.sample(len(images))
        return {"distance": (made.mean(0) - images.mean(0)).abs().mean().item()}

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(Digits(True), self.context.get_per_slot_batch_size(), shuffle=True, drop_last=True)

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(Digits(False), self.context.get_per_slot_batch_size())


class SequenceTrial(PyTorchTrial):
    """A recurrent classifier that reads an image row by row, with clipping and gradients of several batches."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.rnn = context.wrap_model(nn.LSTM(8, context.get_hparam("hidden"), batch_first=True))
        self.head = context.wrap_model(nn.Linear(context.get_hparam("hidden"), 10))
        both = [*self.rnn.parameters(), *self.head.parameters()]
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(both, lr=context.get_hparam("lr")))
        self.lr_sch = context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda epoch: 0.9**epoch),
            step_mode=LRScheduler.StepMode.STEP_EVERY_EPOCH,
        )
        self.norms: list[float] = []

    def forward(self, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
        output, _ = self.rnn(batch["sequence"]["rows"][0])
        return self.head(output[:, -1]), batch["label"]

    def clip(self, params: Any) -> None:
        self.norms.append(float(torch.nn.utils.clip_grad_norm_(params, 0.25)))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> torch.Tensor:
        loss = F.cross_entropy(*self.forward(batch))
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip_grads=self.clip)
        return loss

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        logits, labels = self.forward(batch)
        right = (logits.argmax(1) == labels).sum().item()
        return {"right": right, "all": len(labels), "val_loss": F.cross_entropy(logits, labels).item()}

    def evaluation_reducer(self) -> dict[str, Reducer]:
        return {"right": Reducer.SUM, "all": Reducer.SUM, "val_loss": Reducer.AVG}

    def loader(self, train: bool) -> DataLoader:
        def collate(items: list[Any]) -> Any:
            images, labels = zip(*items, strict=True)
            rows = np.stack([image.numpy().reshape(8, 8) for image in images])
            return {"sequence": {"rows": [rows, ("unused", 3)]}, "label": torch.stack(labels)}

        batch_size = self.context.get_per_slot_batch_size()
        return DataLoader(Digits(train), batch_size=batch_size, shuffle=train, collate_fn=collate)

    def build_training_data_loader(self) -> DataLoader:
        return self.loader(True)

    def build_validation_data_loader(self) -> DataLoader:
        return self.loader(False)


class PerClassAccuracy(MetricReducer):
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.counts = np.zeros((2, 10))

    def update(self, labels: torch.Tensor, predictions: torch.Tensor) -> None:
        np.add.at(self.counts[0], labels.cpu().numpy(), 1)
        np.add.at(self.counts[1], labels[labels == predictions].cpu().numpy(), 1)

    def per_slot_reduce(self) -> Any:
        return self.counts

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        found, right = sum(per_slot_metrics)
        by_class = right / np.maximum(found, 1)
        return {"accuracy": right.sum() / found.sum(), "worst_class": by_class.min()}


class BestSoFar(PyTorchCallback):
    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.best = 0.0

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.best = max(self.best, metrics["accuracy"])
        if self.best > 0.92:
            self.context.set_stop_requested(True)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best = state_dict["best"]


class ImageTrial(PyTorchTrial):
    """A convolutional classifier with mixed precision and a reducer of its own."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.per_class = context.experimental.wrap_reducer(PerClassAccuracy(), for_training=False)
        self.model = self.context.wrap_model(
            nn.Sequential(
                *(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
                *(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10)),
            )
        )
        self.optimizer = self.context.wrap_optimizer(
            torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr"), momentum=0.9)
        )
        self.model, self.optimizer = self.context.configure_apex_amp(
            models=self.model, optimizers=self.optimizer, opt_level="O1", loss_scale="dynamic"
        )
        self.scheduler = self.context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.OneCycleLR(self.optimizer, context.get_hparam("lr"), total_steps=600),
            LRScheduler.StepMode.MANUAL_STEP,
        )

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"best": BestSoFar(self.context)}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        images, labels = batch
        output = self.model(images)
        loss = F.cross_entropy(output, labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.scheduler.step()
        return {"loss": loss, "half": float(output.dtype in (torch.bfloat16, torch.float16))}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, labels = batch
        self.per_class.update(labels, self.model(images).argmax(1))
        return {}

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(Digits(True), batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(Digits(False), batch_size=self.context.get_per_slot_batch_size())


def config(metric: str, batches: int, hparams: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "searcher": {
            "name": "single",
            "metric": metric,
            "smaller_is_better": metric != "accuracy",
            "max_length": {"batches": batches},
        },
        "hyperparameters": hparams,
        "reproducibility": {"experiment_seed": 7},
        **more,
    }


def test_a_gan_with_two_optimizers() -> None:
    hparams = {"global_batch_size": 50, "lr": 2e-3, "latent_dim": 8}
    made = config("distance", 900, hparams, perform_initial_validation=True)
    experiment = create(GANTrial, made, local=True)
    assert isinstance(experiment.top_checkpoint().load(), GANTrial)
    first, last = (row["distance"] for row in experiment.metrics())
    assert first > 0.2
    assert last < 0.1
    (folder,) = event_folders(experiment.source, experiment.id).values()
    assert list(folder.glob("events.out.tfevents*"))


@pytest.mark.long
def test_a_sequence_model_with_clipping_and_aggregation() -> None:
    hparams = {"global_batch_size": 25, "lr": 1e-2, "hidden": 64}
    optimizations = {"aggregation_frequency": 2, "average_aggregated_gradients": True}
    experiment = create(SequenceTrial, config("val_loss", 600, hparams, optimizations=optimizations), local=True)
    (row,) = experiment.metrics()
    assert row["all"] == 297
    assert row["right"] / row["all"] > 0.85
    trial = experiment.top_checkpoint().load()
    assert isinstance(trial, SequenceTrial)


@pytest.mark.long
def test_an_image_classifier_with_amp_and_a_reducer_of_its_own() -> None:
    hparams = {"global_batch_size": 50, "lr": 0.05}
    made = config("accuracy", 600, hparams, min_validation_period={"batches": 60})
    experiment = create(ImageTrial, made, local=True)
    rows = experiment.metrics()
    assert rows[-1]["accuracy"] > 0.92
    assert rows[-1]["worst_class"] > 0.6
    training = experiment.trials[0].metrics("training")
    assert {row["half"] for row in training} == {1.0}
    assert len(training) == rows[-1]["batch"]
