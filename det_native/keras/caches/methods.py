"""The methods of ``context.experimental`` that cache datasets, the same with tf.keras and ``tf.estimator``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from det_native.keras.caches.decorators import DatasetCaches
from det_native.keras.caches.order import Order


class CachingMethods:
    """What an experimental context has for cached datasets.

    Attributes
    ----------
    caches : DatasetCaches
        The cached datasets that the trial has asked for.
    """

    caches: DatasetCaches

    _public: ClassVar[tuple[str, ...]] = (
        "cache_train_dataset",
        "cache_validation_dataset",
    )

    def cache_train_dataset(
        self, dataset_id: str, dataset_version: str, shuffle: bool = False, skip_shuffle_at_epoch_end: bool = False
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator for a function that returns the training data: a Dataset of single records.

        The records are written to disk when the function is called for the first time, and read from there by every
        later run and trial that asks for the same id and version: it is not called again then. ``data_layer`` of the
        configuration says where. Each process of a trial gets its share, so that ``wrap_dataset()`` is not needed.

        Parameters
        ----------
        dataset_id, dataset_version : str
            What the records are found by. Change the version whenever the function gives other records.
        shuffle : bool
            Whether all records are put into another order each epoch, which follows from the trial's seed.
        skip_shuffle_at_epoch_end : bool
            Keep the order of the first epoch.

        Raises
        ------
        ArgumentError
            If id or version are no text.

        Examples
        --------
        >>> def build_training_data_loader(self):
        ...     @self.context.experimental.cache_train_dataset("digits", "v1", shuffle=True)
        ...     def make_dataset():
        ...         return tf.data.Dataset.from_tensor_slices((x_train, y_train))
        ...
        ...     return make_dataset().batch(self.context.get_per_slot_batch_size())
        """
        if skip_shuffle_at_epoch_end and not shuffle:
            warnings.warn(
                "cache_train_dataset(): skip_shuffle_at_epoch_end=True has no effect without shuffle=True.",
                UserWarning,
                stacklevel=2,
            )
        order = Order.SHUFFLED_ONCE if skip_shuffle_at_epoch_end else Order.SHUFFLED_EACH_EPOCH
        return self.caches.decorator("train", dataset_id, dataset_version, order if shuffle else Order.AS_WRITTEN)

    def cache_validation_dataset(
        self, dataset_id: str, dataset_version: str, shuffle: bool = False
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator for a function that returns the validation data; see :meth:`cache_train_dataset`.

        Parameters
        ----------
        dataset_id, dataset_version : str
            They may be those of the training data, which are stored beside it.
        shuffle : bool
            Whether the records are put into another order, the same one in each validation.

        Raises
        ------
        ArgumentError
            If id or version are no text.
        """
        order = Order.SHUFFLED_ONCE if shuffle else Order.AS_WRITTEN
        return self.caches.decorator("validation", dataset_id, dataset_version, order)
