"""tf.keras 2: layers, models, optimizers, metrics and callbacks by their attributes, without what Keras makes again."""

from __future__ import annotations

import gc
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from det_native.heap.edges import BY_NAME, KEPT, Alike, Kind, NamedKind, SimpleKind
from det_native.heap.kinds.instances import AttributesKind, attributes_of
from det_native.heap.kinds.keras_models import OptimizerBesideKind, kept_optimizer, parts_of_model, reduced_model
from det_native.heap.kinds.tensorflow_ import TrackableKind

# Functions that Keras compiles when they are needed, and what a call of fit() keeps until its end.
_NONE_AT_FIRST = [
    *("train_function", "test_function", "predict_function", "train_tf_function"),
    *("_cluster_coordinator", "_mesh", "_training_state"),
]
_OF_THE_PROCESS = frozenset(
    [
        *_NONE_AT_FIRST,
        *("_distribute_strategy", "_distribution_strategy", "_thread_local", "_tb_graph", "_update_step_xla"),
        *("update_state", "result", "_obj_reference_counts_dict", "_layer_call_argspecs"),
        *("_tensor_usage_count", "_eval_data_handler", "_should_eval"),
        "_serialized_attributes",  # what a SavedModel had of it, compiled functions most of all
    ]
)
_OF_INPUT = frozenset({"_batch_input_shape", "_dtype_policy", "sparse", "ragged"})
_SET_BY_FIT = frozenset({"model", "_model", "params", "validation_data", "_chief_worker_only", "_supports_tf_logs"})


#: What is another after a model was used: counters for callbacks, the last history.
SET_BY_USE = frozenset(
    [
        *("history", "_called", "_allow_sum_over_batch_size", "stop_predicting", "stop_evaluating"),
        *("_test_counter", "_predict_counter", "_train_counter"),
    ]
)
# Names that Keras counts, what it derives from them, what a use of an object sets, and how its input was given.
_OF_ITS_USE = frozenset(
    [
        *("_name", "name", "_keras_api_names", "_keras_api_names_v1", "_build_input_shape", "_jit_compile"),
        "_type_spec",
        *("input_names", "output_names", "_output_names", "_feed_input_names", "_feed_output_names", "_network_nodes"),
        *("_call_result", "_saved_model_inputs_spec", "_auto_config"),
        *("_saved_model_arg_spec", "_feed_input_shapes", "_layout_map"),
        # In which models a layer is used; how it is connected in one, the model's own nodes say.
        *("_inbound_nodes_value", "_outbound_nodes_value"),
        *("_inferred_input_shape", "_has_explicit_input_shape", "_created_nodes", "_name_scope_on_declaration"),
        *("_auto_get_config", "_path", "_parent_path", "_tracked"),
    ]
)
#: Returns what is compared of labels and children.
Choice = Callable[[Sequence[Any], Sequence[Any]], Alike]
_COUNTER = re.compile(r"_\d+(?=$|[/:])")


def without_counters(labels: Sequence[Any], children: Sequence[Any]) -> Alike:
    """Return what of Keras's attributes is the same in every process that has made an object: not what it counts."""
    kept = [place for place, label in enumerate(labels) if label not in _OF_ITS_USE and label not in SET_BY_USE]
    values = [children[place] for place in kept]
    return (
        [labels[place] for place in kept],
        [_COUNTER.sub("", value) if type(value) is str else value for value in values],
        None,
    )


def without_counts(labels: Sequence[Any], children: Sequence[Any]) -> Alike:
    """Return what of a metric's attributes is compared: not what it counts anew in each epoch."""
    kept = [pair for pair in zip(labels, children, strict=True) if not hasattr(pair[1], "assign")]
    return without_counters([label for label, _ in kept], [child for _, child in kept])


def as_given(labels: Sequence[Any], children: Sequence[Any]) -> Alike:
    """Return the user's losses and metrics, from which Keras makes others when they are needed."""
    kept = [pair for pair in zip(labels, children, strict=True) if str(pair[0])[:5] == "_user"]
    return [label for label, _ in kept], [child for _, child in kept], None


