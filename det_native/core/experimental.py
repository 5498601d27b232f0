"""``context.experimental``: what a training uses besides its own data."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from det_native.public_names import PublicNames

logger = logging.getLogger("det_native.core")


class ExperimentalCoreContext(PublicNames):
    """``context.experimental``."""

    _public: ClassVar[tuple[str, ...]] = ("report_task_using_checkpoint", "report_task_using_model_version")

    def report_task_using_checkpoint(self, checkpoint: Any) -> None:
        """Write into the log which checkpoint the code uses."""
        logger.info("This training uses checkpoint %s.", getattr(checkpoint, "uuid", checkpoint))

    def report_task_using_model_version(self, model_version: Any) -> None:
        """Write into the log which version of a registered model the code uses."""
        name = getattr(getattr(model_version, "model", None), "name", "")
        version = getattr(model_version, "version", model_version)
        logger.info("This training uses version %s of the model %s.", version, name)
