"""The state of a model of Keras 3: into a checkpoint, and back.

Files of a checkpoint: ``model.keras`` (or ``model.weights.h5``, of a model whose configuration cannot be saved) with
weights and optimizers, which Keras itself reads too; ``training.*`` with progress, running metrics and the states of
the layers' random numbers; ``rng.npz``.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras import fitting, model_state
from det_harness.trial import after_training, rng, state_files
from det_native.keras.generations import internals
from det_native.keras.native import FitCall

logger = logging.getLogger("det_native")

_WHOLE, _WEIGHTS = "model.keras", "model.weights.h5"


def save(folder: Path, model: Any, progress: dict[str, Any], logs: dict[str, float]) -> None:
    """Write all but the callbacks and the data's position into a checkpoint; `logs` is what the last batch reported."""
    internals.settle(model)
    _save_model(folder, model)
    beside = internals.values_of(_beside(model))
    model_state.save_beside(folder, model, progress, {"logs": logs, "beside": beside})


def _save_model(folder: Path, model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what load_model() would have to be told, which is not used here
        try:
            type(model).save(model, folder / _WHOLE)
            return
        except Exception as error:  # noqa: BLE001 (a configuration of the user's may raise anything)
            logger.debug("Only the weights of %s are saved, its configuration cannot be: %s", model.name, error)
    (folder / _WHOLE).unlink(missing_ok=True)
    type(model).save_weights(model, folder / _WEIGHTS)


def seed_by_rank(model: Any, rank: int) -> None:
    """Have the random layers of each rank but the first draw other numbers."""
    for variable in _beside(model) if rank else ():
        [state] = internals.values_of([variable])
        if state.dtype.kind in "ui" and state.size:
            state.flat[0] = np.random.SeedSequence([int(state.flat[0]), rank]).generate_state(1)[0] & 0x7FFFFFFF
            internals.set_values([variable], [state])


def save_own(folder: Path, model: Any, progress: dict[str, Any], logs: dict[str, float]) -> None:
    """Write what a rank other than the first has of its own, which has the same weights."""
    beside = internals.values_of(_beside(model))
    own = internals.values_of(model.non_trainable_weights)
    model_state.save_beside(folder, model, progress, {"logs": logs, "beside": beside, "own": own})


def restore_own(folder: Path, model: Any) -> None:
    """Put back what :func:`save_own` wrote, after the checkpoint's first rank was restored."""
    training = state_files.load(folder, "training")
    internals.set_values(_beside(model), training["beside"])
    internals.set_values(model.non_trainable_weights, training["own"])
    model_state.set_metric_values(model, training["metrics"])
    rng.load(folder)


def restore(folder: Path, call: FitCall, first_batch: Callable[[], Any]) -> None:
    """Bring model, optimizer, running metrics and random numbers to where :func:`save` found them."""
    training, model = state_files.load(folder, "training"), call.model
    _complete(model, first_batch)
    read_model(folder, model)
    model_state.set_metric_values(model, training["metrics"])
    rng.load(folder)


def read_model(folder: Path, model: Any) -> None:
    """Read weights, optimizers and the states of random layers into a model that has its variables.

    Raises
    ------
    CheckpointError
        If the model has other layers or shapes than the one that was saved.
    """
    whole = folder / _WHOLE
    beside, saved = _beside(model), state_files.load(folder, "training")["beside"]
    try:
        type(model).load_weights(model, whole if whole.is_file() else folder / _WEIGHTS)
        if len(beside) != len(saved):
            raise ValueError(f"{len(saved)} random layers were saved, there are {len(beside)}")
        internals.set_values(beside, saved)
    except (ValueError, KeyError, TypeError) as error:
        raise model_state.does_not_fit(model, error) from error


def begin_with(folder: Path, model: Any, first_batch: Callable[[], Any], *, optimizers: bool = False) -> None:
    """Give a model the weights of another trial; running metrics and random numbers stay, optimizers unless told.

    Raises
    ------
    CheckpointError
        If it is no checkpoint of Keras 3, or of a model with other layers or shapes.
    """
    model_state.progress_of(folder)
    _complete(model, first_batch)
    own = set() if not optimizers else {id(each) for each in _of_optimizers(model)}
    kept = [*_beside(model), *_of_optimizers(model), *internals.metric_variables(model)]
    kept = [variable for variable in kept if id(variable) not in own]
    values = internals.values_of(kept)
    read_model(after_training.weights_in(folder), model)
    internals.set_values(kept, values)


def bring_back(call: FitCall, directory: Path) -> None:
    """Put the weights and the optimizer's state of a checkpoint into the model of a call of ``fit``."""
    model_state.progress_of(directory)
    model_state.build(call, lambda: model_state.first_batch_of(call))
    _complete(call.model, lambda: model_state.first_batch_of(call), metrics=False)
    read_model(after_training.weights_in(directory), call.model)


def load_built(model: Any, directory: Path, seed: int) -> None:
    """Put the weights and the optimizer's state of a checkpoint into a model that has its variables."""
    model_state.progress_of(directory)
    _build_optimizer(model)
    read_model(after_training.weights_in(directory), model)


def load_into(call: FitCall, directory: Path) -> None:
    """Put what a training has made of the model of a call of ``fit`` into that model; see ``load_into_model``."""
    model_state.progress_of(directory)
    with rng.preserved():
        model_state.build(call, lambda: model_state.first_batch_of(call))
    load_into_model(call.model, directory, call.context.env.trial_seed)


def load_into_model(model: Any, directory: Path, seed: int) -> None:
    """Put weights, optimizers and the states of random layers into a model that is in use, or change nothing.

    Raises
    ------
    CheckpointError
        If they do not fit.
    """
    model_state.progress_of(directory)
    folder = after_training.weights_in(directory)
    made_of = state_files.load(folder, "training").get("made_of")
    fitting.check(model, made_of)
    with rng.preserved(), fitting.unchanged_on_error(model):
        if made_of is None:
            _build_optimizer(model)
        fitting.build_optimizers(model, made_of)
        read_model(folder, model)


def _complete(model: Any, first_batch: Callable[[], Any], *, metrics: bool = True) -> None:
    """Make what a first step would make: variables of the optimizer, and of the metrics."""
    if type(model).train_step is not tf.keras.Model.train_step:
        # What its own step needs (other optimizers, say) only the step makes; all is overwritten afterwards.
        x, y, weight = tf.keras.utils.unpack_x_y_sample_weight(first_batch())
        type(model).train_on_batch(model, x, y, weight)
        model.reset_metrics()
        return
    _build_optimizer(model)
    if metrics and not _metrics_are_made(model):
        x, y, weight = tf.keras.utils.unpack_x_y_sample_weight(first_batch())
        predicted = model(x, training=False)
        model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=weight, training=False)
        model.compute_metrics(x, y, predicted, sample_weight=weight)
        model.reset_metrics()


def _build_optimizer(model: Any) -> None:
    optimizer = getattr(model, "optimizer", None)  # of a model that is not compiled there is none
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)


def _metrics_are_made(model: Any) -> bool:
    return all(getattr(metric, "metrics", None) != [] for metric in model.metrics)


def _beside(model: Any) -> list[Any]:
    """Return the variables that are neither weights nor of metrics: the states of random layers."""
    others = {id(each) for each in (*model.weights, *internals.metric_variables(model))}
    return [variable for variable in model.variables if id(variable) not in others]


def _of_optimizers(model: Any) -> list[Any]:
    kind = tf.keras.optimizers.Optimizer
    found = {id(each): each for each in (model.optimizer, *vars(model).values()) if isinstance(each, kind)}
    return [variable for optimizer in found.values() for variable in optimizer.variables]
