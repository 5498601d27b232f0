"""polars: tables and columns."""

from __future__ import annotations

from typing import Any

from det_native.inspection.adapter import Content, Data, Library

_MOST = 100_000  # rows of a column of texts that are read in a look


class _Column(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", value.name, str(value.dtype), str(len(value)))
        if value.null_count():
            reader.numbers(value.is_null().to_numpy())
            value = value.drop_nulls()
        if value.dtype.is_numeric():
            reader.numbers(value.to_numpy())
        else:
            reader.go((value.to_list(),))
        return True


class _Table(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", str(value.shape))
        for column in value.get_columns():
            _COLUMN.content(column, reader)
        return True


_COLUMN = _Column()
LIBRARY = Library({"polars.DataFrame": _Table(), "polars.Series": _COLUMN})
