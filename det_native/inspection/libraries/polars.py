"""polars: tables and columns."""

from __future__ import annotations

from typing import Any

from det_native.inspection.adapter import Content, Data, Library, Walk

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

    def children(self, value: Any, walk: Walk) -> bool:
        walk.say(value.name, str(value.dtype), len(value), value.null_count())
        if value.null_count() and len(value) <= _MOST:
            walk.raw(value.is_null().to_numpy().view("uint8"))
        if value.dtype.is_numeric():
            walk.raw(value.fill_null(0).to_numpy().view("uint8"))
        elif len(value) <= _MOST and not value.dtype.is_nested() and not value.dtype.is_object():
            walk.raw(value.hash().to_numpy().view("uint8"))
        else:
            walk.cannot_see()
        return True


class _Table(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", str(value.shape))
        for column in value.get_columns():
            _COLUMN.content(column, reader)
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        for column in value.get_columns():
            _COLUMN.children(column, walk)
        return True


_COLUMN = _Column()
LIBRARY = Library({"polars.DataFrame": _Table(), "polars.Series": _COLUMN})
