"""What the contexts of tf.keras share: models and data are wrapped."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import tensorflow as tf

from det_native.errors import InvalidDataError
from det_native.horovod import HorovodContext, HorovodTrialContext
from det_native.keras.caches.decorators import is_cached
from det_native.keras.experimental_context import TFKerasExperimentalContext
from det_native.keras.pipelines import inputs_of
from det_native.schema.environment import TrialEnvironment


class TFKerasContext(HorovodTrialContext):
    """What tf.keras code asks about its trial, and wrappers for its data and optimizers.

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
    metric_said : bool
        Whether the user's configuration names the metric by which trials are compared.
    experimental : TFKerasExperimentalContext
    """

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        super().__init__(env, hvd_config)
        self.metric_said = env.metric is not None
        self._wrapped_datasets: weakref.WeakSet[Any] = weakref.WeakSet()
        self.experimental = TFKerasExperimentalContext(env, hvd_config)

    def use_environment(self, env: TrialEnvironment) -> None:
        """Take the facts of the run, where more is known of it than when the context was made."""
        super().use_environment(env)
        self.experimental.use_environment(env)

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
        self._wrapped_datasets.add(wrapped)
        return wrapped

    def is_shared(self, dataset: Any) -> bool:
        """Return whether each process has its own part of a Dataset: it, or one that it is made of, is wrapped."""
        above = [dataset]
        while above:
            found = above.pop()
            if found in self._wrapped_datasets or is_cached(found):
                return True
            above += inputs_of(found)
        return False

    def _refuse_wrapped(self, dataset: Any) -> None:
        above = [dataset] if self.env.managed else []
        while above:
            found = above.pop()
            if found in self._wrapped_datasets:
                raise InvalidDataError(
                    "wrap_dataset() was called for a Dataset that is made of a wrapped one: each process would have a "
                    "part of its part. Call it once, right after the Dataset is made."
                )
            above += inputs_of(found)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Prepare an optimizer for a trial on several slots; on one slot it is returned as it is."""
        return optimizer