def of_input(labels: Sequence[Any], children: Sequence[Any]) -> Alike:
    """Return what of a model's input is compared: one made again from a configuration was given other arguments."""
    kept = [pair for pair in zip(labels, children, strict=True) if pair[0] in _OF_INPUT]
    return [label for label, _ in kept], [child for _, child in kept], None


class KerasKind(TrackableKind):
    """A layer, a model, an optimizer, a metric or a loss; `alike` returns what of its attributes is compared."""

    set_by_use = SET_BY_USE

    def __init__(
        self, skipped: frozenset[str] = frozenset(), *, compared: bool = False, alike: Choice = without_counters
    ) -> None:
        # Not compared: names that Keras counts, and what a training before this one has set.
        super().__init__(_OF_THE_PROCESS | skipped, compared=compared)
        self._alike = alike

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return self._alike(labels, children)

    def reduce(self, obj: Any) -> Any:
        return reduced_model(obj) if _is_model(obj) else self.reduced(obj, make_keras)

    def reduced_alone(self, obj: Any) -> Any:
        return self.reduced(obj, make_keras)

    def made_parts(self, obj: Any) -> Sequence[Any]:
        return parts_of_model(obj) if _is_model(obj) else ()


def _is_model(obj: Any) -> bool:
    return hasattr(type(obj), "from_config") and hasattr(obj, "_compile_was_called")


class ArgumentsKind(AttributesKind):
    """What Keras keeps of the arguments of a layer: what they make is compared."""

    is_alone = True

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return None


class GivenKind(NamedKind):
    """What the user gave to what Keras makes of losses and metrics, and saves."""

    compared, in_place, stays, quiet = False, False, KEPT.stays, True

    def read(self, obj: Any) -> dict[str, Any]:
        return {name: value for name, value in attributes_of(obj).items() if name.startswith("_user")}


class ContainerKind(KerasKind):
    """What Keras makes of losses and metrics."""

    def kept_elsewhere(self, obj: Any) -> Sequence[tuple[Any, Kind]]:
        return [(obj, GIVEN)]


class GraphTensorKind(AttributesKind):
    """A tensor of a functional model's graph, which has a name that Keras counts."""

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return without_counters(labels, children)


def make_keras(cls: type) -> Any:
    """Make an empty object of one of Keras's classes."""
    import tensorflow as tf

    made: Any = object.__new__(cls)
    strategy = tf.distribute.get_strategy()
    vars(made).update(dict.fromkeys(_NONE_AT_FIRST))
    vars(made).update(_distribution_strategy=strategy, _self_setattr_tracking=True, _thread_local=threading.local())
    return made


class CallbackKind(KerasKind):
    """A callback; which model it was used for last may differ."""

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        pairs = [pair for pair in zip(labels, children, strict=True) if pair[0] not in _SET_BY_FIT]
        return [label for label, _ in pairs], [child for _, child in pairs], None

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        own = {name: value for name, value in zip(facts, children, strict=True) if name not in _SET_BY_FIT}
        return super().fingerprint([*own.values()], (*own,), exact)


class NodeKind(AttributesKind):
    """A node of a functional model's graph, which knows its tensors by their identities in this process."""

    def reduce(self, obj: Any) -> Any:
        return self.reduced(obj)

    def repair(self, obj: Any) -> None:
        import tensorflow as tf

        obj.flat_input_ids = _identities(obj._keras_inputs)
        obj.flat_output_ids = _identities(tf.nest.flatten(obj.outputs))
        inputs = {id(tensor) for tensor in obj._keras_inputs}
        arguments = enumerate(obj._flat_arguments)
        obj._keras_inputs_ids_and_indices = [(str(id(value)), n) for n, value in arguments if id(value) in inputs]


def _identities(tensors: Iterable[Any]) -> list[str]:
    return [str(id(tensor)) for tensor in tensors]


