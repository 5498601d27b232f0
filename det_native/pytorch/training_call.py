"""A call that trains the wrapped objects of a context, whoever trains on a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.wrapping import foreign_optimizer
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CallKind, Framework
from det_native.schema.proof import Input, Role


@dataclass
class TrainingCall(ABC):
    """One call that trains.

    Attributes
    ----------
    part : {"batch", "epoch"}
        After what it ends when it is interrupted.
    context : PyTorchRunContext
        With the wrapped models, optimizers and schedulers.
    epochs : int or None
        None where the call does not say it.
    kind : {"fit", "train"}
        ``train`` for every loop of the user's own.
    wait : bool or None
        Whether the call waits for its end on the cluster; None where it does not say it.
    """

    framework: ClassVar[Framework] = "torch"
    quiet: ClassVar[bool] = False
    part: ClassVar[str] = "batch"

    context: PyTorchRunContext
    epochs: int | None = None
    kind: CallKind = "train"
    wait: bool | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """What the user calls, for messages: ``context.fit``."""

    @property
    @abstractmethod
    def trainer(self) -> str:
        """What trains on a batch, for messages."""

    @abstractmethod
    def check(self, environment: TrialEnvironment) -> None:
        """Check the call against a complete configuration, before any batch."""

    @abstractmethod
    def configuration_fills(self) -> dict[str, Any]:
        """Return what the call says about fields of the configuration, by dotted path."""

    @abstractmethod
    def steps_per_epoch(self, environment: TrialEnvironment) -> int:
        """Return the batches of one epoch on each slot, for a configuration that is complete."""

    @property
    def schedulers(self) -> list[Any]:
        """The wrapped schedules of the learning rate, as torch has them."""
        return [wrapped.scheduler for wrapped in self.context.lr_schedulers]

    @property
    def models(self) -> list[Any]:
        """The wrapped models."""
        return list(self.context.models)

    @property
    def trained_parts(self) -> list[Any]:
        """What the training changes: models, optimizers, schedules of the learning rate, scalers."""
        context = self.context
        return [*context.models, *context.optimizers, *self.schedulers, *context.scalers]

    def inputs_of_parts(self) -> dict[str, Input]:
        """Return the wrapped objects as inputs of the call, by what they are called in messages."""
        context = self.context
        parts: dict[str, tuple[Sequence[Any], Role]] = {
            "the model": (context.models, "layers"),
            "the optimizer": (context.optimizers, "optimizer"),
            "the schedule of the learning rate": (self.schedulers, "optimizer"),
        }
        return {
            _numbered(what, place, several): Input(part, role)
            for what, (several, role) in parts.items()
            for place, part in enumerate(several)
        }


def check_wrapped(name: str, context: PyTorchRunContext) -> None:
    """Refuse a call without a model or an optimizer, and optimizers of other models."""
    if not context.models:
        raise TrialDefinitionError(
            f"{name}: no model is wrapped. Write model = context.wrap_model(model) before it, with the context that "
            "init() returned."
        )
    if not context.optimizers:
        raise TrialDefinitionError(
            f"{name}: no optimizer is wrapped. Write optimizer = context.wrap_optimizer(optimizer) before it."
        )
    foreign = foreign_optimizer(context.models, context.optimizers)
    if foreign is not None:
        raise TrialDefinitionError(
            f"{name}: a {type(foreign).__name__} has parameters that belong to no wrapped model, so they would not be "
            "in checkpoints. Wrap that model with context.wrap_model() too, or make the optimizer again after you have "
            "made the model again."
        )


def checked_epochs(name: str, epochs: Any) -> int | None:
    """Return the number of epochs that a call asks for.

    Raises
    ------
    ArgumentError
        If it is no whole number of at least 1.
    """
    if epochs is None:
        return None
    if isinstance(epochs, bool) or not isinstance(epochs, Integral) or epochs < 1:
        raise ArgumentError(f"{name}: epochs must be a whole number of at least 1, not {epochs!r}.")
    return int(epochs)


def _numbered(what: str, place: int, all_of_them: Sequence[Any]) -> str:
    return what if len(all_of_them) == 1 else f"{what} ({place + 1} of {len(all_of_them)})"
