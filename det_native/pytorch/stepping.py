"""The rule by which a batch's gradients become a step of an optimizer; and who is told of the steps it makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakMethod

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from det_native.errors import ArgumentError, TrialDefinitionError, UnsupportedFeatureError
from det_native.pytorch.gradients import Gradients, LocalGradients

if TYPE_CHECKING:
    from det_native.pytorch.amp import MixedPrecision

ClipGradients = Callable[[Any], Any]

SHARDED = (
    "distributed.strategy: fsdp works for a PyTorchTrial class, which makes its optimizers after its models are "
    "wrapped: train one with det.experimental.create(), or leave the field out."
)


class OptimizerSteps:
    """Steps the optimizers of one trial.

    At a batch that is stepped (every batch, or every k-th one with ``aggregation_frequency`` k): gradients are awaited
    from the other ranks, divided by k if they are to be averaged, unscaled, shown to hooks, clipped, stepped, zeroed.

    Parameters
    ----------
    frequency : int
        ``optimizations.aggregation_frequency``.
    average : bool
        ``optimizations.average_aggregated_gradients``.
    owner : str
        Name of the user's class, for messages.

    Attributes
    ----------
    hooks : sequence of callables
        Called with an iterator over the parameters before each step.
    amp : MixedPrecision or None
        What ``configure_apex_amp`` set up.
    aggregates : bool
        Whether the gradients of several batches make a step, so that batches have to be announced.
    simple : set of int
        The ``id()`` of each optimizer that was stepped before, and needs nothing but its step and zeroing.
    """

    def __init__(self, frequency: int, *, average: bool, gradients: Gradients, owner: str) -> None:
        self.hooks: tuple[Callable[[Iterator[torch.nn.Parameter]], Any], ...] = ()
        self.amp: MixedPrecision | None = None
        self.aggregates = frequency > 1
        self._frequency = frequency
        self._average = average
        self._gradients = gradients
        self._trainer = f"{owner}.train_batch()"
        self._passes: dict[int, int] = {}
        self._checked: set[int] = set()
        self._asked: set[int] = set()
        self.simple: set[int] = set()
        self._stepped_batch = True

    @property
    def sharded(self) -> bool:
        """Whether each rank has a part of every model only."""
        return self._gradients.sharded

    def prepare(self, model: torch.nn.Module) -> None:
        """Make of a model what is trained, in place."""
        self._gradients.prepare(model)

    def add(self, optimizer: torch.optim.Optimizer, passes: int) -> None:
        """Take in a wrapped optimizer."""
        self._passes[id(optimizer)] = passes
        self._gradients.watch(optimizer, passes)

    def join(self, optimizers: Iterable[torch.optim.Optimizer], gradients: Gradients, trainer: str) -> None:
        """Exchange gradients by other means from now on; `trainer` is what trains on a batch, for messages.

        Raises
        ------
        UnsupportedFeatureError
            If they need models that were sharded before their optimizers were made.
        """
        if gradients.sharded:
            raise UnsupportedFeatureError(SHARDED)
        self._gradients, self._trainer = gradients, trainer
        self.simple.clear()
        for optimizer in optimizers:
            gradients.watch(optimizer, self._passes[id(optimizer)])

    def enter_batch(self, batch: int) -> None:
        """Say which batch, counted from 0, begins; to be called where gradients are aggregated."""
        self._stepped_batch = (batch + 1) % self._frequency == 0
        self._gradients.enter_batch(stepped=self._stepped_batch)

    def asked(self, optimizer: torch.optim.Optimizer) -> bool:
        """Return whether a step of an optimizer was asked for; it may have been left out, as in mixed precision."""
        return id(optimizer) in self._asked

    def step(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: ClipGradients | None,
        auto_zero_grads: bool,
        scaler: Any,
        passes: int | None,
    ) -> None:
        """Step an optimizer, if this batch is one that is stepped."""
        if id(optimizer) not in self._passes:
            raise ArgumentError(self._not_wrapped(optimizer))
        self._asked.add(id(optimizer))
        if passes is not None:
            self._check_passes(optimizer, passes)
        if clip_grads is not None and not callable(clip_grads):
            raise ArgumentError(
                f"{self._trainer} gave step_optimizer() clip_grads={clip_grads!r}, which is no function: pass one that "
                "clips, lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 1.0)."
            )
        aggregates = self.aggregates
        if aggregates:
            if not auto_zero_grads:
                raise ArgumentError(self._kept_gradients())
            if not self._stepped_batch:
                return
        self._gradients.wait(optimizer)
        if id(optimizer) not in self._checked:
            self._check_first(optimizer)
        if aggregates and self._average:
            _divide_gradients(optimizer, self._frequency)
        amp = self.amp
        if amp is None and scaler is None and not self.hooks:
            if clip_grads is not None:
                clip_grads(parameters_of(optimizer))
            optimizer.step()
        else:
            self._step_shown(optimizer, clip_grads, scaler, amp)
        if auto_zero_grads:
            optimizer.zero_grad()

    @contextmanager
    def watched(self, optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[None]:
        """Refuse, in the block, steps without a closure of optimizers that need one."""
        needing = [each for each in optimizers if _needs_closure(each)]
        hooks = [optimizer.register_step_pre_hook(self._refuse_without_closure) for optimizer in needing]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _refuse_without_closure(
        self, optimizer: torch.optim.Optimizer, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        given = arguments[1] if len(arguments) > 1 else named.get("closure")  # the first one is the optimizer
        if given is None:
            name = type(optimizer).__name__
            raise TrialDefinitionError(
                f"{self._trainer} stepped {name}, whose step() needs a closure that computes the loss again, without "
                f"one: call {name}.step(closure) instead of context.step_optimizer(), with backward in the closure."
            )

    def _step_shown(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: ClipGradients | None,
        scaler: Any,
        amp: MixedPrecision | None,
    ) -> None:
        """Step with a scaled loss, or with hooks: both want to see the gradients as they are without the scale."""
        from det_native.pytorch.amp import unscale_once

        if amp is not None and scaler is not None:
            raise ArgumentError(
                f"{self._trainer} gave step_optimizer() a scaler, but configure_apex_amp() scales the "
                "losses already: leave out scaler=, or configure_apex_amp()."
            )
        if amp is not None:
            amp.unscale(optimizer)
        elif scaler is not None and (clip_grads is not None or self.hooks):
            unscale_once(scaler, optimizer)
        for hook in self.hooks:
            hook(iter(parameters_of(optimizer)))
        if clip_grads is not None:
            clip_grads(parameters_of(optimizer))
        if amp is not None:
            amp.step(optimizer)
        elif scaler is not None:
            scaler.step(optimizer)
        else:
            optimizer.step()

    def _check_first(self, optimizer: torch.optim.Optimizer) -> None:
        if all(parameter.grad is None for parameter in parameters_of(optimizer)):
            raise TrialDefinitionError(
                f"{self._trainer} called step_optimizer() for {type(optimizer).__name__} before any "
                "gradient of its parameters was computed: call context.backward(loss) first."
            )
        self._checked.add(id(optimizer))
        if isinstance(self._gradients, LocalGradients) and not self.aggregates and not self.hooks and self.amp is None:
            self.simple.add(id(optimizer))

    def _not_wrapped(self, optimizer: torch.optim.Optimizer) -> str:
        return (
            f"{self._trainer} gave step_optimizer() a {type(optimizer).__name__} that is not wrapped: "
            "pass the optimizer that context.wrap_optimizer() returned."
        )

    def _check_passes(self, optimizer: torch.optim.Optimizer, passes: int) -> None:
        if not isinstance(passes, int) or isinstance(passes, bool) or passes < 1:
            raise ArgumentError(
                f"{self._trainer} called step_optimizer(backward_passes_per_step={passes!r}), which takes a number of "
                "backward passes, 1 or more."
            )
        declared = self._passes[id(optimizer)]
        # Where nothing was declared, gradients are exchanged after each pass, which is right for any number of them.
        if passes != declared and declared > 1:
            raise ArgumentError(
                f"{self._trainer} called step_optimizer(backward_passes_per_step={passes}), which "
                f"contradicts wrap_optimizer(backward_passes_per_step={declared}): set it in wrap_optimizer() only."
            )

    def _kept_gradients(self) -> str:
        return (
            f"{self._trainer} called step_optimizer(auto_zero_grads=False), which contradicts "
            f"optimizations.aggregation_frequency = {self._frequency}, that keeps and zeroes gradients itself: leave "
            "auto_zero_grads at True, or set the frequency to 1."
        )


def _needs_closure(optimizer: torch.optim.Optimizer) -> bool:
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


def parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    """Return the parameters of all groups of an optimizer."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _divide_gradients(optimizer: torch.optim.Optimizer, divisor: int) -> None:
    for parameter in parameters_of(optimizer):
        if parameter.grad is not None:
            parameter.grad.div_(divisor)


_watched: WeakKeyDictionary[Optimizer, WeakMethod[Callable[[Optimizer], None]]] = WeakKeyDictionary()
_hooks: list[Any] = []


def watch_steps(optimizer: Optimizer, tell: Callable[[Optimizer], None]) -> None:
    """Have a method called before each step of an optimizer, as long as its object lives.

    Parameters
    ----------
    tell : callable
        A bound method, which is given the optimizer.
    """
    if not _hooks:
        _hooks.append(register_optimizer_step_pre_hook(_before_step))
    _watched[optimizer] = WeakMethod(tell)


def _before_step(optimizer: Optimizer, *arguments: Any) -> None:
    method = _watched.get(optimizer)
    tell = method() if method is not None else None
    if tell is not None:
        tell(optimizer)
