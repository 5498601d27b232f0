"""The context that ``det.experimental.estimator.init()`` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from det_native.estimator.call import EstimatorCall, EvaluatingContext
from det_native.horovod import HorovodContext
from det_native.schema.environment import TrialEnvironment
from det_native.schema.signatures import names_checked
from det_native.trial import Role


class EstimatorNativeContext(EvaluatingContext):
    """What native code of ``tf.estimator`` asks about its trial, with :meth:`train_and_evaluate`, which trains.

    Parameters
    ----------
    env : EnvContext
        The facts of the trial.
    hvd_config : HorovodContext, optional
        How gradients are exchanged, instead of what the configuration says.
    on_call : callable
        Takes a checked :class:`EstimatorCall`; its result is what ``train_and_evaluate()`` returns. Without it (a
        context made by ``from_config``) TensorFlow's own function trains.
    role : {"local", "cluster", "worker", "load"}
        Who runs the program: a user who trains here, a user who submits, a worker, or a checkpoint being loaded.

    Attributes
    ----------
    experiment : Experiment or None
        The handle of the experiment once ``train_and_evaluate()`` has begun it.
    serving_input_receiver_fns : dict
        What each checkpoint has a SavedModel for, by name; set before the training.
    period_said : bool
        Whether the user's configuration says when to evaluate.
    """

    _public: ClassVar[tuple[str, ...]] = (
        "experiment",
        "serving_input_receiver_fns",
        "train_and_evaluate",
    )

    def __init__(
        self,
        env: TrialEnvironment,
        hvd_config: HorovodContext | None = None,
        *,
        on_call: Callable[[EstimatorCall], Any] | None = None,
        role: Role = "local",
    ) -> None:
        super().__init__(env, hvd_config)
        self.role = role
        self.experiment: Any = None
        self.serving_input_receiver_fns: dict[str, Callable[..., Any]] = {}
        self.period_said = any((env.config.get("min_validation_period") or {}).values())
        self._on_call = on_call

    @names_checked("context.train_and_evaluate")
    def train_and_evaluate(self, estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
        """Train an estimator and evaluate it, as ``tf.estimator.train_and_evaluate()`` does.

        Parameters
        ----------
        estimator : tf.estimator.Estimator
        train_spec : tf.estimator.TrainSpec
            Without ``max_steps``, and without ``searcher.max_length`` in the configuration, training ends with its
            data.
        eval_spec : tf.estimator.EvalSpec

        Returns
        -------
        tuple or Experiment
            In a local run the metrics of the last evaluation and the list of what the exporters have exported; for the
            cluster the experiment, at once.

        Raises
        ------
        TrialDefinitionError
            If an argument is of another kind.
        ArgumentError
            If nothing says how long to train, and the data have no end.
        """
        __tracebackhide__ = True
        call = EstimatorCall(self, estimator, train_spec, eval_spec, dict(self.serving_input_receiver_fns))
        if self._on_call is None:
            import tensorflow as tf

            return tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
        result = self._on_call(call)
        if self.role == "cluster":
            self.experiment = result
        return result
