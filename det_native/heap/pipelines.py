"""What a pipeline of TensorFlow is made of: the operations that make it, never an element."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from det_native.heap.kinds.tensorflow_datasets import graph_of

_GRAPH_BYTES = 32 << 20
_READING = "ReadVariableOp"
_STORING = "AssignVariableOp"
_MADE_UP = 100_000  # seeds of operations from here on are hardly a person's


def described(dataset: Any) -> Iterator[Any]:
    """Yield texts and arrays: its elements' types, its length, its operations, and the data that it begins with."""
    cardinality = int(dataset.cardinality())
    yield f"dataset {dataset.element_spec} {cardinality}"
    tensorflow = sys.modules["tensorflow"]
    graph = _graph_of(dataset, tensorflow)
    if graph is None:
        return
    functions = sorted(graph.library.function, key=lambda one: _operations(one.node_def))
    states = _states(graph, tensorflow)
    # Whole numbers beside the functions may be seeds that were made up, or numbers of threads.
    for place, nodes in enumerate((graph.node, *(one.node_def for one in functions))):
        yield _operations(nodes)
        for node in nodes:
            if node.op == "Const" and not (place == 0 and node.name in states):
                yield from _constant(node.attr["value"].tensor, tensorflow, whole_numbers=place > 0)
    yield f"{_numbers_of(graph, tensorflow)}"


def _constant(tensor: Any, tensorflow: Any, *, whole_numbers: bool) -> Iterator[Any]:
    kind = tensorflow.as_dtype(tensor.dtype)
    number = kind.is_integer and not tensor.tensor_shape.dim and not whole_numbers
    if kind == tensorflow.string:
        texts = tensorflow.io.parse_tensor(tensor.SerializeToString(), tensorflow.string)
        yield from (_as_text(one) for one in tensorflow.reshape(texts, [-1]).numpy())
    elif not number and kind not in (tensorflow.resource, tensorflow.variant):
        yield tensorflow.make_ndarray(tensor)


def _numbers_of(graph: Any, tensorflow: Any) -> list[tuple[str, int | None]]:
    """Return the whole numbers that the operations of a graph were given, in the order of its graph: sizes and seeds.

    A seed that nobody gave is None. TensorFlow keeps two numbers of each seed: the global one, which a worker has its
    own of, and that of the operation, which is made up at random, of 31 bits, where nobody gave one. Numbers of threads
    are left out: each machine has its own.
    """
    whole = tensorflow.int64.as_datatype_enum
    constants = {
        node.name: int(tensorflow.make_ndarray(node.attr["value"].tensor))
        for node in graph.node
        if node.op == "Const" and node.attr["dtype"].type == whole and not node.attr["value"].tensor.tensor_shape.dim
    }
    numbers: list[tuple[str, int | None]] = []
    for node in graph.node:
        operation = sys.modules["tensorflow.python.framework.op_def_registry"].get(node.op)
        names = [argument.name for argument in operation.input_arg] if operation is not None else []
        given = [
            (name, constants[source]) for name, source in zip(names, node.input, strict=False) if source in constants
        ]
        numbers += [(name, number) for name, number in given if "seed" not in name and "parallel" not in name]
        seeds = [number for name, number in given if "seed" in name]
        if seeds:
            numbers.append(("seed", seeds[-1] if any(seeds) and seeds[-1] < _MADE_UP else None))
    return numbers


def _as_text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return repr(content)


def _graph_of(dataset: Any, tensorflow: Any) -> Any:
    """Return the operations that make a Dataset, with the data they begin with; None where that would be too much."""
    bytes_of_element = 0
    for spec in tensorflow.nest.flatten(dataset.element_spec):
        shape, kind = getattr(spec, "shape", None), getattr(spec, "dtype", None)
        if shape is None or shape.rank is None or kind is None:
            return None
        bytes_of_element += math.prod(size or 1 for size in shape.as_list()) * max(getattr(kind, "size", 0) or 8, 1)
    if bytes_of_element * max(int(dataset.cardinality()), 1) > _GRAPH_BYTES:
        return None
    try:
        return graph_of(dataset)
    except Exception:  # noqa: BLE001 (a dataset that cannot be written has nothing to compare)
        return None


def _operations(nodes: Iterable[Any]) -> str:
    """Return the operations by name; what they are called, and the seeds among their numbers, is made up anew."""
    return " ".join(f"{node.op}({len(node.input)})" for node in nodes)


def _states(graph: Any, tensorflow: Any) -> set[str]:
    """Return the constants that are what variables held which change with each pass: the state of a generator, say.

    A graph is written with the present value of each variable that its functions use. A layer that augments draws from
    such a generator, so a Dataset that was trained with has another state than one that was just made.
    """
    changed = set()
    for node in (node for function in graph.library.function for node in function.node_def):
        changed |= _changed_types(node, tensorflow)
    beginnings = [node for node in graph.node if node.op == _STORING]
    return {node.input[1] for node in beginnings if node.attr["dtype"].type in changed}


def _changed_types(node: Any, tensorflow: Any) -> set[int]:
    """Return of which type the variable is that an operation changes, if it may change one.

    What takes a variable and only gives it is one operation of TensorFlow's. Of the others, those that give nothing
    store, and name the type; those that give something may draw from a generator, whose state is of whole numbers.
    """
    operation = sys.modules["tensorflow.python.framework.op_def_registry"].get(node.op)
    resource = tensorflow.resource.as_datatype_enum
    if operation is None or node.op == _READING or resource not in {one.type for one in operation.input_arg}:
        return set()
    return {tensorflow.int64.as_datatype_enum} if operation.output_arg else {node.attr["dtype"].type}
