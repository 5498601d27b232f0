"""Mixed precision: what ``configure_apex_amp`` asks for, done with ``torch.autocast`` and ``torch.amp.GradScaler``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch

from det_native.errors import ArgumentError
from det_native.pytorch.amp_levels import AmpSettings
from det_native.pytorch.amp_models import cast_model

logger = logging.getLogger("det_native")

_NEVER = 2**31 - 1


class MixedPrecision:
    """Casts, scales and steps for one trial, as its settings say.

    With one loss scale, losses are scaled, gradients are unscaled when their optimizer is stepped, and the scale is
    updated at the end of a batch with a step: torch's own recipe. With several, the n-th backward of a batch has the
    n-th scale; its gradients are unscaled at once, before they are added to those of the other losses.

    Parameters
    ----------
    settings : AmpSettings
    device : torch.device
    models : sequence of modules
        Whose forwards or weights are cast.
    optimizers : callable
        Returns the trial's wrapped optimizers.

    Attributes
    ----------
    scalers : list of torch.amp.GradScaler
        One for each loss scale; none where losses are not scaled. Their state belongs into checkpoints.
    """

    def __init__(
        self,
        settings: AmpSettings,
        device: torch.device,
        models: Sequence[torch.nn.Module],
        optimizers: Callable[[], Sequence[torch.optim.Optimizer]],
    ) -> None:
        self._settings = settings
        self._device = device.type
        self._optimizers = optimizers
        self._backwards = 0
        self._stepped = False
        self._probe: torch.optim.Optimizer | None = None
        self.scalers = [self._scaler() for _ in range(settings.num_losses)] if settings.loss_scale != 1.0 else []
        # Where gradients are unscaled loss by loss, what is left for a step is to leave it out if one overflowed.
        self._guard = torch.amp.GradScaler(self._device, init_scale=1.0, growth_interval=_NEVER)
        self._guard.scale(torch.ones((), device=device))  # a scaler takes up its device with what it scales first
        for model in models:
            cast_model(model, settings, self._device)

    def around_training(self, train_batch: Callable[..., Any]) -> Callable[..., Any]:
        """Return a ``train_batch`` that runs under these settings."""

        def run(batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            self._backwards = 0
            with self._autocast():
                metrics = train_batch(batch, epoch_idx, batch_idx)
            self._end_batch()
            return metrics

        return run

    def around_evaluation(self, evaluate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return an evaluation method that runs under these settings."""

        def run(data: Any) -> Any:
            with self._autocast():
                return evaluate(data)

        return run

    def backward(self, loss: torch.Tensor, run: Callable[[torch.Tensor], None]) -> None:
        """Scale a loss and run its backward pass.

        Parameters
        ----------
        loss : torch.Tensor
        run : callable
            Runs backward on the scaled loss.
        """
        with torch.autocast(self._device, enabled=False):
            if len(self.scalers) <= 1:
                run(self.scalers[0].scale(loss) if self.scalers else loss)
            else:
                self._backward_alone(loss, run)

    def unscale(self, optimizer: torch.optim.Optimizer) -> None:
        """Take the scale out of the gradients of an optimizer, and note whether they are finite."""
        if self.scalers:
            unscale_once(self.scalers[0] if len(self.scalers) == 1 else self._guard, optimizer)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Step, unless a gradient has overflowed."""
        with torch.autocast(self._device, enabled=False):
            if not self.scalers:
                optimizer.step()
            elif len(self.scalers) == 1:
                self.scalers[0].step(optimizer)
            else:
                self._guard.step(optimizer)
        self._stepped = True
        # Autocast keeps the weights that it has cast; a forward after this step needs the new ones.
        torch.clear_autocast_cache()

    def _autocast(self) -> torch.autocast:
        settings = self._settings
        return torch.autocast(self._device, dtype=settings.cast_type, enabled=settings.autocast_everywhere)

    def _backward_alone(self, loss: torch.Tensor, run: Callable[[torch.Tensor], None]) -> None:
        if self._backwards >= len(self.scalers):
            raise ArgumentError(
                f"This is backward number {self._backwards + 1} of the batch, but configure_apex_amp() was told "
                f"num_losses={len(self.scalers)}: raise num_losses, or leave it at 1 for one scale for all losses."
            )
        scaler = self.scalers[self._backwards]
        self._backwards += 1
        if self._probe is None:
            unique = {id(p): p for o in self._optimizers() for group in o.param_groups for p in group["params"]}
            self._probe = torch.optim.SGD(unique.values(), lr=0.0)
        parameters = self._probe.param_groups[0]["params"]
        others = [parameter.grad for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        run(scaler.scale(loss))
        if any(parameter.grad is not None for parameter in parameters):
            scaler.unscale_(self._probe)
            self._update(scaler)
        for parameter, other in zip(parameters, others, strict=True):
            if other is not None:
                parameter.grad = other if parameter.grad is None else other.add_(parameter.grad)

    def _end_batch(self) -> None:
        if not self._stepped:
            return
        self._stepped = False
        if len(self.scalers) == 1:
            self._update(self.scalers[0])
        elif self.scalers:
            self._guard.update(1.0)

    def _update(self, scaler: torch.amp.GradScaler) -> None:
        settings = self._settings
        if settings.loss_scale != "dynamic":
            scaler.update(settings.loss_scale)
            return
        scaler.update()
        scale = scaler.get_scale()
        if settings.min_loss_scale is not None and scale < settings.min_loss_scale:
            scaler.update(float(settings.min_loss_scale))
        elif settings.max_loss_scale is not None and scale > settings.max_loss_scale:
            scaler.update(float(settings.max_loss_scale))

    def _scaler(self) -> torch.amp.GradScaler:
        settings = self._settings
        if settings.loss_scale != "dynamic":
            return torch.amp.GradScaler(self._device, init_scale=settings.loss_scale, growth_interval=_NEVER)
        first = min(2.0**16, settings.max_loss_scale or 2.0**16)
        return torch.amp.GradScaler(self._device, init_scale=max(first, settings.min_loss_scale or first))


def unscale_once(scaler: Any, optimizer: torch.optim.Optimizer) -> None:
    """Unscale the gradients of an optimizer, unless the user's code has done so since the last step."""
    try:
        scaler.unscale_(optimizer)
    except RuntimeError as error:
        if "has already been called" not in str(error):
            raise


def listed(given: Any) -> list[Any]:
    """Return one object, or a list or tuple of them, as a list."""
    return list(given) if isinstance(given, list | tuple) else [given]


def check_wrapped(what: str, given: Any, known: list[Any], method: str) -> None:
    """Refuse an argument of ``configure_apex_amp`` that `method` of the context has not wrapped.

    Raises
    ------
    ArgumentError
    """
    for one in listed(given):
        if not any(one is wrapped for wrapped in known):
            raise ArgumentError(
                f"configure_apex_amp({what}=...) was given a {type(one).__name__} that is not wrapped: call "
                f"context.{method} first, and give what it returned, alone or in a list."
            )
