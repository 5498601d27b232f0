"""tf.keras 2: layers, models, optimizers, metrics and callbacks by their attributes, without what Keras makes again."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from det_native.heap.edges import BY_NAME, Kind, Left, State
from det_native.heap.kinds.instances import AttributesKind

# Functions that Keras compiles when they are needed, and what a call of fit() keeps until its end.
_NONE_AT_FIRST = [
    *("train_function", "test_function", "predict_function", "train_tf_function"),
    *("_cluster_coordinator", "_mesh", "_training_state"),
]
_OF_THE_PROCESS = frozenset(
    [
        *_NONE_AT_FIRST,
        *("_distribute_strategy", "_distribution_strategy", "_thread_local", "_tb_graph", "_update_step_xla"),
        *("update_state", "result", "_obj_reference_counts_dict", "_self_setattr_tracking", "_layer_call_argspecs"),
        *("_tensor_usage_count", "_eval_data_handler", "_should_eval", "_self_update_uid", "_self_name_based_restores"),
    ]
)
_SET_BY_FIT = frozenset({"model", "_model", "params", "validation_data", "_chief_worker_only", "_supports_tf_logs"})


class KerasKind(AttributesKind):
    """A layer, a model, an optimizer, a metric, a loss or a callback."""

    def __init__(self) -> None:
        super().__init__(_OF_THE_PROCESS)

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return ""  # names that Keras counts, and what a training before this one has left

    def reduce(self, obj: Any) -> Any:
        if hasattr(type(obj), "from_config") and hasattr(obj, "_compile_was_called"):
            return NotImplemented  # a whole new model: Keras's own archive
        children, names = self.take(obj)
        return make_keras, (children[0],), dict(zip(names, children[1:], strict=True)), None, None, fill_keras


def make_keras(cls: type) -> Any:
    """Make an empty object of one of Keras's classes."""
    import tensorflow as tf

    made: Any = object.__new__(cls)
    for name in _NONE_AT_FIRST:
        vars(made).setdefault(name, None)
    strategy = tf.distribute.get_strategy()
    vars(made).update(_distribution_strategy=strategy, _self_setattr_tracking=True, _thread_local=threading.local())
    return made


def fill_keras(obj: Any, state: dict[str, Any]) -> None:
    """Give it its attributes, past what Keras does when one is set."""
    vars(obj).update((name, value) for name, value in state.items() if not isinstance(value, Left))


class CallbackKind(KerasKind):
    """A callback; which model it was used for last may differ."""

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        held = dict(zip(facts, children[1:], strict=True))
        own = {name: value for name, value in held.items() if name not in _SET_BY_FIT}
        return super(KerasKind, self).fingerprint([*own.values()], [*own], exact)


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
    node.flat_input_ids = [*_identities(node._keras_inputs)]
    node.flat_output_ids = [*_identities(tf.nest.flatten(node.outputs))]
    inputs = {id(tensor) for tensor in node._keras_inputs}
    arguments = enumerate(node._flat_arguments)
    node._keras_inputs_ids_and_indices = [(str(id(value)), n) for n, value in arguments if id(value) in inputs]


def _identities(tensors: Iterable[Any]) -> Iterable[str]:
    return (str(id(tensor)) for tensor in tensors)


class FunctionalKind(KerasKind):
    """A model with a graph, which counts its tensors by their identities in this process."""

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        super().put(obj, children, facts, content)
        nodes = getattr(obj, "_nodes_by_depth", None)
        if not nodes:
            return
        outputs = obj._nested_outputs if isinstance(obj._nested_outputs, list) else [obj._nested_outputs]
        inputs = [tensor for several in nodes.values() for node in several for tensor in node._keras_inputs]
        counts: dict[str, int] = {}
        for identity in _identities([*inputs, *outputs]):
            counts[identity] = counts.get(identity, 0) + 1
        vars(obj)["_tensor_usage_count"] = counts


class OptimizerKind(KerasKind):
    """An optimizer, which knows the variables that it trains by texts that another process has other ones of."""

    def __init__(self) -> None:
        super().__init__()
        self._kept |= {"_index_dict"}
        self._trained: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()

    def take(self, obj: Any) -> State:
        children, names = super().take(obj)
        index = vars(obj).get("_index_dict")
        if index:
            known = self._trained.get(obj, ())
            if [variable._unique_id for variable in known] != [*index]:
                known = self._trained[obj] = _variables_named([*index])
            return [*children, known], [*names, "_index_dict"]
        return children, names

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        super().put(obj, children, facts, content)
        fill_optimizer(obj, {})

    def reduce(self, obj: Any) -> Any:
        made, arguments, state, items, pairs, _ = super().reduce(obj)
        return made, arguments, state, items, pairs, fill_optimizer


def fill_optimizer(obj: Any, state: dict[str, Any]) -> None:
    """Give an optimizer its attributes, and the names that the variables have here."""
    fill_keras(obj, state)
    trained = vars(obj).get("_index_dict")
    if isinstance(trained, tuple):
        vars(obj)["_index_dict"] = {variable._unique_id: place for place, variable in enumerate(trained)}


_VARIABLES: WeakValueDictionary[str, Any] = WeakValueDictionary()


def _variables_named(names: list[str]) -> tuple[Any, ...]:
    """Return the variables of these names; nothing where one of them is gone."""
    if any(name not in _VARIABLES for name in names):
        kinds = _kinds_of_variables()
        _VARIABLES.update((variable._unique_id, variable) for variable in gc.get_objects() if type(variable) in kinds)
    found = [_VARIABLES.get(name) for name in names]
    return () if any(variable is None for variable in found) else tuple(found)


def _kinds_of_variables() -> set[type]:
    from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

    kinds: list[type] = [BaseResourceVariable]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {*kinds}


class RandomKind(Kind):
    """What a layer draws random numbers from: the trained model's checkpoints have its position."""

    def take(self, obj: Any) -> State:
        return (), None

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        """Do nothing."""

    def reduce(self, obj: Any) -> Any:
        return type(obj), (obj._seed,)


BY_NAME |= {
    "keras.src.engine.base_layer.Layer": KerasKind(),
    "keras.src.optimizers.optimizer._BaseOptimizer": OptimizerKind(),
    "keras.src.optimizers.legacy.optimizer_v2.OptimizerV2": KerasKind(),
    "keras.src.engine.compile_utils.Container": KerasKind(),
    "keras.src.callbacks.Callback": CallbackKind(),
    "keras.src.callbacks.callback.Callback": CallbackKind(),  # of Keras 3
    "keras.src.engine.keras_tensor.KerasTensor": AttributesKind(),
    "keras.src.engine.node.Node": NodeKind(),
    "keras.src.engine.functional.Functional": FunctionalKind(),
    "keras.src.backend.RandomGenerator": RandomKind(),
}