class FunctionalKind(KerasKind):
    """A model with a graph, which counts its tensors by their identities in this process."""

    def repair(self, obj: Any) -> None:
        nodes = getattr(obj, "_nodes_by_depth", None)
        if nodes:
            outputs = obj._nested_outputs if isinstance(obj._nested_outputs, list) else [obj._nested_outputs]
            inputs = [tensor for several in nodes.values() for node in several for tensor in node._keras_inputs]
            vars(obj)["_tensor_usage_count"] = dict(Counter(_identities([*inputs, *outputs])))


class OlderOptimizerKind(KerasKind):
    """An optimizer of the older form."""

    def kept_elsewhere(self, obj: Any) -> Sequence[tuple[Any, Kind]]:
        return kept_optimizer(obj, _BESIDE)


class OptimizerKind(OlderOptimizerKind):
    """An optimizer, which knows the variables that it trains by texts that another process has other ones of."""

    def __init__(self) -> None:
        super().__init__(frozenset({"_index_dict"}))
        self._trained: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()

    def read(self, obj: Any) -> dict[str, Any]:
        values = super().read(obj)
        index = vars(obj).get("_index_dict")
        if index:
            trained = self._trained.get(obj, ())
            if [variable._unique_id for variable in trained] != [*index]:
                trained = self._trained[obj] = _variables_named([*index])
            values["_index_dict"] = trained
        return values

    def repair(self, obj: Any) -> None:
        trained = vars(obj).get("_index_dict")
        if isinstance(trained, tuple):
            vars(obj)["_index_dict"] = {variable._unique_id: place for place, variable in enumerate(trained)}


_VARIABLES: WeakValueDictionary[str, Any] = WeakValueDictionary()


def _variables_named(names: list[str]) -> tuple[Any, ...]:
    """Return the variables of these names; nothing where one of them is gone."""
    if any(name not in _VARIABLES for name in names):
        from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

        every = (obj for obj in gc.get_objects() if BaseResourceVariable in type(obj).__mro__)
        _VARIABLES.update((variable._unique_id, variable) for variable in every)
    variables = tuple(_VARIABLES.get(name) for name in names)
    return () if any(variable is None for variable in variables) else variables


GIVEN = GivenKind()
_BESIDE = OptimizerBesideKind(KerasKind())

BY_NAME |= {
    "keras.src.engine.base_layer.Layer": KerasKind(),
    # Of a class that load_model() of a SavedModel has made: its call() is a function that was compiled then.
    "keras.src.saving.legacy.saved_model.load.RevivedLayer": KerasKind(frozenset({"call", "signatures"})),
    "keras.src.optimizers.optimizer._BaseOptimizer": OptimizerKind(),
    "keras.src.optimizers.legacy.optimizer_v2.OptimizerV2": OlderOptimizerKind(),
    "keras.src.engine.input_layer.InputLayer": KerasKind(alike=of_input),
    "keras.src.saving.serialization_lib.Config": ArgumentsKind(),
    "keras.src.engine.compile_utils.Container": ContainerKind(alike=as_given),
    "keras.src.metrics.base_metric.Metric": KerasKind(alike=without_counts),
    "keras.src.callbacks.Callback": CallbackKind(compared=True),
    "keras.src.callbacks.callback.Callback": CallbackKind(compared=True),  # of Keras 3
    "keras.src.engine.keras_tensor.KerasTensor": GraphTensorKind(),
    "keras.src.engine.node.Node": NodeKind(
        frozenset({"flat_input_ids", "flat_output_ids", "_keras_inputs_ids_and_indices"})
    ),
    "keras.src.engine.functional.Functional": FunctionalKind(),
    # The trained model's checkpoints have the position of what a layer draws random numbers from.
    "keras.src.backend.RandomGenerator": SimpleKind(
        None, lambda *state: None, reduce=lambda generator: (type(generator), (generator._seed,))
    ),
}
