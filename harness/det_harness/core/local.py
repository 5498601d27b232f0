"""Services for code that reports outside of any experiment: checkpoints are kept, metrics are a line in the log."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from det_harness.logged.deaf import DeafRecorder
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.schedule import Periods, Schedule
from det_harness.trial.services import Reporter, Services
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.lengths import UNTOLD
from det_native.schema.manifests import CheckpointManifest
from det_native.storage.checkpoints import CheckpointStorage

logger = logging.getLogger("det_native.core")


class LogRecorder(DeafRecorder):
    """Writes texts into the log; nothing else of what is logged is kept."""

    def log_text(self, name: Any, text: Any) -> None:
        """Write a text."""
        logger.info("%s: %s", name, text)


class LogReporter(Reporter):
    """Writes what is reported into the log: nobody records it."""

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Write rows of training metrics."""
        if logger.isEnabledFor(logging.INFO):
            for row, batch in enumerate(batches):
                found = {name: column[row] for name, column in metrics.items()}
                logger.info("training metrics after step %d: %s", batch, found)

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Write the metrics of a validation."""
        logger.info("validation metrics after step %d: %s", batch, dict(metrics))

    def logged(self, batch: int, metrics: Mapping[str, float]) -> None:
        """Write numbers of another group."""
        logger.info("metrics after step %d: %s", batch, dict(metrics))

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Write where a checkpoint is."""
        logger.info("checkpoint after step %d: %s", manifest.batch, location)


def local_services(
    checkpoints: str,
    options: Mapping[str, Any] | None = None,
    *,
    ranks: Ranks | None = None,
    tensorboard: Path | None = None,
) -> Services:
    """Return the services of code that nobody records.

    Parameters
    ----------
    checkpoints : str
        Where they go.
    options : mapping, optional
        What that storage takes besides, secrets among it.
    """
    reporter = LogReporter()
    environment = TrialEnvironment(config={}, hparams={}, ranks=ranks or Ranks(), managed=False)
    owner = CheckpointOwner(framework="core", hparams={})
    return Services(
        environment=environment,
        schedule=Schedule(Periods(length=UNTOLD.units)),
        reporter=reporter,
        checkpoints=TrialCheckpoints(CheckpointStorage(checkpoints, options), owner, reporter),
        stop_requested=lambda: False,
        tensorboard=tensorboard or Path(tempfile.gettempdir()) / "tensorboard",
        users_process=True,
        recorder=LogRecorder(),
    )
