"""The class that users subclass to train with tf.keras."""

from __future__ import annotations

import functools
import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Union

import tensorflow as tf

from det_native.errors import ArgumentError
from det_native.keras.adapter import SequenceAdapter
from det_native.keras.switches import suppressed
from det_native.keras.trial_context import TFKerasTrialContext
from det_native.trial import ControllerClass, Trial, TrialContext


class _Made(ABCMeta):
    """Makes trials; one made outside any run never switches the user's process to graph mode."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        contexts = [each for each in (*args, *kwargs.values()) if isinstance(each, TrialContext)]
        if all(context.env.managed for context in contexts):
            return super().__call__(*args, **kwargs)
        with suppressed(cls.__name__):
            trial = super().__call__(*args, **kwargs)
        for method in _USERS_METHODS:
            setattr(trial, method, _suppressing(cls.__name__, getattr(trial, method)))
        return trial

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of ``__init__``, as without this class."""
        found = inspect.signature(cls.__init__)  # type: ignore[misc]  # the class's own
        return found.replace(parameters=list(found.parameters.values())[1:])


_USERS_METHODS = (
    "build_model",
    "build_training_data_loader",
    "build_validation_data_loader",
    "session_config",
    "keras_callbacks",
)


def _suppressing(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with suppressed(name):
            return method(*args, **kwargs)

    return call


# What a loader returns, for annotations.
InputData = Union[tf.keras.utils.Sequence, tf.data.Dataset, SequenceAdapter, tuple[Any, ...]]  # noqa: UP007


class TFKerasTrial(Trial, metaclass=_Made):
    """A training with tf.keras: a model and its data, without the loop.

    Parameters
    ----------
    trial_context : TFKerasTrialContext
        The context, also by the name `context`. One made by ``TFKerasTrialContext.from_config(config)`` makes a trial
        outside any run, whose methods can be tried; calls in it that switch eager execution off are passed over.

    Attributes
    ----------
    trial_context_class : type
        What contexts of this class are made by; a subclass of TFKerasTrialContext.
    context : TFKerasTrialContext

    Examples
    --------
    >>> class Digits(TFKerasTrial):
    ...     def __init__(self, context):
    ...         self.context = context
    ...
    ...     def build_model(self):
    ...         layers = [tf.keras.Input((64,)), tf.keras.layers.Dense(10)]
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
    trial_controller_class: ClassVar[Any] = ControllerClass("keras")

    def __init__(
        self, trial_context: TFKerasTrialContext | None = None, *, context: TFKerasTrialContext | None = None
    ) -> None:
        """Initialise what the methods share; keep the context."""
        given = [each for each in (trial_context, context) if each is not None]
        if len(given) != 1:
            raise ArgumentError(
                f"{type(self).__name__}: TFKerasTrial.__init__() takes one context, as trial_context or as context; "
                f"{len(given)} were given."
            )
        self.context = given[0]

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
