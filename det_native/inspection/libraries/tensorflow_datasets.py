"""Datasets of TensorFlow: the operations that make them, never an element.

Whether going through one changes what it gives later, TensorFlow's own graph of it says.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from det_native.inspection.adapter import Content

_GRAPH_BYTES = 32 << 20
_READING = "ReadVariableOp"
_STORING = "AssignVariableOp"
_MADE_UP = 100_000  # seeds of operations from here on are hardly a person's
_MOST = 1 << 22  # bytes of tensors that it may begin with: they are copied into its graph
_DATASETS = 1_000
_IGNORE = 1  # TensorFlow is not to complain of what the graph cannot keep

#: What was found of each dataset: it stays as it was made.
_known: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def read_dataset(dataset: Any, reader: Content) -> None:
    """Tell a Dataset: its elements' types, its length, its operations, and the data that it begins with."""
    cardinality = int(dataset.cardinality())
    reader.say("dataset", str(dataset.element_spec), str(cardinality))
    tensorflow = sys.modules["tensorflow"]
    graph = _graph_of(dataset, tensorflow)
    if graph is None:
        return
    functions = sorted(graph.library.function, key=lambda one: _operations(one.node_def))
    states = _states(graph, tensorflow)
    # Whole numbers beside the functions may be seeds that were made up, or numbers of threads.
    for place, nodes in enumerate((graph.node, *(one.node_def for one in functions))):
        reader.say(_operations(nodes))
        for node in nodes:
            if node.op == "Const" and not (place == 0 and node.name in states):
                _read_constant(node.attr["value"].tensor, tensorflow, reader, whole_numbers=place > 0)


def _read_constant(tensor: Any, tensorflow: Any, reader: Content, *, whole_numbers: bool) -> None:
    kind = tensorflow.as_dtype(tensor.dtype)
    number = kind.is_integer and not tensor.tensor_shape.dim and not whole_numbers
    if kind == tensorflow.string:
        texts = tensorflow.io.parse_tensor(tensor.SerializeToString(), tensorflow.string)
        reader.go(([_as_text(one) for one in tensorflow.reshape(texts, [-1]).numpy()],))
    elif not number and kind not in (tensorflow.resource, tensorflow.variant):
        reader.numbers(tensorflow.make_ndarray(tensor))


def numbers_of(dataset: Any) -> list[tuple[str, int | None]]:
    """Return the whole numbers that a Dataset's operations were given, in the order of its graph: sizes and seeds.

    A seed that nobody gave is None. TensorFlow keeps two numbers of each seed: the global one, which a worker has its
    own of, and that of the operation, which is made up at random, of 31 bits, where nobody gave one. Numbers of threads
    are left out: each machine has its own.
    """
    tensorflow = sys.modules["tensorflow"]
    graph = _graph_of(dataset, tensorflow)
    if graph is None:
        return []
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


def _as_text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


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
        return _written(dataset)
    except Exception:  # noqa: BLE001 (a dataset that cannot be written has nothing to compare)
        return None


def _written(dataset: Any) -> Any:
    """Return TensorFlow's own graph of a Dataset, with its constants: what `from_tensor_slices` was given."""
    tensorflow: Any = sys.modules["tensorflow"]
    variant = tensorflow.data.experimental.to_variant(dataset)
    written = tensorflow.raw_ops.DatasetToGraphV2(
        input_dataset=variant, external_state_policy=_IGNORE, strip_device_assignment=True
    )
    return tensorflow.compat.v1.GraphDef.FromString(written.numpy())


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


def parts_of(dataset: Any) -> list[Any] | None:
    """Return what there is to see of a dataset: what it begins with, and what was set on it.

    Returns
    -------
    list or None
        None where going through it may change what it gives later, or nobody can tell.
    """
    try:
        parts = _tensors_of(dataset)
        if not _is_unchanging(dataset, parts):
            return None
    except Exception:  # noqa: BLE001 (one of another kind, in a graph, or of another version)
        return None
    for name, value in vars(dataset).items():
        if type(value).__module__.partition(".")[0] != "tensorflow":
            parts += [name, value]
    return parts


def _tensors_of(dataset: Any) -> list[Any]:
    """Return the numbers that a dataset and those before it begin with, and those that their functions have kept."""
    tensorflow = sys.modules["tensorflow"]
    found: list[Any] = []
    waiting = [dataset]
    for _ in range(_DATASETS):
        if not waiting:
            return [each for each in found if each.dtype not in (tensorflow.variant, tensorflow.resource)]
        one = waiting.pop()
        waiting += one._inputs()
        kept = [*vars(one).values(), *(each.function.captured_inputs for each in one._functions())]
        found += (each for each in _flat(kept) if isinstance(each, tensorflow.Tensor))
    raise RuntimeError("too many datasets, one after another")


def _flat(parts: Iterable[Any]) -> Iterator[Any]:
    for part in parts:
        if isinstance(part, list | tuple):
            yield from part
        else:
            yield part


def _is_unchanging(dataset: Any, tensors: Iterable[Any]) -> bool:
    """Whether a dataset gives the same again once it was gone through; False where nobody can tell.

    A part of it that keeps something keeps it in a resource: the order of a shuffle, a cache, a variable, a table. A
    function that draws, writes or calls Python has an operation that TensorFlow itself calls stateful.
    """
    known = _known.get(dataset)
    if known is None:
        fits = sum(one.shape.num_elements() * one.dtype.size for one in tensors) <= _MOST
        known = _known[dataset] = fits and _keeps_nothing(dataset)
    return known


def _keeps_nothing(dataset: Any) -> bool:
    tensorflow: Any = sys.modules["tensorflow"]
    resource, variant = tensorflow.resource.as_datatype_enum, tensorflow.variant.as_datatype_enum
    graph = _written(dataset)
    inner = [node.op for function in graph.library.function for node in function.node_def]
    outer = {node.op for node in graph.node}
    for name in {*outer, *inner}:
        operation = sys.modules["tensorflow.python.framework.op_def_registry"].get(name)
        if operation is None:
            return False
        gives = {argument.type for argument in operation.output_arg}
        takes = {argument.type for argument in operation.input_arg}
        if resource in gives | takes:
            return False
        # What a dataset begins with is called stateful, so that TensorFlow makes no constant of it. At the end of the
        # graph is what gives nothing.
        begins, ends = gives == {variant}, not gives and name not in inner
        if operation.is_stateful and not begins and not ends:
            return False
    return True
