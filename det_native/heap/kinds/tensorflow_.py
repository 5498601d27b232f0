"""Variables of TensorFlow, and Keras's objects by their attributes; graphs and compiled functions are made again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, BY_PREFIX, VALUE, Kind, Left, Stays, State
from det_native.heap.kinds.builtin import digest, sample
from det_native.heap.kinds.instances import AttributesKind


class VariableKind(Kind):
    def take(self, obj: Any) -> State:
        value = obj.numpy()
        return (), (obj.dtype.name, value.shape, digest(value.tobytes()) if value.dtype != object else repr(value))

    def cheap(self, obj: Any) -> Any:
        value = obj.numpy()
        return sample(value.ravel().view("u1")) if value.nbytes and not value.dtype.hasobject else repr(value)

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return obj.numpy()

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.assign(content)

    def reduce(self, obj: Any) -> Any:
        return make_variable, (obj.numpy(), obj.trainable, obj.name.partition(":")[0], obj.dtype.name)


def make_variable(value: Any, trainable: bool, name: str, dtype: str) -> Any:
    """Make a variable with this value."""
    import tensorflow as tf

    return tf.Variable(value, trainable=trainable, name=name, dtype=dtype)


class ConstantKind(Kind):
    in_place = False

    def take(self, obj: Any) -> State:
        if obj.dtype.name in ("resource", "variant"):
            return (), None
        value = obj.numpy()
        return (), (obj.dtype.name, obj.shape.as_list(), digest(value.tobytes()) if hasattr(value, "tobytes") else value)

    def reduce(self, obj: Any) -> Any:
        if obj.dtype.name in ("resource", "variant"):
            return nothing, ()
        return make_constant, (obj.numpy(), obj.dtype.name)


def nothing() -> None:
    """Stand for a handle of the process."""


def make_constant(value: Any, dtype: str) -> Any:
    """Make a tensor with this value."""
    import tensorflow as tf

    return tf.constant(value, dtype=dtype)


_REMADE = frozenset(
    "train_function test_function predict_function train_tf_function _distribute_strategy _distribution_strategy "
    "_thread_local _cluster_coordinator _tb_graph _update_step_xla update_state result _obj_reference_counts_dict "
    "_self_setattr_tracking _layer_call_argspecs _mesh _tensor_usage_count".split()
)


_REMADE_AS_NONE = (
    "train_function test_function predict_function train_tf_function _cluster_coordinator _mesh".split()
)


class KerasKind(AttributesKind):
    """A layer, a model, an optimizer, a metric, a loss, a callback: its attributes, without what Keras makes again."""

    def __init__(self) -> None:
        super().__init__(_REMADE)

    def reduce(self, obj: Any) -> Any:
        if hasattr(type(obj), "from_config") and hasattr(obj, "_compile_was_called"):
            return NotImplemented  # a whole new model: Keras's own archive
        children, names = self.take(obj)
        return make_keras, (children[0],), dict(zip(names, children[1:], strict=True)), None, None, fill_keras


def make_keras(cls: type) -> Any:
    """Make an empty object of one of Keras's classes."""
    made = cls.__new__(cls)
    for name in _REMADE_AS_NONE:
        vars(made).setdefault(name, None)
    import tensorflow as tf

    vars(made)["_distribution_strategy"] = tf.distribute.get_strategy()
    vars(made)["_self_setattr_tracking"] = True
    vars(made)["_thread_local"] = threading.local()
    return made


def fill_keras(obj: Any, state: dict[str, Any]) -> None:
    """Give it its attributes, past what Keras does when one is set."""
    vars(obj).update((name, value) for name, value in state.items() if not isinstance(value, Left))


class NodeKind(AttributesKind):
    """A node of a functional model's graph, which knows its tensors by their identities in this process."""

    def __init__(self) -> None:
        super().__init__(frozenset({"flat_input_ids", "flat_output_ids", "_keras_inputs_ids_and_indices"}))

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        super().put(obj, children, facts, content)
        fill_node(obj, {})

    def reduce(self, obj: Any) -> Any:
        children, names = self.take(obj)
        return object.__new__, (type(obj),), dict(zip(names, children[1:], strict=True)), None, None, fill_node


def fill_node(node: Any, state: dict[str, Any]) -> None:
    """Give a node its attributes."""
    import tensorflow as tf

    vars(node).update(state)
    node.flat_input_ids = [str(id(one)) for one in node._keras_inputs]
    node.flat_output_ids = [str(id(one)) for one in tf.nest.flatten(node.outputs)]
    tensors = {id(one) for one in node._keras_inputs}
    flat = enumerate(node._flat_arguments)
    node._keras_inputs_ids_and_indices = [(str(id(one)), n) for n, one in flat if id(one) in tensors]


class FunctionalKind(KerasKind):
    """A model with a graph, which counts its tensors by their identities in this process."""

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        super().put(obj, children, facts, content)
        if not getattr(obj, "_nodes_by_depth", None):
            return
        counts: dict[str, int] = {}
        for node in (node for nodes in obj._nodes_by_depth.values() for node in nodes):
            for one in node._keras_inputs:
                counts[str(id(one))] = counts.get(str(id(one)), 0) + 1
        for one in obj._nested_outputs if isinstance(obj._nested_outputs, list) else [obj._nested_outputs]:
            counts[str(id(one))] = counts.get(str(id(one)), 0) + 1
        vars(obj)["_tensor_usage_count"] = counts


class DatasetKind(AttributesKind):
    """A pipeline: what it was made of can be compared, but it lives outside of Python and stays."""

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
    "tensorflow.python.trackable.data_structures._DictWrapper": WrappedKind(),
    "tensorflow.python.trackable.data_structures._TupleWrapper": WrappedKind(),
    "tensorflow.python.trackable.data_structures.ListWrapper": AttributesKind(),
    "tensorflow.python.ops.stateful_random_ops.Generator": AttributesKind(),
    "keras.src.engine.base_layer.Layer": KerasKind(),
    "keras.src.optimizers.optimizer._BaseOptimizer": KerasKind(),
    "keras.src.engine.compile_utils.Container": KerasKind(),
    "keras.src.callbacks.Callback": KerasKind(),
    "keras.src.engine.keras_tensor.KerasTensor": AttributesKind(),
    "keras.src.engine.node.Node": NodeKind(),
    "keras.src.engine.functional.Functional": FunctionalKind(),
    "tensorflow.python.framework.type_spec.TypeSpec": VALUE,
    "tensorflow.python.framework.tensor_shape.Dimension": VALUE,
    "tensorflow.python.data.ops.dataset_ops.DatasetV2": DatasetKind(),
    "tensorflow.python.trackable.base.Trackable": AttributesKind(),
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
