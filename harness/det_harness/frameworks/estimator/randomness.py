"""Random operations of a training's graph, made to depend on the batch only.

TensorFlow keeps where such an operation stands (a dropout's mask, say) inside of the session, out of reach: a training
that continues would draw its first numbers again. So each is replaced by one without state, whose numbers follow from
the trial's seed, the operation and the number of the batch.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from det_harness.frameworks.estimator import internals

logger = logging.getLogger("det_native")


class BatchNumber:
    """The number of the batch, as a tensor that each step is fed; made in the graph that is the default one."""

    def __init__(self) -> None:
        self.tensor = tf.compat.v1.placeholder_with_default(tf.constant(0, tf.int64), (), name="det_batch")


def replace_random_operations(graph: Any, batch: BatchNumber, seed: int) -> None:
    """Replace the random operations of a graph, but for those that give variables their first values.

    What cannot be replaced is named in the log.

    Parameters
    ----------
    graph : tf.Graph
        It is the default one, and not final yet.
    seed : int
        The trial's, the same in each run.
    """
    initial = _of_first_values()
    left = []
    for operation in graph.get_operations():
        if operation.name in initial or not _is_random(operation):
            continue
        make = _STATELESS.get(operation.type)
        if make is None or internals.is_in_control_flow(operation):
            left.append(operation.name)
            continue
        with graph.control_dependencies(None), graph.device(operation.device):
            words = np.random.SeedSequence([seed, zlib.crc32(operation.name.encode())]).generate_state(1)
            pair = tf.stack([tf.constant(int(words[0]), tf.int64), batch.tensor])
            numbers = make(operation, pair)
        _use_instead(operation.outputs[0], numbers)
    left += _random_functions(graph)
    if left:
        logger.warning(
            "These random operations start anew where a training continues, since they lie in loops or branches, or "
            "are of a kind that needs a state: %s.",
            ", ".join(left),
        )


def _use_instead(tensor: Any, other: Any) -> None:
    for consumer in tensor.consumers():
        for index, used in enumerate(list(consumer.inputs)):
            if used is tensor:
                internals.replace_input(consumer, index, other)


def _of_first_values() -> set[str]:
    """Return the names of the operations by which variables get their first values."""
    variables = [*tf.compat.v1.global_variables(), *tf.compat.v1.local_variables()]
    above, seen = [variable.initializer for variable in variables], set[str]()
    while above:
        operation = above.pop()
        if operation is not None and operation.name not in seen:
            seen.add(operation.name)
            above += [*(each.op for each in operation.inputs), *operation.control_inputs]
    return seen


def _is_random(operation: Any) -> bool:
    attributes = {each.name for each in operation.op_def.attr} if operation.op_def is not None else set()
    return {"seed", "seed2"} <= attributes and operation.op_def.is_stateful and len(operation.outputs) == 1


def _random_functions(graph: Any) -> list[str]:
    """Return the functions of a graph with random operations, but for those of Datasets."""
    functions = {each.signature.name: each for each in graph.as_graph_def().library.function}
    used, above = set[str](), [each for each in graph.as_graph_def().node if "Dataset" not in each.op]
    while above:
        node = above.pop()
        for attribute in node.attr.values():
            name = attribute.func.name
            if name in functions and name not in used:
                used.add(name)
                above += functions[name].node_def
    return sorted(name for name in used if any(node.op in _STATELESS for node in functions[name].node_def))


def _of_shape(draw: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return what makes the numbers of an operation whose only input is a shape."""
    return lambda operation, pair: draw(operation.inputs[0], pair, dtype=operation.outputs[0].dtype)


def _integers(operation: Any, pair: Any) -> Any:
    shape, least, beyond = operation.inputs
    return tf.random.stateless_uniform(shape, pair, least, beyond, operation.outputs[0].dtype)


_STATELESS = {
    "RandomUniform": _of_shape(tf.random.stateless_uniform),
    "RandomUniformInt": _integers,
    "RandomStandardNormal": _of_shape(tf.random.stateless_normal),
    "TruncatedNormal": _of_shape(tf.random.stateless_truncated_normal),
}
