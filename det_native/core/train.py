"""What a training reports: metrics, progress, files of TensorBoard."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from det_native.core.distributed import refuse_other_ranks
from det_native.core.modes import EarlyExitReason, TensorboardMode
from det_native.errors import ArgumentError, InvalidHP, shown_shortly
from det_native.public_names import PublicNames

if TYPE_CHECKING:
    from det_harness.core.run import CoreRun

logger = logging.getLogger("det_native.core")


class TrainContext(PublicNames):
    """``context.train``; only the first process reports."""

    _public: ClassVar[tuple[str, ...]] = (
        "get_experiment_best_validation",
        "get_metadata",
        "get_tensorboard_path",
        "report_early_exit",
        "report_metrics",
        "report_progress",
        "report_training_metrics",
        "report_validation_metrics",
        "set_metadata",
        "set_status",
        "upload_tensorboard_files",
    )

    def __init__(self, run: CoreRun, tensorboard_mode: TensorboardMode = TensorboardMode.AUTO) -> None:
        self._run = run
        self._mode = tensorboard_mode
        self._metadata: dict[str, Any] | None = None
        self._takes = None if run.distributed.rank else run.rows.takes

    def report_training_metrics(
        self,
        steps_completed: int,
        metrics: Mapping[str, Any],
        batch_metrics: list[dict[str, Any]] | None = None,
    ) -> None:
        """Report metrics of the training; see :meth:`report_metrics`.

        Parameters
        ----------
        batch_metrics : list of dict, optional
            Metrics of each of the last batches, up to `steps_completed`.
        """
        if self._takes is not None and not batch_metrics and self._takes(steps_completed, metrics):
            return
        if batch_metrics:
            first = int(steps_completed) - len(batch_metrics)
            for place, row in enumerate(batch_metrics, 1):
                if first + place > 0:
                    self._report("training", first + place, row, "report_training_metrics")
        self._report("training", steps_completed, metrics, "report_training_metrics")

    def report_validation_metrics(self, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """Report metrics of a validation; see :meth:`report_metrics`. By one of them a search compares trials."""
        self._report("validation", steps_completed, metrics, "report_validation_metrics")

    def report_metrics(self, group: str, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """Report metrics of a group.

        It does not wait for the network. What is reported at the same step is one row; of a name the last value counts.

        Parameters
        ----------
        group : str
            ``"training"``, ``"validation"`` or a name of your own, under which ``trial.metrics("logged")`` has them:
            ``"test/accuracy"``.
        steps_completed : int
            How much is done, in steps of your own: batches, epochs, rounds.
        metrics : mapping
            Numbers by name. Dictionaries in it give names with dots; NaN and infinities are values.

        Raises
        ------
        ArgumentError
            If an argument is none.
        """
        if not isinstance(group, str) or not group:
            raise ArgumentError(f'report_metrics(group={group!r}): a group is a name, as in group="test".')
        self._report(group, steps_completed, metrics, "report_metrics")

    def _report(self, group: str, steps_completed: int, metrics: Mapping[str, Any], call: str) -> None:
        refuse_other_ranks(self._run.distributed, f"context.train.{call}()")
        self._run.rows.report(group, steps_completed, metrics, f"context.train.{call}()")

    def report_progress(self, progress: float) -> None:
        """Report which part of the training is done, from 0 to 1."""
        refuse_other_ranks(self._run.distributed, "context.train.report_progress()")
        if not isinstance(progress, int | float) or not 0 <= progress <= 1:
            raise ArgumentError(f"context.train.report_progress({progress!r}): give a number from 0 to 1.")
        self._run.progress(float(progress))

    def set_status(self, status: str) -> None:
        """Say what the training does at the moment: a line in the trial's log."""
        refuse_other_ranks(self._run.distributed, "context.train.set_status()")
        self._run.status(str(status))

    def get_experiment_best_validation(self) -> float | None:
        """Return the experiment's best value of the searcher's metric; None as long as there is none."""
        refuse_other_ranks(self._run.distributed, "context.train.get_experiment_best_validation()")
        return self._run.best()

    def set_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Keep facts of your own with the trial: as a text "metadata" among what it has logged; return them.

        Raises
        ------
        ArgumentError
            If JSON has nothing like them.
        """
        refuse_other_ranks(self._run.distributed, "context.train.set_metadata()")
        try:
            text = json.dumps(metadata, indent=1)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"context.train.set_metadata() takes what JSON can have: {error}.") from error
        self._run.text("metadata", text)
        self._metadata = json.loads(text)
        return dict(metadata)

    def get_metadata(self) -> dict[str, Any] | None:
        """Return what this process has set by :meth:`set_metadata`; None without."""
        return self._metadata

    def get_tensorboard_path(self) -> Path:
        """Return the folder for event files of TensorBoard, which are kept with the trial."""
        return self._run.tensorboard

    def upload_tensorboard_files(
        self,
        selector: Callable[[Path], bool] = lambda path: True,
        mangler: Callable[[Path, int], Path] = lambda path, rank: path,
    ) -> None:
        """Do nothing: files in :meth:`get_tensorboard_path` are kept as they are written, in both modes.

        Raises
        ------
        RuntimeError
            In the mode AUTO, as Determined does.
        """
        if self._mode is not TensorboardMode.MANUAL:
            raise shown_shortly(
                RuntimeError(
                    "context.train.upload_tensorboard_files() is for det.core.init(tensorboard_mode="
                    "det.core.TensorboardMode.MANUAL); otherwise files are kept as they are written. Leave it out."
                )
            )

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        """Say why the training ends before its length; the code has to end by itself then.

        Parameters
        ----------
        reason : EarlyExitReason
            INVALID_HP: a search takes it for hyperparameters that cannot be trained. USER_REQUESTED_STOP: the trial is
            complete as it is.
        """
        refuse_other_ranks(self._run.distributed, "context.train.report_early_exit()")
        if not isinstance(reason, EarlyExitReason):
            raise ArgumentError(
                f"context.train.report_early_exit({reason!r}): give det.core.EarlyExitReason.INVALID_HP or "
                ".USER_REQUESTED_STOP."
            )
        self._run.ends_early(invalid=reason is EarlyExitReason.INVALID_HP)


def invalid_hp() -> InvalidHP:
    """Return the error that stands for hyperparameters which the code has reported as invalid."""
    return InvalidHP("The code has reported that its hyperparameters are invalid (EarlyExitReason.INVALID_HP).")
