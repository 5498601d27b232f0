"""Insert many rows at once, without SQLAlchemy's work per row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table, insert


def bulk_insert(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert `rows`, tuples in the order of the table's columns, of plain numbers and text."""
    if not rows:
        return
    if connection.dialect.paramstyle == "qmark":
        connection.exec_driver_sql(_statement(table, connection.dialect), list(rows))
    else:
        names = [column.name for column in table.columns]
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


@lru_cache(maxsize=64)
def _statement(table: Table, dialect: Dialect) -> str:
    return str(insert(table).compile(dialect=dialect))
