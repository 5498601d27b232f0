"""Tables and histograms as JSON; how it is to be read, :mod:`det_native.schema.outputs` says."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from det_harness.logged.limits import (
    BINS,
    CELL_CHARACTERS,
    MEDIUM_BYTES,
    TABLE_COLUMNS,
    TABLE_ROWS,
    NotKeptError,
    megabytes,
)
from det_harness.logged.numbers import array_of


@dataclass(frozen=True)
class Table:
    """The content of a table; `total` rows there were."""

    content: bytes
    columns: int
    rows: int
    total: int
    total_columns: int


def is_frame(value: Any) -> bool:
    """Return whether an object is a table of pandas, polars or pyarrow, or a styled one."""
    value = _unstyled(value)
    return hasattr(value, "columns") and (
        callable(getattr(value, "iterrows", None)) or callable(getattr(value, "rows", None))
    )


def table_of(value: Any) -> Table:
    """Return what is to be kept of a table.

    Raises
    ------
    NotKeptError
        If it is none.
    """
    try:
        columns, rows, total = _read(_unstyled(value))
        kept = [[_cell(cell) for cell in row[:TABLE_COLUMNS]] for row in rows]
    except NotKeptError:
        raise
    except Exception as error:
        raise NotKeptError(f"it is no table that can be read ({type(error).__name__}: {error})") from error
    names = [str(name)[:CELL_CHARACTERS].encode("utf-8", "replace").decode() for name in columns[:TABLE_COLUMNS]]
    while True:
        content = _dumped({"columns": names, "rows": kept, "total": total})
        if len(content) <= MEDIUM_BYTES:
            return Table(content, len(names), len(kept), total, len(columns))
        if len(kept) < 2:
            raise NotKeptError(f"a row of {megabytes(len(content))} is too large; at most {megabytes(MEDIUM_BYTES)}")
        kept = kept[: max(1, int(len(kept) * 0.9 * MEDIUM_BYTES / len(content)))]


def histogram_of(values: Any, bins: Any) -> bytes:
    """Return a histogram.

    Raises
    ------
    NotKeptError
        If the values are no numbers, or there is none; or the bins make no sense.
    """
    import numpy as np

    try:
        array = array_of(values)
        if array.dtype.kind not in "biuf":
            raise NotKeptError(f"values of the type {array.dtype} are no numbers")
        flat = array.reshape(-1).astype(np.float64)
    except NotKeptError:
        raise
    except Exception as error:
        raise NotKeptError(f"an object of the type {type(values).__name__} has no values for a histogram") from error
    finite = flat[np.isfinite(flat)]
    if not finite.size:
        raise NotKeptError("there is no finite value for a histogram" if flat.size else "there are no values")
    try:
        with np.errstate(all="ignore"):
            counts, edges = np.histogram(finite, bins=_bins(bins))
        if not np.isfinite(edges).all() or counts.sum() > finite.size:
            raise NotKeptError("the values are too far apart for bins of one width")
    except NotKeptError:
        raise
    except Exception as error:
        raise NotKeptError(f"bins={bins!r:.60} makes no histogram: {error}") from error
    found = {"counts": counts.tolist(), "edges": edges.tolist(), "not_finite": int(flat.size - finite.size)}
    return _dumped(found)


def _bins(bins: Any) -> Any:
    if isinstance(bins, str):
        raise NotKeptError(f"bins={bins!r:.60} is neither a number nor a list of edges")
    if hasattr(bins, "__len__"):
        if len(bins) > BINS + 1:
            raise NotKeptError(f"{len(bins) - 1:,} bins are too many; at most {BINS:,}")
        return array_of(bins)
    return max(1, min(int(bins), BINS))


def _unstyled(value: Any) -> Any:
    """Return the table of a styled one of pandas."""
    data = getattr(value, "data", None)
    return data if type(value).__name__ == "Styler" and hasattr(data, "columns") else value


def _read(value: Any) -> tuple[list[Any], list[list[Any]], int]:
    """Return the names of the columns, the first rows, and how many there are."""
    if isinstance(value, Mapping):
        return _of_columns(value)
    if callable(getattr(value, "to_frame", None)) and not hasattr(value, "columns"):
        value = value.to_frame()  # a series
    if callable(getattr(value, "to_pydict", None)):  # pyarrow
        total = int(value.num_rows)
        columns, rows, _ = _of_columns(value.slice(0, TABLE_ROWS).to_pydict())
        return columns, rows, total
    if hasattr(value, "columns") and callable(getattr(value, "itertuples", None)):
        return _of_pandas(value)
    if hasattr(value, "columns") and callable(getattr(value, "rows", None)):
        return list(value.columns), [list(row) for row in value.head(TABLE_ROWS).rows()], len(value)
    if isinstance(value, str | bytes):
        raise NotKeptError("text is no table; det.log_text() takes it")
    if isinstance(value, Sequence) and value and all(isinstance(row, Mapping) for row in value):
        columns = list(dict.fromkeys(name for row in value for name in row))
        return columns, [[row.get(name) for name in columns] for row in value[:TABLE_ROWS]], len(value)
    return _of_array(value)


def _of_pandas(frame: Any) -> tuple[list[Any], list[list[Any]], int]:
    index = frame.index
    plain = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    first = frame.head(TABLE_ROWS)
    columns = [_column_name(name) for name in frame.columns]
    numbers = [getattr(dtype, "kind", "O") in "fc" for dtype in frame.dtypes]
    if plain:
        rows = [_missing_left_out(row, numbers) for row in first.itertuples(index=False, name=None)]
        return columns, rows, len(frame)
    names = ["" if name is None else name for name in index.names]
    numbers = [False] * len(names) + numbers
    rows = [[*(row[0] if len(names) > 1 else (row[0],)), *row[1:]] for row in first.itertuples(index=True, name=None)]
    return [*names, *columns], [_missing_left_out(row, numbers) for row in rows], len(frame)


def _missing_left_out(row: Sequence[Any], numbers: Sequence[bool]) -> list[Any]:
    """Return a row in which not-a-number is a value in columns of numbers, and elsewhere says that there is none."""
    return [
        cell if number or not isinstance(cell, float) or cell == cell else None
        for cell, number in zip(row, numbers, strict=True)
    ]


def _column_name(name: Any) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _of_columns(columns: Mapping[Any, Any]) -> tuple[list[Any], list[list[Any]], int]:
    lists = [list(_first(column)) for column in columns.values()]
    total = max((_length(column) for column in columns.values()), default=0)
    height = max(map(len, lists), default=0)
    rows = [[column[row] if row < len(column) else None for column in lists] for row in range(height)]
    return list(columns), rows, total


def _first(column: Any) -> Iterable[Any]:
    if isinstance(column, str | bytes) or not hasattr(column, "__len__") or getattr(column, "ndim", 1) == 0:
        return [column]
    if hasattr(column, "detach") or callable(getattr(column, "numpy", None)):
        column = array_of(column)
    return islice(iter(column), TABLE_ROWS)


def _length(column: Any) -> int:
    many = hasattr(column, "__len__") and not isinstance(column, str | bytes) and getattr(column, "ndim", 1) != 0
    return len(column) if many else 1


def _of_array(value: Any) -> tuple[list[Any], list[list[Any]], int]:
    if isinstance(value, list | tuple) and any(isinstance(row, list | tuple) for row in value):
        rows = [list(row) if isinstance(row, list | tuple) else [row] for row in value[:TABLE_ROWS]]
        width = max(map(len, rows))
        return [str(column) for column in range(width)], [row + [None] * (width - len(row)) for row in rows], len(value)
    array = array_of(value)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        what = f"an array of the shape {array.shape}" if array.ndim else f"an object of the type {type(value).__name__}"
        raise NotKeptError(f"{what} is no table")
    return [str(column) for column in range(array.shape[1])], array[:TABLE_ROWS].tolist(), array.shape[0]


def _cell(value: Any) -> Any:
    """Return the cell of a table as JSON has it; what is neither number nor text nor truth is text."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", None) == 0:
        value = item()
    if value is None or isinstance(value, bool):
        return value
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas: what is missing
        return None
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)[:CELL_CHARACTERS]
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value)[:CELL_CHARACTERS].encode("utf-8", "replace").decode()


def _dumped(found: dict[str, Any]) -> bytes:
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
