"""Checkpoints of a model of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from det_harness.frameworks.keras.checkpoints import KerasCheckpoints
from det_harness.frameworks.keras.graph.running_loss import RunningLoss
from det_harness.frameworks.keras.graph.state import GraphState
from det_native.errors import UnsupportedFeatureError


class GraphCheckpoints(KerasCheckpoints):
    """See ``KerasCheckpoints``, whose parameters come first.

    Parameters
    ----------
    state : GraphState
        Saves and restores the model.
    loss : RunningLoss
        Of the epoch so far.
    """

    def __init__(self, *of_all: Any, state: GraphState, loss: RunningLoss) -> None:
        super().__init__(*of_all)
        self._state = state
        self._loss = loss

    def _save_model(self, folder: Path, progress: dict[str, Any], logs: dict[str, float]) -> None:
        self._state.save(folder, progress, {"logs": logs, "loss": [self._loss.total, self._loss.rows]})

    def _begin_with(self, folder: Path, *, optimizers: bool) -> None:
        raise UnsupportedFeatureError(
            "Graph mode does not begin with the weights of another trial (pbt, searcher.source_trial_id, "
            "source_checkpoint_uuid): leave eager execution on, or load the weights in build_model()."
        )

    def _restore_model(self, folder: Path) -> None:
        self._loss.reset(*self._state.restore(folder))
