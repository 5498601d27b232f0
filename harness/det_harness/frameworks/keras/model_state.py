"""The state of a Keras model in training: into a checkpoint, and back.

Files of a checkpoint: ``model.*`` (TensorFlow's format: weights, optimizer, random layers), ``training.*`` (progress
and the metrics of the epoch so far), ``rng.npz``, and ``data.*`` and ``data_position.json`` for a Dataset.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.keras import fitting
from det_harness.frameworks.keras.arrays import tensors
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.layer_streams import LayerStream
from det_harness.trial import after_training, rng, state_files
from det_native.errors import CheckpointCorruptError, CheckpointError
from det_native.keras import precision
from det_native.keras.generations import NUMBER, TITLE, internals, keras2
from det_native.keras.native import FitCall
from det_native.keras.streams import swapped_state

logger = logging.getLogger("det_native")

_FORMAT = 1
_OWN = "own"


def seed_random_layers(model: Any, seed: int, rank: int = 0, *, as_in_keras: bool = True) -> None:
    """Give every layer that draws random numbers (dropout, noise ...) a generator whose state can be saved.

    By default such layers use random ops whose position lies inside the compiled graph, out of reach. The generators
    draw the same numbers; or, of a trial class and on several slots, numbers of seeds that follow from the trial's and
    differ by rank, but for layers with a seed of their own. After a ``compile()`` they begin anew, as in Keras.
    """
    switched = False
    for index, random in enumerate(keras2.random_generators(model)):
        entropy = [seed, index, rank] if rank else [seed, index]
        own = int(np.random.SeedSequence(entropy).generate_state(1)[0] & 0x7FFFFFFF)
        make_stream = partial(LayerStream, unused=[0, 0, own]) if as_in_keras else None
        switched = keras2.make_saveable(random, own, make_stream) or switched
    keras2.turn_to_compilation(model)
    if switched:  # graphs traced before would go on with the old ops
        model.train_function = model.test_function = model.predict_function = None


def save(folder: Path, call: FitCall, progress: dict[str, Any], logs: dict[str, float]) -> None:
    """Write all but the callbacks and the data's position into a checkpoint; `logs` is what the last batch reported."""
    _trackable(call.model).write(str(folder / "model"))
    _save_training(folder, call, progress, logs)


def save_own(folder: Path, call: FitCall, progress: dict[str, Any], logs: dict[str, float]) -> None:
    """Write what a rank other than the first has of its own, which has the same weights."""
    _save_training(folder, call, progress, logs)
    state_files.dump(folder, _OWN, [variable.numpy() for variable in _own_variables(call.model)])


def restore_own(folder: Path, call: FitCall) -> None:
    """Put back what :func:`save_own` wrote, after the checkpoint's first rank was restored."""
    _restore_training(folder, call)
    for variable, value in zip(_own_variables(call.model), state_files.load(folder, _OWN), strict=True):
        variable.assign(value)


def _save_training(folder: Path, call: FitCall, progress: dict[str, Any], logs: dict[str, float]) -> None:
    more = {
        "train_counter": keras2.batches_trained(call.model),
        "optimizer_variables": _optimizer_variables(call.model),
        "further_generators": keras2.numbers_of_generators(call.model),
        "own_seeds": keras2.own_seeds(call.model),
    }
    save_beside(folder, call.model, progress, {"logs": logs, **more})


