"""What one training of an estimator is made of: built from a trial class, and checked."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from det_native.errors import TrialDefinitionError
from det_native.estimator.base_context import EstimatorContext
from det_native.estimator.hooks import RunHook
from det_native.estimator.trial import EstimatorTrial
from det_native.schema.environment import TrialEnvironment

_METHODS = ("build_estimator", "build_train_spec", "build_validation_spec", "build_serving_input_receiver_fns")


@dataclass
class Definition:
    """An estimator with all that it is trained by.

    Attributes
    ----------
    name : str
        What to call it in messages.
    context : EstimatorContext
    estimator : tf.estimator.Estimator
    train_spec : tf.estimator.TrainSpec
    eval_spec : tf.estimator.EvalSpec
    serving : dict
        Functions that make the inputs of a SavedModel, by its name.
    ignores_max_steps : bool
        Whether the TrainSpec's ``max_steps`` has no effect.
    """

    name: str
    context: EstimatorContext
    estimator: Any
    train_spec: Any
    eval_spec: Any
    serving: dict[str, Callable[..., Any]] = field(default_factory=dict)
    ignores_max_steps: bool = True

    @property
    def run_hooks(self) -> list[RunHook]:
        """Hooks that are told of checkpoints and of the end of the trial."""
        hooks = [*self.train_spec.hooks, *(self.eval_spec.hooks or ())]
        return [each for each in dict.fromkeys(hooks) if isinstance(each, RunHook)]


def check_trial_class(trial_class: type) -> None:
    """Refuse a class that cannot be trained, before any of its code runs.

    Raises
    ------
    TrialDefinitionError
        If methods are missing, or take arguments.
    """
    missing = sorted(getattr(trial_class, "__abstractmethods__", ()))
    if missing:
        lacks = ", ".join(f"{one}()" for one in missing)
        raise TrialDefinitionError(f"{trial_class.__name__} lacks {lacks}; define it in the class.")
    for method in _METHODS:
        function = inspect.getattr_static(trial_class, method)
        if inspect.isfunction(function) and len(inspect.signature(function).parameters) != 1:
            raise TrialDefinitionError(
                f"{trial_class.__name__}.{method}{inspect.signature(function)} must take (self) only; hyperparameters "
                "are in self.context."
            )


def definition_of(trial_class: type[EstimatorTrial], environment: TrialEnvironment) -> Definition:
    """Make a trial: its estimator, its data and its serving functions, in this order.

    Raises
    ------
    TrialDefinitionError
        If a method returns something else than it is to.
    """
    name = trial_class.__name__
    context = trial_class.trial_context_class(environment)
    trial = trial_class(context)
    estimator = trial.build_estimator()
    check_estimator(estimator, f"{name}.build_estimator() returned")
    train_spec = trial.build_train_spec()
    check_spec(train_spec, tf.estimator.TrainSpec, f"{name}.build_train_spec() returned")
    eval_spec = trial.build_validation_spec()
    check_spec(eval_spec, tf.estimator.EvalSpec, f"{name}.build_validation_spec() returned")
    serving = trial.build_serving_input_receiver_fns()
    check_serving(serving, f"{name}.build_serving_input_receiver_fns() returned")
    return Definition(name, context, estimator, train_spec, eval_spec, serving)


def check_estimator(estimator: Any, what: str) -> None:
    """Refuse what is no estimator, or one that spreads its training over devices by itself."""
    if not isinstance(estimator, tf.estimator.Estimator | tf.compat.v1.estimator.Estimator):
        raise TrialDefinitionError(f"{what} {_named(estimator)}; return a tf.estimator.Estimator.")
    for strategy in ("train_distribute", "eval_distribute"):
        if getattr(estimator.config, strategy) is not None:
            raise TrialDefinitionError(
                f"{what} an estimator whose RunConfig has {strategy}: leave it out, and set resources.slots_per_trial "
                "in the configuration, by which a trial is spread over slots."
            )


def check_spec(spec: Any, kind: type, what: str) -> None:
    """Refuse what is not a TrainSpec, or an EvalSpec."""
    if not isinstance(spec, kind):
        raise TrialDefinitionError(f"{what} {_named(spec)}; return a tf.estimator.{kind.__name__}.")


def check_serving(serving: Any, what: str) -> None:
    """Refuse anything but functions by name, where a name can be that of a folder."""
    if not isinstance(serving, dict):
        raise TrialDefinitionError(f"{what} {_named(serving)}; return a dictionary of functions by name.")
    for name, function in serving.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            raise TrialDefinitionError(
                f"{what} the name {name!r}, which is to be that of a folder: use letters, digits and underscores."
            )
        if not callable(function):
            raise TrialDefinitionError(
                f"{what} {_named(function)} for {name!r}; give a function, such as those that "
                "tf.estimator.export.build_raw_serving_input_receiver_fn() returns."
            )


def _named(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
