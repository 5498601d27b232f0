"""The gradients of one optimizer's parameters: their buckets, and their exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch

from det_harness.frameworks.torch.gradients.buckets import Bucket, Slot, buckets_of
from det_harness.frameworks.torch.gradients.wire import Line, Wire
from det_harness.ranks.communicator import finish

_FLAGS = 1  # exchanged with the gradients: whether a backward has added to what was on its way

Hook = Callable[[torch.Tensor], None]


class MemberGradients:
    """The gradients of some parameters, those left out that others here have already.

    Parameters
    ----------
    parameters : callable
        Returns the parameters, as they are now.
    backward_passes : int
        Passes that complete a gradient.
    before : sequence of MemberGradients
        The others.
    compress : bool
        Exchange float32 and float64 as float16.
    hook_of : callable
        Takes these gradients and the ``id()`` of a parameter; returns what is called after each addition to its
        gradient.

    Attributes
    ----------
    touched : bool
        Whether a backward has added to a gradient of this rank, and the ranks have not met since.
    passes : int
        Passes since the last exchange, the same on every rank.
    """

    def __init__(
        self,
        parameters: Callable[[], Iterable[torch.nn.Parameter]],
        backward_passes: int,
        size: int,
        before: Sequence[MemberGradients],
        wire: Wire,
        *,
        compress: bool,
        hook_of: Callable[[MemberGradients, int], Hook],
    ) -> None:
        self.touched = False
        self.passes = 0
        self.backward_passes = backward_passes
        self._parameters = parameters
        self._size = size
        self._before = list(before)
        self._compress = compress
        self._wire = wire
        self._hook_of = hook_of
        self._line: Line = wire.open()
        self._slots: dict[int, Slot] = {}  # by id of the parameter
        self._outside: list[torch.nn.Parameter] = []  # without a hook, since they are frozen
        self._known = -1
        self._hooks: dict[int, torch.utils.hooks.RemovableHandle] = {}
        self._buckets: list[Bucket] = []
        self._begun = 0
        self._complete: bool | None = None  # of an exchange under way: whether this rank has all gradients
        self._early = True
        self._added_late = False
        self._plan()

    @property
    def ids(self) -> set[int]:
        """The ids of the parameters that are exchanged here."""
        return set(self._slots)

    def close(self) -> None:
        """Leave nothing on the parameters; what is on its way is waited for by nobody."""
        for hook in self._hooks.values():
            hook.remove()
        self._hooks.clear()

    def added(self, key: int) -> None:
        """Note that a backward has added to the gradient of a parameter; begin the exchange of what is complete."""
        slot = self._slots[key]
        self.touched = True
        slot.passes += 1
        bucket = slot.bucket
        if bucket.work is not None:
            self._added_late = True
        if slot.passes != self.backward_passes:
            return
        bucket.missing -= 1
        if bucket.missing or not self._early:
            return
        with torch.no_grad():
            while self._begun < len(self._buckets) - 1 and not self._buckets[self._begun].missing:
                self._begin(self._buckets[self._begun])
                self._begun += 1

    @torch.no_grad()
    def begin(self) -> None:
        """Begin the exchange of what is left; what was begun has to be ended by `reduce`."""
        if self._changed():
            self._drop()
            self._plan()
        if self._buckets:
            self._begin_rest()

    @torch.no_grad()
    def reduce(self) -> Iterable[torch.nn.Parameter]:
        """Make the gradients the means over the ranks; returns the parameters."""
        self.touched, self.passes = False, 0
        if self._complete is None:
            self.begin()
        complete, self._complete = self._complete, None
        if not self._buckets:
            return ()
        slots = [slot for bucket in self._buckets for slot in bucket.slots]
        for bucket in self._buckets:
            finish(bucket.work)
        received = self._buckets[-1].extra
        if float(received[-1]) > 0:
            self._exchange_again()
        there = [True] * len(slots) if complete else [count > 0 for count in received[:-_FLAGS].tolist()]
        first = 0
        for bucket in self._buckets:
            bucket.spread(self._size, there[first : first + len(bucket.slots)])
            first += len(bucket.slots)
            bucket.reset()
        self._begun = 0
        self._added_late = False
        return [slot.parameter for slot in slots]

    def _begin_rest(self) -> None:
        have = [slot.parameter.grad is not None for bucket in self._buckets for slot in bucket.slots]
        self._complete = all(have)
        extra = self._buckets[-1].extra
        if self._complete:
            extra.fill_(1)
            extra[-1] = self._added_late
        else:
            extra.copy_(torch.tensor([*have, self._added_late]))
        for bucket in self._buckets[self._begun :]:
            self._begin(bucket)

    def _exchange_again(self) -> None:
        """Exchange what a further backward has added to, with all else: which buckets it was differs by rank."""
        self._early = False
        for bucket in self._buckets[:-1]:
            self._begin(bucket)
        for bucket in self._buckets[:-1]:
            finish(bucket.work)

    def _begin(self, bucket: Bucket) -> None:
        bucket.fill(self._size)
        bucket.work = self._line(bucket.flat, bucket.number)

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
        """Whether there are parameters that are new, or no longer frozen."""
        if sum(1 for _ in self._parameters()) != self._known:
            return True
        return any(one.requires_grad or (one.grad is not None and id(one) not in self._slots) for one in self._outside)

    def _plan(self) -> None:
        given = list(self._parameters())
        self._known = len(given)
        elsewhere = {key for other in self._before for key in other.ids}
        own = [one for one in {id(one): one for one in given}.values() if id(one) not in elsewhere]
        trained = [one for one in own if one.requires_grad or one.grad is not None or id(one) in self._slots]
        self._buckets = (
            buckets_of(trained, len(trained) + _FLAGS, self._wire, compress=self._compress) if trained else []
        )
        self._slots = {id(slot.parameter): slot for bucket in self._buckets for slot in bucket.slots}
        for key, slot in self._slots.items():
            if key not in self._hooks and slot.parameter.requires_grad:
                self._hooks[key] = slot.parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                    self._hook_of(self, key)
                )
        self._outside = [parameter for parameter in own if id(parameter) not in self._hooks]
