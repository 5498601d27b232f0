"""Each process of a trial has its share of a Dataset: what the contexts of tf.keras and of tf.estimator have for it."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import tensorflow as tf

from det_native.errors import InvalidDataError
from det_native.horovod import HorovodContext, HorovodTrialContext
from det_native.keras.caches.decorators import DatasetCaches, is_cached
from det_native.keras.pipelines import functions_being_built, graphs_of_functions, inputs_of
from det_native.schema.environment import TrialEnvironment


class Caching(Protocol):
    """A context under ``context.experimental``, which has the caches of the trial."""

    caches: DatasetCaches

    def use_environment(self, env: TrialEnvironment) -> None:
        """Take the facts of the run."""


class SharingContext(HorovodTrialContext):
    """A context whose Datasets are wrapped.

    Attributes
    ----------
    experimental
        What the framework has under ``context.experimental``.
    """

    experimental: Caching

    _public: ClassVar[tuple[str, ...]] = (
        "experimental",
        "wrap_dataset",
    )

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        super().__init__(env, hvd_config)
        self._wraps = 0
        self._wrapped: weakref.WeakSet[Any] = weakref.WeakSet()
        self._wrapped_in: weakref.WeakSet[Any] = weakref.WeakSet()  # functions of pipelines, as graphs

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
        if self.env.managed and any(each in self._wrapped for each in _made_of(dataset)):
            raise InvalidDataError(
                "wrap_dataset() was called for a Dataset that is made of a wrapped one: each process would have a "
                "part of its part. Call it once, right after the Dataset is made."
            )
        size = self.distributed.get_size()
        sharded = self.env.managed and shard_dataset and size > 1
        wrapped = dataset.shard(size, self.distributed.get_rank()) if sharded else dataset
        self._wrapped.add(wrapped)
        self._wrapped_in.update(functions_being_built())
        self._wraps += 1
        return wrapped

    def is_shared(self, dataset: Any) -> bool:
        """Return whether each process has its own part of a Dataset: it, or one that it is made of, is wrapped.

        One that a function of its steps makes counts too: ``files.interleave(lambda file: wrap_dataset(...))``.
        """
        return any(
            each in self._wrapped
            or is_cached(each)
            or any(graph in self._wrapped_in for graph in graphs_of_functions(each))
            for each in _made_of(dataset)
        )

    @property
    def shared_datasets(self) -> int:
        """How many Datasets have been shared among the processes of the trial: wrapped, or cached."""
        return self._wraps + self.experimental.caches.used


def _made_of(dataset: Any) -> Iterator[Any]:
    """Yield a Dataset, and all that it is made of."""
    above = [dataset]
    while above:
        found = above.pop()
        yield found
        above += inputs_of(found)
