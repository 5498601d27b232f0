"""Keras's loop for a model of graphs, batch by batch, so that it continues after any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from det_harness.frameworks.keras.graph.data import Batch
from det_harness.frameworks.keras.graph.running_loss import RunningLoss
from det_harness.frameworks.keras.loop import Training, TrainingCallbacks


class GraphCallbacks(TrainingCallbacks):
    """The user's callbacks around a loop that is ours."""

    def __init__(self, controller: Training, restored: ExitStack, loss: RunningLoss) -> None:
        self._mean_states = loss.states
        super().__init__(controller, restored)

    @property
    def cut(self) -> bool:
        """Whether training has stopped inside an epoch, which then does not end."""
        return self._cut

    def _enter_model(self) -> None:
        """Nothing to put into the model: the loop is ours."""

    def _restore(self) -> None:
        super()._restore()
        # The data stand at the right batch without the folder.
        self._restored.close()


@dataclass
class GraphLoop:
    """Trains a model of graphs, in the order of Keras's ``fit``.

    Attributes
    ----------
    batches : iterator
        The training data, from where the run begins.
    validate : callable
        Takes the number of an epoch, from 0, and returns the metrics of its validation, none where none is due.
    """

    model: Any
    callbacks: GraphCallbacks
    batches: Iterator[Batch]
    steps: int
    loss: RunningLoss
    class_weight: Any
    validate: Callable[[int], dict[str, Any]]
    _exhausted: bool = False

    def run(self, initial_epoch: int, epochs: int) -> None:
        """Train from the epoch `initial_epoch`, or where the callbacks say, to before `epochs`."""
        model, callbacks = self.model, self.callbacks
        model.stop_training = False
        callbacks.on_train_begin()
        epoch, step = callbacks.maybe_load_initial_counters_from_ckpt(0, initial_epoch)
        logs: dict[str, Any] = {}
        for number in range(epoch, epochs):
            if model.stop_training or self._exhausted:
                break
            logs = self._epoch(number, step)
            step = 0
        callbacks.on_train_end(logs)

    def _epoch(self, number: int, first: int) -> dict[str, Any]:
        self.model.reset_metrics()
        self.loss.reset()
        self.callbacks.on_epoch_begin(number)
        logs: dict[str, Any] = {}
        for step in range(first, self.steps):
            batch = None if self.model.stop_training else next(self.batches, None)
            if batch is None:
                self._exhausted = not self.model.stop_training
                break
            logs = self._batch(step, batch)
        if not self.callbacks.cut:
            logs = {**logs, **self.validate(number)}
        self.callbacks.on_epoch_end(number, logs)
        return logs

    def _batch(self, step: int, batch: Batch) -> dict[str, Any]:
        self.callbacks.on_train_batch_begin(step)
        x, y, weight = batch
        values = self.model.train_on_batch(x, y, weight, class_weight=self.class_weight, reset_metrics=False)
        logs = self.loss.logs(self.model, values, batch)
        self.callbacks.on_train_batch_end(step, logs)
        return logs
