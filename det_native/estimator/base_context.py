"""What the contexts of ``tf.estimator`` share: optimizers and data are wrapped."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow as tf

from det_native.errors import TrialDefinitionError
from det_native.estimator.experimental_context import EstimatorExperimentalContext
from det_native.horovod import HorovodContext
from det_native.keras.sharing import SharingContext
from det_native.schema.environment import TrialEnvironment

_OPTIMIZERS = (
    tf.compat.v1.train.Optimizer,
    tf.keras.optimizers.Optimizer,
    tf.keras.optimizers.legacy.Optimizer,
)


class EstimatorContext(SharingContext):
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

    experimental: EstimatorExperimentalContext

    _public: ClassVar[tuple[str, ...]] = ("wrap_optimizer",)

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        super().__init__(env, hvd_config)
        self.experimental = EstimatorExperimentalContext(env, hvd_config)
        self.wrapped_optimizers = 0
        self._optimizers: list[Any] = []
        self._tell_of_optimizer: Callable[[Any], None] | None = None

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
        if isinstance(optimizer, _OPTIMIZERS):
            return self._taken(optimizer)

        @functools.wraps(optimizer, updated=())
        def made(*args: Any, **kwargs: Any) -> Any:
            return self._taken(optimizer(*args, **kwargs))

        return made

    def tell_of_optimizers(self, told: Callable[[Any], None]) -> None:
        """Have `told` called with each optimizer that is wrapped, those that were wrapped before included."""
        self._tell_of_optimizer = told
        for optimizer in self._optimizers:
            told(optimizer)

    def _taken(self, optimizer: Any) -> Any:
        if isinstance(optimizer, _OPTIMIZERS):
            self._optimizers.append(optimizer)
            if self._tell_of_optimizer is not None:
                self._tell_of_optimizer(optimizer)
        return optimizer
