"""The context that ``det.experimental.estimator.init()`` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from det_native.errors import ArgumentError
from det_native.estimator.call import EstimatorCall, EvaluatingContext
from det_native.horovod import HorovodContext
from det_native.schema.environment import TrialEnvironment
from det_native.schema.signatures import names_checked
from det_native.trial import Role

if TYPE_CHECKING:
    from det_native.estimator.roles.call import UnchangedCall

_AFTER = (
    "tf.estimator.train_and_evaluate() trains here by itself: the init() before it was for one training. To make an "
    "experiment of this call too, call det.experimental.estimator.init() before it."
)


class EstimatorNativeContext(EvaluatingContext):
    """What native code of ``tf.estimator`` asks about its trial, with :meth:`train_and_evaluate`, which trains.

    In a ``with`` statement, it is closed at the end of the block.

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
        "close",
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
        self._closed = False
        self._unchanged: Callable[[Any, Any, Any], Any] | None = None

    def __enter__(self) -> Self:
        """Return the context."""
        return self

    def __exit__(self, *details: object) -> None:
        """Close the context."""
        self.close()

    def close(self) -> None:
        """End what ``init()`` has begun: ``tf.estimator.train_and_evaluate()`` is TensorFlow's own again.

        What the context knows of its experiment stays; it trains no more. A call of either function has done the same
        for TensorFlow's, whose next call makes no experiment.
        """
        self._closed = True
        self._let_go()

    def take_next_call(self, handler: Callable[[UnchangedCall], Any]) -> None:
        """Have the next call of TensorFlow's own function be the context's; `handler` makes its result."""
        from det_native.estimator.roles.call import UnchangedCall
        from det_native.estimator.roles.entry import take_next

        def run(estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
            __tracebackhide__ = True
            return self._using_up(lambda: handler(UnchangedCall(estimator, train_spec, eval_spec, self)))

        self._unchanged = run
        take_next(run)

    def _using_up(self, call: Callable[[], Any]) -> Any:
        """Make a call; what was refused before anything has begun may be put right and made again."""
        __tracebackhide__ = True
        before = self.experiment
        try:
            result = call()
        except BaseException:
            if self.experiment is not before:
                self._let_go(_AFTER)
            raise
        self._let_go("" if self.role in ("worker", "load") else _AFTER)
        return result

    def _let_go(self, after: str = "") -> None:
        if self._unchanged is not None:
            from det_native.estimator.roles.entry import let_go

            let_go(self._unchanged, after)

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
        Experiment
            Unpacked (``metrics, exports = ...``), it gives the metrics of the last evaluation and the list of what the
            exporters have exported.

        Raises
        ------
        TrialDefinitionError
            If an argument is of another kind.
        ArgumentError
            If nothing says how long to train, and the data have no end; or the context is closed.
        """
        __tracebackhide__ = True
        if self._closed:
            raise ArgumentError(
                "The context is closed, by close() or at the end of its `with` block: train within the block, or call "
                "det.experimental.estimator.init() again."
            )
        call = EstimatorCall(self, estimator, train_spec, eval_spec, dict(self.serving_input_receiver_fns))
        if self._on_call is None:
            import tensorflow as tf

            return tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
        on_call = self._on_call
        return self._using_up(lambda: on_call(call))
