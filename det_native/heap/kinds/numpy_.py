"""Arrays of numpy: who owns memory has a digest of it, a view has only where it looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, VALUE, Kind, State
from det_native.heap.kinds.builtin import changed_blocks, digest, digests, sample, write_blocks


def _owner(array: Any) -> Any:
    base = array.base
    while type(base) is type(array) and base.base is not None:
        base = base.base
    return base


class ArrayKind(Kind):
    def take(self, obj: Any) -> State:
        owner = _owner(obj)
        start = _address(owner)
        if start is not None and not obj.dtype.hasobject:
            return (owner,), (obj.dtype.str, obj.shape, obj.strides, _address(obj) - start)
        if obj.dtype.hasobject:
            return obj.ravel().tolist() if obj.dtype == object else (obj.tolist(),), (obj.dtype.str, obj.shape)
        return (), (obj.dtype.str if obj.dtype.names is None else repr(obj.dtype), obj.shape, digests(_bytes(obj)))

    def cheap(self, obj: Any) -> Any:
        whole = obj.flags.forc and not obj.dtype.hasobject and obj.size
        return (obj.shape, sample(obj.ravel(order="K").view("u1"))) if whole else super().cheap(obj)

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        if obj.dtype == object or _address(_owner(obj)) is not None:
            return None
        if obj.dtype.hasobject:
            return obj.copy()
        return changed_blocks(_bytes(obj), before[2] if before and before[:2] == now[:2] else (), now[2])

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        import numpy

        if obj.shape != facts[1]:
            obj.resize(facts[1], refcheck=False)
        if obj.dtype == object:
            obj.ravel()[:] = numpy.fromiter(children, dtype=object, count=len(children))
        elif content is not None:
            locked = not obj.flags.writeable
            if locked:
                obj.flags.writeable = True
            if isinstance(content, list):
                flat = obj.reshape(-1, order="A") if obj.flags.forc else obj.ravel(order="K")
                write_blocks(flat.view("u1"), content)
                if not obj.flags.forc:
                    obj[...] = flat.reshape(obj.shape)
            else:
                numpy.copyto(obj, content)
            obj.flags.writeable = not locked

    def reduce(self, obj: Any) -> Any:
        owner = _owner(obj)
        start = _address(owner)
        if start is None or obj.dtype.hasobject or type(obj).__name__ != "ndarray":
            return NotImplemented
        return view, (owner, obj.dtype.str, obj.shape, obj.strides, _address(obj) - start)


def _address(owner: Any) -> int | None:
    if type(owner).__name__ in ("ndarray", "memmap") and type(owner).__module__ == "numpy":
        return int(owner.__array_interface__["data"][0])
    if hasattr(owner, "untyped_storage"):
        return int(owner.untyped_storage().data_ptr())
    return None


def _bytes(array: Any) -> Any:
    whole = array if array.flags.c_contiguous or array.flags.f_contiguous else array.copy()
    return whole.ravel(order="K").view("u1").data if whole.size else b""


def view(owner: Any, dtype: str, shape: Any, strides: Any, offset: int) -> Any:
    """Look at another array's memory again."""
    import numpy

    memory = owner.untyped_storage() if hasattr(owner, "untyped_storage") else owner
    if memory is not owner:
        import torch

        memory = torch.empty(0, dtype=torch.uint8).set_(memory).numpy()
    flat = memory.ravel(order="K").view("u1") if isinstance(memory, numpy.ndarray) else memory
    return numpy.ndarray(shape, dtype, flat, offset, strides)


class GeneratorKind(Kind):
    """A generator of random numbers with its stream."""

    def take(self, obj: Any) -> State:
        return (), repr(obj.bit_generator.state)

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return obj.bit_generator.state

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.bit_generator.state = content


class RandomStateKind(Kind):
    def take(self, obj: Any) -> State:
        return (), digest(repr(obj.get_state(legacy=False)).encode() + obj.get_state(legacy=False)["state"]["key"].tobytes())

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return obj.get_state(legacy=False)

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.set_state(content)


BY_NAME |= {
    "numpy.ndarray": ArrayKind(),
    "numpy.generic": VALUE,
    "numpy.dtype": VALUE,
    "numpy.random._generator.Generator": GeneratorKind(),
    "numpy.random.mtrand.RandomState": RandomStateKind(),
}
