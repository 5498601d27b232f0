"""pyarrow: arrays and tables, which never change; what holds one may hold another one later."""

from __future__ import annotations

import sys
from typing import Any

from det_native.inspection.adapter import Content, Data, Library, Walk


class _Array(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("arrow", str(value.type), str(len(value)))
        _read(value, reader)
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        walk.say(str(value.type), len(value))
        for chunk in _chunks_of(value):
            walk.say(chunk.offset, chunk.null_count)
            for buffer in chunk.buffers():
                if buffer is not None and buffer.is_cpu:
                    walk.raw(memoryview(buffer))
        return True


class _Table(Data):
    def content(self, value: Any, reader: Content) -> bool:
        reader.say("arrow", type(value).__name__, str(value.schema.remove_metadata()), str(value.num_rows))
        for column in value.columns:
            _read(column, reader)
        return True

    def children(self, value: Any, walk: Walk) -> bool:
        for column in value.columns:
            _ARRAY.children(column, walk)
        return True


def _chunks_of(value: Any) -> list[Any]:
    return list(value.chunks) if hasattr(value, "chunks") else [value]


def _read(value: Any, reader: Content) -> None:
    """Read a column: which values are missing, and the others; how they are divided into chunks does not count."""
    types = sys.modules["pyarrow"].types
    if value.null_count:
        reader.numbers(value.is_null().to_numpy(**({} if hasattr(value, "chunks") else {"zero_copy_only": False})))
        value = value.drop_null()
    kind = value.type
    if types.is_integer(kind) or types.is_floating(kind):
        reader.numbers(value.to_numpy() if hasattr(value, "chunks") else value.to_numpy(zero_copy_only=False))
    else:
        reader.go((value.to_pylist(),))


_ARRAY, _TABLE = _Array(), _Table()
LIBRARY = Library(
    {
        "pyarrow.Array": _ARRAY,
        "pyarrow.ChunkedArray": _ARRAY,
        "pyarrow.Table": _TABLE,
        "pyarrow.RecordBatch": _TABLE,
    }
)
