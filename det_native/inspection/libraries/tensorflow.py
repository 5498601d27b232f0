"""TensorFlow: tensors, variables, Datasets, and the wrappers that it puts around other objects."""

from __future__ import annotations

import gc
import sys
from typing import Any

from det_native.inspection.adapter import (
    Adapter,
    Content,
    Data,
    Library,
    NeverSent,
    Text,
    Walk,
)
from det_native.inspection.libraries import tensorflow_datasets


class _Tensor(Data):
    """A tensor, with numbers or in a graph."""

    def content(self, value: Any, reader: Content) -> bool:
        if not hasattr(value, "numpy"):
            return False
        reader.numbers(value.numpy())
        return True


class _EagerTensor(_Tensor):
    def children(self, value: Any, walk: Walk) -> bool:
        tensorflow: Any = sys.modules["tensorflow"]
        if value.dtype in (tensorflow.resource, tensorflow.variant):
            walk.cannot_see()
        else:
            _walk_numbers(value, walk)
        return True


class _Variable(_Tensor):
    changes_alone = True

    def children(self, value: Any, walk: Walk) -> bool:
        walk.say(str(value.dtype), str(value.shape), value.trainable)
        walk.changeable.add(id(value))
        _walk_numbers(value, walk)
        return True


def _walk_numbers(value: Any, walk: Walk) -> None:
    """Walk through the numbers of a tensor; in a graph there are none to see."""
    tensorflow, numpy = sys.modules["tensorflow"], sys.modules["numpy"]
    if not hasattr(value, "numpy") or not tensorflow.executing_eagerly():
        walk.cannot_see()
        return
    try:  # where they are, as numpy() copies them
        array = numpy.asarray(memoryview(value.read_value() if hasattr(value, "read_value") else value))
    except (TypeError, ValueError):  # on a device, or of a type that a buffer has not
        array = numpy.asarray(value.numpy())
    if array.dtype.kind in "biufc":
        walk.say(array.shape, str(array.dtype))
        walk.raw(array.reshape(-1).view(numpy.uint8))
        return
    array = numpy.asarray(value.numpy())
    walk.kept.append(array)
    walk.numbers(array)


class _Ragged(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.go((value.flat_values, *value.nested_row_splits))
        return True


class _Sparse(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.go((value.indices, value.values, value.dense_shape))
        return True


class _Dataset(Adapter):
    never_sent = "dataset"

    def content(self, value: Any, reader: Content) -> bool:
        tensorflow_datasets.read_dataset(value, reader)
        return True

    def numbers_apart(self, value: Any) -> list[Any]:
        return tensorflow_datasets.numbers_of(value)


class _Wrapper(Adapter):
    """Lists and dictionaries in layers are wrapped."""

    def children(self, value: Any, walk: Walk) -> bool:
        if type(value).__mro__[-2].__name__ != "ObjectProxy":
            return False
        walk.go(part for part in gc.get_referents(value) if part is not type(value))
        return True


class _Function(Adapter):
    """What ``tf.function`` makes: what it has traced is a cache."""

    def children(self, value: Any, walk: Walk) -> bool:
        if not hasattr(value, "python_function"):
            return False
        walk.go((value.python_function,))
        return True


class _IdentityWrapper(Adapter):
    wraps = "_wrapped"


LIBRARY = Library(
    {
        "tensorflow.EagerTensor": _EagerTensor(),
        "tensorflow.Tensor": _Tensor(),
        "tensorflow.Variable": _Variable(),
        "tensorflow.RaggedTensor": _Ragged(),
        "tensorflow.SparseTensor": _Sparse(),
        "tensorflow.python.data.DatasetV2": _Dataset(),
        "tensorflow.python.data.OwnedIterator": NeverSent("dataset"),
        "tensorflow.Graph": NeverSent("graph"),
        "tensorflow.python.module.Module": NeverSent("model"),
        "tensorflow.TrackableDataStructure": _Wrapper(),
        "tensorflow._ObjectIdentityWrapper": _IdentityWrapper(),
        "tensorflow.Function": _Function(),
        **dict.fromkeys(("tensorflow.DType", "tensorflow.TensorShape"), Text()),
    },
)
