"""Means of gradients over the ranks of a trial, made while backward runs; the user's loop asks for nothing.

Neither the user's modules are wrapped nor his optimizers: hooks on the parameters see when a gradient is complete, and
the pass itself ends with the means. Whatever looks at gradients after ``loss.backward()`` (clipping, a scaler, a step)
sees what one process with the batches of all ranks would have.

* A gradient that holds the means of earlier passes is the same on every rank. So the mean of all that is in it is the
  old one and the mean of what was added, and gradients that are averaged again stay what they are. Several passes for a
  step need no books.
* Each optimizer has buckets of its own and a line of its own to the other ranks, and begins the exchange of its buckets
  in their order: ranks whose backward takes another course (a layer unused here, used there) still meet in the same
  order. Parameters of models that no optimizer has are a group of their own.
* At the end of a pass the ranks agree which optimizers' gradients were added to on any of them, see `Agreement`; only
  those are exchanged.
* The last bucket waits for the end of the pass. With it goes, for each parameter, whether this rank has a gradient, and
  whether a gradient was added to that was being exchanged already. If one was, on any rank, all buckets are exchanged
  again, and from then on only at the end: what is right first, what is quick second.
* Gradients that came about without such a pass (``parameter.grad = torch.autograd.grad(...)``) are averaged when they
  are stepped with.
* A loss that a closure returns to its optimizer is the mean over the ranks, so that all decide alike by it.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.autograd import Variable

from det_harness.frameworks.torch.gradients.agreement import Agreement, Doing
from det_harness.frameworks.torch.gradients.members import Hook, MemberGradients
from det_harness.frameworks.torch.gradients.wire import Wire
from det_native.pytorch.gradients import Gradients
from det_native.pytorch.stepping import parameters_of

logger = logging.getLogger("det_harness")

PARTED = (
    "The weights of the trial's slots have parted: its code has changed weights or gradients by itself, in another way "
    "on each slot. Those of the first slot count. Gradients are averaged by backward(), and where they were assigned "
    "(parameter.grad = ...) by the step; what is written into them after that (parameter.grad.copy_()) is not."
)


class GroupGradients(Gradients):
    """Averages the gradients of a trial's models, which every rank has whole.

    Parameters
    ----------
    compress : bool
        Exchange float32 and float64 as float16.
    """

    def __init__(self, size: int, wire: Wire, *, compress: bool = False) -> None:
        self._size = size
        self._wire = wire
        self._compress = compress
        self._passes: dict[int, int] = {}  # by id of the optimizer
        self._active = True
        self._members: list[MemberGradients] = []
        self._agreement: Agreement | None = None
        self._means: dict[int, weakref.ref[torch.Tensor]] = {}  # by id of the parameter
        self._task = -1
        self._begins: Callable[[], None] | None = None
        self._ends: Callable[[], None] | None = None

    def watch(self, optimizer: torch.optim.Optimizer, backward_passes: int) -> None:
        """Note how many passes complete a gradient."""
        self._passes[id(optimizer)] = backward_passes

    @contextmanager
    def averaged_by_hooks(
        self,
        models: Sequence[torch.nn.Module],
        optimizers: Sequence[torch.optim.Optimizer],
        begins: Callable[[], None] | None = None,
        ends: Callable[[], None] | None = None,
    ) -> Iterator[None]:
        """Let backward end with the means, in the block; a collective call, at both ends of the block.

        Raises
        ------
        TrialDefinitionError
            In the block, from backward or a step, or at its end: if another rank goes another way.
        RankLostError
            Likewise, if another rank is gone.
        """
        self._begins, self._ends = begins, ends
        of_optimizers = {id(one) for made in optimizers for group in made.param_groups for one in group["params"]}
        others = {
            id(one): one
            for model in models
            for one in model.parameters()
            if one.requires_grad and id(one) not in of_optimizers
        }
        hooks: list[Any] = []
        try:
            self._add(lambda: others.values(), 1)
            for optimizer in optimizers:
                self._add(partial(parameters_of, optimizer), self._passes.get(id(optimizer), 1))
                hooks.append(optimizer.register_step_pre_hook(self._before_step))
            self._agreement = agreement = Agreement(self._size, self._wire.open(), len(self._members))
            yield
            if not agreement.are_alike(optimizers):
                logger.warning(PARTED)
        finally:
            for hook in hooks:
                hook.remove()
            for member in self._members:
                member.close()
            self._members, self._means = [], {}
            self._agreement = self._begins = self._ends = None

    def enter_batch(self, *, stepped: bool) -> None:
        """Note whether the gradients of this batch are exchanged."""
        self._active = stepped

    def next_batch(self) -> None:
        """Note that a batch begins."""
        if self._agreement is not None:
            self._agreement.batches += 1

    def wait(self, optimizer: torch.optim.Optimizer) -> None:
        """Return when the gradients of the optimizer's parameters are the means over the ranks.

        Raises
        ------
        RankLostError
            If another rank is gone.
        TrialDefinitionError
            If another rank goes another way.
        """
        agreement = self._agreement
        if agreement is None:
            return
        if any(member.touched or member.passes for member in self._members) or self._has_own(optimizer):
            agreement.meet(Doing.STEP)
            self._reduce(self._members)

    def _add(self, parameters: Callable[[], Any], passes: int) -> None:
        made = MemberGradients(
            parameters,
            passes,
            self._size,
            self._members,
            self._wire,
            compress=self._compress,
            hook_of=self._hook_of,
        )
        self._members.append(made)

    # -- during backward

    def _hook_of(self, member: MemberGradients, key: int) -> Hook:
        def added(parameter: torch.Tensor) -> None:
            task = torch._C._current_graph_task_id()
            if task != self._task:
                self._enter_pass(task)
            if self._active:
                member.added(key)
            else:
                member.touched = True

        return added

    def _enter_pass(self, task: int) -> None:
        """Note that a pass has come to its first gradient (or back to its own, from one within it)."""
        if self._begins is not None:
            self._begins()
        self._task = task
        Variable._execution_engine.queue_callback(self._after_backward)

    def _after_backward(self) -> None:
        self._task = -1
        touched = [member.touched for member in self._members]
        if not self._active or not any(touched):
            return
        assert self._agreement is not None  # the hooks are there as long as it is
        met = self._agreement.begin(Doing.BACKWARD, touched)
        for member in self._members:
            if member.touched and member.passes + 1 >= member.backward_passes:
                member.begin()  # meanwhile: it will be due on all ranks
        due = []
        for member, anywhere in zip(self._members, met()[0], strict=True):
            member.touched = False
            member.passes += anywhere
            if member.passes and member.passes >= member.backward_passes:
                due.append(member)
        self._reduce(due)
        if self._ends is not None:
            self._ends()

    def _reduce(self, members: Sequence[MemberGradients]) -> None:
        for member in members:
            for parameter in member.reduce():
                gradient, known = parameter.grad, self._means.get(id(parameter))
                if gradient is not None and (known is None or known() is not gradient):
                    self._means[id(parameter)] = weakref.ref(gradient)

    # -- before a step

    def _before_step(
        self, optimizer: torch.optim.Optimizer, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        assert self._agreement is not None
        self._agreement.steps += 1
        closure = arguments[1] if len(arguments) > 1 else named.get("closure")  # the first one is the optimizer
        if closure is None:
            self.wait(optimizer)
            return None
        if not callable(closure):
            return None

        def averaged() -> Any:
            loss = closure()
            self.wait(optimizer)
            return self._mean(loss)

        if len(arguments) > 1:
            return (arguments[0], averaged, *arguments[2:]), named
        return arguments, {**named, "closure": averaged}

    def _has_own(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether a gradient is there that no exchange has left."""
        means = self._means
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is not None:
                    known = means.get(id(parameter))
                    if known is None or known() is not gradient:
                        return True
        return False

    def _mean(self, loss: Any) -> Any:
        is_tensor = isinstance(loss, torch.Tensor) and loss.numel() == 1
        if not is_tensor and not isinstance(loss, int | float):
            return loss
        assert self._agreement is not None
        mean = self._agreement.meet(Doing.CLOSURE, value=float(loss))[1]
        return torch.full_like(loss.detach(), mean) if is_tensor else mean
