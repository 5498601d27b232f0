"""A call that trains the wrapped objects of a context, whoever trains on a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import torch

from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.inspection.attributes import plain_settings
from det_native.proof.inputs import Input, WithoutKeys, frozen
from det_native.proof.modules import module_settings
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.wrapping import foreign_optimizer
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CallKind, Framework

WEIGHTS = "the model's weights"
LAYERS = "the model's layers"


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
        given: dict[str, Input] = {}
        for place, optimizer in enumerate(self.context.optimizers):
            groups = [WithoutKeys(group, {"params"}) for group in optimizer.param_groups]
            name = _numbered("the optimizer", place, self.context.optimizers)
            given[name] = Input((type(optimizer).__name__, tuple(groups)), "optimizer")
        schedulers = self.schedulers
        for place, scheduler in enumerate(schedulers):
            settings = [type(scheduler).__name__, _plain_attributes(scheduler)]
            given[_numbered("the schedule of the learning rate", place, schedulers)] = Input(
                frozen(settings), "optimizer"
            )
        for place, model in enumerate(self.context.models):
            layers = [_layer_settings(name, part) for name, part in model.named_modules()]
            given[_numbered(LAYERS, place, self.context.models)] = Input(frozen(layers), "layers")
            attributes = module_settings(model)
            if attributes:
                title = _numbered("the attributes of the model", place, self.context.models)
                given[title] = Input(attributes, "layers")
            weights = list(model.state_dict().values())
            assign = partial(_assign_weights, weights)
            given[_numbered(WEIGHTS, place, self.context.models)] = Input(weights, "weights", assign=assign)
        return given


def check_wrapped(name: str, context: PyTorchRunContext) -> None:
    """Refuse a call without a model or an optimizer, and optimizers of other models.

    Raises
    ------
    TrialDefinitionError
    """
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


def _layer_settings(name: str, module: torch.nn.Module) -> list[Any]:
    """Return what a module is, with its settings and its parameters that are not trained."""
    frozen_parameters = [name for name, part in module.named_parameters(recurse=False) if not part.requires_grad]
    title = f"{name} {type(module).__qualname__}({module.extra_repr()})".strip()
    return [title, plain_settings(module), *frozen_parameters]


def _plain_attributes(scheduler: Any) -> dict[str, Any]:
    """Return the settings of a scheduler; how often it has stepped is among them."""
    kinds = (bool, int, float, str, list, tuple)
    return {
        name: value for name, value in vars(scheduler).items() if type(value) in kinds and not name.startswith("__")
    }


def _assign_weights(weights: Sequence[torch.Tensor], values: Sequence[Any]) -> None:
    """Put weights into the tensors of a model."""
    with torch.no_grad():
        for tensor, value in zip(weights, values, strict=True):
            tensor.copy_(torch.as_tensor(value))


def _numbered(what: str, place: int, all_of_them: Sequence[Any]) -> str:
    return what if len(all_of_them) == 1 else f"{what} ({place + 1} of {len(all_of_them)})"
