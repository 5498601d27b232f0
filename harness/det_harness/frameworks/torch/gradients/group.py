"""Means of gradients over the ranks of a trial, exchanged while backward is still running.

The users' modules are not wrapped: hooks on the parameters see when a gradient is complete.

* Each optimizer has buckets of its own and a line of its own to the other ranks, and begins the exchange of its buckets
  in their order: ranks whose backward takes another course (a layer unused here, used there) still meet in the same
  order.
* The last bucket waits for ``step_optimizer``. With it goes, for each parameter, whether this rank has a gradient, and
  whether a further backward has added to gradients that were being exchanged already. If one has, on any rank, all
  buckets are exchanged again, and from then on only in ``step_optimizer``: what is right first, what is quick second.
* With it goes, too, whether the batch is an odd one: ranks of which one has left out a batch are told so, before their
  models part.
* Gradients stay this rank's own until the means replace them in ``step_optimizer``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from det_harness.frameworks.torch.gradients.buckets import Bucket, Slot, buckets_of
from det_harness.frameworks.torch.gradients.wire import Line, Wire
from det_harness.ranks.communicator import finish
from det_harness.ranks.deadlock import SAME_CALLS
from det_native.errors import TrialDefinitionError
from det_native.pytorch.gradients import Gradients

_FLAGS = 2  # exchanged with the gradients: whether the batch is an odd one, whether there was a late backward
_OTHER_BATCH = (
    "step_optimizer() met that of another batch on another slot of this trial: one of them has left out a batch. "
    + SAME_CALLS
)


class GroupGradients(Gradients):
    """Exchanges the gradients of a trial's models, which every rank has whole.

    Parameters
    ----------
    size : int
        Ranks.
    wire : Wire
        What the gradients travel by.
    compress : bool
        Exchange float32 and float64 as float16.
    """

    apart = True

    def __init__(self, size: int, wire: Wire, *, compress: bool = False) -> None:
        self._size = size
        self._wire = wire
        self._compress = compress
        self._watched: dict[int, OptimizerGradients] = {}
        self._started = False

    def prepare(self, model: torch.nn.Module) -> None:
        """Leave the model as it is: every rank has all of it."""

    def watch(self, optimizer: torch.optim.Optimizer, backward_passes: int) -> None:
        """Take in an optimizer."""
        before = list(self._watched.values())
        self._watched[id(optimizer)] = one = OptimizerGradients(
            optimizer, backward_passes, self._size, before, self._wire, compress=self._compress
        )
        if self._started:
            one.start()

    def start(self) -> None:
        """Make the lines and buckets; a collective call."""
        self._started = True
        for one in self._watched.values():
            one.start()

    def enter_batch(self, *, stepped: bool) -> None:
        """Note whether the gradients of this batch are exchanged."""
        for one in self._watched.values():
            one.active = stepped

    def next_batch(self) -> None:
        """Note that a batch begins."""
        for one in self._watched.values():
            one.odd = not one.odd

    def wait(self, optimizer: torch.optim.Optimizer) -> None:
        """Return when the gradients of the optimizer's parameters are the mean over the ranks.

        Raises
        ------
        RankLostError
            If another rank is gone.
        TrialDefinitionError
            If another rank steps in another batch.
        """
        one = self._watched[id(optimizer)]
        for owner in one.owners:  # of parameters that this optimizer shares with earlier ones
            owner.reduce()
        one.reduce()


class OptimizerGradients:
    """The gradients of one optimizer's parameters, those left out that an earlier optimizer has too.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
    backward_passes : int
        Passes that complete a gradient, as far as is known.
    size : int
    before : list of OptimizerGradients
        Of the optimizers that were wrapped before.
    wire : Wire
    compress : bool

    Attributes
    ----------
    active : bool
        Whether gradients of the present batch are exchanged.
    odd : bool
        Whether an odd number of batches has begun.
    owners : list of OptimizerGradients
        Those that exchange parameters of this optimizer.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        backward_passes: int,
        size: int,
        before: list[OptimizerGradients],
        wire: Wire,
        *,
        compress: bool,
    ) -> None:
        self.active = True
        self.odd = False
        self.owners: list[OptimizerGradients] = []
        self._optimizer = optimizer
        self._passes = backward_passes
        self._size = size
        self._before = before
        self._compress = compress
        self._wire = wire
        self._line: Line
        self._slots: dict[int, Slot] = {}  # by id of the parameter
        self._outside: list[torch.nn.Parameter] = []  # frozen so far
        self._known = -1
        self._hooked: set[int] = set()
        self._buckets: list[Bucket] = []
        self._begun = 0
        self._early = True
        self._added_late = False

    def start(self) -> None:
        """Make the line and the buckets; a collective call."""
        self._line = self._wire.open()
        self._plan()

    @property
    def parameters(self) -> set[int]:
        """The ids of the parameters that this one exchanges."""
        return set(self._slots)

    @torch.no_grad()
    def reduce(self) -> None:
        """Make the gradients the means over the ranks."""
        if self._changed():
            self._drop()
            self._plan()
        if not self._buckets:
            return
        slots = [slot for bucket in self._buckets for slot in bucket.slots]
        complete = self._begin_rest(slots)
        for bucket in self._buckets:
            finish(bucket.work)
        received = self._buckets[-1].extra
        odd, late = received[-_FLAGS:].tolist()
        if odd != self._size * self.odd:
            raise TrialDefinitionError(_OTHER_BATCH)
        if late > 0:
            self._exchange_again()
        there = [True] * len(slots) if complete else [count > 0 for count in received.tolist()]
        first = 0
        for bucket in self._buckets:
            bucket.spread(self._size, there[first : first + len(bucket.slots)])
            first += len(bucket.slots)
            bucket.reset()
        self._begun = 0
        self._added_late = False

    def _begin_rest(self, slots: list[Slot]) -> bool:
        """Begin the exchange of the buckets that are left; returns whether this rank has all gradients."""
        have = [slot.parameter.grad is not None for slot in slots]
        complete = all(have)
        extra = self._buckets[-1].extra
        if complete:
            extra.fill_(1)
            extra[-2] = self.odd
            extra[-1] = self._added_late
        else:
            extra.copy_(torch.tensor([*have, self.odd, self._added_late]))
        for bucket in self._buckets[self._begun :]:
            self._begin(bucket)
        return complete

    def _exchange_again(self) -> None:
        """Exchange what a further backward has added to, with all else: which buckets it was differs by rank."""
        self._early = False
        for bucket in self._buckets[:-1]:
            self._begin(bucket)
        for bucket in self._buckets[:-1]:
            finish(bucket.work)

    def _begin(self, bucket: Bucket) -> None:
        bucket.fill(self._size)
        bucket.work = self._line.add_up(bucket.flat, bucket.number)

    def _drop(self) -> None:
        """Forget the buckets, once what has begun has ended on all ranks."""
        for bucket in self._buckets[: self._begun]:
            finish(bucket.work)
        # A rank may have begun more than another; and no more than all but the last.
        for bucket in self._buckets[self._begun : -1]:
            self._begin(bucket)
            finish(bucket.work)
        self._begun = 0

    def _changed(self) -> bool:
        """Whether there are parameters in the optimizer that are new, or no longer frozen."""
        if sum(len(group["params"]) for group in self._optimizer.param_groups) != self._known:
            return True
        return any(parameter.requires_grad or parameter.grad is not None for parameter in self._outside)

    def _plan(self) -> None:
        groups = self._optimizer.param_groups
        everything = {id(parameter): parameter for group in groups for parameter in group["params"]}
        self._known = sum(len(group["params"]) for group in groups)
        self.owners = [other for other in self._before if other.parameters & everything.keys()]
        elsewhere = {one for other in self.owners for one in other.parameters}
        own = [parameter for key, parameter in everything.items() if key not in elsewhere]
        trained = [one for one in own if one.requires_grad or one.grad is not None or id(one) in self._slots]
        self._buckets = (
            buckets_of(trained, len(trained) + _FLAGS, self._wire, compress=self._compress) if trained else []
        )
        self._slots = {id(slot.parameter): slot for bucket in self._buckets for slot in bucket.slots}
        self._outside = [parameter for parameter in own if id(parameter) not in self._slots]
        for key, slot in self._slots.items():
            if key not in self._hooked and slot.parameter.requires_grad:
                self._hooked.add(key)
                slot.parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                    self._hook(key)
                )

    def _hook(self, key: int) -> Callable[[torch.Tensor], None]:
        def accumulated(parameter: torch.Tensor) -> None:
            if self.active:
                self._accumulated(self._slots[key])

        return accumulated

    def _accumulated(self, slot: Slot) -> None:
        """Note that a backward has added to a gradient; begin the exchange of what is complete."""
        slot.passes += 1
        bucket = slot.bucket
        if bucket.work is not None:
            self._added_late = True
        if slot.passes != self._passes:
            return
        bucket.missing -= 1
        if bucket.missing or not self._early:
            return
        with torch.no_grad():
            while self._begun < len(self._buckets) - 1 and not self._buckets[self._begun].missing:
                self._begin(self._buckets[self._begun])
                self._begun += 1
