"""TensorFlow: variables, constants and pipelines; graphs, sessions and compiled functions belong to their process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import BY_NAME, BY_PREFIX, VALUE, Kind, Left, State, Stays
from det_native.heap.kinds.instances import AttributesKind

# Bytes of a constant of which all are compared, of a larger one samples: nobody can change it.
_SMALL = 1 << 20


def facts_of(value: Any, dtype: str) -> Any:
    """Return what tells the content of a variable from another: its type, shape and a digest."""
    content = digest(value.tobytes()) if hasattr(value, "tobytes") and value.dtype != object else repr(value)
    return dtype, getattr(value, "shape", ()), content


class VariableKind(Kind):
    """A variable by its value; one of a graph has none without a session."""

    def take(self, obj: Any) -> State:
        return (), facts_of(obj.numpy(), obj.dtype.name)

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return obj.numpy()

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.assign(content)

    def reduce(self, obj: Any) -> Any:
        if not sys.modules["tensorflow"].executing_eagerly():
            return Left, ("a variable of a graph",)
        return make_variable, (obj.numpy(), obj.trainable, obj.name.partition(":")[0], obj.dtype.name)


def make_variable(value: Any, trainable: bool, name: str, dtype: str) -> Any:
    """Make a variable with this value."""
    import tensorflow as tf

    return tf.Variable(value, trainable=trainable, name=name, dtype=dtype)


class ConstantKind(Kind):
    """A tensor, which nobody changes: another one takes its place."""

    in_place = False

    def take(self, obj: Any) -> State:
        if _is_handle(obj):
            return (), None
        value = obj.numpy()
        if getattr(value, "nbytes", 0) > _SMALL and value.dtype != object:
            value = value.ravel()[:: value.nbytes // _SMALL]
        return (), (*obj.shape, facts_of(value, obj.dtype.name))

    def reduce(self, obj: Any) -> Any:
        return (nothing, ()) if _is_handle(obj) else (make_constant, (obj.numpy(), obj.dtype.name))


def _is_handle(tensor: Any) -> bool:
    return tensor.dtype.name in ("resource", "variant")


def nothing() -> None:
    """Stand for a handle of the process."""


def make_constant(value: Any, dtype: str) -> Any:
    """Make a tensor with this value."""
    import tensorflow as tf

    return tf.constant(value, dtype=dtype)


class GeneratorKind(AttributesKind):
    """``tf.random.Generator``: its state is a variable."""

    def reduce(self, obj: Any) -> Any:
        return make_generator, (obj.state.numpy(), int(obj.algorithm))


def make_generator(state: Any, algorithm: int) -> Any:
    """Make a generator of random numbers with this state."""
    import tensorflow as tf

    return tf.random.Generator.from_state(state, alg=algorithm)


class DatasetKind(AttributesKind):
    """A pipeline: its Python objects are compared, but it lives outside of Python and stays."""

    in_place = False
    stays = "a Dataset of TensorFlow"

    def __init__(self) -> None:
        super().__init__(frozenset({"_graph_attr", "_variant_tensor_attr", "_options_attr"}))


class WrappedKind(Kind):
    """What TensorFlow puts around a dict or a tuple that is an attribute."""

    def take(self, obj: Any) -> State:
        return (obj.__wrapped__,), None

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.__wrapped__ = children[0]

    def reduce(self, obj: Any) -> Any:
        return unwrapped, (obj.__wrapped__,)


def unwrapped(value: Any) -> Any:
    """Return a value as it is."""
    return value


BY_NAME |= {
    "tensorflow.python.ops.resource_variable_ops.BaseResourceVariable": VariableKind(),
    "tensorflow.python.framework.ops.EagerTensor": ConstantKind(),
    "tensorflow.python.framework.dtypes.DType": VALUE,
    "tensorflow.python.framework.tensor_shape.TensorShape": VALUE,
    "tensorflow.python.framework.tensor_shape.Dimension": VALUE,
    "tensorflow.python.framework.type_spec.TypeSpec": VALUE,
    "tensorflow.python.trackable.data_structures._DictWrapper": WrappedKind(),
    "tensorflow.python.trackable.data_structures._TupleWrapper": WrappedKind(),
    "tensorflow.python.trackable.data_structures.ListWrapper": AttributesKind(),
    "tensorflow.python.ops.stateful_random_ops.Generator": GeneratorKind(),
    "tensorflow.python.data.ops.dataset_ops.DatasetV2": DatasetKind(),
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator": Stays("an iterator of a Dataset"),
    "tensorflow.python.ops.lookup_ops.LookupInterface": Stays("a table of TensorFlow", quiet=True),
    "tensorflow.python.lib.io.file_io.FileIO": Stays("an open file", quiet=True),
    "tensorflow.python.training.session_run_hook.SessionRunHook": AttributesKind(),
    "tensorflow.python.training.basic_session_run_hooks.CheckpointSaverListener": AttributesKind(),
    "tensorflow.python.trackable.base.Trackable": AttributesKind(),
    "tensorflow_estimator.python.estimator.estimator.EstimatorV2": Stays("an Estimator", quiet=True),
    "tensorflow_estimator.python.estimator.estimator.Estimator": Stays("an Estimator", quiet=True),
}
BY_PREFIX += [
    ("tensorflow.python.trackable.", AttributesKind()),
    ("tensorflow.python.util.object_identity.", AttributesKind()),
    ("tensorflow.python.eager.", Stays("a compiled function", quiet=True)),
    ("tensorflow.python.framework.", Stays("a part of a graph", quiet=True)),
    ("tensorflow.python.distribute.", Stays("a strategy", quiet=True)),
    ("tensorflow.python.client.", Stays("a session", quiet=True)),
    ("tensorflow.", Stays("a part of TensorFlow", quiet=True)),
]
