"""A trial that begins with the weights of another one: its model is read, and nothing else of the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras import model_state
from det_harness.trial import after_training
from det_native.keras.generations import keras2 as internals


def begin_with(folder: Path, model: Any, *, optimizers: bool = False) -> None:
    """Give a model the weights of a checkpoint; running metrics and random numbers stay as they are.

    Parameters
    ----------
    model : tf.keras.Model
        Built and compiled.
    optimizers : bool
        Whether its optimizers get their states, too; else they stay as they are.

    Raises
    ------
    CheckpointError
        If it is no checkpoint of Keras, or of a model with other layers or shapes.
    """
    model_state.progress_of(folder)
    folder = after_training.weights_in(folder)
    drawn = [(each, each.state.numpy()) for each in internals.generators_of(model)]
    metrics = model_state.metric_values(model)
    if optimizers:
        model_state.read_model(folder, model, keep=True)
        _put_back(model, metrics, drawn)
        return
    try:
        status = tf.train.Checkpoint(model=internals.WithoutOptimizers(model)).read(str(folder / "model"))
        if model.built:
            status.assert_existing_objects_matched()
        status.expect_partial()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        raise model_state.does_not_fit(model, error) from error
    _put_back(model, metrics, drawn)


def _put_back(model: Any, metrics: list[Any], drawn: list[Any]) -> None:
    model_state.set_metric_values(model, metrics)
    for generator, state in drawn:
        generator.state.assign(state)
