"""A loop over ``context.epochs()`` as something that is trained like a PyTorchTrial."""

from __future__ import annotations

from typing import Any

from det_harness.frameworks.torch.definition import Definition
from det_harness.frameworks.torch.evaluation import Validation
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.loops.facts import LoopFacts
from det_harness.trial.services import Services
from det_native.errors import TrialDefinitionError
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext
from det_native.pytorch.epochs_call import TorchEpochsCall
from det_native.pytorch.gradients import Gradients

_BY_ITSELF = "A loop over context.epochs() loads, trains and evaluates by itself."


class CapturedLoop(LoopFacts, Definition, Validation):
    """A loop over ``context.epochs()``: what the user has built in the program."""

    as_in_torch = True
    further = "With a loader that context.wrap() has wrapped, each batch can have one."

    def __init__(self, call: TorchEpochsCall, services: Services) -> None:
        super().__init__(call, services)
        services.reporter.no_validation()

    def make(self, gradients: Gradients) -> tuple[PyTorchTrial, PyTorchTrialContext]:
        """Let the context that the user's objects belong to take part in the run."""
        context = self._call.context
        context.join_run(self.services.environment, gradients, self.trainer, self.name)
        context.distributed.connect(self.services.communicator)
        trial_class = type(self.name, (_Loop,), {})
        return trial_class(context), context

    def training_loader(self, trial: PyTorchTrial) -> DataLoader | None:
        """Return None: the loop goes over loaders by itself."""
        return None

    def evaluation(self, trial: PyTorchTrial, context: PyTorchTrialContext, reduction: Reduction) -> Validation:
        """Return this itself: the loop has computed the metrics."""
        return self

    @property
    def owner(self) -> str:
        """What computes the metrics, for messages."""
        return self.trainer

    def run(self) -> dict[str, Any]:
        """Refuse to validate."""
        raise TrialDefinitionError(_BY_ITSELF)

    def epoch_length(self, loader: DataLoader | None, context: PyTorchTrialContext) -> int:
        """Return the batches that an epoch counts as; in a quick check one."""
        return self.batches


class _Loop(PyTorchTrial):
    def __init__(self, context: PyTorchTrialContext) -> None:
        pass

    def train_batch(self, *arguments: Any, **named: Any) -> Any:
        raise TrialDefinitionError(_BY_ITSELF)

    build_training_data_loader = build_validation_data_loader = train_batch
