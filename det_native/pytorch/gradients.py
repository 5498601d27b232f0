"""The seam between a context and what exchanges gradients among the ranks of a trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch


class Gradients:
    """Makes the gradients of every rank the mean over all ranks before a step; by itself it does nothing.

    Those of several ranks are in ``det_harness.frameworks.torch.gradients``.

    Attributes
    ----------
    sharded : bool
        Whether each rank has a part of every model only.
    """

    sharded: bool = False

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

    def averaged_by_hooks(
        self,
        models: Sequence[torch.nn.Module],
        optimizers: Sequence[torch.optim.Optimizer],
        begins: Callable[[], None] | None = None,
        ends: Callable[[], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Let backward end with the means, in the block: ``loss.backward()`` and ``optimizer.step()`` are all it needs.

        Parameters
        ----------
        models, optimizers : sequence
            Whose gradients these are. Nothing is left on them after the block.
        begins : callable, optional
            Called when a backward pass comes to the first gradient of a parameter, on several ranks.
        ends : callable, optional
            Called at the end of a pass, when the gradients are averaged, on several ranks: on all of them or on none.
        """
        return nullcontext()

    def wait(self, optimizer: torch.optim.Optimizer) -> None:
        """Return when the gradients of the optimizer's parameters are the mean over the ranks."""


class LocalGradients(Gradients):
    """One process: what backward has left is what the optimizer steps with."""
