"""A copy in host memory of a state that training goes on to change."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch


class HostMemory:
    """Copies states, into the memory of an earlier copy where that fits.

    A copy into fresh memory takes about ten times as long: the system clears each page first. The memory of the newest
    copy that was given back is kept for the next, so it is never more than one state's.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[torch.UntypedStorage]] = {}

    def copy(self, state: Any) -> tuple[Any, list[torch.UntypedStorage]]:
        """Return a copy of dictionaries, lists and tuples with tensors in them, and the memory to give back.

        The tensors are in host memory. Those that share storage share it in the copy too, so that a file of it has it
        once.
        """
        storages: dict[tuple[Any, ...], torch.UntypedStorage] = {}
        known: dict[int, Any] = {}
        for tensor in _tensors(state):
            if tensor.device.type != "cpu":
                known[id(tensor)] = self._moved(tensor, storages)
            elif not tensor.is_leaf:  # of a graph, which is of no use in a file
                known[id(tensor)] = tensor.detach().clone()
            elif _is_plain(tensor):
                known[id(tensor)] = self._same(tensor, storages)
        return copy.deepcopy(state, known), list(storages.values())

    def give_back(self, memory: list[torch.UntypedStorage]) -> None:
        """Take the memory of a copy that is needed no longer; may be called from another thread."""
        free: dict[int, list[torch.UntypedStorage]] = {}
        for storage in memory:
            free.setdefault(storage.nbytes(), []).append(storage)
        self._free = free

    def _take(self, size: int) -> torch.UntypedStorage:
        fitting = self._free.get(size)
        return fitting.pop() if fitting else torch.empty(size, dtype=torch.uint8).untyped_storage()

    def _same(self, tensor: torch.Tensor, storages: dict[tuple[Any, ...], torch.UntypedStorage]) -> torch.Tensor:
        """Return the same view into a copy of the tensor's storage."""
        source = tensor.untyped_storage()
        key = (source.data_ptr(), source.nbytes())
        if key not in storages or not source.nbytes():
            storages[key] = self._take(source.nbytes())
            storages[key].copy_(source)
        return _view(storages[key], tensor, int(tensor.storage_offset()), tensor.stride())

    def _moved(self, tensor: torch.Tensor, storages: dict[tuple[Any, ...], torch.UntypedStorage]) -> torch.Tensor:
        """Return a tensor of another device in host memory, without what else its storage holds."""
        key = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        new = key not in storages or not tensor.numel()
        if new:
            storages[key] = self._take(tensor.numel() * tensor.element_size())
        moved = _view(storages[key], tensor, 0, torch.empty(tensor.shape, device="meta").stride())
        if new:
            moved.copy_(tensor.detach())
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
