"""What a trial begins with that has no checkpoint of its own: the weights of another trial's."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from det_native.schema.job import WarmStartSource
from det_native.storage.checkpoints import CheckpointStorage

logger = logging.getLogger("det_harness")


@dataclass(frozen=True)
class WarmStart:
    """The checkpoint of another trial: its weights are taken over, and its optimizers if the source says so."""

    source: WarmStartSource

    @property
    def uuid(self) -> str:
        """The checkpoint's name."""
        return self.source.manifest.uuid

    @property
    def optimizers(self) -> bool:
        """Whether the states of optimizers and learning rate schedules are taken over, too."""
        return self.source.optimizers

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Give a verified local copy of the checkpoint.

        Raises
        ------
        CheckpointError
            If it is damaged or gone.
        """
        manifest = self.source.manifest
        with tempfile.TemporaryDirectory(prefix="det-warm-start-") as temporary:
            folder = Path(temporary) / "checkpoint"
            storage = CheckpointStorage(self.source.checkpoints, self.source.options)
            storage.fetch(manifest.uuid, folder, manifest.sha256)
            logger.info("The weights are those of checkpoint %s, at batch %d.", manifest.uuid, manifest.batch)
            yield folder
