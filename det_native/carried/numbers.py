"""Arrays and tensors: whether their numbers have changed, and their numbers as plain data."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: Bytes of an array of which every one is looked at, whenever that is asked. Of a larger one, a data set usually, it
#: is a part, and of a tensor whether it was written in place: at 2 GB/s, 256 MB are an eighth of a second.
WHOLE = 256 << 20
_PAGE = 4096
_EVERY = 32  # of so many pages of a larger array, one is looked at
_WEIGHTED = 1 << 22  # numbers that a device weights at a time

#: Where tensors go that come from a device like it.
_device: ContextVar[Any] = ContextVar("device", default=None)


def is_array(value: Any) -> bool:
    """Whether a value is an array of NumPy with plain numbers."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and not value.dtype.hasobject


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def fingerprint(value: Any) -> tuple[Any, ...]:
    """Return what tells the present numbers of an array or tensor from others."""
    if is_array(value):
        return value.shape, value.dtype.str, _checksum(value)
    place = value.data_ptr() if _is_strided(value) else id(value)
    facts: tuple[Any, ...] = (tuple(value.shape), value.dtype, value.requires_grad, place)
    if not _is_strided(value):
        return (*facts, value._version)
    if value.device.type == "cpu":
        if value.numel() * value.element_size() > WHOLE:
            facts = (*facts, value._version)
        return (*facts, _checksum(_numbers(value.detach())))
    return (*facts, _weighted(value.detach()))


def _checksum(array: Any) -> int:
    import numpy as np

    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if flat.nbytes <= WHOLE:
        return zlib.crc32(flat.data)
    pages = flat[: flat.nbytes // _PAGE * _PAGE].reshape(-1, _PAGE)[::_EVERY]
    return zlib.crc32(flat[-_PAGE:].data, zlib.crc32(np.ascontiguousarray(pages).data))


def _weighted(tensor: Any) -> int:
    """Return a weighted sum of the bytes of a tensor, computed on its device, so that only one number is copied."""
    import torch

    flat = tensor.contiguous().reshape(-1).view(torch.uint8)
    if flat.numel() > WHOLE:
        pages = flat[: flat.numel() // _PAGE * _PAGE].reshape(-1, _PAGE)[::_EVERY]
        flat = torch.cat([pages.reshape(-1), flat[-_PAGE:]])
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for start in range(0, flat.numel(), _WEIGHTED):
        part = flat[start : start + _WEIGHTED].to(torch.int64)
        weights = torch.arange(start + 1, start + 1 + part.numel(), device=flat.device) * 2654435761 % 4294967291
        total = total * 31 + (part * weights).sum()
    return int(total)


def _is_strided(tensor: Any) -> bool:
    import torch

    return tensor.layout is torch.strided and not tensor.is_quantized and not _is_lazy(tensor)


def _is_lazy(tensor: Any) -> bool:
    from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

    return isinstance(tensor, UninitializedParameter | UninitializedBuffer) or tensor.device.type == "meta"


def _numbers(tensor: Any) -> Any:
    """Return the bytes of a tensor as an array."""
    import torch

    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    return plain.view(torch.uint8).numpy()


def encoded(tensor: Any) -> tuple[Any, ...]:
    """Return a tensor as plain data. Its graph stays behind: one that was computed needs no gradient any more.

    Raises
    ------
    TypeError
        If it is of a kind whose numbers cannot be read: a sparse one, say.
    """
    import torch

    if not _is_strided(tensor):
        raise TypeError(f"a tensor of the layout {tensor.layout} cannot be stored")
    parameter = isinstance(tensor, torch.nn.Parameter)
    kind = type(tensor) if type(tensor) not in (torch.Tensor, torch.nn.Parameter) else parameter
    needs = tensor.requires_grad and tensor.is_leaf
    return _numbers(tensor).copy(), tensor.dtype, tuple(tensor.shape), needs, kind, tensor.device.type


def decoded(numbers: Any, dtype: Any, shape: tuple[int, ...], needs_gradient: bool, kind: Any, device_type: str) -> Any:
    """Return the tensor that plain data is of, on the device that :func:`on_device` says if it was on one like it."""
    import torch

    tensor = torch.from_numpy(numbers).view(dtype).reshape(shape)
    device = _device.get()
    if device is not None and device.type == device_type:
        tensor = tensor.to(device)
    if kind is True:
        return torch.nn.Parameter(tensor, needs_gradient)
    if kind is not False:
        tensor = tensor.as_subclass(kind)
    return tensor.requires_grad_(needs_gradient)


@contextmanager
def on_device(device: Any) -> Iterator[None]:
    """Let tensors that were on a device of this type come to this one, in the block."""
    token = _device.set(device)
    try:
        yield
    finally:
        _device.reset(token)


def put_numbers(target: Any, source: Any) -> None:
    """Let an array or tensor have the numbers of another one, and stay the object that it is.

    Raises
    ------
    ValueError
        If an array has another shape or type.
    """
    if is_array(target):
        if target.shape != source.shape or target.dtype != source.dtype:
            raise ValueError(f"an array of the shape {target.shape} instead of {source.shape}")
        target[...] = source
        return
    import torch

    with torch.no_grad():
        if target.shape == source.shape and target.dtype == source.dtype:
            target.copy_(source)
        else:
            target.data = source.detach().to(target.device)
    if target.is_leaf and target.requires_grad != source.requires_grad:
        target.requires_grad_(source.requires_grad)


def view_of(whole: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
    """Return a tensor that shares the numbers of another one, as ``state_dict()`` gives them."""
    return whole.detach().as_strided(shape, strides, offset)


def storages_of(values: Iterable[Any]) -> dict[int, Any]:
    """Return tensors by where their numbers lie."""
    storages = {}
    for value in values:
        if is_tensor(value) and (pointer := storage_of(value)):
            storages[pointer] = value
    return storages


def storage_of(tensor: Any) -> int:
    """Return where a tensor's numbers lie; 0 if it has none, or nowhere."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except Exception:  # noqa: BLE001 (sparse, on no device, of a subclass)
        return 0
