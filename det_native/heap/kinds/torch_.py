"""Tensors and their memory; modules, optimizers and schedules are ordinary objects."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

from det_native.heap.digests import changed_blocks, digest, digests
from det_native.heap.edges import (
    BY_NAME,
    BY_PREFIX,
    KEPT,
    OF_PROCESS,
    UNSEEN,
    VALUE,
    Alike,
    Difference,
    Kind,
    Missing,
    ReadMemory,
    SimpleKind,
    State,
    stable_digest,
    stays,
)
from det_native.heap.kinds.instances import AttributesKind, Composite


def _by_pytorch(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have PyTorch answer, whatever a class of the user's has in ``__torch_function__``."""

    @functools.wraps(method)
    def ask(*arguments: Any) -> Any:
        with sys.modules["torch"]._C.DisableTorchFunctionSubclass():
            return method(*arguments)

    return ask


def _without_graph(facts: Any) -> Any:
    """Return the facts of a tensor as it travels: what a computation gave is a tensor of its own then."""
    return (facts[0], False, True) if facts[2:] == (False,) else facts


class ViewOfMemoryKind(Kind):
    """Where a tensor looks in its memory, and its gradient. The graph that made it stays in its process.

    Sparse, quantized and other tensors without memory of their own are values.
    """

    is_whole = True

    def __init__(self, *, with_gradient: bool) -> None:
        self._with_gradient = with_gradient

    @_by_pytorch
    def read_state(self, obj: Any) -> State:
        if not _has_memory(obj):
            value = [digest(_bytes(part.contiguous().untyped_storage())) for part in _parts(obj.detach())]
            return (), ((str(obj.dtype), tuple(obj.shape)), value)
        gradient = obj.grad if self._with_gradient and obj.is_leaf and obj.requires_grad else None
        return (obj.untyped_storage(), gradient), (_where(obj), obj.requires_grad, obj.is_leaf)

    @_by_pytorch
    def glance(self, obj: Any, read: ReadMemory) -> State:
        needs: bool = obj.requires_grad
        numbers: Any
        gradient = obj.grad if needs and obj.is_leaf else None
        if _is_lazy(obj):
            return (), (obj.dtype, needs)
        if not _is_plain(obj):  # on a device a counter tells of changes in place
            numbers = obj.device, obj._version, obj.data_ptr() if _has_memory(obj) else 0
        elif obj.is_contiguous():
            numbers = read.at(obj.data_ptr(), obj.nbytes)
        else:
            torch = sys.modules["torch"]
            numbers = obj.stride(), read(obj.detach().contiguous().view(-1).view(torch.uint8).numpy().data)
        return () if gradient is None else (gradient,), (obj.dtype, obj.shape, needs, numbers)

    @_by_pytorch
    def memory(self, obj: Any) -> Sequence[int]:
        return () if _is_lazy(obj) or not _has_memory(obj) else (obj.untyped_storage().data_ptr(),)

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return (("memory",), "grad") if children else ()

    def step(self, label: Any) -> str:
        return f".{label}" if isinstance(label, str) else ""

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        if not exact:
            return stable_digest(facts[0][:2])
        return stable_digest(_without_graph(facts))

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return super().made_alike(labels, children, _without_graph(facts))

    @_by_pytorch
    def difference(self, obj: Any, before: State, now: State, renewed: Callable[[Any], bool]) -> Difference:
        whole = obj.detach() if not now[0] and before[1] != now[1] else None
        return *now, whole

    def fits(self, obj: Any, before: State, now: State) -> bool:
        return len(before[0]) == len(now[0]) and before[1][0][0] == now[1][0][0]  # the type stays

    @_by_pytorch
    def write_state(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        import torch

        with torch.no_grad():
            if content is not None:
                obj.data = content
            if not children:
                return
            memory, gradient = children
            if type(memory) is not Missing and (obj.untyped_storage() is not memory or _where(obj) != facts[0]):
                obj.data = as_tensor(memory, *facts[0])
        if facts[2] and not obj.is_leaf and obj._base is None:
            obj.detach_()  # a loss of an earlier training here, where the other process has the value alone
        if obj.is_leaf and facts[2]:
            obj.requires_grad_(facts[1])
            if self._with_gradient and type(gradient) is not Missing:
                obj.grad = gradient


class TensorKind(Composite):
    """A tensor with what was hung on it."""

    def __init__(self, *, with_gradient: bool = True) -> None:
        super().__init__(ViewOfMemoryKind(with_gradient=with_gradient))

    def glance(self, obj: Any, read: ReadMemory) -> State:
        children, facts = self._base.glance(obj, read)
        attributes = object.__getattribute__(obj, "__dict__")
        return ([*children, *attributes.values()], (facts, *attributes)) if attributes else (children, facts)

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return self._base.fingerprint(children[: facts[0]], facts[1], exact)

    def kept_elsewhere(self, obj: Any) -> Sequence[tuple[Any, Kind]]:
        strided = obj.layout is sys.modules["torch"].strided
        return [(obj, _KEPT_TENSOR), (obj.untyped_storage(), KEPT)] if strided else super().kept_elsewhere(obj)

    @_by_pytorch
    def reduce(self, obj: Any) -> Any:
        if not _has_memory(obj):
            return NotImplemented
        (memory, gradient), (where, needs, leaf) = self._base.read_state(obj)
        state = gradient, needs and leaf, self._attributes.read(obj)
        return as_tensor, (memory, *where), state, None, None, fill_tensor


def _where(tensor: Any) -> tuple[Any, ...]:
    return str(tensor.dtype), tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def _has_memory(tensor: Any) -> bool:
    import torch

    return tensor.layout is torch.strided and tensor.device.type != "meta" and not tensor.is_quantized


def _is_plain(tensor: Any) -> bool:
    """Whether the numbers lie in memory that can be read here."""
    return tensor.is_cpu and tensor.layout is sys.modules["torch"].strided and not tensor.is_quantized


def _is_lazy(tensor: Any) -> bool:
    """Whether its shape is not known yet."""
    return type(tensor).__name__.startswith("Uninitialized")


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
    """Give a new tensor its gradient, its class and its attributes; the graph that made it stays behind."""
    gradient, needs, attributes = state
    _ATTRIBUTES.write(tensor, attributes, ())
    tensor.requires_grad_(needs and (tensor.is_floating_point() or tensor.is_complex()))
    if gradient is not None:
        tensor.grad = gradient


class MemoryKind(Kind):
    """The memory of tensors (``UntypedStorage``): shared by all that look at it."""

    def glance(self, obj: Any, read: ReadMemory) -> State:
        return (), read.at(obj.data_ptr(), obj.nbytes()) if obj.device.type == "cpu" else UNSEEN

    def memory(self, obj: Any) -> Sequence[int]:
        return (obj.data_ptr(),)

    def read_state(self, obj: Any) -> State:
        return (), (obj.nbytes(), digests(_bytes(obj)))

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return stable_digest(facts if exact else facts[0])

    @_by_pytorch
    def numbers(self, obj: Any, holder: Any) -> Any:
        import torch

        if not isinstance(holder, torch.Tensor) or not (holder.is_floating_point() or holder.is_complex()):
            return None
        numbers = _whole(obj).view(holder.dtype).cpu() if obj.nbytes() % holder.element_size() == 0 else None
        if numbers is not None and holder.dtype is torch.bfloat16:
            numbers = numbers.float()
        return None if numbers is None else array_of(numbers)

    @_by_pytorch
    def seen_by(self, obj: Any, holder: Any) -> Any:
        torch = sys.modules["torch"]
        if not issubclass(type(holder), torch.Tensor) or holder.nbytes >= obj.nbytes():
            return None
        part = holder.detach().resolve_conj().resolve_neg().cpu()
        return array_of(part.float() if part.dtype is torch.bfloat16 else part)

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return changed_blocks(_bytes(obj), before[1] if before and before[0] == now[0] else (), now[1])

    def fits(self, obj: Any, before: State, now: State) -> bool:
        return bool(before[1][0] == now[1][0])  # what numpy looks at cannot be resized

    def write_state(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        if obj.nbytes() != facts[0]:
            obj.resize_(facts[0])
        whole = _whole(obj)
        for start, data in content:
            _write(whole[start : start + len(data)], data)

    def reduce(self, obj: Any) -> Any:
        return make_memory, (pickle.PickleBuffer(_bytes(obj)), str(obj.device))


def _whole(memory: Any) -> Any:
    import torch

    return torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory)


def _bytes(memory: Any) -> Any:
    return array_of(_whole(memory).cpu())


def array_of(tensor: Any) -> Any:
    """Return the numbers of a tensor where they are, to read; after ``numpy()`` its memory could not be resized."""
    import numpy

    return numpy.from_dlpack(tensor)


def _tensor_of(data: bytes) -> Any:
    import torch

    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _write(into: Any, data: bytes) -> None:
    if data:
        into.copy_(_tensor_of(data))


def make_memory(data: Any, device: str) -> Any:
    """Make memory with this content, on the same device where this machine has one."""
    import torch

    make: Any = torch.UntypedStorage
    memory = make(len(data), device=_device_here(device))
    _write(_whole(memory), data)
    return memory


def _device_here(device: str) -> str:
    import torch

    place = torch.device(device)
    here = place.type != "cuda" or (torch.cuda.is_available() and (place.index or 0) < torch.cuda.device_count())
    return device if here else "cpu"


def make_generator(state: bytes, device: str) -> Any:
    """Make a generator of random numbers with this state, on the same device where this machine has one."""
    import torch

    generator = torch.Generator(_device_here(device))
    generator.set_state(_tensor_of(state))
    return generator


class OptimizerKind(AttributesKind):
    """An optimizer: its state dict has what it knows of parameters."""

    def kept_elsewhere(self, obj: Any) -> Sequence[tuple[Any, Kind]]:
        return [(obj, _KEPT_OPTIMIZER)]


_KEPT_TENSOR = TensorKind(with_gradient=False)
# Before a step the harness has hooks of its own, as long as it trains.
_KEPT_OPTIMIZER = AttributesKind(frozenset({"state", "param_groups", "_optimizer_step_pre_hooks"}))
_ATTRIBUTES = AttributesKind()

BY_NAME |= {
    "torch.Tensor": TensorKind(),
    "torch.optim.optimizer.Optimizer": OptimizerKind(),
    # A pass over a wrapped loader begins again and steps over the batches that it has given.
    "det_native.pytorch.wrapped_loader.LoaderPass": SimpleKind(
        lambda batches: batches.__reduce__()[1][1:], held=lambda batches: batches.__reduce__()[1][:1]
    ),
    "torch.storage.UntypedStorage": MemoryKind(),
    "torch._C.Generator": SimpleKind(
        lambda generator: bytes(generator.get_state().numpy()),
        lambda generator, state, _: generator.set_state(_tensor_of(state)),
        reduce=lambda generator: (make_generator, (bytes(generator.get_state().numpy()), str(generator.device))),
    ),
    "torch.utils.data.dataloader._BaseDataLoaderIter": stays(
        "an iterator of a DataLoader", progress=lambda iterator: iterator._num_yielded
    ),
    "torch.autograd.graph.Node": OF_PROCESS,
}
for _name in ("dtype", "device", "Size", "layout", "memory_format"):
    BY_NAME[f"torch.{_name}"] = VALUE
BY_PREFIX.append(("torch.autograd.", OF_PROCESS))
