"""pyarrow: arrays and tables, which never change; what holds one may hold another one later."""

from __future__ import annotations

from det_native.heap.edges import BY_NAME
from det_native.heap.kinds.instances import FixedKind

for _name in ("Array", "ChunkedArray", "Table", "RecordBatch", "DataType", "Schema", "Field", "Buffer"):
    BY_NAME[f"pyarrow.lib.{_name}"] = FixedKind
