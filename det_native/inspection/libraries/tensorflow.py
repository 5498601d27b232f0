"""TensorFlow: tensors, variables, Datasets, and the wrappers that it puts around other objects."""

from __future__ import annotations

from typing import Any

from det_native.inspection.adapter import (
    Adapter,
    Content,
    Data,
    Library,
    NeverSent,
    Text,
)
from det_native.inspection.libraries import tensorflow_datasets


class _Tensor(Data):
    """A tensor, with numbers or in a graph."""

    def content(self, value: Any, reader: Content) -> bool:
        if not hasattr(value, "numpy"):
            return False
        reader.numbers(value.numpy())
        return True


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


LIBRARY = Library(
    {
        "tensorflow.EagerTensor": _Tensor(),
        "tensorflow.Tensor": _Tensor(),
        "tensorflow.Variable": _Tensor(),
        "tensorflow.RaggedTensor": _Ragged(),
        "tensorflow.SparseTensor": _Sparse(),
        "tensorflow.python.data.DatasetV2": _Dataset(),
        "tensorflow.python.data.OwnedIterator": NeverSent("dataset"),
        "tensorflow.Graph": NeverSent("graph"),
        "tensorflow.python.module.Module": NeverSent("model"),
        "tensorflow.TrackableDataStructure": Adapter(),
        "tensorflow._ObjectIdentityWrapper": Adapter(),
        "tensorflow.Function": Adapter(),
        **dict.fromkeys(("tensorflow.DType", "tensorflow.TensorShape"), Text()),
    },
)
