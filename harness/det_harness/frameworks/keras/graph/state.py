"""The state of a model of graphs in training: into a checkpoint, and back."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras import model_state
from det_harness.trial import rng, state_files
from det_native.errors import CheckpointError, UnsupportedFeatureError
from det_native.keras.generations import keras2 as internals

logger = logging.getLogger("det_native")


class GraphState:
    """Saves and restores one model; the operations that do it are put into the graph once."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._checkpoint = tf.train.Checkpoint(model=model)

    def build(self, batch: Any) -> None:
        """Build the model, its metrics and what trains it, so that all variables are there.

        Raises
        ------
        UnsupportedFeatureError
            If the model has training steps of its own, which graph mode does not call.
        """
        model = self._model
        own = [name for name in ("train_step", "test_step") if _is_own(model, name)]
        if own:
            raise UnsupportedFeatureError(
                f"{type(model).__name__}.{own[0]}() is not called in graph mode: leave eager execution switched on "
                "(without tf.compat.v1.disable_eager_execution()) to train by steps of your own."
            )
        internals.use_older_optimizer(model)
        x, y, weight = batch
        # Keras's word about itself.
        warnings.filterwarnings("ignore", "`Model.state_updates`", UserWarning)
        model.test_on_batch(x, y, weight)
        internals.build_training(model)
        model.reset_metrics()
        if internals.random_generators(model):
            logger.warning(
                "In graph mode the position of dropout and other random layers is in no checkpoint: after a restart "
                "their random numbers start again, so the trial does not end exactly as it would have."
            )

    def save(self, folder: Path, progress: dict[str, Any], more: Mapping[str, Any]) -> None:
        """Write everything; of `more`, ``loss`` is the sum of the epoch so far, and the rows in it."""
        self._checkpoint.write(str(folder / "model"))
        model_state.save_beside(folder, self._model, progress, {"graph": True, **more})

    def restore(self, folder: Path) -> tuple[float, float]:
        """Bring everything to where :meth:`save` found it, and return the loss.

        Raises
        ------
        CheckpointError
            If the checkpoint is of another model, or was not written in graph mode.
        """
        training = state_files.load(folder, "training")
        if not training.get("graph"):
            raise CheckpointError(
                f"{folder.name} was written by eager execution, which is switched off now: it cannot be continued."
            )
        try:
            status = self._checkpoint.read(str(folder / "model"))
            status.assert_existing_objects_matched()
            status.initialize_or_restore(tf.compat.v1.keras.backend.get_session())
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise model_state.does_not_fit(self._model, error) from error
        model_state.set_metric_values(self._model, training["metrics"])
        rng.load(folder)
        total, rows = training["loss"]
        return total, rows


def _is_own(model: Any, name: str) -> bool:
    return not getattr(type(model), name).__module__.startswith("keras.src.engine.")
