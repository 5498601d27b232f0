"""The place inside the loop of Keras 3 where the schedule is asked.

The ``fit`` of Keras 3 begins only at epochs. A run that continues inside one gives it data that begin at the right
batch, and has it end that epoch where the whole one would have ended.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras.keras3.data import is_read_past_keras
from det_harness.frameworks.keras.keras3.torch_stream import StreamOfTorch
from det_harness.frameworks.keras.loop import Training, TrainingCallbacks
from det_native.keras.native import FitCall


class NothingLeft(Exception):  # noqa: N818 (no error: it leads out of Keras's loop)
    """The training has ended, or is to stop, before the next batch."""


class _OneAfterAnother(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Has Keras call hooks in the thread of the training: it asks the list that it is made of."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Do nothing."""

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Do nothing."""

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """Do nothing."""


class Keras3Callbacks(TrainingCallbacks):
    """See ``TrainingCallbacks``."""

    def __init__(self, controller: Training, restored: ExitStack) -> None:
        self._trained = controller.call.model
        super().__init__(controller, restored)
        self.callbacks: list[Any] = [each for each in self.callbacks if not isinstance(each, _OneAfterAnother)]
        self._any_wants_batches = any(
            _is_own(each, name) for each in self.callbacks for name in ("on_train_batch_end", "on_batch_end")
        )
        self._offset = 0
        self._ends_after_part = self._without_validation = False
        self._stream_of_torch = StreamOfTorch()

    @property
    def model(self) -> Any:
        """The model as it is: Keras's own property would put JAX's state into it at each look."""
        return self._trained

    def _given(self, call: FitCall) -> list[Any]:
        return [*super()._given(call), _OneAfterAnother()]

    @property
    def _wants_batches(self) -> bool:
        return self._any_wants_batches

    def _leave_validation_out(self) -> None:
        self._without_validation = True

    def _enter_model(self) -> None:
        """Put our iterator in the place of Keras's, where it has to be saved."""
        if not is_read_past_keras(self._controller.feed):
            return
        model = self.model
        self._train_function = train = model.train_function

        def first(iterator: Any) -> Any:
            model.train_function = step = self._controller.checkpoints.attach(train, self._done)
            return step(iterator)

        model.train_function = first

    def leave_model(self) -> None:
        """Take back what was put into the model."""
        if self._train_function is not None:
            self.model.train_function = self._train_function

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        initial = int(self._controller.call.arguments["initial_epoch"])
        epoch, _ = self.maybe_load_initial_counters_from_ckpt(0, initial)
        if epoch >= self._controller.epochs():
            raise NothingLeft

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_begin(epoch, logs)
        self._stream_of_torch.note()
        self._offset = self._done - self._epoch_start
        self._without_validation = False
        if self._finished:
            raise NothingLeft

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._stream_of_torch.put_back()
        super().on_train_batch_begin(batch + self._offset, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch + self._offset, logs)
        self._restored.close()  # the data have been read by now
        if self._offset and self._epoch_is_whole():
            self._ends_after_part = bool(self.model.stop_training)
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        whole = self._epoch_is_whole()
        if self._offset and whole:
            self.model.stop_training = self._ends_after_part
        self._offset = 0
        if not self._cut and not self._without_validation:
            # Here, not by fit(): it keeps its data from epoch to epoch, and would validate an epoch that was cut.
            logs.update(self._controller.validate_epoch(epoch))
        super().on_epoch_end(epoch, logs)
        if not whole:  # Keras would begin the data again
            self.model.stop_training = True

    def _epoch_is_whole(self) -> bool:
        return self._done - self._epoch_start >= self._steps


def _is_own(callback: Any, hook: str) -> bool:
    """Return whether a callback has a hook of its own, in its class or, as a ``LambdaCallback``, in itself."""
    found = getattr(callback, hook)
    return getattr(found, "__func__", found) is not getattr(tf.keras.callbacks.Callback, hook)
