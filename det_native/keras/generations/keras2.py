"""Private attributes of tf.keras 2.15, which has no public ones for what is asked here; those of tf.data are in
``keras/pipelines.py``.

That version is frozen. ``tests/keras/test_keras_internals.py`` has a test for each, which names it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import stateful_random_ops
from tensorflow.python.trackable.base import Trackable

QUEUE_DEFAULTS: Mapping[str, Any] = {}

# How the names of graphs end in which Keras finds out the shapes of what a layer gives; nothing runs in them.
ONLY_SHAPES = "_scratch_graph"


def takes_several_batches(model: Any) -> bool:
    """Return whether one call of the model's training function takes several batches (``steps_per_execution``)."""
    steps = model._steps_per_execution
    return bool(model._autotune_steps_per_execution) or (steps is not None and int(steps) > 1)


def class_weighting(class_weight: dict[int, float]) -> Any:
    """Return what Keras maps over a Dataset of ``(x, y)`` or ``(x, y, sample_weight)`` for weights of classes."""
    from keras.src.engine import data_adapter

    return data_adapter._make_class_weight_map_fn(class_weight)


def use_older_optimizer(model: Any) -> None:
    """Give a model the form of its optimizer that graphs train with, and whose state their checkpoints have.

    The other form cannot be used in a graph.
    """
    from keras.src.optimizers import convert_to_legacy_optimizer

    optimizer = model.optimizer
    if not isinstance(optimizer, tf.keras.optimizers.Optimizer):
        return
    serialized = optimizer._serialize_hyperparameter

    def value(given: Any) -> Any:
        # In a graph it cannot read the learning rate, and nobody has initialised the variable.
        if tf.executing_eagerly() or not isinstance(given, tf.Variable):
            return serialized(given)
        session = tf.compat.v1.keras.backend.get_session()
        session.run(given.initializer)
        return session.run(given)

    optimizer._serialize_hyperparameter = value
    try:
        model.optimizer = convert_to_legacy_optimizer(optimizer)
    finally:
        optimizer._serialize_hyperparameter = serialized


def build_on(model: Any, inputs: Any) -> None:
    """Make the variables of a model in a graph that is never run."""
    with never_run():
        model(inputs, training=False)


def never_run() -> Any:
    """Return a graph for a block: what is computed in it makes variables, and nothing else."""
    return tf.__internal__.FuncGraph(f"build{ONLY_SHAPES}").as_default()


def build_optimizer(model: Any) -> None:
    """Make the variables of the model's optimizer; one of the older form makes them with its first step."""
    build_for(model.optimizer, model.trainable_variables)


def build_for(optimizer: Any, variables: Sequence[Any]) -> None:
    """Make the variables that an optimizer needs to train these; one of the older form has some besides."""
    build = getattr(optimizer, "build", None)
    if build is None:
        build = getattr(optimizer, "_create_all_weights", None)
    elif not variables:
        return
    if build is not None:
        build(variables)


def trained_by(optimizer: Any) -> list[Any] | None:
    """Return the variables that an optimizer was built for, of the older form those of which it keeps something."""
    variables = getattr(optimizer, "_index_dict", None)
    if variables is None:  # of the older form
        variables = getattr(optimizer, "_slots", None)
    return None if variables is None else list(variables)


def key_of(variable: Any) -> Any:
    """Return by what :func:`trained_by` names a variable."""
    return variable._unique_id


def metrics_of(model: Any) -> list[Any]:
    """Return the metrics of a model, with those of the losses of its outputs."""
    of_graphs = getattr(model, "_get_training_eval_metrics", None)
    return list(model.metrics if of_graphs is None else of_graphs())


def metric_variables(model: Any) -> list[Any]:
    """Return the variables of all metrics."""
    return [variable for metric in metrics_of(model) for variable in metric.weights]


def variables_in(weights: Iterable[Any]) -> list[Any]:
    """Return the variables among what Keras counts as weights: a layer's table of words is one, too."""
    return [each for each in weights if isinstance(each, tf.Variable)]


def values_of(variables: Sequence[Any]) -> list[Any]:
    """Return the values of variables, of graphs too."""
    values: list[Any] = tf.keras.backend.batch_get_value(variables)
    return values


