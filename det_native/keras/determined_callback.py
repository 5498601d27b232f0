"""Keras's ``fit()`` reports to the Core API: ``det.keras.DeterminedCallback``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from det_native.errors import ArgumentError
from det_native.trainers.reports import TrainerReports

if TYPE_CHECKING:
    from det_native.core import Context
    from det_native.trial import DistributedContext

_MODEL = "model_checkpoint"
_STATE = "callback_state.json"


class DeterminedCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Has ``model.fit()`` report its metrics, keep checkpoints, end when asked to, and go on later.

    The source is ``determined.keras.DeterminedCallback`` of Determined 0.38. Unlike there, Keras's own progress bar
    stays. It takes the place of ``BackupAndRestore`` and ``ModelCheckpoint``; the epoch where a continued training
    begins is the checkpoint's, whatever ``initial_epoch`` says.

    Parameters
    ----------
    core_context : det.core.Context
        Of ``det.core.init()`` or ``det.experimental.core.init()``.
    checkpoint : str or None
        The uuid of a checkpoint to begin with: ``det.get_cluster_info().latest_checkpoint``.
    continue_id : int or str
        Says whether this is the training of the checkpoint: with the same as then it goes on after the checkpoint's
        epoch, otherwise it begins at epoch 0 with the checkpoint's weights. ``det.get_cluster_info().trial.trial_id``.
    train_metrics_report_period : int or "epoch"
        After how many batches metrics of the training are reported; ``"epoch"`` by default.
    checkpoint_epochs : int
        A checkpoint is made after so many epochs, and at the end. 0: only there. 1 by default.

    Raises
    ------
    ArgumentError
        If an argument makes no sense.

    Examples
    --------
    >>> info = det.get_cluster_info()
    >>> with det.core.init() as core_context:
    ...     callback = det.keras.DeterminedCallback(
    ...         core_context, checkpoint=info.latest_checkpoint, continue_id=info.trial.trial_id
    ...     )
    ...     model.fit(x, y, epochs=10, validation_data=(x_test, y_test), callbacks=[callback])
    """

    def __init__(
        self,
        core_context: Context,
        checkpoint: str | None = None,
        continue_id: int | str = "",
        *,
        train_metrics_report_period: int | str = "epoch",
        checkpoint_epochs: int = 1,
    ) -> None:
        super().__init__()
        period = train_metrics_report_period
        if period != "epoch" and (isinstance(period, bool) or not isinstance(period, int) or period < 1):
            raise ArgumentError(
                f'DeterminedCallback(train_metrics_report_period={period!r}): give "epoch" or a number of batches.'
            )
        self._reports = TrainerReports(core_context, "DeterminedCallback")
        self._core = core_context
        self._checkpoint = checkpoint
        self._continue_id = continue_id
        self._period = period
        self._epochs = checkpoint_epochs
        self._steps = 0
        self._epoch = self._saved = -1
        self._training = False
        self._validation: dict[str, Any] = {}
        # The files of the checkpoint: Keras reads those of the optimizer with the first batch, when it makes it.
        self._read = ExitStack()

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Load the checkpoint that the training begins with."""
        self._training = True
        if self._checkpoint is not None:
            path = self._read.enter_context(self._core.checkpoint.restore_path(self._checkpoint))
            self._load(Path(path))

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Count the batch, and report metrics if they are due."""
        self._read.close()
        self._steps += 1
        if isinstance(self._period, int) and self._steps % self._period == 0:
            self._reports.report("training", self._steps, logs or {})

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Report the metrics of a validation, by the names of ``fit()``; the searcher's also as Determined names it."""
        logs = logs or {}
        self._validation = {f"val_{name}": value for name, value in logs.items()}
        metric = self._reports.metric
        if metric is not None and metric in logs:
            self._validation[metric] = logs[metric]
        self._reports.report("validation", self._steps, self._validation)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Report the epoch, make a checkpoint if one is due, and have a training that is asked to end do so."""
        if self._period == "epoch":
            training = {name: value for name, value in (logs or {}).items() if not name.startswith("val_")}
            self._reports.report("training", self._steps, training)
        self._reports.progress(epoch + 1, self.params.get("epochs") or 0)
        self._epoch = epoch
        if self._epochs and (epoch + 1) % self._epochs == 0:
            self._save()
        if self._reports.stops():
            self._training = False
        if not self._training or self._reports.is_reached(steps=self._steps, epochs=epoch + 1):
            self.model.stop_training = True

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Make the last checkpoint; end the searcher's operation, unless the training is to go on later."""
        if self._epoch > self._saved:
            self._save()
        if self._training:
            self._reports.complete({**(logs or {}), **self._validation})

    def save_model(self, model: Any, path: str, distributed: DistributedContext) -> None:
        """Write the weights and the optimizer; subclasses may write more.

        Parameters
        ----------
        path : str
            In the checkpoint's folder, without an ending.
        """
        model.save_weights(path if _is_keras_2(model) else f"{path}.weights.h5")

    def load_model(self, model: Any, path: str, distributed: DistributedContext) -> None:
        """Read what :meth:`save_model` has written."""
        model.load_weights(path if _is_keras_2(model) else f"{path}.weights.h5")

    def _save(self) -> None:
        self._saved = self._epoch
        with self._core.checkpoint.store_path({"steps_completed": self._steps}, shard=True) as (path, _):
            self.save_model(self.model, str(Path(path) / _MODEL), self._core.distributed)
            if self._reports.first:
                state = {"epoch": self._epoch, "steps_completed": self._steps, "continue_id": self._continue_id}
                (Path(path) / _STATE).write_text(json.dumps(state), encoding="utf-8")

    def _load(self, path: Path) -> None:
        self.load_model(self.model, str(path / _MODEL), self._core.distributed)
        if not (path / _STATE).exists():
            return
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
        if state["continue_id"] != self._continue_id:
            return
        self._steps, self._epoch = state["steps_completed"], state["epoch"]
        self._saved = self._epoch
        first = self._epoch + 1
        # Where fit() looks for the epoch to begin with, after on_train_begin(): the former in Keras 2, the latter in 3.
        self.model._training_state = _Continued(first)
        self.model._initial_epoch = first


class TensorBoard(tf.keras.callbacks.TensorBoard):  # type: ignore[misc]  # TensorFlow has no types
    """Keras's callback for TensorBoard, whose files are kept with the trial: ``det.keras.TensorBoard``.

    Parameters
    ----------
    core_context : det.core.Context
    arguments, named
        Those of ``tf.keras.callbacks.TensorBoard``; `log_dir` is the trial's.
    """

    def __init__(self, core_context: Context, *arguments: Any, **named: Any) -> None:
        named["log_dir"] = str(core_context.train.get_tensorboard_path())
        super().__init__(*arguments, **named)


class _Continued:
    """What Keras 2 asks for the epoch and the batch to begin with."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def maybe_load_initial_counters_from_ckpt(self, *arguments: Any, **named: Any) -> tuple[int, int]:
        """Return both."""
        return self._epoch, 0


def _is_keras_2(model: Any) -> bool:
    return hasattr(model, "_maybe_load_initial_counters_from_ckpt")
