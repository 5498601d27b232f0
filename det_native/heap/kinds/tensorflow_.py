"""TensorFlow: variables, constants and pipelines; graphs, sessions and compiled functions belong to their process."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import (
    BY_NAME,
    BY_PREFIX,
    OF_PROCESS,
    UNSEEN,
    VALUE,
    Missing,
    ReadMemory,
    SimpleKind,
    kind_of,
    stays,
)
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


def _look(obj: Any, read: ReadMemory) -> Any:
    """Return what tells the numbers of a variable or tensor from others; in a graph there are none to see."""
    is_variable = hasattr(obj, "handle")
    if is_variable and not sys.modules["tensorflow"].executing_eagerly():
        return UNSEEN
    try:  # where they are: numpy() copies them
        numbers = memoryview(_read_variable(obj) if is_variable else obj)
    except (TypeError, ValueError):  # on a device, or of a type that a buffer has not
        if _is_handle(obj):
            return UNSEEN
        array = sys.modules["numpy"].asarray(obj.numpy())
    else:
        return numbers.shape, numbers.format, read(numbers)
    return (array.shape, array.tolist() if array.dtype.hasobject else read(array.reshape(-1).view("u1").data))


def _read_variable(variable: Any) -> Any:
    operations: Any = sys.modules["tensorflow.python.ops.gen_resource_variable_ops"]
    return operations.read_variable_op(variable.handle, variable.dtype)


def _is_handle(tensor: Any) -> bool:
    return tensor.dtype.name in ("resource", "variant")


def make_constant(value: Any, dtype: str) -> Any:
    """Make a tensor with this value."""
    import tensorflow as tf

    return tf.constant(value, dtype=dtype)


# What TensorFlow keeps beside an object's attributes, as it is at first: it saves and loads an object by these.
_DEPENDENCIES, _BY_NAME = "_self_unconditional_checkpoint_dependencies", "_self_unconditional_dependency_names"
_NO_DEPENDENCIES: dict[str, Any] = {
    _DEPENDENCIES: [],
    _BY_NAME: {},
    "_self_unconditional_deferred_dependencies": {},
    "_self_update_uid": -1,
    "_self_name_based_restores": set(),
    "_self_saveable_object_factories": {},
}
#: Attributes by which TensorFlow tracks what an object depends on.
OF_TRACKING = frozenset(_NO_DEPENDENCIES) | {"_self_setattr_tracking"}


class TrackableKind(AttributesKind):
    """An object that TensorFlow saves together with what it depends on.

    A dependency is read by its name, as ``("saved as", name)``: TensorFlow's own list has compiled functions as well.
    """

    def __init__(self, skipped: frozenset[str] = frozenset(), *, compared: bool = True) -> None:
        super().__init__(OF_TRACKING | skipped, compared=compared)

    def read(self, obj: Any) -> dict[Any, Any]:
        values: dict[Any, Any] = super().read(obj)
        for name, saved in vars(obj).get(_DEPENDENCIES, ()):
            kind = kind_of(saved)
            if name not in self._skipped and not (kind.stays and kind.quiet):
                values["saved as", name] = saved
        return values

    def step(self, label: Any) -> str:
        return f".{label[1]}" if type(label) is tuple else super().step(label)

    def write(self, obj: Any, values: Mapping[Any, Any], gone: Sequence[Any]) -> None:
        saved = {label[1]: value for label, value in values.items() if type(label) is tuple}
        without = {label[1] for label in gone if type(label) is tuple}
        if saved or without:
            _depend(vars(obj), saved, without)
        super().write(obj, _attributes(values), [*_attributes(dict.fromkeys(gone))])


def _attributes(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {label: value for label, value in values.items() if isinstance(label, str)}


def _depend(attributes: dict[str, Any], saved: Mapping[str, Any], without: set[str]) -> None:
    """Set what an object with these attributes depends on, in the order in which it began to."""
    from tensorflow.python.trackable.base import TrackableReference

    for name, value in _NO_DEPENDENCIES.items():
        attributes.setdefault(name, type(value)(value))
    references, by_name = attributes[_DEPENDENCIES], attributes[_BY_NAME]
    now = {name: value for name, value in references if name not in without} | dict(saved)
    references[:] = [TrackableReference(name, value) for name, value in now.items()]
    by_name.update(saved)
    for name in without:
        by_name.pop(name, None)


class ListWrapperKind(TrackableKind):
    """What TensorFlow puts around a list that is an attribute: the list, and its members to see that they change."""

    def __init__(self) -> None:
        own = ("_last_wrapped_list_snapshot", "_external_modification_value", "_self_attribute_sentinel")
        super().__init__(frozenset(own), compared=False)

    def read(self, obj: Any) -> dict[Any, Any]:
        return {**super().read(obj), **dict(enumerate(obj._storage))}

    def step(self, label: Any) -> str:
        return f"[{label}]" if isinstance(label, int) else "" if label == "_storage" else super().step(label)

    def repair(self, obj: Any) -> None:
        # A list that differs from what the wrapper has seen cannot be saved.
        vars(obj)["_last_wrapped_list_snapshot"] = obj._storage


def _accept_dict(obj: Any, facts: Any, content: Any) -> None:
    """Have the wrapper of a dict take what that holds as seen; see :class:`ListWrapperKind`."""
    obj._self_last_wrapped_dict_snapshot = obj.__wrapped__


class GeneratorKind(AttributesKind):
    """``tf.random.Generator``: its state is a variable."""

    def reduce(self, obj: Any) -> Any:
        return make_generator, (obj.state.numpy(), int(obj.algorithm))


def make_generator(state: Any, algorithm: int) -> Any:
    """Make a generator of random numbers with this state."""
    import tensorflow as tf

    return tf.random.Generator.from_state(state, alg=algorithm)


def wrap_again(value: Any) -> Any:
    """Put around a dict or a tuple what TensorFlow puts around one that is an attribute."""
    from tensorflow.python.trackable.data_structures import wrap_or_unwrap

    return wrap_or_unwrap(value)


def _reduced_wrapper(obj: Any) -> Any:
    return wrap_again, (obj.__wrapped__,)


BY_NAME |= {
    "tensorflow.python.ops.resource_variable_ops.BaseResourceVariable": SimpleKind(
        lambda variable: facts_of(variable.numpy(), variable.dtype.name),  # one of a graph has none without a session
        lambda variable, facts, content: variable.assign(content),
        content=lambda variable: variable.numpy(),
        numbers=lambda variable: variable.numpy(),
        reduce=_reduced_variable,
        glance=_look,
        fixed=2,
        named="tensorflow.Variable",  # one that a compiled function makes is of another class
    ),
    # Nobody changes a tensor: another one takes its place.
    "tensorflow.python.framework.ops.EagerTensor": SimpleKind(
        _facts_of_constant,
        numbers=lambda obj: None if _is_handle(obj) else obj.numpy(),
        glance=_look,
        reduce=lambda obj: (type(None), ()) if _is_handle(obj) else (make_constant, (obj.numpy(), obj.dtype.name)),
    ),
    "tensorflow.python.trackable.data_structures._DictWrapper": SimpleKind(
        None,
        _accept_dict,
        held=lambda obj: (obj.__wrapped__, *obj.__wrapped__, *obj.__wrapped__.values()),
        reduce=_reduced_wrapper,
        compared=False,
        quiet=True,  # what it is around is compared
    ),
    "tensorflow.python.trackable.data_structures._TupleWrapper": SimpleKind(
        held=lambda obj: (obj.__wrapped__,), reduce=_reduced_wrapper
    ),
    "tensorflow.python.trackable.data_structures.ListWrapper": ListWrapperKind(),
    "tensorflow.python.ops.stateful_random_ops.Generator": GeneratorKind(OF_TRACKING),
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator": stays("an iterator of a Dataset"),
    "tensorflow.python.ops.lookup_ops.LookupInterface": OF_PROCESS,
    "tensorflow.python.lib.io.file_io.FileIO": stays("an open file", quiet=True),
    "tensorflow.python.training.session_run_hook.SessionRunHook": AttributesKind(),
    "tensorflow.python.training.basic_session_run_hooks.CheckpointSaverListener": AttributesKind(),
    "tensorflow.python.trackable.base.Trackable": TrackableKind(),
    # Compiled for certain arguments, or read from a SavedModel: nobody has written them here.
    "tensorflow.python.types.core.ConcreteFunction": OF_PROCESS,
    "tensorflow.python.saved_model.function_deserialization.RestoredFunction": OF_PROCESS,
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
