"""Keras 3, of any backend: variables by their values, layers and models without what Keras makes again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, Kind, State, Stays
from det_native.heap.kinds.instances import AttributesKind, Composite
from det_native.heap.kinds.keras2 import fill_keras
from det_native.heap.kinds.tensorflow_ import facts_of

_OF_THE_PROCESS = frozenset(
    [
        *("train_function", "test_function", "predict_function", "_eval_epoch_iterator", "_epoch_iterator"),
        *("_tracker", "_lock", "_auto_config", "_loss_ids", "_obj_type", "build", "quantize", "_jax_state"),
        *("_distribute_strategy", "_distribution_strategy", "_compiled_trainable_state", "_self_setattr_tracking"),
        *("_self_update_uid", "_self_name_based_restores", "_self_saveable_object_factories"),
        *("_self_unconditional_checkpoint_dependencies", "_self_unconditional_dependency_names"),
        "_self_unconditional_deferred_dependencies",
    ]
)


class VariableKind(Kind):
    """A variable by its value, wherever the backend keeps it."""

    def take(self, obj: Any) -> State:
        return (), facts_of(_value(obj), str(obj.dtype))

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return _value(obj)

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj.assign(content)

    def reduce(self, obj: Any) -> Any:
        return make_variable, (type(obj), _value(obj), obj.trainable, obj.name, str(obj.dtype))


def _value(variable: Any) -> Any:
    import keras
    import numpy as np

    return np.array(keras.ops.convert_to_numpy(variable))


def make_variable(cls: Any, value: Any, trainable: bool, name: str, dtype: str) -> Any:
    """Make a variable with this value."""
    return cls(value, trainable=trainable, name=name, dtype=dtype)


class KerasKind(AttributesKind):
    """A layer or a model; a new one is pickled as Keras saves it."""

    def __init__(self) -> None:
        super().__init__(_OF_THE_PROCESS)

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return ""  # names that Keras counts, and what a training before this one has left


class MetricKind(KerasKind):
    """A metric or a loss: Keras saves those of a model only together."""

    def reduce(self, obj: Any) -> Any:
        children, names = self.take(obj)
        return object.__new__, (type(obj),), dict(zip(names, children[1:], strict=True)), None, None, fill_keras


class OptimizerKind(KerasKind):
    """An optimizer, which knows the variables that it trains by their identities in this process."""

    def __init__(self) -> None:
        super().__init__()
        self._kept |= {"_trainable_variables_indices"}

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        super().put(obj, children, facts, content)
        trained = vars(obj).get("_trainable_variables") or ()
        vars(obj)["_trainable_variables_indices"] = {id(variable): place for place, variable in enumerate(trained)}


class TrackedKind(Composite):
    """A list, dict or set that is an attribute of Keras's: a new one is filled before it is watched."""

    def reduce(self, obj: Any) -> Any:
        if isinstance(obj, list):
            return type(obj), (), None, iter(obj)
        if isinstance(obj, dict):
            return type(obj), (), None, None, iter(obj.items())
        return type(obj), ([*obj],)


def _tracked(name: str) -> Callable[[type], Kind]:
    def make(cls: type) -> Kind:
        base = BY_NAME[name]
        return TrackedKind(base if isinstance(base, Kind) else base(cls), cls)

    return make


BY_NAME |= {
    "keras.src.backend.common.variables.Variable": VariableKind(),
    "keras.src.backend.common.variables.KerasVariable": VariableKind(),
    "keras.src.layers.layer.Layer": KerasKind(),
    "keras.src.optimizers.base_optimizer.BaseOptimizer": OptimizerKind(),
    "keras.src.metrics.metric.Metric": MetricKind(),
    "keras.src.losses.loss.Loss": MetricKind(),
    "keras.src.utils.tracking.TrackedList": _tracked("builtins.list"),
    "keras.src.utils.tracking.TrackedDict": _tracked("builtins.dict"),
    "keras.src.utils.tracking.TrackedOrderedDict": _tracked("collections.OrderedDict"),
    "keras.src.utils.tracking.TrackedSet": _tracked("builtins.set"),
    "keras.src.utils.tracking.Tracker": Stays("what Keras knows of an object", quiet=True),
    "keras.src.backend.common.keras_tensor.KerasTensor": Stays("a part of a graph", quiet=True),
    "keras.src.ops.node.Node": Stays("a part of a graph", quiet=True),
    "keras.src.trainers.epoch_iterator.EpochIterator": Stays("an iterator of Keras", quiet=True),
}
