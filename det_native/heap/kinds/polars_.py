"""polars: a look reads columns of numbers and short ones of texts."""

from __future__ import annotations

from typing import Any

from det_native.heap.edges import BY_NAME, UNSEEN, ReadMemory, State
from det_native.heap.kinds.instances import PickledKind

_MOST = 100_000  # rows of a column of texts that are read


class ColumnKind(PickledKind):
    """``Series``."""

    def glance(self, obj: Any, read: ReadMemory) -> State:
        return (), _facts_of(obj, read)


class TableKind(PickledKind):
    """``DataFrame``."""

    def glance(self, obj: Any, read: ReadMemory) -> State:
        facts = [_facts_of(column, read) for column in obj.get_columns()]
        return (), UNSEEN if UNSEEN in facts else facts


def _facts_of(column: Any, read: ReadMemory) -> Any:
    facts = column.name, str(column.dtype), len(column), column.null_count()
    if column.dtype.is_numeric():
        values = column.fill_null(0)
    elif len(column) <= _MOST and not column.dtype.is_nested() and not column.dtype.is_object():
        values = column.hash()
    else:
        return UNSEEN
    missing = column.is_null().to_numpy() if facts[3] else None
    return facts, read(values.to_numpy().view("u1").data), missing if missing is None else read(missing.view("u1").data)


BY_NAME |= {"polars.dataframe.frame.DataFrame": TableKind, "polars.series.series.Series": ColumnKind}
