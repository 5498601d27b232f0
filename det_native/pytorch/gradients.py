"""The seam between a context and what exchanges gradients among the ranks of a trial."""

from __future__ import annotations

from typing import Protocol

import torch


class Gradients(Protocol):
    """Makes the gradients of every rank the mean over all ranks before a step.

    Implementations with several ranks are in ``det_harness.frameworks.torch.gradients``; they may start the exchange
    during backward, from hooks on the parameters, and have to have ended it when ``wait`` returns.

    Attributes
    ----------
    sharded : bool
        Whether each rank has a part of every model only.
    apart : bool
        Whether gradients are this rank's own until ``wait`` has returned.
    """

    sharded: bool = False
    apart: bool = False

    def prepare(self, model: torch.nn.Module) -> None:
        """Make of a model what is trained, in place: it is being wrapped, and has no optimizer yet."""

    def watch(self, optimizer: torch.optim.Optimizer, backward_passes: int) -> None:
        """An optimizer was wrapped; `backward_passes` passes of a batch add to the gradients of one step."""

    def start(self) -> None:
        """Training begins: models and optimizers are what they will be, on their devices."""

    def enter_batch(self, *, stepped: bool) -> None:
        """A batch begins; with `stepped` False its gradients are only added up, and nothing is exchanged.

        Called where gradients are aggregated over several batches; otherwise every batch is stepped.
        """

    def next_batch(self) -> None:
        """A batch begins of those that every rank trains on; called where there are several ranks."""

    def wait(self, optimizer: torch.optim.Optimizer) -> None:
        """Return when the gradients of the optimizer's parameters are the mean over the ranks."""


class LocalGradients(Gradients):
    """One process: what backward has left is what the optimizer steps with."""

    def prepare(self, model: torch.nn.Module) -> None:
        """Leave the model as it is."""

    def watch(self, optimizer: torch.optim.Optimizer, backward_passes: int) -> None:
        """Do nothing: there is nobody to exchange gradients with."""

    def start(self) -> None:
        """Do nothing."""

    def enter_batch(self, *, stepped: bool) -> None:
        """Do nothing."""

    def next_batch(self) -> None:
        """Do nothing."""

    def wait(self, optimizer: torch.optim.Optimizer) -> None:
        """Return at once."""
