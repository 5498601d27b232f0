"""Lightning's Trainer reports to det_native: ``det.lightning.DetCallback``."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_native.errors import MissingDependencyError
from det_native.trainers.reports import TrainerReports

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback  # type: ignore[assignment]  # the same under another name
    except ImportError:
        raise MissingDependencyError(
            "det_native.lightning needs Lightning, which is not installed in this Python: pip install lightning"
        ) from None

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

    from det_native.core import Context

__all__ = ["DetCallback"]

_FILE = "lightning.ckpt"
_END_OF_EPOCH_SECONDS = 30.0


class DetCallback(Callback):
    """Has Lightning's ``Trainer`` report what modules log, keep its checkpoints, end when asked to, and go on later.

    It works beside any logger, strategy and ``ModelCheckpoint``. Metrics are those that ``self.log()`` of the module
    gives, by its names: of a validation those that its hooks log, at every ``log_every_n_steps`` and the end of an
    epoch all others.

    Parameters
    ----------
    core_context : det.core.Context
        Of ``det.core.init()`` or ``det.experimental.core.init()``.
    checkpoint_every_n_epochs : int
        A checkpoint is also made when the training ends, or is asked to. 0: only then. 1 by default.

    Attributes
    ----------
    ckpt_path : str or None
        The checkpoint that the trial continues from: ``trainer.fit(model, ckpt_path=callback.ckpt_path)``.

    Examples
    --------
    >>> with det.core.init() as core_context:
    ...     callback = det.lightning.DetCallback(core_context)
    ...     trainer = lightning.Trainer(max_epochs=10, callbacks=[callback])
    ...     trainer.fit(model, loader, ckpt_path=callback.ckpt_path)
    """

    def __init__(self, core_context: Context, *, checkpoint_every_n_epochs: int = 1) -> None:
        super().__init__()
        self.core_context = core_context
        self._every = checkpoint_every_n_epochs
        self._reports = TrainerReports(core_context, "DetCallback")
        self._folder = tempfile.TemporaryDirectory(prefix="det-lightning-")
        self.ckpt_path = self._restored()
        self._before: dict[str, Any] = {}
        self._validated: dict[str, Any] = {}
        self._ends = False
        self._began = 0.0
        self._saved = -1

    def _restored(self) -> str | None:
        latest = self._reports.latest()
        if latest is None:
            return None
        self.core_context.checkpoint.download(latest, self._folder.name)
        return str(Path(self._folder.name) / _FILE)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Note when the epoch begins."""
        self._began = time.monotonic()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Report metrics as often as the Trainer logs; have a training end that is asked to.

        It ends with its epoch where that is near: in the middle of one Lightning continues with other batches.
        """
        step = trainer.global_step
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]  # set by a connector
        if step and step % every == 0:
            self._report_training(trainer)
        self._reports.progress(step, trainer.estimated_stepping_batches)
        self._ends = self._ends or self._reports.stops()
        if self._reports.is_reached(steps=step, epochs=0):
            self._stop(trainer)
        if not self._ends or trainer.should_stop:
            return
        done = batch_idx + 1
        left = (time.monotonic() - self._began) / done * (trainer.num_training_batches - done)
        if bool(self.core_context.distributed.broadcast(left > _END_OF_EPOCH_SECONDS)):
            self._save(trainer)
            self._stop(trainer)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Note the metrics of before: what is another object afterwards is of this validation."""
        self._before = dict(trainer.callback_metrics)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report the metrics of a validation; of one that checks the code before the training, nothing."""
        if trainer.sanity_checking:
            return
        before, after = self._before, trainer.callback_metrics
        self._validated = {name: value for name, value in after.items() if before.get(name) is not value}
        self._reports.report("validation", trainer.global_step, self._validated)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report metrics of the training, and keep a checkpoint if one is due."""
        self._report_training(trainer)
        if self._ends or (self._every and (trainer.current_epoch + 1) % self._every == 0):
            self._save(trainer)
        reached = self._reports.is_reached(steps=trainer.global_step, epochs=trainer.current_epoch + 1)
        if self._ends or reached:
            self._stop(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep the last checkpoint; end the searcher's operation, unless the training is to go on later."""
        self._save(trainer)
        if not self._ends:
            self._reports.complete({**trainer.callback_metrics, **self._validated})
        self._folder.cleanup()

    def _report_training(self, trainer: Trainer) -> None:
        validated = self._validated
        metrics = {name: value for name, value in trainer.callback_metrics.items() if validated.get(name) is not value}
        self._reports.report("training", trainer.global_step, metrics)

    def _save(self, trainer: Trainer) -> None:
        """Keep a checkpoint as Lightning writes it; every process takes part."""
        if self._saved == trainer.global_step:
            return
        self._saved = trainer.global_step
        with tempfile.TemporaryDirectory(prefix="det-lightning-") as folder:
            path = Path(self.core_context.distributed.broadcast(folder))
            trainer.save_checkpoint(path / _FILE)
            self._reports.save(path, trainer.global_step)

    def _stop(self, trainer: Trainer) -> None:
        trainer.should_stop = True
        trainer.fit_loop.min_epochs = trainer.fit_loop.epoch_loop.min_steps = 0
