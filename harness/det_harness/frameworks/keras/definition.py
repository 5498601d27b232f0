"""A ``TFKerasTrial`` made into a call of ``fit``, which the controller trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.base import check_methods
from det_harness.frameworks.keras.due import DueValidations
from det_harness.frameworks.keras.session import apply_session_config
from det_harness.frameworks.keras.switches import needing_own_process, refuse_in_graph_mode
from det_harness.trial.services import Services
from det_native.errors import InvalidDataError, TrialDefinitionError
from det_native.keras import precision
from det_native.keras.adapter import GENERATOR_REFUSED, SequenceAdapter
from det_native.keras.caches.decorators import check_after_cache
from det_native.keras.context import seed_keras
from det_native.keras.generations import internals
from det_native.keras.native import QUEUE_ARGUMENTS, FitCall
from det_native.keras.switches import suppressed
from det_native.keras.trial import TFKerasTrial
from det_native.keras.trial_context import TFKerasTrialContext
from det_native.schema.environment import TrialEnvironment


def check_trial_class(trial_class: type) -> None:
    """Refuse a class that cannot be trained, before any of its code runs.

    Raises
    ------
    TrialDefinitionError
        If methods are missing, or its `trial_context_class` makes no contexts of tf.keras.
    """
    contexts = getattr(trial_class, "trial_context_class", None)
    if not isinstance(contexts, type) or not issubclass(contexts, TFKerasTrialContext):
        raise TrialDefinitionError(
            f"{trial_class.__name__}.trial_context_class is {contexts!r}; set it to a subclass of "
            "det.keras.TFKerasTrialContext, or leave it out."
        )
    check_methods(trial_class, ("build_model", "build_training_data_loader", "build_validation_data_loader"))


def call_to_train(trial_class: type[TFKerasTrial], services: Services) -> FitCall:
    """Make a trial that trains; see :func:`call_of`.

    Raises
    ------
    OwnProcessNeededError
        If it switches eager execution off, and the process is the user's.
    """
    if not services.users_process or not tf.executing_eagerly():
        return call_of(trial_class, services.environment)
    with needing_own_process(trial_class.__name__):
        return call_of(trial_class, services.environment)


def loaded_without_data(
    trial_class: type[TFKerasTrial],
    environment: TrialEnvironment,
    directory: Path,
    load_built: Callable[[Any, Path, int], None],
) -> Any:
    """Return the model of a trial with the weights of a checkpoint; the data may be elsewhere, and are not asked for.

    `load_built` reads the checkpoint into a model that has its variables.

    None if the model needs the data: it waits for a batch to be built, or its code uses what the loaders have made.
    """
    with suppressed(trial_class.__name__), precision.applied(environment):
        try:
            context, trial = _made(trial_class, environment)
            model = _model(trial_class.__name__, context, trial)
        except Exception:  # noqa: BLE001 (with the data, it comes again or does not)
            return None
        if not model.built:
            return None
        load_built(model, directory, environment.trial_seed)
    context.release_model(model)
    return model


def call_to_load(trial_class: type[TFKerasTrial], environment: TrialEnvironment) -> FitCall:
    """Make a trial whose model takes the weights of a checkpoint, eagerly; see :func:`call_of`."""
    with suppressed(trial_class.__name__):
        return call_of(trial_class, environment)


def call_of(trial_class: type[TFKerasTrial], environment: TrialEnvironment) -> FitCall:
    """Make a trial: its data, its model, its callbacks, in this order.

    Raises
    ------
    TrialDefinitionError
        If the model is not wrapped or not compiled.
    InvalidDataError
        If the data are of no kind that can be trained on, or a Dataset is not wrapped.
    UnsupportedFeatureError
        If the trial is in graph mode, and its configuration asks for what that has not.
    """
    name = trial_class.__name__
    with precision.applied(environment):
        context, trial = _made(trial_class, environment)
        training = _arguments(name, context, trial, "build_training_data_loader")
        validation = _arguments(name, context, trial, "build_validation_data_loader")
        model = _model(name, context, trial)
        callbacks = trial.keras_callbacks()
    queue, validation_queue = (_popped(each, QUEUE_ARGUMENTS) for each in (training, validation))
    data = validation["x"] if "y" not in validation else tuple(validation[key] for key in _parts(validation))
    given = {**context.fit_arguments, **training, "validation_data": data, "callbacks": callbacks}
    reading = {**queue, **_popped(given, QUEUE_ARGUMENTS)}
    given["validation_freq"] = DueValidations()
    call = FitCall.of(context, model, "fit", (), given, reading=reading)
    call.as_in_keras = False
    # A Sequence without an adapter is read as the training data are, as by fit().
    call.validation_queue = {**call.validation_queue, **validation_queue}
    return call


def _made(trial_class: type[TFKerasTrial], environment: TrialEnvironment) -> tuple[Any, TFKerasTrial]:
    """Return a trial, and its context."""
    context = trial_class.trial_context_class(environment)
    if environment.managed:
        seed_keras(environment.trial_seed)
        # Of graph mode; a trial may switch to it, and build parts of its model, in its first line.
        tf.compat.v1.get_default_graph().seed = environment.trial_seed
    trial = trial_class(context)
    if not tf.executing_eagerly():
        refuse_in_graph_mode(environment)
    apply_session_config(trial)
    return context, trial


def _popped(arguments: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: arguments.pop(name) for name in names if name in arguments}


def _parts(arguments: dict[str, Any]) -> list[str]:
    return [key for key in ("x", "y", "sample_weight") if key in arguments]


def _model(name: str, context: Any, trial: TFKerasTrial) -> Any:
    model = trial.build_model()
    if model is None:
        raise TrialDefinitionError(f"{name}.build_model() returned None; return the compiled model.")
    if context.model is None:
        raise TrialDefinitionError(
            f"{name}.build_model() returned a model that is not wrapped: call "
            "model = self.context.wrap_model(model) right after it is made, before compile()."
        )
    if model is not context.model:
        raise TrialDefinitionError(
            f"{name}.build_model() returned another model than the one that went through self.context.wrap_model()."
        )
    if not internals.is_compiled(model):
        raise TrialDefinitionError(
            f"{name}.build_model() returned a model that is not compiled: call model.compile(...) before returning it."
        )
    return model


def _wrapped(context: Any) -> int:
    """Return how many Datasets have been shared among the processes of the trial."""
    return int(context.wrapped_datasets + context.experimental.caches.used)


def _arguments(name: str, context: Any, trial: TFKerasTrial, method: str) -> dict[str, Any]:
    """Return arguments of ``fit`` for what a loader gives."""
    wrapped = _wrapped(context)
    data = getattr(trial, method)()
    where = f"{name}.{method}()"
    if isinstance(data, SequenceAdapter):
        return {"x": data.sequence, **{key: getattr(data, key) for key in QUEUE_ARGUMENTS}}
    if isinstance(data, tf.data.Dataset):
        # Made in __init__, it was wrapped there.
        if context.env.managed and _wrapped(context) == wrapped == 0:
            raise InvalidDataError(
                f"{where} returned a Dataset that is not wrapped: call dataset = self.context.wrap_dataset(dataset) "
                "right after it is made."
            )
        check_after_cache(data)
        return {"x": data}
    if isinstance(data, tf.keras.utils.Sequence):
        return {"x": data}
    if data is None:
        raise InvalidDataError(f"{where} returned None; return the data.")
    if isinstance(data, Iterator):
        raise InvalidDataError(f"{where} returned {GENERATOR_REFUSED}")
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        what = f"{type(data).__name__} of {len(data)} parts" if isinstance(data, tuple | list) else type(data).__name__
        raise InvalidDataError(
            f"{where} returned {what}; return (x, y) or (x, y, sample_weights), a tf.data.Dataset, a "
            "tf.keras.utils.Sequence or a det.keras.SequenceAdapter."
        )
    return dict(zip(("x", "y", "sample_weight"), data, strict=False))
