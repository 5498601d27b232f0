"""Checkpoints of a model of Keras 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from det_harness.frameworks.keras.checkpoints import KerasCheckpoints
from det_harness.frameworks.keras.keras3 import state


class Keras3Checkpoints(KerasCheckpoints):
    """See ``KerasCheckpoints``."""

    def _save_model(self, folder: Path, progress: dict[str, Any], logs: dict[str, float]) -> None:
        state.save(folder, self._call.model, progress, logs)

    def _save_own(self, folder: Path, progress: dict[str, Any], logs: dict[str, float]) -> None:
        state.save_own(folder, self._call.model, progress, logs)

    def _restore_own(self, folder: Path) -> None:
        state.restore_own(folder, self._call.model)

    def _begin_with(self, folder: Path, *, optimizers: bool) -> None:
        state.begin_with(folder, self._call.model, self._feed.first, optimizers=optimizers)

    def _restore_model(self, folder: Path) -> None:
        state.restore(folder, self._call, self._feed.first)
