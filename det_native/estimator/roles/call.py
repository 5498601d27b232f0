"""A call of ``tf.estimator.train_and_evaluate()`` that an experiment runs as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import tensorflow as tf

from det_native.errors import CallTypeError, CallValueError
from det_native.estimator.checks import check_spec
from det_native.heap.call import CallSnapshot
from det_native.schema.environment import TrialEnvironment
from det_native.schema.lengths import UNTOLD
from det_native.schema.manifests import Framework
from det_native.schema.roles import roles_of

_NAME = "tf.estimator.train_and_evaluate() was given"


@dataclass
class UnchangedCall:
    """One call of ``tf.estimator.train_and_evaluate()``, checked.

    Attributes
    ----------
    estimator : tf.estimator.Estimator
    train_spec : tf.estimator.TrainSpec
    eval_spec : tf.estimator.EvalSpec
    context : EstimatorNativeContext or None
        What the ``init()`` before it has returned; none in a script that knows nothing of det_native.
    snapshot : CallSnapshot or None
        All that it can reach, as it was before it trained.
    """

    framework: ClassVar[Framework] = "tf_estimator"
    kind: ClassVar[Literal["train_and_evaluate"]] = "train_and_evaluate"
    quiet: ClassVar[bool] = False
    returned_parts: ClassVar[int] = 2

    estimator: Any
    train_spec: Any
    eval_spec: Any
    context: Any = None
    snapshot: CallSnapshot | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, tf.estimator.Estimator | tf.compat.v1.estimator.Estimator):
            kind = "None" if self.estimator is None else f"a {type(self.estimator).__name__}"
            raise CallTypeError(f"{_NAME} {kind}; give a tf.estimator.Estimator.")
        check_spec(self.train_spec, tf.estimator.TrainSpec, _NAME, "give")
        check_spec(self.eval_spec, tf.estimator.EvalSpec, _NAME, "give")

    @property
    def exporters(self) -> list[str]:
        """The names of the exporters of the EvalSpec."""
        return [exporter.name for exporter in self.eval_spec.exporters or ()]

    @property
    def owners(self) -> list[tuple[Any, str | None]]:
        """What reads by itself what the training writes, with the folder of that."""
        return [(self.estimator, self.estimator.model_dir)]

    @property
    def assumed(self) -> frozenset[str]:
        """Fields among ``configuration_fills`` that nobody typed: they contradict no configuration."""
        fields = {"searcher.metric"}
        return frozenset(fields if self.train_spec.max_steps is not None else fields | {"searcher.max_length"})

    def configuration_fills(self) -> dict[str, Any]:
        """Return what the call says about fields of the configuration, by dotted path; see ``assumed``."""
        most = self.train_spec.max_steps
        length = UNTOLD.units if most is None else int(most)
        return {"searcher.metric": "loss", "searcher.max_length": {"batches": length}}

    def check(self, environment: TrialEnvironment) -> None:
        """Check the call against a complete configuration, before any batch.

        Raises
        ------
        CallValueError
            If ``TF_CONFIG`` gives the process a role of which the configuration knows nothing.
        """
        config = self.estimator.config
        processes = sum(len(tasks) for tasks in config.cluster_spec.as_dict().values())
        if not roles_of(environment.config) and (processes > 1 or config.task_type == "evaluator"):
            raise CallValueError(
                f"TF_CONFIG says here that this process is {config.task_type} {config.task_id} of several, but the "
                "configuration has no distributed.roles: unset that variable, which each process gets from those roles."
            )
