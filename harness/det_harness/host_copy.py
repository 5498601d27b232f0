"""A copy in host memory of a state that training goes on to change."""

from __future__ import annotations

import copy
from typing import Any

import torch


def of(state: Any) -> Any:
    """Return a copy of dictionaries, lists and tuples with tensors in them, the tensors in host memory.

    Tensors that share storage share it in the copy too, so that a file of it has it once.
    """
    known: dict[int, Any] = {}
    moved: dict[tuple[Any, ...], torch.Tensor] = {}
    for tensor in _tensors(state):
        if tensor.device.type != "cpu":
            known[id(tensor)] = _moved(tensor, moved)
        elif not tensor.is_leaf:  # of a graph, which is of no use in a file
            known[id(tensor)] = tensor.detach().clone()
    return copy.deepcopy(state, known)


def _moved(tensor: torch.Tensor, moved: dict[tuple[Any, ...], torch.Tensor]) -> torch.Tensor:
    place = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
    if place not in moved or tensor.numel() == 0:
        moved[place] = tensor.detach().cpu()
    return moved[place]


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for part in value.values() for tensor in _tensors(part)]
    if isinstance(value, list | tuple):
        return [tensor for part in value for tensor in _tensors(part)]
    return []
