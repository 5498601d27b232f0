"""Databases of the first version."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Connection


def make_first_tables(connection: Connection) -> None:
    """Make the tables as the first version did, in an empty database."""
    script = Path(__file__).with_name("first_tables.sql").read_text()
    if connection.dialect.name == "postgresql":
        script = script.replace("INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "BIGSERIAL PRIMARY KEY")
        script = re.sub(r"id INTEGER", "id BIGINT", script.replace(" WITHOUT ROWID", ""))
    for statement in script.split(";")[:-1]:
        connection.exec_driver_sql(statement)
