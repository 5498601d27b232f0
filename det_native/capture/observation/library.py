"""How to look at what libraries make: arrays, tables, tensors, generators of random numbers, layers.

For each only the fingerprint of what cannot be seen from Python is added here; the rest is walked as of any object.
"""

from __future__ import annotations

import gc
import mmap
import sys
import zlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol

from det_native.capture.observation import datasets

_WHOLE = 1 << 20  # bytes of an array that are read whole in each look; of a larger one, so many stretches
_STRETCHES = 16
_STRETCH = 1 << 16


class Walk(Protocol):
    """The walk over the objects of a value, see ``graph.Walk``."""

    left: int
    room: int
    full: int | None
    changeable: set[int]
    kept: list[Any]

    def say(self, *told: Hashable) -> None:
        """Take something into the fingerprint."""

    def go(self, parts: Iterable[Any]) -> None:
        """Look at these objects, too."""

    def cannot_see(self) -> None:
        """Note that something cannot be seen into."""


def looker_of(kind: type) -> Callable[[Walk, Any, type], bool] | None:
    """Return what looks at objects of a class; it returns False for one that is looked at like any other."""
    if any(_KNOWN_BY_IDENTITY in base.__dict__ for base in kind.__mro__):
        return _nothing
    return _LOOKERS.get(kind.__module__.partition(".")[0])


def _nothing(walk: Walk, one: Any, kind: type) -> bool:
    return True


#: Classes with this attribute stand for something elsewhere, and change with it: our handles of experiments.
_KNOWN_BY_IDENTITY = "_det_known_by_identity"
#: What Keras's objects keep of having been used: compiled functions, counters for callbacks, lists of what their other
#: attributes hold.
_CACHES_OF_KERAS = frozenset(
    {"train_function", "test_function", "predict_function", "train_tf_function", "history", "_called"}
    | {
        "_allow_sum_over_batch_size",
        "stop_predicting",
        "stop_evaluating",
        "_test_counter",
        "_predict_counter",
        "_train_counter",
    }
    | {"_obj_reference_counts_dict", "_self_unconditional_checkpoint_dependencies"}
    | {"_self_unconditional_dependency_names"}
)


def is_data(kind: type) -> bool:
    """Whether a class of a library is one of data, or of widgets, whose values users set."""
    pandas, torch, traitlets = (sys.modules.get(name) for name in ("pandas", "torch", "traitlets"))
    kinds: list[type] = []
    if pandas is not None:
        kinds += [pandas.DataFrame, pandas.Series, pandas.Index]
    if torch is not None:
        kinds.append(torch.Tensor)
    if traitlets is not None:
        kinds.append(traitlets.HasTraits)
    return issubclass(kind, tuple(kinds))


def is_wrapper(kind: type) -> bool:
    """Whether objects of a class are made anew around the same object each time that they are needed."""
    return kind.__name__ == "_ObjectIdentityWrapper"


def caches_of(kind: type) -> frozenset[str]:
    """Return attributes of a class of a library that are set when its objects are merely used."""
    of_keras = any(one.__module__.partition(".")[0] == "keras" for one in kind.__mro__)
    return _CACHES_OF_KERAS if of_keras else frozenset()


def bytes_of(walk: Walk, raw: Any) -> None:
    """Take the content of a contiguous buffer of bytes into the fingerprint, of a large one by samples.

    Where there is room for it, a large one is read whole besides.
    """
    size = raw.nbytes
    walk.left -= min(size, _WHOLE) >> 13
    if size <= _WHOLE:
        walk.say(size, zlib.crc32(raw))
        return
    if walk.full is not None:
        walk.room -= size
        walk.full = hash((walk.full, zlib.crc32(raw))) if walk.room >= 0 else None
    step = (size - _STRETCH) // (_STRETCHES - 1)
    walk.say(size, *(zlib.crc32(raw[start : start + _STRETCH]) for start in range(0, size - _STRETCH + 1, step)))


