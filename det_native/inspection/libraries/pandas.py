"""pandas: tables, columns, indices, and the arrays in them."""

from __future__ import annotations

import sys
from typing import Any

from det_native.inspection.adapter import Content, Data, Ending, Library, Walk

_COLUMNS = 1_000  # of a table, for the check


class _Values(Data):
    """What has columns of values, or is one."""


class _Table(_Values):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", type(value).__name__, str(value.shape))
        reader.say(*(f"{name}: {kind}" for name, kind in value.dtypes.items()))
        for place in range(min(value.shape[1], _COLUMNS)):
            _read_column(value.iloc[:, place], reader)
        _read_labels(value.index, reader)
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        _axis(value.index, walk)
        _axis(value.columns, walk)
        walk.go([*value.attrs, *value.attrs.values()])
        for place in range(value.shape[1]):
            _walk_column(value._ixs(place, axis=1), walk)
        return True


class _Column(_Values):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", type(value).__name__, str(value.shape))
        _read_column(value, reader)
        _read_labels(value.index, reader)
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        _axis(value.index, walk)
        walk.say(repr(value.name))
        _walk_column(value, walk)
        return True


class _Index(_Values):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("table", type(value).__name__, str(value.shape))
        _read_column(value.to_series(), reader)
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        _axis(value, walk)
        return True


class _Held(Data):
    """The array of a column, in one of the forms that pandas has for those."""

    def children(self, value: Any, walk: Walk) -> bool:
        inner = getattr(value, "_ndarray", None)
        if _is_array(inner):
            walk.numbers(inner)
            return True
        for name in ("_codes", "_data", "_mask"):
            part = getattr(value, name, None)
            if _is_array(part):
                walk.numbers(part)
            elif part is not None:
                walk.cannot_see()
        if hasattr(value, "categories"):
            _axis(value.categories, walk)
        if hasattr(value, "_pa_array"):
            walk.go((value._pa_array,))
        return True


class _Moment(Ending):
    """A moment, a span of time, a value that is missing."""

    def children(self, value: Any, walk: Walk) -> bool:
        walk.say(repr(value))
        return True


def _is_array(part: Any) -> bool:
    return isinstance(part, sys.modules["numpy"].ndarray)


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


def _walk_column(column: Any, walk: Walk) -> None:
    walk.say(str(column.dtype))
    _HELD.children(column.array, walk)


def _axis(index: Any, walk: Walk) -> None:
    walk.say(id(index), len(index), str(getattr(index, "names", "")))


_HELD = _Held()
_MOMENT = _Moment()
LIBRARY = Library(
    {
        "pandas.DataFrame": _Table(),
        "pandas.Series": _Column(),
        "pandas.Index": _Index(),
        "pandas.ExtensionArray": _HELD,
        **dict.fromkeys(("pandas.Timestamp", "pandas.Timedelta", "pandas.Period", "pandas.Interval"), _MOMENT),
        **dict.fromkeys(("pandas.NAType", "pandas.NaTType"), _MOMENT),
    },
)
