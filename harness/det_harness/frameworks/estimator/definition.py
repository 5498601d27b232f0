"""What one training of an estimator is made of: built from a trial class, and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from det_harness.frameworks.base import check_methods
from det_native.estimator.base_context import EstimatorContext
from det_native.estimator.call import EstimatorCall
from det_native.estimator.checks import check_estimator, check_serving, check_spec
from det_native.estimator.hooks import RunHook
from det_native.estimator.trial import EstimatorTrial
from det_native.heap.call import CallSnapshot
from det_native.schema.environment import TrialEnvironment

_METHODS = ("build_estimator", "build_train_spec", "build_validation_spec", "build_serving_input_receiver_fns")


@dataclass
class Definition:
    """An estimator with all that it is trained by.

    Attributes
    ----------
    serving : dict
        Functions that make the inputs of a SavedModel, by its name.
    native : bool
        Whether it is a call of ``train_and_evaluate()``: then the TrainSpec's listeners, and the exporters and times of
        the EvalSpec count.
    throttled : bool
        Whether evaluations come with the estimator's saves, as seldom as the EvalSpec says.
    evaluates_every : float or None
        Seconds between two of these saves, where they go by time.
    snapshot : CallSnapshot or None
        All that the call can reach, as it was before it trained.
    """

    name: str
    context: EstimatorContext
    estimator: Any
    train_spec: Any
    eval_spec: Any
    serving: dict[str, Callable[..., Any]] = field(default_factory=dict)
    native: bool = False
    throttled: bool = False
    evaluates_every: float | None = None
    snapshot: CallSnapshot | None = None

    @property
    def run_hooks(self) -> list[RunHook]:
        """Hooks that are told of checkpoints and of the end of the trial."""
        hooks = [*self.train_spec.hooks, *(self.eval_spec.hooks or ())]
        return [each for each in dict.fromkeys(hooks) if isinstance(each, RunHook)]

    @property
    def exporters(self) -> list[Any]:
        """The exporters of the EvalSpec."""
        return list(self.eval_spec.exporters or ()) if self.native else []


def check_trial_class(trial_class: type) -> None:
    """Refuse a class that cannot be trained, before any of its code runs.

    Raises
    ------
    TrialDefinitionError
        If methods are missing, or take arguments.
    """
    check_methods(trial_class, _METHODS)


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


def definition_of_call(call: EstimatorCall) -> Definition:
    """Return what a captured call of ``train_and_evaluate()`` trains."""
    return Definition(
        "context.train_and_evaluate()",
        call.context,
        call.estimator,
        call.train_spec,
        call.eval_spec,
        call.serving,
        native=True,
        throttled=call.evaluates_at_saves or call.evaluates_every is not None,
        evaluates_every=call.evaluates_every,
        snapshot=call.snapshot,
    )
