"""Trials of several slots whose metrics come of reducers, callbacks or the whole validation set."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rank_trials import PlainTrial, Uneven, classified

from det_native.pytorch import MetricReducer, PyTorchCallback, PyTorchTrial, PyTorchTrialContext


class Spread(MetricReducer):
    """The difference of the greatest and the smallest label, and how many there were."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.labels: list[int] = []

    def update(self, labels: torch.Tensor) -> None:
        self.labels += labels.tolist()

    def per_slot_reduce(self) -> Any:
        return {"labels": torch.tensor(self.labels)}

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        every = torch.cat([one["labels"] for one in per_slot_metrics])
        return {"spread": int(every.max() - every.min()), "seen": len(every), "slots": len(per_slot_metrics)}


class Watched(PyTorchCallback):
    """Notes which hooks run."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        self.events.append("on_training_epoch_start")

    def on_validation_start(self) -> None:
        self.events.append("on_validation_start")

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.events.append("on_validation_end")

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        self.events.append("on_checkpoint_write_end")

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        self.events.append("on_checkpoint_end")

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        self.events.append("on_checkpoint_upload_end")


class Plateau(PyTorchCallback):
    """As in the document: the learning rate changes after a validation, on the first slot."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.reduce_lr = torch.optim.lr_scheduler.ReduceLROnPlateau(context.get_optimizer(), patience=0, threshold=10.0)

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.reduce_lr.step(metrics["loss"])

    def state_dict(self) -> dict[str, Any]:
        return self.reduce_lr.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.reduce_lr.load_state_dict(state_dict)


class Measured(Uneven):
    """Reducers in training and validation, callbacks, a learning rate that the first slot changes."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.spread = context.experimental.wrap_reducer(Spread())
        self.mean = context.experimental.wrap_reducer(np.mean, name="mean_label")
        self.events: list[str] = []

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"watched": Watched(self.events), "plateau": Plateau(self.context)}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self._update(batch[1])
        return super().train_batch(batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        self._update(batch[1])
        return super().evaluate_batch(batch)

    def _update(self, labels: torch.Tensor) -> None:
        self.spread.update(labels)
        for label in labels.tolist():
            self.mean.update(label)


class WholeSet(PlainTrial):
    """Evaluates the whole data set in one process."""

    evaluate_batch = PyTorchTrial.evaluate_batch
    evaluated = 0

    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
        self.evaluated += 1
        losses = [classified(self.model(images), labels) * len(labels) for images, labels in data_loader]
        return {"loss": sum(losses) / 75}
