"""Tables and arrays of pyarrow, polars, JAX and Pillow, which keep their content outside of Python: by its digest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from det_native.heap.digests import digest
from det_native.heap.edges import BY_NAME, Kind, SimpleKind


def _read_arrow(value: Any) -> Any:
    """Return a digest of each column; how they are divided into chunks does not count."""
    columns = value.columns if hasattr(value, "columns") else [value]
    types = [str(getattr(column, "type", "")) for column in columns]
    return len(value), str(getattr(value, "schema", "")), types, digest(repr([c.to_pylist() for c in columns]).encode())


def _read_polars(value: Any) -> Any:
    columns = value.get_columns() if hasattr(value, "get_columns") else [value]
    return [(column.name, str(column.dtype), digest(repr(column.to_list()).encode())) for column in columns]


def _read_image(value: Any) -> Any:
    return value.mode, value.size, value.getpalette() if value.mode in ("P", "PA") else None, digest(value.tobytes())


def _array_of_jax(value: Any) -> Any:
    if str(value.dtype).startswith("key<"):
        value = sys.modules["jax"].random.key_data(value)
    return sys.modules["numpy"].asarray(value)


def _read_jax(value: Any) -> Any:
    array = _array_of_jax(value)
    return str(value.dtype), array.shape, digest(array.tobytes())


def _constant(read: Callable[[Any], Any], numbers: Callable[[Any], Any] | None = None) -> Kind:
    kind = SimpleKind(read, numbers=numbers)
    kind.is_whole = True
    return kind


for _name in ("Table", "RecordBatch", "Array", "ChunkedArray"):
    BY_NAME[f"pyarrow.lib.{_name}"] = _constant(_read_arrow)
for _name in ("polars.dataframe.frame.DataFrame", "polars.series.series.Series"):
    BY_NAME[_name] = _constant(_read_polars)
for _name in ("jaxlib.xla_extension.ArrayImpl", "jaxlib._jax.ArrayImpl", "jax._src.array.ArrayImpl", "jax._src.prng.PRNGKeyArray"):
    BY_NAME[_name] = _constant(_read_jax, _array_of_jax)
BY_NAME["PIL.Image.Image"] = _constant(_read_image)
