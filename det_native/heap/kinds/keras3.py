"""Keras 3, of any backend: variables by their values, layers and models without what Keras makes again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, OF_PROCESS, VALUE, Alike, Kind, SimpleKind
from det_native.heap.kinds.builtin import DictKind, ListKind, SetKind
from det_native.heap.kinds.instances import AttributesKind, Composite
from det_native.heap.kinds.keras2 import GIVEN, SET_BY_USE, Choice, as_given, without_counters, without_counts
from det_native.heap.kinds.keras_models import OptimizerBesideKind, kept_optimizer, parts_of_model, reduced_model
from det_native.heap.kinds.tensorflow_ import OF_TRACKING, facts_of, make_variable

_OF_THE_PROCESS = OF_TRACKING | frozenset(
    [
        *("train_function", "test_function", "predict_function", "_eval_epoch_iterator", "_epoch_iterator"),
        *("_tracker", "_lock", "_auto_config", "_loss_ids", "_nodes", "_obj_type", "build", "quantize", "_jax_state"),
        *("_distribute_strategy", "_distribution_strategy", "_compiled_trainable_state"),
    ]
)


def _value(variable: Any) -> Any:
    import keras
    import numpy as np

    return np.array(keras.ops.convert_to_numpy(variable))


class KerasKind(AttributesKind):
    """A layer or a model."""

    set_by_use = SET_BY_USE

    def __init__(self, skipped: frozenset[str] = frozenset(), alike: Choice = without_counters) -> None:
        # Not compared: names that Keras counts, and what a training before this one has set.
        super().__init__(_OF_THE_PROCESS | skipped, compared=False)
        self._alike = alike

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return self._alike(labels, children)

    def reduced_alone(self, obj: Any) -> Any:
        return self.reduced(obj)

    def reduce(self, obj: Any) -> Any:
        return reduced_model(obj)

    def made_parts(self, obj: Any) -> Sequence[Any]:
        return parts_of_model(obj)


class MetricKind(KerasKind):
    """A metric or a loss: Keras saves those of a model only together."""

    def reduce(self, obj: Any) -> Any:
        return self.reduced(obj)

    def made_parts(self, obj: Any) -> Sequence[Any]:
        return ()


class CompiledKind(MetricKind):
    """What Keras makes of losses and metrics."""

    def kept_elsewhere(self, obj: Any) -> Sequence[tuple[Any, Kind]]:
        return [(obj, GIVEN)]


class OptimizerKind(MetricKind):
    """An optimizer, which knows the variables that it trains by what they are in this process."""

    def kept_elsewhere(self, obj: Any) -> Sequence[tuple[Any, Kind]]:
        return kept_optimizer(obj, _BESIDE)

    def repair(self, obj: Any) -> None:
        trained = vars(obj).get("_trainable_variables") or ()
        key = getattr(obj, "_var_key", id)
        vars(obj)["_trainable_variables_indices"] = {key(variable): place for place, variable in enumerate(trained)}


class DrawingKind(AttributesKind):
    """What draws numbers: the seed that it was given, not the one that it has made up where there was none."""

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        held = {name: child for name, child in zip(labels, children, strict=True) if name != "seed"}
        return without_counters([*held], [*held.values()])


class TrackedKind(Composite):
    """A list, dict or set that is an attribute of Keras's: a new one is filled before it is watched."""

    def reduce(self, obj: Any) -> Any:
        if isinstance(obj, list):
            return type(obj), (), None, iter(obj)
        if isinstance(obj, dict):
            return type(obj), (), None, None, iter(obj.items())
        return type(obj), ([*obj],)


_BESIDE = OptimizerBesideKind(KerasKind())
_VARIABLE = SimpleKind(
    lambda variable: facts_of(_value(variable), str(variable.dtype)),
    lambda variable, facts, content: variable.assign(content),
    content=_value,
    numbers=_value,
    glance=lambda variable, read: (variable.trainable, read(_value(variable).reshape(-1).view("u1").data)),
    fixed=2,
    reduce=lambda obj: (make_variable, (type(obj), _value(obj), obj.trainable, obj.name, str(obj.dtype))),
)

# Of TensorFlow's backend an optimizer has another base before the common one.
for _name in ("backend.tensorflow.optimizer.TFOptimizer", "optimizers.base_optimizer.BaseOptimizer"):
    BY_NAME[f"keras.src.{_name}"] = OptimizerKind(frozenset({"_trainable_variables_indices"}))
BY_NAME |= {
    "keras.src.backend.common.variables.Variable": _VARIABLE,
    "keras.src.backend.common.variables.KerasVariable": _VARIABLE,
    "keras.src.layers.layer.Layer": KerasKind(),
    "keras.src.dtype_policies.dtype_policy.DTypePolicy": VALUE,
    "keras.src.metrics.metric.Metric": MetricKind(alike=without_counts),
    "keras.src.losses.loss.Loss": MetricKind(),
    "keras.src.trainers.compile_utils.CompileLoss": CompiledKind(alike=as_given),
    "keras.src.trainers.compile_utils.CompileMetrics": CompiledKind(alike=as_given),
    "keras.src.initializers.random_initializers.RandomInitializer": DrawingKind(),
    "keras.src.random.seed_generator.SeedGenerator": DrawingKind(),
    "keras.src.utils.tracking.TrackedList": TrackedKind(ListKind()),
    "keras.src.utils.tracking.TrackedDict": TrackedKind(DictKind()),
    "keras.src.utils.tracking.TrackedOrderedDict": TrackedKind(DictKind(OrderedDict)),
    "keras.src.utils.tracking.TrackedSet": TrackedKind(SetKind()),
    "keras.src.utils.tracking.Tracker": OF_PROCESS,
    "keras.src.backend.common.keras_tensor.KerasTensor": OF_PROCESS,
    "keras.src.ops.node.Node": OF_PROCESS,
    "keras.src.trainers.epoch_iterator.EpochIterator": OF_PROCESS,
}
