"""What a tf.data pipeline is made of. This needs private attributes of tf.data 2.15: they are all here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import repeat_op

from det_native.keras.values import number_of

# Operations of a pipeline that draw seeds anew for each pass over it.
_RESEEDING = ("ShuffleDatasetV3", "ShuffleAndRepeatDatasetV2", "RandomDatasetV2")
# Operations that begin a pass over what is below them more than once, or only when it is needed.
_BEGINNING_LATER = ("RepeatDataset", "ConcatenateDataset", "ShuffleAndRepeatDatasetV2")


def inputs_of(dataset: Any) -> list[Any]:
    """Return the Datasets that one is made of."""
    return list(dataset._inputs())


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


def reads_from_python(dataset: Any) -> bool:
    """Return whether a Dataset reads from a Python generator, whose position no iterator's state contains."""
    for function in dataset._functions():
        graph = function.function.graph.as_graph_def()
        nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
        if any(node.op == "GeneratorDataset" for node in nodes):
            return True
    return any(reads_from_python(above) for above in inputs_of(dataset))


def reseedings(dataset: Any) -> tuple[int, bool]:
    """Return how many parts of a Dataset draw seeds anew for each pass, and whether each does so once a pass.

    What lies inside of functions (of ``interleave()``, say) is not counted.
    """
    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString(dataset._as_serialized_graph().numpy())
    operations = [node.op for node in graph.node]
    count = sum(operation in _RESEEDING for operation in operations)
    return count, not any(operation in _BEGINNING_LATER for operation in operations)