def set_values(variables: Sequence[Any], values: Sequence[Any]) -> None:
    """Give variables values."""
    tf.keras.backend.batch_set_value(list(zip(variables, values, strict=True)))


def settle(model: Any) -> None:
    """Do nothing: the variables have what the training has reached."""


def counters_of(model: Any) -> list[Any]:
    """Return the variables that count the steps of a model; one of graphs has none."""
    names = ("_train_counter", "_test_counter", "_predict_counter")
    return [getattr(model, name) for name in names if hasattr(model, name)]


def build_training(model: Any) -> None:
    """Build what trains a model of graphs, with the variables of its optimizer."""
    model._make_train_function()


def begin_fit(model: Any, start: Any) -> None:
    """Have Keras ask `start` where training starts, as it asks ``BackupAndRestore``."""
    model._training_state = start


def end_fit(model: Any) -> None:
    """Take back :func:`begin_fit` and :func:`leave_validation_out`, and the validation data of a fit that raised.

    Keras would validate the next fit on them.
    """
    model._training_state = None
    for name in ("_should_eval", "_eval_data_handler"):
        vars(model).pop(name, None)


def leave_validation_out(model: Any) -> None:
    """Have Keras end the epoch without a validation."""
    vars(model)["_should_eval"] = lambda *_: False


def is_compiled(model: Any) -> bool:
    """Whether a model is compiled; one of graph mode says so itself only when it knows its inputs."""
    return bool(getattr(model, "_is_compiled", False)) or getattr(model, "optimizer", None) is not None


def batches_trained(model: Any) -> int:
    """Return how many batches a model counts."""
    return int(model._train_counter)


def count_batches_from(model: Any, batches: int) -> None:
    """Have a model count on from `batches`."""
    model._train_counter.assign(batches)


def layers_of(model: Any, *, include_self: bool = True) -> list[Any]:
    """Return the layers of a model and theirs in turn."""
    return list(model._flatten_layers(include_self=include_self))


def as_in_fit(model: Any) -> AbstractContextManager[Any]:
    """Return a context in which ``trainable`` is what it was at ``compile()``.

    As with ``fit()``, every layer has its own afterwards if one differed before.
    """
    from keras.src.engine.training_utils import RespectCompiledTrainableState

    return RespectCompiledTrainableState(model) if tf.executing_eagerly() else nullcontext()


def metrics_given(model: Any) -> list[Any] | None:
    """Return what a model was compiled with as metrics; None where its layers add others."""
    if any(layer._metrics for layer in layers_of(model)):
        return None
    given = tf.nest.flatten([model.compiled_metrics._user_metrics, model.compiled_metrics._user_weighted_metrics])
    return [metric for metric in given if metric is not None]


def random_generators(model: Any) -> list[Any]:
    """Return what the layers that draw random numbers draw them from."""
    found = (getattr(layer, "_random_generator", None) for layer in layers_of(model))
    return [each for each in found if hasattr(each, "_rng_type")]


def make_saveable(random: Any, seed: int, make_stream: Callable[[Any], Any] | None = None) -> bool:
    """Give what a layer draws random numbers from a state that can be saved; return whether it had none.

    One with a seed of its own keeps it. `make_stream` makes the generator that has the state, by default one of the
    seed.
    """
    if random._rng_type != random.RNG_LEGACY_STATEFUL:
        random._maybe_init()
        return False
    if make_stream is not None:
        random._rng_type, random._built, random._generator = random.RNG_STATEFUL, True, make_stream(random)
        return True
    if random._seed is None:
        random._seed = seed
    random._rng_type, random._built = random.RNG_STATEFUL, False
    random._maybe_init()
    return True


def turn_to_compilation(model: Any) -> None:
    """Have layers that draw as plain Keras's begin anew if the model was compiled since, or go on where it stopped.

    ``compile()`` makes the object of the losses anew, and has the model make its steps anew.
    """
    compiled = getattr(model, "compiled_loss", None)
    for each in random_generators(model):
        turn = getattr(getattr(each, "_generator", None), "turn_to", None)
        if turn is not None and compiled is not None:
            turn(compiled)


