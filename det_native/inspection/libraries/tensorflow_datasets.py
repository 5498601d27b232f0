"""Datasets of TensorFlow: the operations that make them, never an element.

Whether going through one changes what it gives later, TensorFlow's own graph of it says.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from det_native.heap.pipelines import written

_MOST = 1 << 22  # bytes of tensors that it may begin with: they are copied into its graph
_DATASETS = 1_000

#: What was found of each dataset: it stays as it was made.
_known: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


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
    graph = written(dataset)
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
