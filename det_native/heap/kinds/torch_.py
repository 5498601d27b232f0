"""Tensors and their memory; modules, optimizers and schedules are ordinary objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, VALUE, Kind, Left, State
from det_native.heap.kinds.builtin import changed_blocks, digests, sample


class TensorKind(Kind):
    """Where it looks in its memory, its gradient, and what was hung on it."""

    def take(self, obj: Any) -> State:
        import torch

        names = [*vars(obj)] if vars(obj) else []
        gradient = obj.grad if obj.is_leaf and obj.requires_grad else None
        if obj.layout is not torch.strided or obj.device.type == "meta" or obj.is_quantized:
            return (type(obj), *vars(obj).values()), (names, str(obj.dtype), tuple(obj.shape), str(obj.layout))
        where = (str(obj.dtype), tuple(obj.shape), obj.stride(), obj.storage_offset())
        return (type(obj), obj.untyped_storage(), gradient, *vars(obj).values()), (names, where, obj.requires_grad, obj.is_leaf)

    def cheap(self, obj: Any) -> Any:
        import torch

        if obj.layout is not torch.strided or obj.device.type == "meta":
            return obj._version, obj.shape
        gradient = id(obj.grad) if obj.is_leaf else 0
        return obj._version, id(obj.untyped_storage()), obj.shape, gradient, obj.requires_grad, type(obj), (*vars(obj),)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return [("class",), ("memory",), ("grad",), *facts[0]][: len(children)]

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        import torch

        if not isinstance(facts[1], tuple) or isinstance(facts[1], str):
            return
        names, (dtype, shape, stride, offset), needs, leaf = facts
        with torch.no_grad():
            now = (str(obj.dtype), tuple(obj.shape), obj.stride(), obj.storage_offset())
            if obj.untyped_storage() is not children[1] or now != (dtype, shape, stride, offset):
                obj.data = as_tensor(children[1], dtype, shape, stride, offset)
        if obj.is_leaf and leaf:
            obj.requires_grad_(needs)
            obj.grad = children[2]
        if type(obj) is not children[0]:
            obj.__class__ = children[0]
        vars(obj).clear()
        vars(obj).update((n, v) for n, v in zip(names, children[3:], strict=True) if not isinstance(v, Left))

    def reduce(self, obj: Any) -> Any:
        children, facts = self.take(obj)
        if len(facts) != 4 or isinstance(facts[1], str):
            return NotImplemented
        return as_tensor, (children[1], *facts[1]), (children, facts), None, None, fill_tensor


def as_tensor(memory: Any, dtype: str, shape: Any, stride: Any, offset: int) -> Any:
    """Look at memory as a tensor."""
    import torch

    kind = getattr(torch, dtype.removeprefix("torch."))
    return torch.empty(0, dtype=kind, device=memory.device).set_(memory, offset, shape, stride)


def fill_tensor(tensor: Any, state: Any) -> None:
    """Give a new tensor its class, its gradient and its attributes; the graph that made it stays behind."""
    children, (names, _, needs, leaf) = state
    if children[0] is not type(tensor):
        tensor.__class__ = children[0]
    tensor.requires_grad_(needs and leaf and tensor.is_floating_point())
    if children[2] is not None:
        tensor.grad = children[2]
    vars(tensor).update(zip(names, children[3:], strict=True))


class MemoryKind(Kind):
    """The memory of tensors (``UntypedStorage``): shared by all that look at it."""

    def take(self, obj: Any) -> State:
        return (), (obj.nbytes(), obj.device.type, digests(_numpy(obj)))

    def cheap(self, obj: Any) -> Any:
        return obj.nbytes(), obj.data_ptr(), sample(_numpy(obj)) if obj.nbytes() else 0

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return changed_blocks(_numpy(obj), before[2] if before and before[:2] == now[:2] else (), now[2])

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if obj.nbytes() != facts[0]:
            obj.resize_(facts[0])
        import torch

        for start, data in content:
            with torch.no_grad():
                whole = torch.empty(0, dtype=torch.uint8, device=obj.device).set_(obj)
                whole[start : start + len(data)].copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))

    def reduce(self, obj: Any) -> Any:
        return make_memory, (_numpy(obj).tobytes(),)


def _numpy(memory: Any) -> Any:
    import torch

    return torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory).cpu().numpy()


def _write(memory: Any, content: bytes) -> None:
    import torch

    if content:
        with torch.no_grad():
            whole = torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory)
            whole.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))


def make_memory(content: bytes) -> Any:
    """Make memory with this content."""
    import torch

    memory = torch.UntypedStorage(len(content))
    _write(memory, content)
    return memory


class GeneratorKind(Kind):
    def take(self, obj: Any) -> State:
        return (), bytes(obj.get_state().numpy())

    def put(self, obj: Any, children: Sequence[Any], facts: bytes, content: Any) -> None:
        import torch

        obj.set_state(torch.frombuffer(bytearray(facts), dtype=torch.uint8))


BY_NAME |= {
    "torch.Tensor": TensorKind(),
    "torch.storage.UntypedStorage": MemoryKind(),
    "torch._C.Generator": GeneratorKind(),
    "torch.dtype": VALUE,
    "torch.device": VALUE,
    "torch.Size": VALUE,
    "torch.layout": VALUE,
    "torch.memory_format": VALUE,
}
