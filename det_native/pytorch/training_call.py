"""A call that trains the wrapped objects of a context, whoever trains on a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from det_native.errors import TrialDefinitionError
from det_native.loops.call import TrainingCall
from det_native.pytorch.native_run import PyTorchRunContext
from det_native.pytorch.wrapping import foreign_optimizer
from det_native.schema.manifests import Framework
from det_native.schema.proof import Input, Role


@dataclass
class TorchTrainingCall(TrainingCall):
    """A call that trains the wrapped objects of a context of PyTorch."""

    framework: ClassVar[Framework] = "torch"

    context: PyTorchRunContext

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


def _numbered(what: str, place: int, all_of_them: Sequence[Any]) -> str:
    return what if len(all_of_them) == 1 else f"{what} ({place + 1} of {len(all_of_them)})"
