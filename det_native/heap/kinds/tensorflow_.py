"""TensorFlow: variables, constants and pipelines; graphs, sessions and compiled functions belong to their process."""

from __future__ import annotations

import sys
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import BY_NAME, BY_PREFIX, OF_PROCESS, VALUE, Missing, SimpleKind, stays
from det_native.heap.kinds.instances import AttributesKind

# Bytes of a constant of which all are compared, of a larger one samples: nobody can change it.
_SMALL = 1 << 20


def facts_of(value: Any, dtype: str) -> Any:
    """Return what tells the content of a variable from another: its type, shape and a digest."""
    content = digest(value.tobytes()) if hasattr(value, "tobytes") and value.dtype != object else repr(value)
    return dtype, getattr(value, "shape", ()), content


def _reduced_variable(obj: Any) -> Any:
    tf = sys.modules["tensorflow"]
    if not tf.executing_eagerly():
        return Missing, ("a variable of a graph",)
    return make_variable, (tf.Variable, obj.numpy(), obj.trainable, obj.name.partition(":")[0], obj.dtype.name)


def make_variable(cls: Any, value: Any, trainable: bool, name: str, dtype: str) -> Any:
    """Make a variable with this value."""
    return cls(value, trainable=trainable, name=name, dtype=dtype)


def _facts_of_constant(obj: Any) -> Any:
    if _is_handle(obj):
        return None
    value = obj.numpy()
    if getattr(value, "nbytes", 0) > _SMALL and value.dtype != object:
        value = value.ravel()[:: value.nbytes // _SMALL]
    return (*obj.shape, facts_of(value, obj.dtype.name))


def _is_handle(tensor: Any) -> bool:
    return tensor.dtype.name in ("resource", "variant")


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


def unwrapped(value: Any) -> Any:
    """Return a value as it is."""
    return value


# What TensorFlow puts around a dict or a tuple that is an attribute.
_WRAPPED = SimpleKind(held=lambda obj: (obj.__wrapped__,), reduce=lambda obj: (unwrapped, (obj.__wrapped__,)))

BY_NAME |= {
    "tensorflow.python.ops.resource_variable_ops.BaseResourceVariable": SimpleKind(
        lambda variable: facts_of(variable.numpy(), variable.dtype.name),  # one of a graph has none without a session
        lambda variable, facts, content: variable.assign(content),
        content=lambda variable: variable.numpy(),
        reduce=_reduced_variable,
    ),
    # Nobody changes a tensor: another one takes its place.
    "tensorflow.python.framework.ops.EagerTensor": SimpleKind(
        _facts_of_constant,
        reduce=lambda obj: (type(None), ()) if _is_handle(obj) else (make_constant, (obj.numpy(), obj.dtype.name)),
    ),
    "tensorflow.python.trackable.data_structures._DictWrapper": _WRAPPED,
    "tensorflow.python.trackable.data_structures._TupleWrapper": _WRAPPED,
    "tensorflow.python.trackable.data_structures.ListWrapper": AttributesKind(),
    "tensorflow.python.ops.stateful_random_ops.Generator": GeneratorKind(),
    "tensorflow.python.data.ops.dataset_ops.DatasetV2": DatasetKind(
        frozenset({"_graph_attr", "_variant_tensor_attr", "_options_attr"})
    ),
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator": stays("an iterator of a Dataset"),
    "tensorflow.python.ops.lookup_ops.LookupInterface": OF_PROCESS,
    "tensorflow.python.lib.io.file_io.FileIO": stays("an open file", quiet=True),
    "tensorflow.python.training.session_run_hook.SessionRunHook": AttributesKind(),
    "tensorflow.python.training.basic_session_run_hooks.CheckpointSaverListener": AttributesKind(),
    "tensorflow.python.trackable.base.Trackable": AttributesKind(),
    "tensorflow_estimator.python.estimator.estimator.EstimatorV2": OF_PROCESS,
    "tensorflow_estimator.python.estimator.estimator.Estimator": OF_PROCESS,
}
for _name in ("dtypes.DType", "tensor_shape.TensorShape", "tensor_shape.Dimension", "type_spec.TypeSpec"):
    BY_NAME[f"tensorflow.python.framework.{_name}"] = VALUE
BY_PREFIX += [
    ("tensorflow.python.trackable.", AttributesKind()),
    ("tensorflow.python.util.object_identity.", AttributesKind()),
    ("tensorflow.", OF_PROCESS),  # graphs, sessions, strategies, compiled functions
]
