"""Tables of pandas: the arrays of their blocks, so that columns that share memory go on to share it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from det_native.heap.edges import BY_NAME, Kind, State
from det_native.heap.kinds.builtin import digest


class TableKind(Kind):
    """``DataFrame`` and ``Series``."""

    def take(self, obj: Any) -> State:
        import numpy
        import pandas

        children: list[Any] = []
        facts: list[Any] = [obj.shape, repr(obj.attrs), getattr(obj, "name", None)]
        for axis in obj.axes:
            facts.append((str(axis.dtype), digest(pandas.util.hash_array(axis.to_numpy()).tobytes()), (*map(str, axis.names),)))
        for block in obj._mgr.blocks:
            facts.append((str(block.dtype), (*map(int, block.mgr_locs.as_array[:2]),), len(block.mgr_locs)))
            values = getattr(block.values, "_ndarray", block.values)
            if isinstance(values, numpy.ndarray):
                children.append(values)
            else:
                facts.append(digest(pickle.dumps(values, protocol=4)))
        return children, facts

    def content(self, obj: Any, before: Any, now: Any) -> Any:
        return obj.copy(deep=False)

    def put(self, obj: Any, children: Sequence[Any], facts: Any, content: Any) -> None:
        obj._update_inplace(content)
        if hasattr(content, "name"):
            obj.name = content.name


class IndexKind(Kind):
    in_place = False

    def take(self, obj: Any) -> State:
        import pandas

        return (), (str(obj.dtype), digest(pandas.util.hash_array(obj.to_numpy()).tobytes()))


BY_NAME |= {
    "pandas.DataFrame": TableKind(),
    "pandas.Series": TableKind(),
    "pandas.Index": IndexKind(),
    "pandas.core.frame.DataFrame": TableKind(),
    "pandas.core.series.Series": TableKind(),
    "pandas.core.indexes.base.Index": IndexKind(),
}
