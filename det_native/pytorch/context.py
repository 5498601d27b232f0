"""What a PyTorchTrial asks of its surroundings: wraps models and optimizers, runs backward and optimizer steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from det_native.errors import ArgumentError, TrialDefinitionError, UnsupportedFeatureError
from det_native.pytorch.data import to_device
from det_native.pytorch.lr_scheduler import LRScheduler
from det_native.schema.environment import TrialEnvironment
from det_native.trial import TrialContext

ClipGradients = Callable[[list[torch.nn.Parameter]], Any]


class PyTorchTrialContext(TrialContext):
    """The context that a :class:`PyTorchTrial` is made with.

    Attributes
    ----------
    models : list of torch.nn.Module
        The wrapped models, in the order in which they were wrapped.
    optimizers : list of torch.optim.Optimizer
        The wrapped optimizers, likewise.
    lr_schedulers : list of LRScheduler
        The wrapped schedulers with their step modes.
    device : torch.device
        Where models and batches are.
    """

    def __init__(self, environment: TrialEnvironment) -> None:
        super().__init__(environment)
        self.models: list[torch.nn.Module] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        self.lr_schedulers: list[LRScheduler] = []
        on_gpu = environment.managed and torch.cuda.is_available()
        self.device = torch.device("cuda", environment.ranks.local_rank) if on_gpu else torch.device("cpu")
        optimizations = environment.config.get("optimizations") or {}
        self._aggregation_frequency = int(optimizations.get("aggregation_frequency", 1))
        self._average_gradients = bool(optimizations.get("average_aggregated_gradients", True))
        self._passes: dict[int, int] = {}
        self._stepped: set[int] = set()
        self._batch_index: int | None = None
        self._epoch_length: int | None = None

    def wrap_model(self, model: torch.nn.Module) -> torch.nn.Module:
        """Make the trial train and checkpoint `model`; returns it, moved to the trial's device.

        Raises
        ------
        ArgumentError
            If `model` is not a module, or was wrapped before.
        """
        if not isinstance(model, torch.nn.Module):
            raise ArgumentError(f"wrap_model() takes a torch.nn.Module, not {type(model).__name__}.")
        if any(model is known for known in self.models):
            raise ArgumentError(f"This {type(model).__name__} is wrapped already; call wrap_model() once per model.")
        model.to(self.device)
        self.models.append(model)
        return model

    def wrap_optimizer(
        self, optimizer: torch.optim.Optimizer, backward_passes_per_step: int = 1
    ) -> torch.optim.Optimizer:
        """Make the trial checkpoint `optimizer`, and let ``step_optimizer`` step it; returns it.

        Parameters
        ----------
        optimizer : torch.optim.Optimizer
            An optimizer over parameters of wrapped models.
        backward_passes_per_step : int
            Calls of ``backward`` in one ``train_batch`` that add to the gradients of one step.

        Raises
        ------
        ArgumentError
            If `optimizer` is not an optimizer or was wrapped before, or the passes are under 1.
        """
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise ArgumentError(f"wrap_optimizer() takes a torch.optim.Optimizer, not {type(optimizer).__name__}.")
        if any(optimizer is known for known in self.optimizers):
            raise ArgumentError(
                f"This {type(optimizer).__name__} is wrapped already; call wrap_optimizer() once for it."
            )
        if isinstance(backward_passes_per_step, bool) or backward_passes_per_step < 1:
            raise ArgumentError(f"backward_passes_per_step must be at least 1, not {backward_passes_per_step!r}.")
        self.optimizers.append(optimizer)
        self._passes[id(optimizer)] = backward_passes_per_step
        return optimizer

    def wrap_lr_scheduler(self, lr_scheduler: Any, step_mode: LRScheduler.StepMode) -> Any:
        """Make the trial step and checkpoint `lr_scheduler`; returns it.

        Raises
        ------
        ArgumentError
            If its optimizer is not wrapped, or `step_mode` does not fit.
        """
        if isinstance(lr_scheduler, LRScheduler):
            lr_scheduler = lr_scheduler.scheduler
        optimizer = getattr(lr_scheduler, "optimizer", None)
        if not any(optimizer is known for known in self.optimizers):
            raise ArgumentError(
                f"The optimizer of this {type(lr_scheduler).__name__} is not wrapped: make the scheduler with the "
                "optimizer that context.wrap_optimizer() returned."
            )
        self.lr_schedulers.append(LRScheduler(lr_scheduler, step_mode))
        return lr_scheduler

    def get_optimizer(self, index: int = 0) -> torch.optim.Optimizer:
        """Return a wrapped optimizer by its place in the order of wrapping.

        Raises
        ------
        ArgumentError
            If there are not that many.
        """
        if not -len(self.optimizers) <= index < len(self.optimizers):
            raise ArgumentError(f"There is no optimizer {index}: {len(self.optimizers)} are wrapped.")
        return self.optimizers[index]

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Compute the gradients of `loss`; the arguments are those of ``torch.Tensor.backward``."""
        loss.backward(gradient, retain_graph or create_graph, create_graph)  # type: ignore[no-untyped-call]

    def step_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: ClipGradients | None = None,
        auto_zero_grads: bool = True,
        *,
        backward_passes_per_step: int | None = None,
    ) -> None:
        """Step `optimizer`, then zero its gradients; once per optimizer and batch.

        With ``optimizations.aggregation_frequency`` = k > 1 the gradients of k batches are gathered (and averaged,
        unless ``average_aggregated_gradients`` is off), and the step happens at every k-th batch.

        Parameters
        ----------
        optimizer : torch.optim.Optimizer
            A wrapped optimizer.
        clip_grads : callable, optional
            Called with the list of the optimizer's parameters just before the step.
        auto_zero_grads : bool
            Zero the gradients after the step; must be True when gradients are aggregated.
        backward_passes_per_step : int, optional
            Accepted for older code; must be what ``wrap_optimizer`` was told.

        Raises
        ------
        ArgumentError
            If the optimizer is not wrapped or arguments contradict each other.
        TrialDefinitionError
            If no gradient was computed before the first step.
        """
        if id(optimizer) not in self._stepped:
            self._check_first_step(optimizer, auto_zero_grads)
        if backward_passes_per_step is not None:
            self._check_passes(optimizer, backward_passes_per_step)
        frequency = self._aggregation_frequency
        if frequency > 1:
            if not auto_zero_grads:
                raise ArgumentError(self._kept_gradients())
            if self._batch_index is not None and (self._batch_index + 1) % frequency != 0:
                return
            if self._average_gradients:
                _divide_gradients(optimizer, frequency)
        if clip_grads is not None:
            clip_grads(_parameters(optimizer))
        optimizer.step()
        if auto_zero_grads:
            optimizer.zero_grad()

    def to_device(self, data: Any) -> Any:
        """Move the arrays and tensors of `data`, in any nesting, to the trial's device."""
        return to_device(data, self.device)

    def is_epoch_start(self) -> bool:
        """Return whether the current batch is the first of its epoch.

        Raises
        ------
        TrialDefinitionError
            Before training.
        """
        batch, length = self._place("is_epoch_start")
        return batch % length == 0

    def is_epoch_end(self) -> bool:
        """Return whether the current batch is the last of its epoch.

        Raises
        ------
        TrialDefinitionError
            Before training.
        """
        batch, length = self._place("is_epoch_end")
        return batch % length == length - 1

    def configure_apex_amp(self, *arguments: Any, **keywords: Any) -> Any:
        """Refused for now: mixed precision by this call comes with a later version.

        Raises
        ------
        UnsupportedFeatureError
        """
        raise UnsupportedFeatureError(
            "context.configure_apex_amp() comes with a later version of det_native. Until then, use torch.autocast in "
            "train_batch()."
        )

    def enter_batch(self, batch_index: int) -> None:
        """Say which batch, counted from 0, is being trained (for controllers)."""
        self._batch_index = batch_index

    def set_epoch_length(self, batches: int) -> None:
        """Say how many batches an epoch has (for controllers)."""
        self._epoch_length = batches

    def _place(self, method: str) -> tuple[int, int]:
        if self._batch_index is None or self._epoch_length is None:
            raise TrialDefinitionError(f"context.{method}() has a meaning in train_batch() only, not before training.")
        return self._batch_index, self._epoch_length

    def _check_first_step(self, optimizer: torch.optim.Optimizer, auto_zero_grads: bool) -> None:
        if id(optimizer) not in self._passes:
            raise ArgumentError(
                f"step_optimizer() was given a {type(optimizer).__name__} that is not wrapped: pass the optimizer that "
                "context.wrap_optimizer() returned."
            )
        if self._aggregation_frequency > 1 and not auto_zero_grads:
            raise ArgumentError(self._kept_gradients())
        if all(parameter.grad is None for parameter in _parameters(optimizer)):
            raise TrialDefinitionError(
                f"step_optimizer() was called for {type(optimizer).__name__} before any gradient of its parameters was "
                "computed: call context.backward(loss) first."
            )
        self._stepped.add(id(optimizer))

    def _check_passes(self, optimizer: torch.optim.Optimizer, passes: int) -> None:
        told = self._passes[id(optimizer)]
        if passes != told:
            raise ArgumentError(
                f"step_optimizer(backward_passes_per_step={passes}) contradicts "
                f"wrap_optimizer(backward_passes_per_step={told}): set it in wrap_optimizer() only."
            )

    def _kept_gradients(self) -> str:
        return (
            "step_optimizer(auto_zero_grads=False) contradicts optimizations.aggregation_frequency = "
            f"{self._aggregation_frequency}, which keeps and zeroes gradients itself: leave auto_zero_grads at True, "
            "or set the frequency to 1."
        )


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _divide_gradients(optimizer: torch.optim.Optimizer, divisor: int) -> None:
    for parameter in _parameters(optimizer):
        if parameter.grad is not None:
            parameter.grad.div_(divisor)
