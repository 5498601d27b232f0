"""Arrays of numpy: who owns memory has a digest of it, a view has only where it looks."""

from __future__ import annotations

import mmap
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from det_native.heap.digests import changed_blocks, digests
from det_native.heap.edges import (
    BY_NAME,
    UNSEEN,
    VALUE,
    Alike,
    Kind,
    Missing,
    ReadMemory,
    SimpleKind,
    State,
    stable_digest,
)
from det_native.heap.kinds.instances import with_attributes

_COPIED = 1 << 20  # bytes of an array with gaps that a look copies; of a larger one some of its items


class ArrayKind(Kind):
    """``numpy.ndarray``. Facts are (dtype, shape), with (strides, offset) of a view, or digests of an owner."""

    is_whole = True

    def read_state(self, obj: Any) -> State:
        owner = _owner(obj)
        start = _address(owner)
        if obj.dtype.hasobject:
            objects, others = _divided(obj)
            return [*objects, *(part for field in others for part in digests(field))], (repr(obj.dtype), obj.shape)
        if start is not None:
            return (owner,), (repr(obj.dtype), obj.shape, obj.strides, _address(obj) - start)
        return (), (repr(obj.dtype), obj.shape, digests(_bytes(obj)))

    def glance(self, obj: Any, read: ReadMemory) -> State:
        import numpy

        where = obj.dtype.str, obj.dtype.names, obj.shape, obj.strides, obj.flags.writeable
        array = obj.view(numpy.ndarray)
        if obj.dtype.hasobject:
            objects, others = _divided(array)
            return objects, (where, *(read(memoryview(field)) for field in others))
        base = _root(obj).base
        if type(base.obj if type(base) is memoryview else base) is mmap.mmap:
            return (), UNSEEN  # to read it after its file was cut short would be the end of the process
        if not array.nbytes:
            return (), where
        if array.flags.forc:
            return (), (where, read(array.ravel(order="K").view("u1").data))
        if array.nbytes > _COPIED:
            some = array[tuple(slice(None, None, max(1, size // 32)) for size in array.shape)]
            return (), (where, read.part(some.ravel().view("u1").data))
        return (), (where, read(array.ravel().view("u1").data))

    def memory(self, obj: Any) -> Sequence[int]:
        return memory_of(obj)

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return super().fingerprint(children, facts, exact) if exact else stable_digest(facts[:2])

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        # Where a view looks does not count, only what it sees.
        return (labels, children, facts) if len(facts) == 2 else ((), (), facts[:2])

    def numbers(self, obj: Any, holder: Any) -> Any:
        return None if obj.dtype.hasobject else obj

    def exact_content(self, obj: Any, facts: Any) -> Any:
        import numpy

        return facts[2] if len(facts) == 3 else digests(_bytes(numpy.ascontiguousarray(obj)))

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        if len(now) == 4 or obj.dtype == object:
            return None
        if obj.dtype.hasobject:
            return obj.copy()
        return changed_blocks(_bytes(obj), before[2] if before and before[:2] == now[:2] else (), now[2])

    def fits(self, obj: Any, before: State, now: State) -> bool:
        if len(before[1]) != len(now[1]) or before[1][:2] != now[1][:2]:
            return False
        is_view = len(now[1]) == 4
        return (
            before[0][0] is now[0][0] and before[1] == now[1] if is_view else obj.flags.writeable or obj.flags.owndata
        )

    def write_state(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        import numpy

        if obj.shape != facts[1]:
            obj.resize(facts[1], refcheck=False)
        locked = not obj.flags.writeable and obj.flags.owndata
        if locked:
            obj.flags.writeable = True
        if obj.dtype == object:
            for index, child in zip(numpy.ndindex(obj.shape), children, strict=True):
                if type(child) is not Missing:
                    obj[index] = child
        elif isinstance(content, list):
            _write(obj, content)
        elif content is not None:
            numpy.copyto(obj, content)
        if locked:
            obj.flags.writeable = False

    def reduce(self, obj: Any) -> Any:
        owner = _owner(obj)
        start = _address(owner)
        if obj.dtype.hasobject or type(obj).__name__ != "ndarray" or (start is None and not obj.flags.forc):
            return NotImplemented
        if start is None:
            data = pickle.PickleBuffer(obj.ravel(order="K").view("u1")) if obj.size else b""
            return make_array, (data, obj.dtype, obj.shape, "C" if obj.flags.c_contiguous else "F")
        return view, (owner, obj.dtype, obj.shape, obj.strides, _address(obj) - start)


def fields_of(array: Any) -> list[Any]:
    """Return the fields of an array of records, and of records in those; an array of anything else by itself."""
    return [part for name in array.dtype.names for part in fields_of(array[name])] if array.dtype.names else [array]


def _divided(array: Any) -> tuple[list[Any], list[Any]]:
    """Return the objects in an array, and the memory of the fields that have none."""
    import numpy

    fields = fields_of(numpy.asarray(array))
    objects = [obj for field in fields if field.dtype.hasobject for obj in field.ravel().tolist()]
    return objects, [_bytes(field) for field in fields if not field.dtype.hasobject]


def _root(array: Any) -> Any:
    import numpy

    while issubclass(type(array.base), numpy.ndarray):
        array = array.base
    return array


def memory_of(array: Any) -> tuple[int, ...]:
    """Return where the memory begins that an array looks at."""
    return (_root(array).__array_interface__["data"][0],) if array.nbytes else ()


def _owner(array: Any) -> Any:
    base = array.base
    while type(base) is type(array) and base.base is not None:
        base = base.base
    return base


def _address(owner: Any) -> Any:
    import numpy

    if issubclass(type(owner), numpy.ndarray):
        return int(owner.__array_interface__["data"][0])
    return int(owner.untyped_storage().data_ptr()) if hasattr(owner, "untyped_storage") else None


def _bytes(array: Any) -> Any:
    import numpy

    array = numpy.asarray(array)
    whole = array if array.flags.forc else array.copy()
    return whole.ravel(order="K").view("u1").data if whole.size else b""


def _write(array: Any, blocks: Any) -> None:
    import numpy

    array = numpy.asarray(array)
    flat = array.reshape(-1, order="A") if array.flags.forc else array.ravel(order="K")
    for start, data in blocks:
        flat.view("u1")[start : start + len(data)] = numpy.frombuffer(data, "u1")
    if not array.flags.forc:
        array[...] = flat.reshape(array.shape)


def make_array(data: Any, dtype: Any, shape: Any, order: Any) -> Any:
    """Make an array that owns its memory."""
    import numpy

    array = numpy.empty(shape, dtype, order)
    if array.size:
        array.ravel(order="K").view("u1")[:] = numpy.frombuffer(data, "u1")
    return array


def view(owner: Any, dtype: Any, shape: Any, strides: Any, offset: int) -> Any:
    """Look at another array's memory again."""
    import numpy

    if hasattr(owner, "untyped_storage"):
        import torch

        owner = torch.empty(0, dtype=torch.uint8).set_(owner.untyped_storage()).numpy()
    return numpy.ndarray(shape, dtype, owner.ravel(order="K").view("u1"), offset, strides)


def _stream(read: Callable[[Any], Any], write: Callable[[Any, Any], Any]) -> Kind:
    """Return the kind of a generator: its state has arrays, which cannot be compared by ``==``."""
    return SimpleKind(
        lambda stream: pickle.dumps(read(stream)), lambda stream, state, _: write(stream, pickle.loads(state))
    )


BY_NAME |= {
    "numpy.ndarray": with_attributes(ArrayKind()),
    "numpy.generic": VALUE,
    "numpy.dtype": VALUE,
    "numpy.ufunc": VALUE,
    "numpy.random._generator.Generator": _stream(
        lambda stream: stream.bit_generator.state, lambda stream, state: setattr(stream.bit_generator, "state", state)
    ),
    "numpy.random.bit_generator.BitGenerator": _stream(
        lambda stream: stream.state, lambda stream, state: setattr(stream, "state", state)
    ),
    "numpy.random.mtrand.RandomState": _stream(
        lambda stream: stream.get_state(legacy=False), lambda stream, state: stream.set_state(state)
    ),
}
