"""A copy in host memory of a state that training goes on to change."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

# Page-locked memory is not to be had by anyone else, and torch rounds each piece of it up to a power of two.
_MOST_LOCKED_SHARE = 0.25


@dataclass(frozen=True)
class Memory:
    """A piece of host memory; `locked` in its place, a GPU writes it about four times as fast."""

    storage: torch.UntypedStorage
    locked: bool


class HostMemory:
    """Copies states, into the memory of an earlier copy where that fits.

    A copy into fresh memory takes about ten times as long: the system clears each page first. The memory of the newest
    copy that was given back is kept for the next, so it is never more than one state's.
    """

    def __init__(self) -> None:
        self._free: dict[tuple[int, bool], list[Memory]] = {}

    @cached_property
    def _lockable(self) -> int:
        """Bytes that may yet be locked; only the copy of a GPU's state asks for it."""
        import psutil

        return int(psutil.virtual_memory().total * _MOST_LOCKED_SHARE)

    def copy(self, state: Any) -> tuple[Any, list[Memory]]:
        """Return a copy of dictionaries, lists and tuples with tensors in them, and the memory to give back.

        The tensors are in host memory. Those that share storage share it in the copy too, so that a file of it has it
        once.
        """
        taken: dict[tuple[Any, ...], Memory] = {}
        known: dict[int, Any] = {}
        gpus: set[torch.device] = set()
        for tensor in _tensors(state):
            if tensor.device.type != "cpu":
                known[id(tensor)] = self._moved(tensor, taken)
                gpus |= {tensor.device} if tensor.is_cuda else set()
            elif not tensor.is_leaf:  # of a graph, which is of no use in a file
                known[id(tensor)] = tensor.detach().clone()
            elif _is_plain(tensor):
                known[id(tensor)] = self._same(tensor, taken)
        for gpu in gpus:
            torch.cuda.synchronize(gpu)
        return copy.deepcopy(state, known), list(taken.values())

    def give_back(self, memory: list[Memory]) -> None:
        """Take the memory of a copy that is needed no longer; may be called from another thread."""
        free: dict[tuple[int, bool], list[Memory]] = {}
        for one in memory:
            free.setdefault((one.storage.nbytes(), one.locked), []).append(one)
        let_go = [one for pieces in self._free.values() for one in pieces if one.locked]
        if let_go:
            self._lockable += sum(one.storage.nbytes() for one in let_go)
        self._free = free

    def _take(self, size: int, *, for_gpu: bool = False) -> Memory:
        for locked in (True, False) if for_gpu else (False,):
            fitting = self._free.get((size, locked))
            if fitting:
                return fitting.pop()
        if for_gpu and size <= self._lockable:
            try:
                made = torch.empty(size, dtype=torch.uint8, pin_memory=True).untyped_storage()
            except RuntimeError:
                self._lockable = 0  # there is no more of it; any other memory does as well, but takes longer
            else:
                self._lockable -= size
                return Memory(made, locked=True)
        return Memory(torch.empty(size, dtype=torch.uint8).untyped_storage(), locked=False)

    def _same(self, tensor: torch.Tensor, taken: dict[tuple[Any, ...], Memory]) -> torch.Tensor:
        """Return the same view into a copy of the tensor's storage."""
        source = tensor.untyped_storage()
        key = (source.data_ptr(), source.nbytes())
        if key not in taken or not source.nbytes():
            taken[key] = self._take(source.nbytes())
            taken[key].storage.copy_(source)
        return _view(taken[key].storage, tensor, int(tensor.storage_offset()), tensor.stride())

    def _moved(self, tensor: torch.Tensor, taken: dict[tuple[Any, ...], Memory]) -> torch.Tensor:
        """Return a tensor of another device in host memory, without what else its storage holds.

        A GPU's is there once the GPU was waited for.
        """
        key = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        new = key not in taken or not tensor.numel()
        if new:
            taken[key] = self._take(tensor.numel() * tensor.element_size(), for_gpu=tensor.is_cuda)
        moved = _view(taken[key].storage, tensor, 0, torch.empty(tensor.shape, device="meta").stride())
        if new:
            moved.copy_(tensor.detach(), non_blocking=taken[key].locked)
        return moved


def _view(storage: torch.UntypedStorage, tensor: torch.Tensor, offset: int, stride: tuple[int, ...]) -> torch.Tensor:
    return torch.empty(0, dtype=tensor.dtype).set_(storage, offset, tensor.shape, stride)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether nothing but dtype, shape, stride and values makes the tensor what it is."""
    return (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
        and not tensor.requires_grad
        and not vars(tensor)
    )


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
