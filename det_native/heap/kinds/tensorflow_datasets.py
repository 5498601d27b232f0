"""Datasets of TensorFlow by its own graph of them: what they are made of, and whether going through one changes it.

No element is read.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, UNSEEN, Alike, ReadMemory, State
from det_native.heap.kinds.instances import AttributesKind

_MOST = 1 << 22  # bytes of tensors that it may begin with: they are copied into its graph
_GRAPH_BYTES = 32 << 20
_DATASETS = 1_000
_IGNORE = 1  # TensorFlow is not to complain of what the graph cannot keep
_READING = "ReadVariableOp"
_STORING = "AssignVariableOp"
_MADE_UP = 100_000  # seeds of operations from here on are hardly a person's

#: What was found of each Dataset: it stays as it was made.
_known: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


class DatasetKind(AttributesKind):
    """A pipeline: its Python objects are compared, but it lives outside of Python and stays."""

    in_place = False
    is_alone = is_whole = True
    stays = "a Dataset of TensorFlow"

    def made_alike(self, labels: Sequence[Any], children: Sequence[Any], facts: Any) -> Alike | None:
        return (), (), None

    def described(self, obj: Any) -> Iterable[Any]:
        return described(obj)

    def glance(self, obj: Any, read: ReadMemory) -> State:
        values = {
            name: value for name, value in vars(obj).items() if not type(value).__module__.startswith("tensorflow.")
        }
        return [*values.values()], tuple(values) if keeps_nothing(obj) else UNSEEN


def graph_of(dataset: Any) -> Any:
    """Return TensorFlow's own graph of a Dataset, with its constants: what `from_tensor_slices` was given."""
    tensorflow = _tensorflow()
    variant = tensorflow.data.experimental.to_variant(dataset)
    written = tensorflow.raw_ops.DatasetToGraphV2(
        input_dataset=variant, external_state_policy=_IGNORE, strip_device_assignment=True
    )
    return tensorflow.compat.v1.GraphDef.FromString(written.numpy())


def _tensors_of(dataset: Any) -> list[Any]:
    """Return the numbers that a dataset and those before it begin with, and those that their functions have kept."""
    tensorflow = _tensorflow()
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


def keeps_nothing(dataset: Any) -> bool:
    """Whether a Dataset gives the same again once it was gone through; False where nobody can tell.

    A part of it that keeps something keeps it in a resource: the order of a shuffle, a cache, a variable, a table. A
    function that draws, writes or calls Python has an operation that TensorFlow itself calls stateful.
    """
    known = _known.get(dataset)
    if known is None:
        try:
            fits = sum(tensor.shape.num_elements() * tensor.dtype.size for tensor in _tensors_of(dataset)) <= _MOST
            known = fits and _keeps_nothing(dataset)
        except Exception:  # noqa: BLE001 (one of another kind, in a graph, or of another version)
            known = False
        _known[dataset] = known
    return known


def _keeps_nothing(dataset: Any) -> bool:
    tensorflow = _tensorflow()
    resource, variant = tensorflow.resource.as_datatype_enum, tensorflow.variant.as_datatype_enum
    graph = graph_of(dataset)
    inner = [node.op for function in graph.library.function for node in function.node_def]
    outer = {node.op for node in graph.node}
    for name in {*outer, *inner}:
        operation = _operation(name)
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


def described(dataset: Any) -> Iterator[Any]:
    """Yield texts and arrays: its elements' types, its length, its operations, and the data that it begins with."""
    cardinality = int(dataset.cardinality())
    yield f"dataset {dataset.element_spec} {cardinality}"
    graph = _small_graph(dataset)
    if graph is None:
        return
    functions = sorted(graph.library.function, key=lambda one: _operations(one.node_def))
    states = _states(graph)
    # Whole numbers beside the functions may be seeds that were made up, or numbers of threads.
    for place, nodes in enumerate((graph.node, *(one.node_def for one in functions))):
        yield _operations(nodes)
        for node in nodes:
            if node.op == "Const" and not (place == 0 and node.name in states):
                yield from _constant(node.attr["value"].tensor, whole_numbers=place > 0)
    yield f"{_numbers_of(graph)}"


def _constant(tensor: Any, *, whole_numbers: bool) -> Iterator[Any]:
    tensorflow = _tensorflow()
    kind = tensorflow.as_dtype(tensor.dtype)
    number = kind.is_integer and not tensor.tensor_shape.dim and not whole_numbers
    if kind == tensorflow.string:
        texts = tensorflow.io.parse_tensor(tensor.SerializeToString(), tensorflow.string)
        yield from (_as_text(one) for one in tensorflow.reshape(texts, [-1]).numpy())
    elif not number and kind not in (tensorflow.resource, tensorflow.variant):
        yield tensorflow.make_ndarray(tensor)


def _numbers_of(graph: Any) -> list[tuple[str, int | None]]:
    """Return the whole numbers that the operations of a graph were given, in the order of its graph: sizes and seeds.

    A seed that nobody gave is None. TensorFlow keeps two numbers of each seed: the global one, which a worker has its
    own of, and that of the operation, which is made up at random, of 31 bits, where nobody gave one. Numbers of threads
    are left out: each machine has its own.
    """
    tensorflow = _tensorflow()
    whole = tensorflow.int64.as_datatype_enum
    constants = {
        node.name: int(tensorflow.make_ndarray(node.attr["value"].tensor))
        for node in graph.node
        if node.op == "Const" and node.attr["dtype"].type == whole and not node.attr["value"].tensor.tensor_shape.dim
    }
    numbers: list[tuple[str, int | None]] = []
    for node in graph.node:
        operation = _operation(node.op)
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


def _small_graph(dataset: Any) -> Any:
    """Return the operations that make a Dataset, with the data they begin with; None where that would be too much."""
    bytes_of_element = 0
    for spec in _tensorflow().nest.flatten(dataset.element_spec):
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


def _states(graph: Any) -> set[str]:
    """Return the constants that are what variables held which change with each pass: the state of a generator, say.

    A graph is written with the present value of each variable that its functions use. A layer that augments draws from
    such a generator, so a Dataset that was trained with has another state than one that was just made.
    """
    changed = set()
    for node in (node for function in graph.library.function for node in function.node_def):
        changed |= _changed_types(node)
    beginnings = [node for node in graph.node if node.op == _STORING]
    return {node.input[1] for node in beginnings if node.attr["dtype"].type in changed}


def _changed_types(node: Any) -> set[int]:
    """Return of which type the variable is that an operation changes, if it may change one.

    What takes a variable and only gives it is one operation of TensorFlow's. Of the others, those that give nothing
    store, and name the type; those that give something may draw from a generator, whose state is of whole numbers.
    """
    tensorflow, operation = _tensorflow(), _operation(node.op)
    resource = tensorflow.resource.as_datatype_enum
    if operation is None or node.op == _READING or resource not in {one.type for one in operation.input_arg}:
        return set()
    return {tensorflow.int64.as_datatype_enum} if operation.output_arg else {node.attr["dtype"].type}


def _tensorflow() -> Any:
    return sys.modules["tensorflow"]


def _operation(name: str) -> Any:
    """Return what TensorFlow says of an operation; None of one that is not here."""
    return sys.modules["tensorflow.python.framework.op_def_registry"].get(name)


BY_NAME["tensorflow.python.data.ops.dataset_ops.DatasetV2"] = DatasetKind(
    frozenset({"_graph_attr", "_variant_tensor_attr", "_options_attr"})
)
