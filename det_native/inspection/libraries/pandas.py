"""pandas: tables, columns, indices, and the arrays in them."""

from __future__ import annotations

import sys
from typing import Any

from det_native.inspection.adapter import Content, Data, Ending, Library

_COLUMNS = 1_000  # of a table, for the check


class _Table(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", type(value).__name__, str(value.shape))
        reader.say(*(f"{name}: {kind}" for name, kind in value.dtypes.items()))
        for place in range(min(value.shape[1], _COLUMNS)):
            _read_column(value.iloc[:, place], reader)
        _read_labels(value.index, reader)
        return True


class _Column(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", type(value).__name__, str(value.shape))
        _read_column(value, reader)
        _read_labels(value.index, reader)
        return True


class _Index(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", type(value).__name__, str(value.shape))
        _read_column(value.to_series(), reader)
        return True


def _read_column(column: Any, reader: Content) -> None:
    if column.dtype.kind in "fiub":
        reader.numbers(column.to_numpy())
        return
    try:
        hashes = sys.modules["pandas"].util.hash_pandas_object(column, index=False).to_numpy()
    except TypeError:  # cells that hold lists, say
        reader.go((column.tolist(),))
    else:
        reader.numbers(hashes)


def _read_labels(index: Any, reader: Content) -> None:
    if index.dtype.kind in "iub":
        reader.numbers(index.to_numpy())


LIBRARY = Library(
    {
        "pandas.DataFrame": _Table(),
        "pandas.Series": _Column(),
        "pandas.Index": _Index(),
        "pandas.ExtensionArray": Data(),
        **dict.fromkeys(("pandas.Timestamp", "pandas.Timedelta", "pandas.Period", "pandas.Interval"), Ending()),
        **dict.fromkeys(("pandas.NAType", "pandas.NaTType"), Ending()),
    },
)
