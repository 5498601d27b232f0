"""PyTorch: tensors, models, loaders, generators."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterable
from typing import Any

from det_native.heap.ownership import is_library_of_ours, is_users_module
from det_native.inspection.adapter import (
    Adapter,
    Content,
    Data,
    Library,
    NeverSent,
    Text,
    Walk,
)
from det_native.inspection.attributes import plain_settings, settings_in

#: Bytes of a tensor on a device; of larger ones not all goes across the bus.
BUS_BYTES = 256 << 20


class Tensor(Data):
    """``Tensor`` and ``Parameter``."""

    def content(self, value: Any, reader: Content) -> bool:
        """Tell shape, type and numbers, wherever they are."""
        torch: Any = sys.modules["torch"]
        if torch.nn.parameter.is_lazy(value):
            reader.say("tensor", type(value).__name__, str(value.dtype))
            return True
        plain = value.layout is torch.strided and not value.is_quantized and value.device.type != "meta"
        if not plain or type(value) not in (torch.Tensor, torch.nn.Parameter):
            reader.say("tensor", type(value).__name__, str(tuple(value.shape)), str(value.dtype))
            return True
        numbers = value.detach()
        if numbers.numel() * numbers.element_size() > BUS_BYTES and numbers.device.type != "cpu":
            numbers = numbers.reshape(-1)[:: max(1, numbers.numel() // 100_000)]
            reader.partly("one in many of the numbers of its large tensors")
        reader.say("tensor", str(tuple(value.shape)), str(value.dtype))
        numbers = numbers.resolve_conj().resolve_neg().cpu()
        if numbers.dtype is torch.bfloat16:
            reader.numbers(numbers.float().numpy(), bytes_of_each=2)
            return True
        try:
            array = numbers.numpy()
        except (TypeError, RuntimeError):  # a type that numpy has not
            return True
        reader.numbers(array)
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        """Tell shape, type, numbers, gradient and attributes; on a device, how often it was changed in place."""
        torch: Any = sys.modules["torch"]
        if torch.nn.parameter.is_lazy(value):
            walk.say(type(value).__name__, str(value.dtype), value.requires_grad, str(value.device))
            walk.changeable.add(id(value))
            return True
        strided = value.layout == torch.strided
        walk.say(tuple(value.shape), str(value.dtype), value.requires_grad, str(value.device))
        address = self.address(value)
        walk.changeable.add(id(value) if address is None else address)
        if value.is_leaf and value.grad is not None:
            walk.go((value.grad,))
        kept = {name: one for name, one in value.__dict__.items() if not is_library_of_ours(type(one).__module__)}
        if kept:
            walk.go([*kept, *kept.values()])
        plain = value.detach()
        if plain.device.type != "cpu" or not strided or plain.is_quantized:
            walk.say(value._version, plain.data_ptr() if strided else 0)
        elif plain.numel():
            walk.raw(plain.contiguous().reshape(-1).view(torch.uint8).numpy())
        return True

    def address(self, value: Any) -> int | None:
        """Return where its storage begins, if it has one: a parameter of a lazy layer has none yet."""
        torch: Any = sys.modules["torch"]
        strided = value.layout == torch.strided and not torch.nn.parameter.is_lazy(value)
        return int(value.untyped_storage().data_ptr()) if strided else None


_TENSOR = Tensor()


class _Module(Adapter):
    never_sent = "model"
    is_model = True

    def content(self, value: Any, reader: Content) -> bool:
        """Tell the modules in it with their settings, what they keep beside the state dictionary, and that."""
        for name, part in value.named_modules():
            reader.say("module", name, type(part).__qualname__, part.extra_repr())
            reader.go((plain_settings(part),))
        reader.named(sorted(unsaved_parts(value).items()))
        for name, tensor in value.state_dict().items():
            reader.say("state", name)
            reader.go((tensor,))
        return True

    def weights(self, value: Any) -> list[Any]:
        return list(value.state_dict().values())

    def parts(self, value: Any) -> Iterable[Any]:
        return [*value.modules(), *value.parameters()]


class _Optimizer(NeverSent):
    def content(self, value: Any, reader: Content) -> bool:
        """Tell its state; what it steps is compared with the model that has it, or has been thrown away."""
        reader.say("kind", type(value).__qualname__)
        reader.go((value.state_dict(),))
        return True


class _Loader(Adapter):
    never_sent = "loader"

    def content(self, value: Any, reader: Content) -> bool:
        reader.say("kind", type(value).__qualname__)
        reader.say(str(value.batch_size), str(value.drop_last), type(value.sampler).__name__)
        reader.go((value.dataset,))
        return True


class _Dataset(Adapter):
    never_sent = "dataset"
    is_dataset = True


class _Generator(Adapter):
    never_sent = "generator"

    def content(self, value: Any, reader: Content) -> bool:
        reader.say(hashlib.blake2b(value.get_state().numpy(), digest_size=16).hexdigest())
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        if value.device.type == "cpu":
            walk.say(hashlib.blake2b(value.get_state().numpy(), digest_size=16).hexdigest())
        else:
            walk.cannot_see()
        return True


def unsaved_parts(model: Any) -> dict[str, Any]:
    """Return what the modules of a model keep that its state dictionary lacks, by path."""
    return {path: getattr(owner, name) for path, (owner, name) in unsaved_places(model).items()}


def unsaved_places(model: Any) -> dict[str, tuple[Any, str]]:
    """Return where that is: buffers, and attributes of the user's; the module, and the name there."""
    torch: Any = sys.modules["torch"]
    saved = set(model.state_dict(keep_vars=True))
    places = {}
    for path, module in model.named_modules():
        prefix = f"{path}." if path else ""
        for name, buffer in module.named_buffers(recurse=False):
            if f"{prefix}{name}" not in saved and buffer is not None:
                places[f"{prefix}{name}"] = (module, name)
        if is_users_module(type(module).__module__):
            for name, value in settings_in(module):
                part_of_model = isinstance(value, torch.nn.Module | torch.nn.Parameter)
                if name not in _names_of_every_module() and not part_of_model:
                    places[f"{prefix}{name}"] = (module, name)
    return places


@functools.cache
def _names_of_every_module() -> frozenset[str]:
    return frozenset(vars(sys.modules["torch"].nn.Module()))


LIBRARY = Library(
    {
        "torch.Tensor": _TENSOR,
        "torch.nn.Module": _Module(),
        "torch.Optimizer": _Optimizer("optimizer"),
        "torch.LRScheduler": NeverSent("scheduler"),
        "torch.utils.data.Dataset": _Dataset(),
        "torch.utils.data.DataLoader": _Loader(),
        "torch.utils.data._BaseDataLoaderIter": NeverSent("loader"),
        "torch.utils.data.Sampler": NeverSent("loader"),
        "torch.Generator": _Generator(),
        **dict.fromkeys(("torch.dtype", "torch.device", "torch.Size", "torch.layout"), Text()),
    },
)
