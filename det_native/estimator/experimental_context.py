"""What a context of ``tf.estimator`` has under ``context.experimental``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from det_native.estimator.reducers import MetricReducer, Metrics
from det_native.horovod import HorovodContext, HorovodTrialContext
from det_native.keras.caches.decorators import DatasetCaches
from det_native.keras.caches.methods import CachingMethods
from det_native.schema.environment import TrialEnvironment


class EstimatorExperimentalContext(HorovodTrialContext, CachingMethods):
    """Experimental features of a context of ``tf.estimator``, which has one as its ``experimental``.

    Attributes
    ----------
    metrics : Metrics
        The metrics that were made by :meth:`make_metric`.
    caches : DatasetCaches
        The cached datasets that the trial has asked for.
    """

    _public: ClassVar[tuple[str, ...]] = ("make_metric",)

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        super().__init__(env, hvd_config)
        self.metrics = Metrics()
        self.caches = DatasetCaches(self, rebuilt=True)

    def make_metric(
        self, metric: Any, reducer: Callable[[list[Any]], Any] | MetricReducer, numpy_dtype: Any
    ) -> tuple[Any, Any]:
        """Return a validation metric that is computed in Python, of the values that a tensor has in all batches.

        Call it in the ``model_fn`` of an estimator, and put what it returns into ``eval_metric_ops``. It is right over
        all slots of a trial, and begins anew with each evaluation.

        Parameters
        ----------
        metric : tensor, list of tensors or dictionary of tensors
            What of each batch goes into the metric.
        reducer : callable or MetricReducer
            A function takes the list of the values of all batches, each a numpy array, or a list or dictionary of them,
            and returns the metric. A ``MetricReducer`` takes them one by one; each evaluation has a copy of it, which
            shares the context, tensors, locks and what else cannot be copied.
        numpy_dtype
            The type of the result: anything that ``numpy.dtype()`` takes.

        Returns
        -------
        tuple
            The tensor of the result and the operation that takes a batch, as Estimator has metrics.

        Raises
        ------
        TrialDefinitionError
            If the metric is of another kind, or the reducer is none.

        Examples
        --------
        >>> def model_fn(features, labels, mode):
        ...     predictions = network(features)
        ...     loss = loss_of(predictions, labels)
        ...     mean = context.experimental.make_metric(
        ...         predictions, lambda batches: np.mean(np.concatenate(batches)), np.float32
        ...     )
        ...     return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mean": mean})
        """
        return self.metrics.make(metric, reducer, numpy_dtype)
