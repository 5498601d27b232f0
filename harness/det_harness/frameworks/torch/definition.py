"""What is trained: a PyTorchTrial class of the user's. (The other kind, objects and functions, is in ``native``.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from det_harness.frameworks.torch.checks import (
    batches_of_an_epoch,
    check_trial_class,
    check_wrapped,
    checked_loader,
    overrides,
)
from det_harness.frameworks.torch.evaluation import Evaluation, Validation, Wording
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.trial.services import Services
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext
from det_native.pytorch.gradients import Gradients


class Definition(Protocol):
    """Where a trial and its context come from, what evaluates them, and which modes the models are in.

    Attributes
    ----------
    name : str
        Of the user's class or call, for messages.
    trainer : str
        What trains on a batch, for messages.
    as_in_torch : bool
        Whether it draws random numbers where the program has come to, as it would without us; else it begins with the
        trial's seed. On one slot the order of batches is plain torch's then.
    """

    as_in_torch: bool = False
    name: str
    trainer: str
    verb: str
    services: Services

    def make(self, gradients: Gradients) -> tuple[PyTorchTrial, PyTorchTrialContext]:
        """Make the trial, with all that it wraps."""

    def training_loader(self, trial: PyTorchTrial) -> DataLoader | None:
        """Return the loader of the training data; None where the user's own loop goes over them."""
        return checked_loader(self.name, trial, "build_training_data_loader")

    def evaluation(self, trial: PyTorchTrial, context: PyTorchTrialContext, reduction: Reduction) -> Validation:
        """Return what validates, with the custom reducers for it."""

    def epoch_length(self, loader: Any, context: PyTorchTrialContext) -> int:
        """Return the batches of an epoch on each slot."""

    def further_generators(self) -> dict[str, torch.Generator]:
        """Return generators beside those of the training loader that go on with the trial, by name."""
        return {}

    def begin(self, context: PyTorchTrialContext) -> None:
        """Make ready before the first batch of all; a trial that is continued finds everything in its checkpoint."""
        return

    def validated(self, metrics: Mapping[str, Any]) -> None:
        """Look at the metrics of a validation, before they are checked."""
        return

    def enter_training_mode(self, context: PyTorchTrialContext) -> None:
        """Have the models in the mode for training with ``train_batch``; by itself, modes are the user's own."""
        return


class TrialClass(Definition):
    """A subclass of :class:`PyTorchTrial`.

    Raises
    ------
    TrialDefinitionError
        If the class breaks a rule of the API.
    """

    verb = "return"

    def __init__(self, trial_class: type[PyTorchTrial], services: Services) -> None:
        check_trial_class(trial_class)
        self._class = trial_class
        self.name = trial_class.__name__
        self.trainer = f"{self.name}.train_batch()"
        self.services = services

    def make(self, gradients: Gradients) -> tuple[PyTorchTrial, PyTorchTrialContext]:
        """Make a context and, with it, the trial."""
        context = PyTorchTrialContext(self.services.environment, gradients=gradients, owner=self.name)
        context.distributed.connect(self.services.communicator)
        trial = self._class(context)
        check_wrapped(self.name, context, self._class)
        return trial, context

    def evaluation(self, trial: PyTorchTrial, context: PyTorchTrialContext, reduction: Reduction) -> Validation:
        """Return what calls the class's evaluation method."""
        loader = checked_loader(self.name, trial, "build_validation_data_loader")
        method = "evaluate_full_dataset" if overrides(self._class, "evaluate_full_dataset") else "evaluate_batch"
        wording = Wording(
            owner=f"{self.name}.{method}()",
            loader=f"The loader that {self.name}.build_validation_data_loader() returned",
            length_remedy=(
                f"override {self.name}.get_batch_length(batch), or return Reducer.AVG_OF_BATCHES in "
                "evaluation_reducer()"
            ),
        )
        return Evaluation(trial, context, loader, self.services, reduction, wording)

    def epoch_length(self, loader: DataLoader, context: PyTorchTrialContext) -> int:
        """Return the batches of one pass over the training data."""
        return batches_of_an_epoch(self.name, loader, context)

    def enter_training_mode(self, context: PyTorchTrialContext) -> None:
        """Put all models into training mode."""
        for model in context.models:
            model.train()
