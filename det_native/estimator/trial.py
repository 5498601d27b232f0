"""The class that users subclass to train with ``tf.estimator``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from det_native.estimator.trial_context import EstimatorTrialContext
from det_native.trial import ControllerClass, Trial

#: A function that makes the inputs of a SavedModel, as those of ``tf.estimator.export`` do.
ServingInputReceiverFn = Callable[
    ..., tf.estimator.export.ServingInputReceiver | tf.estimator.export.TensorServingInputReceiver
]


class EstimatorTrial(Trial, ABC):
    """A training with ``tf.estimator``: an estimator and its data, without the loop.

    It trains in a process of its own, a worker's or one beside the notebook's kernel, in which TensorFlow has the
    behaviour of its first version (``tf.compat.v1.disable_v2_behavior()``).

    Examples
    --------
    >>> class Iris(EstimatorTrial):
    ...     def build_estimator(self):
    ...         optimizer = self.context.wrap_optimizer(tf.keras.optimizers.legacy.Adagrad(0.05))
    ...         columns = [tf.feature_column.numeric_column("x", shape=4)]
    ...         return tf.estimator.DNNClassifier([16], columns, n_classes=3, optimizer=optimizer)
    ...
    ...     def build_train_spec(self):
    ...         return tf.estimator.TrainSpec(lambda: self.data(x_train, y_train).shuffle(150).batch(10))
    ...
    ...     def build_validation_spec(self):
    ...         return tf.estimator.EvalSpec(lambda: self.data(x_test, y_test).batch(10), steps=None)
    ...
    ...     def data(self, x, y):
    ...         return self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices(({"x": x}, y)))
    """

    trial_context_class: ClassVar[type[EstimatorTrialContext]] = EstimatorTrialContext
    trial_controller_class: ClassVar[Any] = ControllerClass("estimator")

    def __init__(self, context: EstimatorTrialContext) -> None:
        """Initialise what the methods share; keep `context`."""
        self.context = context

    @abstractmethod
    def build_estimator(self) -> tf.estimator.Estimator:
        """Return the estimator, premade or custom; its optimizer goes through ``self.context.wrap_optimizer()``.

        Of its ``RunConfig``, the folder, the seed and when it saves are the trial's.
        """

    @abstractmethod
    def build_train_spec(self) -> tf.estimator.TrainSpec:
        """Return the training data and hooks.

        Its ``input_fn`` returns a Dataset that went through ``self.context.wrap_dataset()``; training repeats it.
        ``max_steps`` has no effect: ``searcher.max_length`` of the configuration says how long the trial trains.
        """

    @abstractmethod
    def build_validation_spec(self) -> tf.estimator.EvalSpec:
        """Return the validation data; of them `steps` batches are taken, with ``steps=None`` all."""

    def build_serving_input_receiver_fns(self) -> dict[str, ServingInputReceiverFn]:
        """Return what each checkpoint has a SavedModel for, by the name of the folder that has it; by default nothing.

        Examples
        --------
        >>> def build_serving_input_receiver_fns(self):
        ...     placeholder = {"x": tf.compat.v1.placeholder(tf.float32, [None, 4])}
        ...     return {"raw": tf.estimator.export.build_raw_serving_input_receiver_fn(placeholder)}
        """
        return {}
