"""Batches of any nesting: their type, their length, and the way to a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from det_native.errors import InvalidDataError

TorchData = dict[str, Any] | Sequence[Any] | torch.Tensor
"""A batch: a tensor, or lists, tuples and dictionaries of tensors in any nesting."""


def to_device(data: Any, device: torch.device) -> Any:
    """Move every tensor and array of a batch to a device, in the batch's own nesting.

    Arrays of numbers become tensors. What has a ``to(device)`` of its own is asked for it; anything else that is
    neither tensor, array nor container stays as it is.
    """
    kind = type(data)
    if kind is tuple or kind is list:
        # What is there already is not worth a call: this is done for every batch.
        for part in data:
            if type(part) is not torch.Tensor or part.device != device:
                return kind([to_device(part, device) for part in data])
        return data if kind is tuple else list(data)
    if isinstance(data, torch.Tensor):
        # Only on its way to a GPU: whoever reads in host memory would not wait for it.
        return data if data.device == device else data.to(device, non_blocking=device.type != "cpu")
    if isinstance(data, np.ndarray):
        # Texts and objects have no tensor.
        return torch.as_tensor(data, device=device) if data.dtype.kind in "biufc" else data
    if kind is dict:
        return {key: to_device(part, device) for key, part in data.items()}
    move: Callable[[torch.device], Any] | None = getattr(data, "to", None)
    if callable(move):
        return move(device)
    if isinstance(data, Mapping):
        return {key: to_device(part, device) for key, part in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(to_device(part, device) for part in data))
    if isinstance(data, list | tuple):
        return kind(to_device(part, device) for part in data)
    return data


def data_length(data: Any) -> int:
    """Return the records of a batch: the first dimension of its first tensor or array; of packed sequences, how many.

    Raises
    ------
    InvalidDataError
        If there is no tensor or array with a first dimension in it.
    """
    length = _first_length(data)
    if length is None:
        raise InvalidDataError(f"A batch of type {type(data).__name__} holds no tensor with a first (batch) dimension.")
    return length


def _first_length(data: Any) -> int | None:
    if isinstance(data, torch.Tensor | np.ndarray):
        return int(data.shape[0]) if data.ndim else None
    if isinstance(data, torch.nn.utils.rnn.PackedSequence):
        return int(data.batch_sizes[0])  # all sequences have a first step; its data are all steps of all of them
    parts: Any = data.values() if isinstance(data, Mapping) else data
    if isinstance(parts, str | bytes) or not hasattr(parts, "__iter__"):
        return None
    for part in parts:
        length = _first_length(part)
        if length is not None:
            return length
    return None
