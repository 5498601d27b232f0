"""Gradients of many parameters as few flat tensors, in the order in which backward makes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from det_harness.frameworks.torch.gradients.wire import Sum, Wire
from det_native.errors import TrialDefinitionError

_FIRST_BYTES = 1 << 20
_MOST_BYTES = 25 << 20


class Slot:
    """A parameter in its bucket.

    Attributes
    ----------
    passes : int
        Backward passes that have added to its gradient since the last step.
    """

    __slots__ = ("bucket", "parameter", "passes")

    def __init__(self, parameter: torch.nn.Parameter) -> None:
        self.parameter = parameter
        self.passes = 0
        self.bucket: Bucket


class Bucket:
    """Parameters of one type on one device, whose gradients are exchanged together.

    Parameters
    ----------
    extra : int
        Numbers that are exchanged with the gradients, see `extra`.
    compress : bool
        Exchange float32 and float64 as float16.

    Attributes
    ----------
    missing : int
        Parameters whose gradients are not complete yet.
    work : Sum or None
        The exchange, once it has begun.
    extra : tensor
        The numbers at the end of the flat tensor.
    """

    def __init__(self, number: int, slots: Sequence[Slot], extra: int, wire: Wire, *, compress: bool) -> None:
        self.number = number
        self.slots = list(slots)
        self.missing = len(self.slots)
        self.work: Sum | None = None
        first = self.slots[0].parameter
        compressed = compress and first.dtype in (torch.float32, torch.float64)
        lengths = [_real(slot.parameter.detach()).numel() for slot in self.slots]
        kind = torch.float16 if compressed else wire.type_of(_real(first.detach()).dtype)
        # A sum of float16 may overflow where the mean does not.
        self._divided_first = kind is torch.float16
        self.flat = torch.zeros(sum(lengths) + extra, dtype=kind, device=first.device)
        self.extra = self.flat[sum(lengths) :]
        self._gradients = self.flat[: sum(lengths)]
        self._parts = torch.split(self._gradients, lengths)
        self._views = [
            part.view(_real(slot.parameter.detach()).shape) for part, slot in zip(self._parts, self.slots, strict=True)
        ]
        for slot in self.slots:
            slot.bucket = self

    def fill(self, size: int) -> None:
        """Copy the gradients in; where there is none, zeros."""
        gradients = [slot.parameter.grad for slot in self.slots]
        if any(gradient is None for gradient in gradients):
            for part, gradient in zip(self._parts, gradients, strict=True):
                if gradient is None:
                    part.zero_()
                else:
                    part.copy_(_flat(gradient))
        else:
            torch.cat([_flat(gradient) for gradient in gradients if gradient is not None], out=self._gradients)
        if self._divided_first:
            self._gradients.div_(size)

    def spread(self, size: int, present: Iterable[bool]) -> None:
        """Make the means the gradients of the parameters; one that no rank has a gradient for gets none."""
        factor = 1.0 if self._divided_first else 1.0 / size
        for slot, view, there in zip(self.slots, self._views, present, strict=True):
            if not there:
                continue
            parameter = slot.parameter
            gradient = parameter.grad
            if gradient is None or gradient.requires_grad:
                mean = view.mul(factor).to(_real(parameter.detach()).dtype)
                parameter.grad = torch.view_as_complex(mean) if parameter.is_complex() else mean
            elif gradient.dtype is view.dtype:
                torch.mul(view, factor, out=gradient)
            else:
                _real(gradient).copy_(view if factor == 1.0 else view.mul(factor))  # rounded once

    def reset(self) -> None:
        """Wait for the gradients of the next step."""
        self.missing = len(self.slots)
        self.work = None
        for slot in self.slots:
            slot.passes = 0


def buckets_of(parameters: Sequence[torch.nn.Parameter], extra: int, wire: Wire, *, compress: bool) -> list[Bucket]:
    """Return the buckets of some parameters, the last of them with `extra` numbers.

    Backward makes the gradients of the last parameters first. The first bucket is small, so that its exchange
    begins early.
    """
    groups: list[list[Slot]] = []
    open_groups: dict[tuple[torch.dtype, torch.device], tuple[list[Slot], int]] = {}
    limit = _FIRST_BYTES
    for parameter in reversed(parameters):
        kind = (parameter.dtype, parameter.device)
        slots, used = open_groups.get(kind, ([], 0))
        if not slots:
            groups.append(slots)
        slots.append(Slot(parameter))
        used += parameter.numel() * parameter.element_size()
        if used >= limit:
            limit = _MOST_BYTES
            slots, used = [], 0
        open_groups[kind] = (slots, used)
    return [
        Bucket(number, slots, extra if number == len(groups) else 0, wire, compress=compress)
        for number, slots in enumerate(groups, 1)
    ]


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _flat(gradient: torch.Tensor) -> torch.Tensor:
    if gradient.layout is not torch.strided:
        raise TrialDefinitionError(
            f"A parameter of shape {tuple(gradient.shape)} has a sparse gradient, and several slots exchange dense "
            "ones only: leave out sparse=True of its nn.Embedding (or whatever makes it), or train on one slot."
        )
    return _real(gradient.detach()).reshape(-1)