def _numpy(walk: Walk, one: Any, kind: type) -> bool:
    numpy = sys.modules["numpy"]
    if issubclass(kind, numpy.generic):
        walk.say(one.dtype.str, one.tobytes())
        return True
    if issubclass(kind, numpy.ndarray):
        array(walk, one, kind)
        return True
    if issubclass(kind, numpy.dtype):
        walk.say(str(one))
        return True
    if kind is numpy.random.RandomState:
        walk.say(_state(one.get_state(legacy=False)))
        return True
    if kind is numpy.random.Generator:
        walk.go((one.bit_generator,))
        return True
    if issubclass(kind, numpy.random.BitGenerator):
        walk.say(_state(one.state))
        return True
    return issubclass(kind, numpy.ufunc)


def array(walk: Walk, one: Any, kind: type) -> None:
    """Look at a numpy array: its numbers, and what they lie in."""
    numpy = sys.modules["numpy"]
    plain = numpy.ndarray
    walk.say(one.shape, one.strides, str(one.dtype), one.flags.writeable)
    root, base = one, one.base
    while isinstance(base, plain):
        walk.changeable.add(id(base))
        root, base = base, base.base
    torch = sys.modules.get("torch")
    if torch is not None and root.nbytes > _WHOLE:  # a tensor may have the same numbers
        shared = isinstance(base, getattr(torch, "Tensor", ()))
        walk.changeable.add(base.untyped_storage().data_ptr() if shared else root.__array_interface__["data"][0])
    base = base.obj if type(base) is memoryview else base
    if type(base) is mmap.mmap:  # to read it after its file was cut short is the end of the kernel
        walk.cannot_see()
        return
    if base is not None:
        walk.changeable.add(id(base))
    if kind is not plain:
        walk.cannot_see()  # a masked array keeps more than its numbers
        walk.go([*one.__dict__, *one.__dict__.values()] if getattr(one, "__dict__", None) else ())
    view = one.view(plain)
    if one.dtype.hasobject:
        walk.go(view.ravel()[: max(walk.left, 0) + 1].tolist())
        return
    if not view.flags.c_contiguous:
        if view.nbytes > _WHOLE:
            first = view[tuple(slice(None, None, max(1, size // 32)) for size in view.shape)]
            walk.say(zlib.crc32(numpy.ascontiguousarray(first).reshape(-1).view(numpy.uint8)))
            walk.full = None
            return
        view = numpy.ascontiguousarray(view)
    bytes_of(walk, view.reshape(-1).view(numpy.uint8))


def _state(state: Any) -> int:
    if isinstance(state, dict):
        return hash(tuple((name, _state(value)) for name, value in state.items()))
    return hash(state.tobytes() if hasattr(state, "tobytes") else state)


def _random(walk: Walk, one: Any, kind: type) -> bool:
    if kind is not sys.modules["random"].Random:
        return False
    walk.say(hash(one.getstate()))
    return True


def _torch(walk: Walk, one: Any, kind: type) -> bool:
    torch = sys.modules["torch"]
    if issubclass(kind, torch.Tensor):
        walk.say(tuple(one.shape), str(one.dtype), one.requires_grad, str(one.device))
        walk.changeable.add(one.untyped_storage().data_ptr() if one.layout == torch.strided else id(one))
        if one.is_leaf and one.grad is not None:
            walk.go((one.grad,))
        if one.__dict__:
            walk.go([*one.__dict__, *one.__dict__.values()])
        plain = one.detach()
        if plain.device.type != "cpu" or plain.layout != torch.strided or plain.is_quantized:
            walk.say(one._version, one.data_ptr() if plain.layout == torch.strided else 0)
            return True
        plain = plain.contiguous().reshape(-1)
        if not plain.numel():
            return True
        bytes_of(walk, plain.view(torch.uint8).numpy())
        return True
    if kind is torch.Generator:
        if one.device.type == "cpu":
            walk.say(zlib.crc32(one.get_state().numpy()))
        else:
            walk.cannot_see()
        return True
    return kind in (torch.dtype, torch.device, torch.Size, torch.layout)


def _pandas(walk: Walk, one: Any, kind: type) -> bool:
    pandas = sys.modules["pandas"]
    if issubclass(kind, pandas.DataFrame):
        _axis(walk, one.index)
        _axis(walk, one.columns)
        walk.go([*one.attrs, *one.attrs.values()])
        for position in range(one.shape[1]):
            _column(walk, one._ixs(position, axis=1))
        return True
    if issubclass(kind, pandas.Series):
        _axis(walk, one.index)
        walk.say(repr(one.name))
        _column(walk, one)
        return True
    if issubclass(kind, pandas.Index):
        _axis(walk, one)
        return True
    if issubclass(kind, pandas.Timestamp | pandas.Timedelta | pandas.Period | pandas.Interval):
        walk.say(repr(one))
        return True
    return one is pandas.NA or one is pandas.NaT


def _column(walk: Walk, column: Any) -> None:
    held = column.array
    walk.say(str(column.dtype))
    _values(walk, held)


def _axis(walk: Walk, index: Any) -> None:
    walk.say(id(index), len(index), str(getattr(index, "names", "")))


def _values(walk: Walk, held: Any) -> None:
    numpy = sys.modules["numpy"]
    inner = getattr(held, "_ndarray", None)
    if isinstance(inner, numpy.ndarray):
        array(walk, inner, type(inner))
        return
    for name in ("_codes", "_data", "_mask"):
        part = getattr(held, name, None)
        if isinstance(part, numpy.ndarray):
            array(walk, part, type(part))
        elif part is not None:
            walk.cannot_see()
    if hasattr(held, "categories"):
        _axis(walk, held.categories)


def _tensorflow(walk: Walk, one: Any, kind: type) -> bool:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not hasattr(tensorflow, "Variable"):
        return False
    wrapt = sys.modules.get("wrapt")
    if wrapt is not None and issubclass(kind, wrapt.ObjectProxy):  # lists and dictionaries in layers are wrapped
        walk.go(part for part in gc.get_referents(one) if part is not kind)
        return True
    if kind.__name__ == "Function" and hasattr(one, "python_function"):  # what it has traced is a cache
        walk.go((one.python_function,))
        return True
    if issubclass(kind, tensorflow.Variable):
        walk.say(str(one.dtype), str(one.shape), one.trainable)
        walk.changeable.add(id(one))
        _numbers(walk, one)
        return True
    if kind.__name__ == "EagerTensor" and issubclass(kind, tensorflow.Tensor):
        if one.dtype in (tensorflow.resource, tensorflow.variant):
            walk.cannot_see()
        else:
            _numbers(walk, one)
        return True
    if issubclass(kind, tensorflow.DType | tensorflow.TensorShape):
        walk.say(str(one))
        return True
    if issubclass(kind, tensorflow.data.Dataset):
        parts = datasets.parts_of(one)
        if parts is None:
            walk.cannot_see()
        else:
            walk.go(parts)
        return True
    return False


def _numbers(walk: Walk, one: Any) -> None:
    """Take the numbers of a tensor into the fingerprint; in a graph there are none to see."""
    read = getattr(one, "numpy", None)
    try:
        numbers = read() if read is not None else None
    except NotImplementedError:
        numbers = None
    if numbers is None:
        walk.cannot_see()
        return
    numpy = sys.modules["numpy"]
    numbers = numpy.asarray(numbers)
    walk.kept.append(numbers)
    array(walk, numbers, type(numbers))


_LOOKERS: dict[str, Callable[[Walk, Any, type], bool]] = {
    "tensorflow": _tensorflow,
    "numpy": _numpy,
    "random": _random,
    "torch": _torch,
    "pandas": _pandas,
}
