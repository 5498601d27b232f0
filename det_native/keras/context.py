"""The context that ``det.experimental.keras.init()`` returns, and the models that it wraps."""

from __future__ import annotations

import functools
import time
import types
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from det_native.errors import TrialDefinitionError
from det_native.horovod import HorovodContext
from det_native.keras import precision
from det_native.keras.base_context import TFKerasContext
from det_native.keras.fit_arguments import taken_wait
from det_native.keras.generations import internals
from det_native.keras.native import FitCall
from det_native.runtime import MadeLater
from det_native.schema.environment import TrialEnvironment
from det_native.trial import Role

# Keras 3 has one of them.
_TRAINING = tuple(name for name in ("fit", "fit_generator") if hasattr(tf.keras.Model, name))


class TFKerasNativeContext(TFKerasContext):
    """What native tf.keras code asks about its trial, and the wrappers that let ``fit`` train it.

    Parameters
    ----------
    env : EnvContext
        The facts of the trial.
    hvd_config : HorovodContext, optional
        How gradients are exchanged, instead of what the configuration says.
    on_fit : callable
        Takes a checked :class:`FitCall`; its result is what the user's ``fit`` returns. Without it (a context made by
        ``from_config``) wrapped models stay as they are.
    role : {"local", "cluster", "worker", "load"}
        Who runs the program: a user who trains here, a user who submits, a worker, or a checkpoint being loaded.
    place : callable
        Says where the call being made stands (`` in cell [3], line 2``), where its file name does not.

    Attributes
    ----------
    experiment : Experiment or None
        The handle of the experiment once ``fit`` has submitted it.
    wrapped : bool
        Whether a model has been wrapped.
    """

    #: `init()` makes a context on each worker, too: capture recognises it by identity, and does not send it.
    _det_known_by_identity = True

    _public: ClassVar[tuple[str, ...]] = (
        "experiment",
        "release_model",
        "wrap_model",
    )

    experiment = MadeLater()

    def __init__(
        self,
        env: TrialEnvironment,
        hvd_config: HorovodContext | None = None,
        *,
        on_fit: Callable[[FitCall], Any] | None = None,
        role: Role = "local",
        place: Callable[[], str] = str,
    ) -> None:
        super().__init__(env, hvd_config)
        self.role = role
        self.experiment = None
        self.wrapped = False
        self._wrapped_at: dict[int, float] = {}  # when which models were, by identity, for capture
        self._on_fit = on_fit
        self._place = place
        if on_fit is not None:
            precision.hold(env)

    def wrap_model(self, model: Any) -> Any:
        """Let this context run the model's training; call it right after the model is made, before ``compile``.

        Parameters
        ----------
        model : tf.keras.Model
            Any number of models may be wrapped; each call of ``fit`` trains its own.

        Returns
        -------
        tf.keras.Model
            The same object.

        Raises
        ------
        TrialDefinitionError
            If it is not a tf.keras model.
        """
        check_model(model)
        self.wrapped = True
        if not self.env.managed or self._on_fit is None:
            return model
        self._wrapped_at[id(model)] = time.time()
        for name in _TRAINING:
            vars(model)[name] = Interception(model, name, self._fit)
        return model

    def release_model(self, model: Any) -> None:
        """Make a wrapped model plain Keras again."""
        for name in _TRAINING:
            if isinstance(vars(model).get(name), Interception):
                del vars(model)[name]

    def _fit(self, model: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        wait = taken_wait(model, method, kwargs)
        call = FitCall.of(self, model, method, args, kwargs)
        call.wait = wait
        notes = call.without_effect()
        if notes:
            warnings.warn(f"{method}(){self._place()}: {' '.join(notes)}", UserWarning, stacklevel=3)
        if self._on_fit is None:
            return call.original("fit")(**call.arguments)
        __tracebackhide__ = True
        result = self._on_fit(call)
        if self.role == "cluster":
            self.experiment = result
        return result


def check_model(model: Any) -> None:
    """Refuse what ``wrap_model()`` cannot take."""
    if not isinstance(model, tf.keras.Model):
        raise TrialDefinitionError(
            f"wrap_model() takes a tf.keras.Model, not {type(model).__module__}.{type(model).__qualname__}."
        )


def seed_keras(seed: int) -> None:
    """Make the weights of models built from now on follow from a seed, here as on a worker.

    The generators of Python and numpy, the user's own, stay as they are in tf.keras 2. Keras 3 draws the seeds of its
    layers from Python's, which is seeded with it, as ``keras.utils.set_random_seed`` does.
    """
    internals.seed(seed)


_Handler = Callable[[Any, str, tuple[Any, ...], dict[str, Any]], Any]


class Interception:
    """A method of one model that goes to the context first. It lies in the instance, past Keras's attribute tracking.

    A copy of the model, by ``copy.deepcopy`` or pickle, has its plain method here: a copy is not wrapped.
    """

    def __init__(
        self, model: Any, name: str, handle: Callable[[Any, str, tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        self._model = model
        self._name = name
        self._handle = handle
        functools.update_wrapper(self, getattr(type(model), name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._handle(self._model, self._name, args, kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo.get(id(self._model), self._model)
        return types.MethodType(getattr(type(copied), self._name), copied)

    def __reduce__(self) -> tuple[Any, ...]:
        return types.MethodType, (getattr(type(self._model), self._name), self._model)
