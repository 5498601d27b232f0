"""What a tf.data pipeline is made of. This needs private attributes of tf.data 2.15: they are all here."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import cache_op, dataset_ops, random_op, repeat_op, shuffle_op

from det_native.keras.values import number_of

_DEPTH_OF_CLOSURES = 4


def inputs_of(dataset: Any) -> list[Any]:
    """Return the Datasets that one is made of."""
    return list(dataset._inputs())


def graph_of_tensor(dataset: Any) -> Any:
    """Return the graph that a Dataset was made in; None where it was made eagerly."""
    return getattr(dataset._variant_tensor, "graph", None)


def graphs_of_functions(dataset: Any) -> list[Any]:
    """Return the graphs that the functions of Python became which one step of a Dataset calls."""
    try:
        return [wrapper.function.graph for wrapper in dataset._functions()]
    except (AttributeError, NotImplementedError):  # a Dataset of another kind
        return []


def functions_being_built() -> list[Any]:
    """Return the graphs of the functions that are being built of Python's, the innermost first."""
    found, graph = [], None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while getattr(graph, "building_function", False):
        found.append(graph)
        graph = getattr(graph, "outer_graph", None)
    return found


def is_of_another_graph(error: Exception) -> bool:
    """Return whether TensorFlow says by an error that code has used a tensor, or a Dataset, of another graph."""
    text = str(error)
    return "must be from the same graph" in text or "Attempting to capture an EagerTensor" in text


def functions_of(dataset: Any) -> list[types.FunctionType]:
    """Return the functions of Python that the steps of a Dataset call, and what their closures lead to."""
    found: dict[int, types.FunctionType] = {}
    queue = deque([dataset])
    while queue:
        step = queue.popleft()
        try:
            queue.extend(inputs_of(step))
            wrappers = step._functions()
        except (AttributeError, NotImplementedError):  # a Dataset of another kind
            continue
        for wrapper in wrappers:
            _add_functions(getattr(wrapper, "_func", None), found, 0)
    return list(found.values())


def _add_functions(value: Any, found: dict[int, types.FunctionType], depth: int) -> None:
    """Add a function, and those that it closes over: `from_generator()` keeps the user's so."""
    if isinstance(value, types.FunctionType) and id(value) not in found and depth <= _DEPTH_OF_CLOSURES:
        found[id(value)] = value
        for cell in value.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:  # nothing is in it yet
                continue
            attributes = list(vars(held).values()) if type(held).__module__.startswith("tensorflow") else []
            for part in (held, *attributes):
                _add_functions(part, found, depth + 1)


def steps_up(dataset: Any) -> Iterator[Any]:
    """Return a Dataset and those it is made from, up to where there is none, or more than one."""
    above = [dataset]
    while len(above) == 1:
        yield above[0]
        above = inputs_of(above[0])


def batch_size_of_step(dataset: Any) -> int | None:
    """Return the records per batch if the Dataset is one that ``batch()`` returned."""
    size = getattr(dataset, "_batch_size", None)
    return None if size is None else number_of(size)


def is_repeat(dataset: Any) -> bool:
    """Return whether the Dataset is one that ``repeat()`` returned."""
    return isinstance(dataset, repeat_op._RepeatDataset)


def is_cache(dataset: Any) -> bool:
    """Return whether the Dataset is one that ``cache()`` returned."""
    return isinstance(dataset, cache_op.CacheDataset)


def count_elements(dataset: Any) -> Any:
    """Return how many elements a Dataset has, by reading it once."""
    # AutoGraph would write a source file of the function, and its byte code, into the temporary folder.
    one_more = tf.autograph.experimental.do_not_convert(lambda count, *_: count + 1)
    return dataset.reduce(tf.constant(0, tf.int64), one_more)


def reads_from_python(dataset: Any) -> bool:
    """Return whether a Dataset reads from a Python generator, whose position no iterator's state contains."""
    for function in dataset._functions():
        graph = function.function.graph.as_graph_def()
        nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
        if any(node.op == "GeneratorDataset" for node in nodes):
            return True
    return any(reads_from_python(above) for above in inputs_of(dataset))


def may_draw_each_pass(dataset: Any) -> bool:
    """Return whether a step of a Dataset may draw seeds anew for each pass over it."""
    if isinstance(dataset, shuffle_op._ShuffleDataset):
        return bool(dataset._reshuffle_each_iteration)
    return isinstance(dataset, dataset_ops._VariantDataset | random_op._RandomDataset)


def bytes_held(dataset: Any) -> int:
    """Return roughly the size of the tensors that a step of a Dataset was made of: texts and sparse rows have none."""
    tensors = getattr(dataset, "_tensors", ())
    return sum((tensor.dtype.size or 8) * (tensor.shape.num_elements() or 0) for tensor in tensors)