def own_seeds(model: Any) -> list[int | None]:
    """Return the seeds that the random layers give to the operations of the next graph."""
    return [generator._seed for generator in random_generators(model)]


def set_own_seeds(model: Any, seeds: Sequence[int | None]) -> None:
    """Put back what :func:`own_seeds` returned."""
    for each, seed in zip(random_generators(model), seeds, strict=False):
        if each._seed is not None and seed is not None:
            each._seed = seed


def generators_of(model: Any) -> list[Any]:
    """Return the generators of the layers that draw random numbers from one."""
    found = [getattr(each, "_generator", None) for each in random_generators(model)]
    own = [each for each in found if each is not None]
    return [*own, *(further for each in own for further in getattr(each, "further", ()))]


def numbers_of_generators(model: Any) -> list[int]:
    """Return how many generators beside its first each layer has that draws random numbers."""
    found = (getattr(each, "_generator", None) for each in random_generators(model))
    return [len(getattr(each, "further", ())) for each in found if each is not None]


def extend_generators(model: Any, numbers: Sequence[int]) -> None:
    """Give layers as many generators as :func:`numbers_of_generators` has told of those of a checkpoint."""
    found = (getattr(each, "_generator", None) for each in random_generators(model))
    for each, number in zip((each for each in found if each is not None), numbers, strict=False):
        if number:
            each.extend(number)


def global_generator() -> Any:
    """Return TensorFlow's global generator, None if nothing has asked for it: asking makes it."""
    return stateful_random_ops.global_generator


def draw_seeds_of_initializers_from(generator: Any) -> None:
    """Have Keras draw the seeds of initializers from a ``random.Random``."""
    from keras.src import backend

    backend._SEED_GENERATOR.generator = generator


class _Seeds(random.Random):
    """What Keras draws the seeds of initializers from; it asks with a float as limit, which Python warns of."""

    def randint(self, a: float, b: float) -> int:
        return super().randint(int(a), int(b))


def seed(seed: int) -> None:
    """Make the weights of models built from now on follow from a seed, here as on a worker.

    As ``tf.keras.utils.set_random_seed``, but the generators of Python and numpy, the user's own, stay as they are.
    """
    tf.random.set_seed(seed)
    draw_seeds_of_initializers_from(_Seeds(seed))


def seed_as_plain(seed: int) -> None:
    """Have Keras draw the seeds of initializers from Python's generator, as it does in a new process, and seed that.

    ``random.seed`` counts then, which many notebooks call beside ``tf.random.set_seed``; and so does
    ``tf.keras.utils.set_random_seed``, which makes a generator of Keras's own.
    """
    random.seed(seed)
    tf.random.set_seed(seed)
    draw_seeds_of_initializers_from(None)


def greater_is_better(name: str) -> bool:
    """Return whether Keras takes greater values of a metric for better: its callbacks tell it by their name."""
    return tf.keras.callbacks.EarlyStopping(monitor=name).monitor_op is np.greater


def reading_of(sequence: Any) -> dict[str, Any]:
    """Return nothing: ``fit`` says how a Sequence is read."""
    return {}


class Apart(Trackable):  # type: ignore[misc]  # TensorFlow has no types
    """A model as checkpoints see it, which does not itself note what of a checkpoint it has no place for.

    It would look for that in the checkpoint's folder when it is compiled.
    """

    def __init__(self, model: Any) -> None:
        self.of_model = model

    def _trackable_children(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        children: dict[str, Any] = self.of_model._trackable_children(*args, **kwargs)
        return children

    def _lookup_dependency(self, name: str, *args: Any) -> Any:
        return self.of_model._lookup_dependency(name, *args)


class WithoutOptimizers(Apart):
    """A model as checkpoints see it, but for its optimizers: what a checkpoint has of those is left there."""

    def _trackable_children(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        found = super()._trackable_children(*args, **kwargs)
        return {name: child for name, child in found.items() if not _is_optimizer(child)}

    def _lookup_dependency(self, name: str, *args: Any) -> Any:
        child = super()._lookup_dependency(name, *args)
        return None if _is_optimizer(child) else child


def _is_optimizer(value: Any) -> bool:
    return isinstance(value, tf.keras.optimizers.Optimizer | tf.keras.optimizers.legacy.Optimizer)
