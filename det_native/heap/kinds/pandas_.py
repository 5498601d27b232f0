"""Tables of pandas: the arrays of their blocks, so that columns that share memory go on to share it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import BY_NAME, Kind, Missing, ReadMemory, SimpleKind, State
from det_native.heap.kinds.numpy_ import memory_of


class TableKind(Kind):
    """``DataFrame`` and ``Series``."""

    is_whole = True

    def read_state(self, obj: Any) -> State:
        import numpy

        children: list[Any] = [obj.attrs]
        facts: list[Any] = [obj.shape, _name_of(obj)]
        facts += [_axis(axis) for axis in obj.axes]
        for block in obj._mgr.blocks:
            facts.append((str(block.dtype), (*map(int, block.mgr_locs.as_array[:2]),), len(block.mgr_locs)))
            values = getattr(block.values, "_ndarray", block.values)
            if isinstance(values, numpy.ndarray):
                children.append(values)
            else:
                facts.append(digest(pickle.dumps(values, protocol=4)))
        return children, facts

    def glance(self, obj: Any, read: ReadMemory) -> State:
        children: list[Any] = [*obj.axes, obj._attrs]
        facts: list[Any] = [_name_of(obj)]
        for block in obj._mgr.blocks:
            facts.append((str(block.dtype), block.mgr_locs.as_array.tobytes()))
            children += _arrays_of(block.values)
        return children, facts

    def labels(self, obj: Any, children: Sequence[Any], facts: Any) -> Sequence[Any]:
        return "attrs", *range(len(children) - 1)

    def step(self, label: Any) -> str:
        return ".attrs" if label == "attrs" else ""

    def memory(self, obj: Any) -> Sequence[int]:
        import numpy

        arrays = (array for block in obj._mgr.blocks for array in _arrays_of(block.values))
        return [place for array in arrays if isinstance(array, numpy.ndarray) for place in memory_of(array)]

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        import pandas

        plain = pandas.Series if obj.ndim == 1 else pandas.DataFrame  # a class of the user's may make anything
        return plain(obj, copy=False).copy(deep=False)

    def write_state(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj._update_inplace(content)
        if obj.ndim == 1:
            obj.name = content.name
        if type(children[0]) is not Missing:
            object.__setattr__(obj, "_attrs", children[0])

    def fingerprint(self, children: Sequence[Any], facts: Any, exact: bool) -> str:
        return super().fingerprint(children, facts[:4], exact)


def _name_of(table: Any) -> Any:
    return table.name if table.ndim == 1 else None  # that of a table may be a column


def _arrays_of(values: Any) -> list[Any]:
    """Return what an array of pandas keeps its values in."""
    if not type(values).__module__.startswith("pandas."):
        return [values]
    parts = (getattr(values, name, None) for name in ("_ndarray", "_codes", "_data", "_mask", "_pa_array"))
    found = [part for part in parts if part is not None]
    return [*found, values.categories] if hasattr(values, "categories") else found


def _axis(index: Any) -> tuple[str, str, tuple[str, ...]]:
    import pandas

    values = pandas.util.hash_array(index.to_numpy()).tobytes()
    return str(index.dtype), digest(values), (*map(str, index.names),)


_TABLE = TableKind()
# An index never changes, but for its names; which one it is the table tells.
_INDEX = SimpleKind(_axis, glance=lambda index, read: (len(index), tuple(map(str, index.names))))
for _name in ("DataFrame", "Series", "core.frame.DataFrame", "core.series.Series"):
    BY_NAME[f"pandas.{_name}"] = _TABLE
for _name in ("Index", "core.indexes.base.Index"):
    BY_NAME[f"pandas.{_name}"] = _INDEX