def save_beside(folder: Path, model: Any, progress: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Write what stands beside the model's own files: progress, metrics and random numbers."""
    about = {"format": _FORMAT, "keras": NUMBER, "progress": progress, "metrics": metric_values(model)}
    training = {**about, "made_of": fitting.described(model), **more}
    state_files.dump(folder, "training", training)
    rng.save(folder)


def progress_of(folder: Path) -> dict[str, Any]:
    """Return the progress that was saved, before anything else is restored.

    Raises
    ------
    CheckpointCorruptError
        If this is no checkpoint of a Keras model, or one of a format that this version does not know.
    CheckpointError
        If the other generation of Keras wrote it.
    """
    try:
        training = state_files.load(folder, "training")
    except FileNotFoundError:
        raise CheckpointCorruptError(f"{folder.name} is not a checkpoint of a Keras model.") from None
    if training["format"] != _FORMAT:
        raise CheckpointCorruptError(f"{folder.name} has format {training['format']}; this version reads {_FORMAT}.")
    written_by = int(training.get("keras", 2))
    if written_by != NUMBER:
        raise CheckpointError(
            f"{folder.name} was written by Keras {written_by}, and this Python has {TITLE}: their checkpoints have "
            f"different files. Use a Python with Keras {written_by} for it."
        )
    progress: dict[str, Any] = training["progress"]
    return progress


def logs_of(folder: Path) -> dict[str, float]:
    """Return what the last batch before the checkpoint reported; nothing in one of an earlier version."""
    logs: dict[str, float] = state_files.load(folder, "training").get("logs", {})
    return logs


def restore(folder: Path, call: FitCall, first_batch: Callable[[], Any]) -> None:
    """Bring model, metrics and random numbers to where :func:`save` found them.

    `first_batch` is called if the model's metrics wait for a batch to be made.
    """
    training = state_files.load(folder, "training")
    if len(metric_values(call.model)) != len(training["metrics"]):
        _build_metrics(call.model, first_batch())
    read_model(folder, call.model)
    _restore_training(folder, call)


def _restore_training(folder: Path, call: FitCall) -> None:
    """Bring all but the model to where it was, which has its metrics already."""
    training = state_files.load(folder, "training")
    set_metric_values(call.model, training["metrics"])
    keras2.count_batches_from(call.model, training["train_counter"])
    rng.load(folder)


def read_model(folder: Path, model: Any, *, in_use: bool = False, keep: bool = False) -> None:
    """Read weights, optimizer and random layers; of a process in which the model is `in_use`, nothing beside it.

    With `keep`, the model finds what it makes later (in its first step, say) after the folder is gone, too.

    Raises
    ------
    CheckpointError
        If the model has other layers or shapes than the one that was saved.
    """
    training = state_files.load(folder, "training")
    keras2.extend_generators(model, training.get("further_generators", ()))
    keras2.set_own_seeds(model, training.get("own_seeds", ()))
    if model.built:
        # What an optimizer makes later would be looked for in the folder, which is gone by then.
        if keep:
            fitting.build_optimizers(model, training.get("made_of"))
        # One that was never used has none but its own: of a model, say, whose train_step has other optimizers.
        saved = training.get("optimizer_variables")
        if saved is None or saved > _optimizer_variables(model):
            keras2.build_optimizer(model)
    forget = None
    if keep:
        folder, forget = _kept(folder, model)
    try:
        status = _trackable(model, in_use=in_use).read(str(folder / "model"))
        if model.built:
            status.assert_existing_objects_matched()
        status.expect_partial()
        if forget is not None and _is_all_read(status):
            forget()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        raise does_not_fit(model, error) from error


def _is_all_read(status: Any) -> bool:
    """Return whether nothing of a checkpoint waits for objects that the model makes later."""
    try:
        status.assert_consumed()
    except AssertionError:
        return False
    return True


def _kept(folder: Path, model: Any) -> tuple[Path, Callable[[], Any]]:
    """Return a folder with the weights of a checkpoint that is there as long as the model, and what removes it."""
    kept = Path(tempfile.mkdtemp(prefix="det-native-weights-"))
    forget = weakref.finalize(model, shutil.rmtree, kept, ignore_errors=True)
    for file in folder.glob("model.*"):
        try:
            os.link(file, kept / file.name)
        except OSError:  # of another file system
            shutil.copy2(file, kept)
    return kept, forget


def does_not_fit(model: Any, error: Exception) -> CheckpointError:
    """Return the error for a checkpoint of other layers or shapes."""
    reason = str(error).splitlines()[0]
    return CheckpointError(
        f"The checkpoint does not fit the model '{model.name}': its layers have changed since. ({reason})"
    )


def bring_back(call: FitCall, directory: Path) -> None:
    """Put the weights and the optimizer's state of a checkpoint into the model of a call of ``fit``, made again."""
    progress_of(directory)
    build(call, lambda: first_batch_of(call))
    load_built(call.model, directory, call.context.env.trial_seed)


def load_built(model: Any, directory: Path, seed: int) -> None:
    """Put the weights and the optimizer's state of a checkpoint into a model that has its variables."""
    progress_of(directory)
    folder = after_training.weights_in(directory)
    if state_files.load(folder, "training").get("graph"):
        keras2.use_older_optimizer(model)
    seed_random_layers(model, seed)
    read_model(folder, model, keep=True)


def load_into(call: FitCall, directory: Path) -> None:
    """Put what a training has made of the model of a call of ``fit`` into that model; see ``load_into_model``."""
    progress_of(directory)
    with rng.preserved():
        build(call, lambda: first_batch_of(call))
    load_into_model(call.model, directory, call.context.env.trial_seed)
    with rng.preserved():
        _name_metrics(call.model, directory, lambda: first_batch_of(call))


def load_into_model(model: Any, directory: Path, seed: int) -> None:
    """Put weights, optimizers and counters of a checkpoint into a model that is in use, or change nothing.

    The global random numbers, callbacks and files stay as they are.

    Raises
    ------
    CheckpointError
        If they do not fit.
    """
    progress_of(directory)
    folder = after_training.weights_in(directory)
    training = state_files.load(folder, "training")
    fitting.check(model, training.get("made_of"))
    with rng.preserved():
        if training.get("graph"):
            keras2.use_older_optimizer(model)
        seed_random_layers(model, seed)
        with fitting.unchanged_on_error(model):
            fitting.build_optimizers(model, training.get("made_of"))
            read_model(folder, model, in_use=True)
            if keras2.counters_of(model) and "train_counter" in training:
                keras2.count_batches_from(model, training["train_counter"])


def first_batch_of(call: FitCall) -> Any:
    """Return a batch of the training data to build the model with, where nothing is trained."""
    from det_harness.frameworks.keras.data import make_feed

    return make_feed(call, call.context.env, EpochLengths(1)).first()


def build_as_plain(call: FitCall) -> None:
    """Create the variables of a model that waits for its first batch, where plain Keras's ``fit`` would.

    What that draws from the global streams is drawn: what the program makes afterwards has the seeds of a plain run.
    An error comes again where the call trains, which says more about it.
    """
    model = call.model
    if model.built or not tf.executing_eagerly():
        return
    before = rng.capture()
    try:
        with precision.applied(call.context.env):
            with rng.preserved(), call.data_preserved():
                batch = first_batch_of(call)
            _call_on(model, batch)
    except Exception as error:  # noqa: BLE001 (whatever layers and data of users raise)
        rng.apply(before)
        logger.debug("The model %s was not built before its training: %s", model.name, error)


def build(call: FitCall, first_batch: Callable[[], Any]) -> None:
    """Create the variables of a model that waits for its first batch; `first_batch` is called only then.

    Python and numpy draw the random numbers that the user's code would have had next, so a model that makes its weights
    of them has those of plain Keras. What cannot be called with a batch (a model of several networks that only its
    ``train_step`` knows) is built by its first step.
    """
    model = call.model
    if model.built:
        return
    with call.data_preserved():  # a training reads it again, after the call's snapshot
        batch = first_batch()
    try:
        with swapped_state(call.random_state):
            _call_on(model, batch)
    except Exception as error:
        # An error of the data or the model comes again in the first step, where Keras says more about it.
        if type(model).train_step is tf.keras.Model.train_step and not isinstance(error, NotImplementedError):
            raise
        logger.debug("The model %s is built while it trains, for a call with a batch fails: %s", model.name, error)


def _call_on(model: Any, batch: Any) -> None:
    """Build a model for a batch, on which it is called only where it cannot be built without."""
    inputs, _, _ = tf.keras.utils.unpack_x_y_sample_weight(batch)
    before = rng.capture()
    try:
        internals.build_on(model, inputs)
    except Exception as error:  # noqa: BLE001 (whatever layers of users raise)
        logger.debug("The model %s is called to be built: %s", model.name, error)
        rng.apply(before)
        model(inputs, training=False)


def metric_values(model: Any) -> list[Any]:
    """Return the values of all metric variables: the epoch so far."""
    internals.settle(model)
    return internals.values_of(internals.metric_variables(model))


def set_metric_values(model: Any, values: Sequence[Any]) -> None:
    """Put back what :func:`metric_values` returned."""
    variables = internals.metric_variables(model)
    if len(variables) != len(values):
        logger.warning("The running metrics of the epoch could not be restored; they start over with the next batch.")
        return
    internals.set_values(variables, values)


def _build_metrics(model: Any, batch: Any) -> None:
    inputs, targets, weights = tf.keras.utils.unpack_x_y_sample_weight(batch)
    type(model).test_on_batch(model, inputs, targets, weights)


def _name_metrics(model: Any, directory: Path, first_batch: Callable[[], Any]) -> None:
    """Make the metrics of a compiled model that has not seen a batch: without them it has no ``metrics_names``."""
    values = state_files.load(after_training.weights_in(directory), "training")["metrics"]
    if type(model).train_step is not tf.keras.Model.train_step or len(metric_values(model)) == len(values):
        return
    # The items of a Sequence are arrays, which losses do not take.
    inputs, targets, weights = tf.keras.utils.unpack_x_y_sample_weight(tensors(first_batch()))
    with keras2.never_run():
        predicted = model(inputs, training=False)
        model.compute_loss(inputs, targets, predicted, weights)
        model.compute_metrics(inputs, targets, predicted, weights)
    set_metric_values(model, values)


def _optimizer_variables(model: Any) -> int:
    variables = getattr(model.optimizer, "variables", ())
    return len(variables() if callable(variables) else variables)


def digest(model: Any) -> bytes:
    """Return what tells two states of a model's weights and optimizers apart."""
    internals.settle(model)
    variables = [*internals.variables_in(model.weights), *fitting.optimizer_variables(model)]
    return after_training.digest(internals.values_of(variables))


def weights_digest(model: Any) -> bytes:
    """Return what tells two states of a model's weights apart, whatever its optimizers have."""
    internals.settle(model)
    return after_training.digest(internals.values_of(internals.variables_in(model.weights)))


def _trackable(model: Any, *, in_use: bool = False) -> tf.train.Checkpoint:
    parts: dict[str, Any] = {"model": keras2.Apart(model) if in_use else model}
    if not in_use and (of_all := keras2.global_generator()) is not None:
        parts["global_random"] = of_all
    return tf.train.Checkpoint(**parts, random=keras2.generators_of(model))


def _own_variables(model: Any) -> list[Any]:
    """Return what differs by rank: random states, and what is not trained (moving means, say)."""
    variables = internals.variables_in(model.non_trainable_weights)
    found: dict[int, Any] = {id(variable): variable for variable in variables}
    for generator in (*keras2.generators_of(model), keras2.global_generator()):
        if generator is not None:
            found[id(generator.state)] = generator.state
    return list(found.values())
