"""A call of ``context.train_and_evaluate()``: its arguments, and what they say about the experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import tensorflow as tf

from det_native.estimator import inputs
from det_native.estimator.base_context import EstimatorContext
from det_native.estimator.checks import check_estimator, check_serving, check_spec
from det_native.heap.call import CallSnapshot
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import Framework

_NAME = "context.train_and_evaluate() was given"
_INPUT = "The input_fn of the TrainSpec"


class EvaluatingContext(EstimatorContext):
    """What the call asks of its context besides.

    Attributes
    ----------
    period_said : bool
        Whether the user's configuration says when to evaluate; else the call does.
    """

    period_said: bool


@dataclass
class EstimatorCall:
    """One call of ``train_and_evaluate``, checked.

    Attributes
    ----------
    context : EvaluatingContext
        The ``EstimatorNativeContext`` that it is a method of.
    estimator : tf.estimator.Estimator
    train_spec : tf.estimator.TrainSpec
    eval_spec : tf.estimator.EvalSpec
    serving : dict
        The context's ``serving_input_receiver_fns``.
    snapshot : CallSnapshot or None
        All that it can reach, as it was before it trained.
    """

    framework: ClassVar[Framework] = "estimator"
    kind: ClassVar[Literal["train_and_evaluate"]] = "train_and_evaluate"
    quiet: ClassVar[bool] = False
    returned_parts: ClassVar[int] = 2

    context: EvaluatingContext
    estimator: Any
    train_spec: Any
    eval_spec: Any
    serving: dict[str, Callable[..., Any]] = field(default_factory=dict)
    snapshot: CallSnapshot | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_estimator(self.estimator, _NAME, "give")
        check_spec(self.train_spec, tf.estimator.TrainSpec, _NAME, "give")
        check_spec(self.eval_spec, tf.estimator.EvalSpec, _NAME, "give")
        check_serving(self.serving, "context.serving_input_receiver_fns is, or has,", "set it to")

    @property
    def exporters(self) -> list[str]:
        """The names of the exporters of the EvalSpec."""
        return [exporter.name for exporter in self.eval_spec.exporters or ()]

    @property
    def assumed(self) -> frozenset[str]:
        """Fields among ``configuration_fills`` that nobody typed: they contradict no configuration."""
        fields = {"searcher.metric", "hyperparameters.global_batch_size", "min_validation_period"}
        if self.train_spec.max_steps is None:
            fields.add("searcher.max_length")
        return frozenset(fields)

    @property
    def evaluates_at_saves(self) -> bool:
        """Whether validations come with the saves of the estimator's own RunConfig, as in TensorFlow."""
        return bool(self.estimator.config.save_checkpoints_steps) and not self.context.period_said

    @property
    def evaluates_every(self) -> float | None:
        """Seconds between two validations, where they come with the saves of a RunConfig that go by time."""
        config = self.estimator.config
        if config.save_checkpoints_steps or not config.save_checkpoints_secs:
            return None
        return None if self.context.period_said else float(config.save_checkpoints_secs)

    def configuration_fills(self) -> dict[str, Any]:
        """Return what the call says about fields of the configuration, by dotted path; see ``assumed``.

        Used where the configuration is silent; where both speak, the configuration wins.

        Raises
        ------
        ArgumentError
            If nothing says how long to train, and the data have no end.
        InvalidDataError
            If ``input_fn`` returns no Dataset.
        """
        fills: dict[str, Any] = {"searcher.metric": "loss"}
        # Here the data are whole; of what a batch is made of, each slot will have as much.
        slots = self.context.env.slots
        length = self.train_spec.max_steps
        if length is None and not (self.context.env.config.get("searcher") or {}).get("max_length"):
            length = -(-inputs.batches(self.train_spec.input_fn, _INPUT, self._arguments()) // slots)
        if length is not None:
            fills["searcher.max_length"] = {"batches": int(length)}
        if "global_batch_size" not in self.context.env.hparams:
            size = inputs.batch_size(self.train_spec.input_fn, _INPUT, self._arguments())
            if size is not None:
                fills["hyperparameters.global_batch_size"] = size * slots
        if self.estimator.config.save_checkpoints_steps:
            fills["min_validation_period"] = {"batches": int(self.estimator.config.save_checkpoints_steps)}
        return fills

    def check(self, environment: TrialEnvironment) -> None:
        """Check the call against a complete configuration, before any batch: there is nothing to check here."""

    def _arguments(self) -> dict[str, Any]:
        estimator = self.estimator
        return {"mode": tf.estimator.ModeKeys.TRAIN, "params": estimator.params, "config": estimator.config}
