"""Read the texts in the cells of arrays and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from det_native.capture.facts import type_names


def texts_of_cells(value: Any) -> Iterator[str]:
    """Yield the texts in an array of texts or in the cells of a table; nothing of what is neither."""
    names = type_names(value)
    if "numpy.ndarray" in names:
        yield from _texts_of_array(value)
    elif any(name.startswith("pandas.") for name in names):
        is_table = hasattr(value, "columns")
        columns = [value.index, value.columns, *(column for _, column in value.items())] if is_table else [value]
        for column in columns:
            # A category or a text of pandas is of the kind of objects, too.
            if getattr(getattr(column, "dtype", None), "kind", "") in ("O", "S", "U") and hasattr(column, "__iter__"):
                yield from _texts_in(column)


def _texts_of_array(array: Any) -> Iterator[str]:
    if array.dtype.kind in ("S", "U", "T"):
        yield from _texts_in(array.ravel().tolist())
    # The objects of an array of objects are looked at by themselves, as all that is pickled; of a record, its fields.
    elif array.dtype.names is not None:
        for name in array.dtype.names:
            yield from _texts_of_array(array[name])


def _texts_in(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, bytes):
            yield value.decode("latin-1")
        elif isinstance(value, tuple):  # of an index with several levels
            yield from _texts_in(value)
