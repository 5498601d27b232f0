"""What the contexts of ``tf.estimator`` share: optimizers and data are wrapped."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import tensorflow as tf

from det_native.errors import InvalidDataError, TrialDefinitionError
from det_native.estimator.experimental_context import EstimatorExperimentalContext
from det_native.horovod import HorovodContext, HorovodTrialContext
from det_native.keras.caches.decorators import is_cached
from det_native.keras.pipelines import inputs_of
from det_native.schema.environment import TrialEnvironment

_OPTIMIZERS = (
    tf.compat.v1.train.Optimizer,
    tf.keras.optimizers.Optimizer,
    tf.keras.optimizers.legacy.Optimizer,
)


class EstimatorContext(HorovodTrialContext):
    """What code of ``tf.estimator`` asks about its trial, and wrappers for its data and optimizers.

    Parameters
    ----------
    env : EnvContext
        The facts of the trial.
    hvd_config : HorovodContext, optional
        How gradients are exchanged, instead of what the configuration says.

    Attributes
    ----------
    distributed : DistributedContext
        This process among those of the trial.
    experimental : EstimatorExperimentalContext
    wrapped_optimizers : int
        How many were wrapped.
    """

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        super().__init__(env, hvd_config)
        self.experimental = EstimatorExperimentalContext(env, hvd_config)
        self.wrapped_optimizers = 0
        self._wraps = 0
        self._wrapped: weakref.WeakSet[Any] = weakref.WeakSet()

    def use_environment(self, env: TrialEnvironment) -> None:
        """Take the facts of the run, where more is known of it than when the context was made."""
        super().use_environment(env)
        self.experimental.use_environment(env)

    @property
    def shared_datasets(self) -> int:
        """How many Datasets have been shared among the processes of the trial: wrapped, or cached."""
        return self._wraps + self.experimental.caches.used

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Prepare an optimizer for the trial; call it right after the optimizer is made, and use what it returns.

        Parameters
        ----------
        optimizer : tf.compat.v1.train.Optimizer, tf.keras.optimizers.Optimizer or callable
            A callable, as premade estimators take it, returns the optimizer.

        Raises
        ------
        TrialDefinitionError
            If it is anything else, a name say.
        """
        if not isinstance(optimizer, _OPTIMIZERS) and not callable(optimizer):
            raise TrialDefinitionError(
                f"wrap_optimizer() takes an optimizer, not {optimizer!r}: make one first, for example "
                "tf.keras.optimizers.legacy.Adagrad(0.05), or tf.compat.v1.train.AdagradOptimizer(0.05)."
            )
        self.wrapped_optimizers += 1
        return optimizer

    def wrap_dataset(self, dataset: Any, shard_dataset: bool = True) -> Any:
        """Give each process of a trial its share of a Dataset; call it right after the Dataset is made.

        Parameters
        ----------
        dataset : tf.data.Dataset
        shard_dataset : bool
            False for a Dataset that the user's code has sharded already.

        Returns
        -------
        tf.data.Dataset

        Raises
        ------
        InvalidDataError
            If it is not a tf.data.Dataset, or is made of one that is wrapped already.
        """
        if not isinstance(dataset, tf.data.Dataset):
            raise InvalidDataError(f"wrap_dataset() takes a tf.data.Dataset, not {type(dataset).__name__}.")
        caches = self.experimental.caches
        if caches.writing:  # what is written is for all processes; each reads its share
            return dataset
        if caches.used and is_cached(dataset):
            warnings.warn(
                "wrap_dataset() has no effect on a cached dataset: each process reads only its share of the records.",
                UserWarning,
                stacklevel=2,
            )
            return dataset
        self._refuse_wrapped(dataset)
        size = self.distributed.get_size()
        sharded = self.env.managed and shard_dataset and size > 1
        wrapped = dataset.shard(size, self.distributed.get_rank()) if sharded else dataset
        self._wrapped.add(wrapped)
        self._wraps += 1
        return wrapped

    def _refuse_wrapped(self, dataset: Any) -> None:
        above = [dataset] if self.env.managed else []
        while above:
            found = above.pop()
            if found in self._wrapped:
                raise InvalidDataError(
                    "wrap_dataset() was called for a Dataset that is made of a wrapped one: each process would have a "
                    "part of its part. Call it once, right after the Dataset is made."
                )
            above += inputs_of(found)
