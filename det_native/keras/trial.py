"""The class that users subclass to train with tf.keras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import tensorflow as tf

from det_native.keras.trial_context import TFKerasTrialContext
from det_native.trial import Trial


class TFKerasTrial(Trial, ABC):
    """A training with tf.keras: a model and its data, without the loop.

    Examples
    --------
    >>> class Digits(TFKerasTrial):
    ...     def __init__(self, context):
    ...         self.context = context
    ...
    ...     def build_model(self):
    ...         layers = [tf.keras.Input(64), tf.keras.layers.Dense(10)]
    ...         model = self.context.wrap_model(tf.keras.Sequential(layers))
    ...         loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    ...         model.compile("sgd", loss, metrics=["accuracy"])
    ...         return model
    ...
    ...     def build_training_data_loader(self):
    ...         return x_train, y_train
    ...
    ...     def build_validation_data_loader(self):
    ...         return x_val, y_val
    """

    trial_context_class: ClassVar[type[TFKerasTrialContext]] = TFKerasTrialContext

    def __init__(self, context: TFKerasTrialContext) -> None:
        """Initialise what the methods share; keep `context`."""
        self.context = context

    @abstractmethod
    def build_model(self) -> tf.keras.Model:
        """Return the model: wrapped by ``self.context.wrap_model()`` and compiled."""

    @abstractmethod
    def build_training_data_loader(self) -> Any:
        """Return the training data.

        Returns
        -------
        tuple, tf.data.Dataset, tf.keras.utils.Sequence or SequenceAdapter
            A tuple is ``(x, y)`` or ``(x, y, sample_weights)`` of arrays, lists of arrays (several inputs) or
            dictionaries of them (named inputs); the others give batches of such tuples. A Dataset goes through
            ``self.context.wrap_dataset()`` first.
        """

    @abstractmethod
    def build_validation_data_loader(self) -> Any:
        """Return the validation data, of the same kinds."""

    def session_config(self) -> Any:
        """Return a ``tf.compat.v1.ConfigProto``: how operations are placed, and how the memory of GPUs is used."""
        return tf.compat.v1.ConfigProto(allow_soft_placement=True)

    def keras_callbacks(self) -> list[tf.keras.callbacks.Callback]:
        """Return Keras callbacks; their state goes into the checkpoints."""
        return []
