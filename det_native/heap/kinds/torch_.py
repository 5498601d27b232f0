"""Tensors and their memory; modules, optimizers and schedules are ordinary objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_native.heap.digests import changed_blocks, digest, digests
from det_native.heap.edges import BY_NAME, BY_PREFIX, VALUE, Kind, Left, State, StateKind, Stays, stable_digest


class TensorKind(Kind):
    """Where it looks in its memory, its gradient, and what was hung on it.

    Sparse, quantized and other tensors without memory of their own are values. The graph that made a tensor stays in
    its process.
    """

    def take(self, obj: Any) -> State:
        names = [*vars(obj)]
        if not _has_memory(obj):
            value = [digest(_bytes(part.contiguous().untyped_storage())) for part in _parts(obj.detach())]
            return (type(obj), *vars(obj).values()), (names, (str(obj.dtype), tuple(obj.shape)), value)
        gradient = obj.grad if obj.is_leaf and obj.requires_grad else None
        where = (str(obj.dtype), tuple(obj.shape), obj.stride(), obj.storage_offset())
        children = (type(obj), obj.untyped_storage(), gradient, *vars(obj).values())
        return children, (names, where, obj.requires_grad, obj.is_leaf)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return [("class",), *((("memory",), "grad") if len(facts) == 4 else ()), *facts[0]]

    def step(self, label: Any) -> str:
        return f".{label}" if isinstance(label, str) else ""

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return stable_digest(facts[1:] if exact else facts[1][:2])

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return obj.detach() if len(now) == 3 and (before is None or before[1:] != now[1:]) else None

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        import torch

        names, values = facts[0], children[3:] if len(facts) == 4 else children[1:]
        with torch.no_grad():
            if content is not None:
                obj.data = content
            elif len(facts) == 4 and not isinstance(children[1], Left):
                now = (str(obj.dtype), tuple(obj.shape), obj.stride(), obj.storage_offset())
                if obj.untyped_storage() is not children[1] or now != facts[1]:
                    obj.data = as_tensor(children[1], *facts[1])
        if len(facts) == 4 and obj.is_leaf and facts[3]:
            obj.requires_grad_(facts[2])
            if not isinstance(children[2], Left):
                obj.grad = children[2]
        if type(obj) is not children[0] and isinstance(children[0], type):
            obj.__class__ = children[0]
        for name in vars(obj).keys() - {*names}:
            del vars(obj)[name]
        vars(obj).update(
            (name, value) for name, value in zip(names, values, strict=True) if not isinstance(value, Left)
        )

    def reduce(self, obj: Any) -> Any:
        children, facts = self.take(obj)
        if len(facts) == 3:
            return NotImplemented
        return as_tensor, (children[1], *facts[1]), (children, facts), None, None, fill_tensor


def _has_memory(tensor: Any) -> bool:
    import torch

    return tensor.layout is torch.strided and tensor.device.type != "meta" and not tensor.is_quantized


def _parts(tensor: Any) -> list[Any]:
    """Return dense tensors that have all that a tensor without memory of its own holds."""
    import torch

    if tensor.layout is torch.sparse_coo:
        whole = tensor.coalesce()
        return [whole.indices(), whole.values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.int_repr()] if tensor.is_quantized else []


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
    tensor.requires_grad_(needs and leaf and (tensor.is_floating_point() or tensor.is_complex()))
    if children[2] is not None:
        tensor.grad = children[2]
    vars(tensor).update(zip(names, children[3:], strict=True))


class MemoryKind(Kind):
    """The memory of tensors (``UntypedStorage``): shared by all that look at it."""

    def take(self, obj: Any) -> State:
        return (), (obj.nbytes(), digests(_bytes(obj)))

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return stable_digest(facts if exact else facts[0])

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return changed_blocks(_bytes(obj), before[1] if before and before[0] == now[0] else (), now[1])

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if obj.nbytes() != facts[0]:
            obj.resize_(facts[0])
        whole = _whole(obj)
        for start, data in content:
            _write(whole[start : start + len(data)], data)

    def reduce(self, obj: Any) -> Any:
        return make_memory, (_bytes(obj).tobytes(), str(obj.device))


def _whole(memory: Any) -> Any:
    import torch

    return torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory)


def _bytes(memory: Any) -> Any:
    return _whole(memory).cpu().numpy()


def _write(into: Any, data: bytes) -> None:
    import torch

    if data:
        into.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))


def make_memory(data: bytes, device: str) -> Any:
    """Make memory with this content, on the same device where this machine has one."""
    import torch

    place = torch.device(device)
    if place.type == "cuda" and not (torch.cuda.is_available() and (place.index or 0) < torch.cuda.device_count()):
        device = "cpu"
    make: Any = torch.UntypedStorage
    memory = make(len(data), device=device)
    _write(_whole(memory), data)
    return memory


def _set_state(generator: Any, state: bytes) -> None:
    import torch

    generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


BY_NAME |= {
    "torch.Tensor": TensorKind(),
    "torch.storage.UntypedStorage": MemoryKind(),
    "torch._C.Generator": StateKind(lambda generator: bytes(generator.get_state().numpy()), _set_state),
    "torch.dtype": VALUE,
    "torch.device": VALUE,
    "torch.Size": VALUE,
    "torch.layout": VALUE,
    "torch.memory_format": VALUE,
    "torch.utils.data.dataloader._BaseDataLoaderIter": Stays(
        "an iterator of a DataLoader", progress=lambda iterator: iterator._num_yielded
    ),
    "torch.autograd.graph.Node": Stays("a part of a graph", quiet=True),
}
BY_PREFIX.append(("torch.autograd.", Stays("a part of a graph", quiet=True)))
