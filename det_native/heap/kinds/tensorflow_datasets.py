"""Whether going through a Dataset changes what it gives later: TensorFlow's own graph of it says that."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

_MOST = 1 << 22  # bytes of tensors that it may begin with: they are copied into its graph
_DATASETS = 1_000
_IGNORE = 1  # TensorFlow is not to complain of what the graph cannot keep

#: What was found of each Dataset: it stays as it was made.
_known: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def graph_of(dataset: Any) -> Any:
    """Return TensorFlow's own graph of a Dataset, with its constants: what `from_tensor_slices` was given."""
    tensorflow: Any = sys.modules["tensorflow"]
    variant = tensorflow.data.experimental.to_variant(dataset)
    written = tensorflow.raw_ops.DatasetToGraphV2(
        input_dataset=variant, external_state_policy=_IGNORE, strip_device_assignment=True
    )
    return tensorflow.compat.v1.GraphDef.FromString(written.numpy())


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
    tensorflow: Any = sys.modules["tensorflow"]
    resource, variant = tensorflow.resource.as_datatype_enum, tensorflow.variant.as_datatype_enum
    graph = graph_of(dataset)
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
