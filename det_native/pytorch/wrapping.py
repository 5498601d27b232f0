"""What ``wrap_model()`` and its like take, and what may be wrong with it; messages say what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from det_native.errors import ArgumentError
from det_native.pytorch.lr_scheduler import LRScheduler


def check_in_time(owner: str, method: str, *, begun: bool) -> None:
    """Refuse a wrapper that is called when the training has `begun`."""
    if begun:
        raise ArgumentError(
            f"{owner}: {method}() was called when the training had begun. Wrap everything before it: a trial that goes "
            "on from a checkpoint restores what is wrapped when it begins."
        )


def check_model(owner: str, model: Any, known: Iterable[torch.nn.Module]) -> None:
    """Refuse what is no module, or was wrapped before."""
    if isinstance(model, type):
        raise ArgumentError(
            f"{owner}: wrap_model() was given the class {model.__name__}: make a model of it, "
            f"wrap_model({model.__name__}(...))."
        )
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"{owner}: wrap_model() takes one torch.nn.Module, not {type(model).__name__}.")
    if is_among(model, known):
        raise ArgumentError(
            f"{owner}: this {type(model).__name__} is wrapped already; call wrap_model() once per model."
        )


def check_optimizer(owner: str, optimizer: Any, known: Iterable[torch.optim.Optimizer], passes: Any) -> None:
    """Refuse what is no optimizer, or was wrapped before, and a senseless number of backward passes."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ArgumentError(
            f"{owner}: wrap_optimizer() takes one torch.optim.Optimizer, not {type(optimizer).__name__}."
        )
    if callable(getattr(optimizer, "skip_synchronize", None)):  # its class has the name of the one inside
        raise ArgumentError(
            f"{owner}: wrap_optimizer() was given a {type(optimizer).__name__} of hvd.DistributedOptimizer(), which "
            "exchanges gradients by itself, after they were clipped: give it the optimizer inside, det_native "
            "exchanges them."
        )
    if is_among(optimizer, known):
        raise ArgumentError(
            f"{owner}: this {type(optimizer).__name__} is wrapped already; call wrap_optimizer() once for it."
        )
    if isinstance(passes, bool) or not isinstance(passes, int) or passes < 1:
        raise ArgumentError(f"{owner}: backward_passes_per_step must be a whole number of at least 1, not {passes!r}.")


def checked_scheduler(
    owner: str,
    scheduler: Any,
    step_mode: LRScheduler.StepMode | None,
    optimizers: Iterable[torch.optim.Optimizer],
    configured: Iterable[torch.optim.Optimizer] | None,
) -> LRScheduler:
    """Return a scheduler of torch's, or one of ours around it, with its step mode.

    Parameters
    ----------
    owner : str
        Who asks, for messages: the user's class.
    scheduler : torch.optim.lr_scheduler.LRScheduler or LRScheduler
    step_mode : LRScheduler.StepMode, optional
        May be left out for one of ours, which says it.
    optimizers : iterable of optimizers
        The wrapped ones.
    configured : iterable of optimizers, optional
        Those of ``configure_apex_amp``, if it was called.

    Raises
    ------
    ArgumentError
        If its optimizer is not among these, or `step_mode` does not fit.
    """
    if isinstance(scheduler, LRScheduler):
        if step_mode not in (None, scheduler.step_mode):
            raise ArgumentError(
                f"{owner}: wrap_lr_scheduler(step_mode={step_mode}) contradicts the scheduler's own "
                f"{scheduler.step_mode}: leave one of them out."
            )
        step_mode, scheduler = scheduler.step_mode, scheduler.scheduler
    optimizer = getattr(scheduler, "optimizer", None)
    if optimizer is None:
        raise ArgumentError(
            f"{owner}: wrap_lr_scheduler() takes a scheduler of torch.optim.lr_scheduler, not "
            f"{type(scheduler).__name__}."
        )
    if not is_among(optimizer, optimizers):
        raise ArgumentError(
            f"{owner}: wrap_lr_scheduler() was given a {type(scheduler).__name__} whose optimizer is not wrapped: make "
            "the scheduler with the optimizer that context.wrap_optimizer() returned."
        )
    if configured is not None and not is_among(optimizer, configured):
        raise ArgumentError(
            f"{owner}: the optimizer of this {type(scheduler).__name__} was not given to configure_apex_amp(): give it "
            "all optimizers, and make schedulers after it."
        )
    return LRScheduler(scheduler, step_mode)


def check_scaler(owner: str, scaler: Any, known: Iterable[Any], *, scaled: bool) -> None:
    """Refuse what is no scaler, was wrapped before, or would scale losses that are `scaled` already."""
    if not all(callable(getattr(scaler, name, None)) for name in ("scale", "step", "update", "state_dict")):
        raise ArgumentError(f"{owner}: wrap_scaler() takes a torch.amp.GradScaler, not {type(scaler).__name__}.")
    if is_among(scaler, known):
        raise ArgumentError(
            f"{owner}: this {type(scaler).__name__} is wrapped already; call wrap_scaler() once for it."
        )
    if scaled:
        raise ArgumentError(f"{owner}: wrap_scaler() and configure_apex_amp() both scale losses: use one of them.")


def foreign_optimizer(
    models: Iterable[torch.nn.Module], optimizers: Sequence[torch.optim.Optimizer]
) -> torch.optim.Optimizer | None:
    """Return the first optimizer with a parameter that belongs to no wrapped model; None if there is none."""
    known = {id(parameter) for model in models for parameter in model.parameters()}
    for optimizer in optimizers:
        if any(id(parameter) not in known for group in optimizer.param_groups for parameter in group["params"]):
            return optimizer
    return None


def is_among(one: Any, others: Iterable[Any]) -> bool:
    """Return whether an object is one of others, itself and not merely equal."""
    return any(one is other for other in others)
