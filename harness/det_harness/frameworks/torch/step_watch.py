"""Looks whether the optimizers of a trial are stepped: one that never is trains nothing, which nothing else shows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch

from det_native.errors import TrialDefinitionError
from det_native.pytorch import PyTorchTrialContext
from det_native.pytorch.stepping import parameters_of

logger = logging.getLogger("det_harness")


class StepWatch:
    """Watches the optimizers of one run, from its begin to its end.

    Somebody may have a reason not to step: gradients of many batches make a step, an optimizer belongs to a later
    phase, weights are changed by hand, a baseline trains nothing. So what counts is that an optimizer was not stepped
    and its weights are what they were; that is told as a fact. It is an error where the training is over, gradients
    were computed and no optimizer was stepped at all.

    Parameters
    ----------
    trainer : str
        What trains, for messages: ``Digits.train_batch()``.
    quiet : bool
        Whether to warn of nothing: another rank does.
    """

    def __init__(
        self, context: PyTorchTrialContext, trainer: str, frequency: int, *, done: int, quiet: bool = False
    ) -> None:
        self._context = context
        self._trainer = trainer
        self._frequency = frequency
        self._begun_at = done
        self._quiet = quiet
        self._stepped: set[int] = set()
        self._told = False
        self._gradients = False
        self._before = [_sums(optimizer) for optimizer in context.optimizers]
        self._hooks = [optimizer.register_step_pre_hook(self._note) for optimizer in context.optimizers]

    def close(self) -> None:
        """Look no more."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def epoch_ended(self, done: int) -> None:
        """Tell, after the first epoch, that no optimizer was stepped in it."""
        self._look_for_gradients()
        if len(self._stepped) == len(self._context.optimizers):
            self.close()
        if self._told or self._stepped or not self._gradients or done < self._frequency:
            return
        if any(self._context.asked_to_step(optimizer) for optimizer in self._context.optimizers):
            return
        self._told = True
        if len(self._unstepped()) == len(self._context.optimizers):
            self._warn(
                f"{self._nothing(done)} Where one step is to come of more batches, all is well; otherwise {_REMEDY}."
            )

    def training_ended(self, done: int, epoch_length: int) -> None:
        """Tell which optimizers were never stepped.

        Raises
        ------
        TrialDefinitionError
            If none was in a whole epoch and more, though gradients were computed.
        """
        self._look_for_gradients()
        optimizers = self._context.optimizers
        unstepped = self._unstepped()
        if self._begun_at or not done or not unstepped:
            return
        if any(self._context.asked_to_step(optimizer) for optimizer in unstepped):
            if done < self._frequency:
                self._warn(
                    f"optimizations.aggregation_frequency = {self._frequency} makes one step of as many batches, and "
                    f"the training has {done}: no weight has changed. Lower it, or train longer."
                )
            return  # or a scaler has skipped every step, for gradients that were too large
        if len(unstepped) < len(optimizers):
            names = ", ".join(self._named(optimizer) for optimizer in unstepped)
            verb, whose = ("was", "its") if len(unstepped) == 1 else ("were", "their")
            self._warn(
                f"{names} of {len(optimizers)} {verb} never stepped, and {whose} weights are what they were before the "
                f"training: {_REMEDY}."
            )
        elif self._gradients and done >= epoch_length:
            raise TrialDefinitionError(f"{self._nothing(done)} So nothing was trained: {_REMEDY}.")
        elif not self._told:
            self._warn(f"{self._nothing(done)} If it is to train, {_REMEDY}.")

    def _note(self, optimizer: torch.optim.Optimizer, arguments: Any, named: Any) -> None:
        self._stepped.add(id(optimizer))

    def _look_for_gradients(self) -> None:
        self._gradients = (
            self._gradients
            or self._context.computes_gradients
            or any(parameter.grad is not None for each in self._context.optimizers for parameter in parameters_of(each))
        )

    def _unstepped(self) -> Sequence[torch.optim.Optimizer]:
        """Return the optimizers that were not stepped, and whose weights are what they were."""
        return [
            optimizer
            for optimizer, before in zip(self._context.optimizers, self._before, strict=True)
            if id(optimizer) not in self._stepped and before is not None and _sums(optimizer) == before
        ]

    def _nothing(self, done: int) -> str:
        batches = "1 batch" if done == 1 else f"{done:,} batches"
        return f"{self._trainer} has stepped no optimizer in {batches}, and the weights are what they were at first."

    def _named(self, optimizer: torch.optim.Optimizer) -> str:
        place = next(index for index, each in enumerate(self._context.optimizers, 1) if each is optimizer)
        return f"{type(optimizer).__name__}, optimizer {place}"

    def _warn(self, text: str) -> None:
        if not self._quiet:
            logger.warning("%s", text)


_REMEDY = "call context.step_optimizer(optimizer) for each optimizer, after context.backward(loss)"


def _sums(optimizer: torch.optim.Optimizer) -> list[complex] | None:
    """Return a number for each parameter, by which a change shows; None where that cannot be told."""
    parameters = parameters_of(optimizer)
    if any(torch.nn.parameter.is_lazy(parameter) for parameter in parameters):
        return None
    try:
        with torch.no_grad():
            sums = [_local(parameter).sum().to("cpu", torch.complex128) for parameter in parameters]
        return torch.stack(sums).tolist() if sums else []
    except (RuntimeError, TypeError):  # sparse ones, say
        return None


def _local(parameter: torch.Tensor) -> torch.Tensor:
    """Return what this rank has of a parameter."""
    part = getattr(parameter, "to_local", None)
    return part() if part is not None else parameter.detach()
