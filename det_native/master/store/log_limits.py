"""How much of a trial's output is stored, and the middle that is left out of what is more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, delete, func, insert, select, update
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import logs, runs

# How the line begins that stands where lines are left out. A trial has one at most.
LEFT_OUT = "[... Output is left out here: "
# What a row takes besides its text, in the table and its indexes.
ROW_BYTES = 100


class octet_length(GenericFunction[int]):  # noqa: N801 (its name in SQL)
    """Bytes of a text; its characters may take four each."""

    type = Integer()
    inherit_cache = True


@compiles(octet_length, "sqlite")
def _octet_length_of_sqlite(element: octet_length, compiler: SQLCompiler, **options: Any) -> str:
    # Versions before 3.43 do not have it.
    return f"length(CAST({compiler.process(element.clauses, **options)} AS BLOB))"


@dataclass(frozen=True)
class Kept:
    """What is stored of a trial's output.

    Attributes
    ----------
    head, tail : int
        Bytes of the database, before and behind the line that says what is left out.
    marker : int or None
        The id of that line, None before anything is left out.
    left_out : int
        Bytes of output that are not stored.
    """

    head: int = 0
    tail: int = 0
    marker: int | None = None
    left_out: int = 0


def kept(connection: Connection, trial_id: int) -> Kept:
    """Return what is stored of a trial's output."""
    is_marker = (logs.c.stream == "system") & logs.c.text.startswith(LEFT_OUT, autoescape=True)
    marker = connection.execute(select(func.min(logs.c.id)).where(logs.c.trial_id == trial_id, is_marker)).scalar()
    if marker is None:
        head, _ = _sizes(connection, _output(trial_id))
        return Kept(head)
    head, head_text = _sizes(connection, _output(trial_id) & (logs.c.id < marker))
    tail, tail_text = _sizes(connection, _output(trial_id) & (logs.c.id > marker))
    offsets = connection.execute(select(runs.c.log_offsets).where(runs.c.trial_id == trial_id)).scalars()
    return Kept(head, tail, marker, max(sum(map(sum, offsets)) - head_text - tail_text, 0))


def mark(transaction: Transaction, trial_id: int, run_id: str, text: str) -> int:
    """Store the line that says what is left out, here; return its id."""
    row = {"trial_id": trial_id, "run_id": run_id, "time": now(), "stream": "system", "text": f"{LEFT_OUT}{text}"}
    result = transaction.connection.execute(insert(logs).values(**row))
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])


def set_mark(transaction: Transaction, marker: int, text: str) -> None:
    """Change what that line says."""
    transaction.connection.execute(update(logs).where(logs.c.id == marker).values(text=f"{LEFT_OUT}{text}"))


def drop_middle(transaction: Transaction, trial_id: int, marker: int, tail: int) -> tuple[int, int]:
    """Delete the oldest output behind the marker, but for the last `tail` bytes.

    Returns
    -------
    left : int
        Bytes that are left, as ``Kept.tail``.
    dropped : int
        Bytes of output that are stored no longer.
    """
    behind = _output(trial_id) & (logs.c.id > marker)
    query = select(logs.c.id, octet_length(logs.c.text)).where(behind).order_by(logs.c.id.desc())
    left, last = 0, None
    for line, length in transaction.connection.execute(query):
        if left + length + ROW_BYTES > tail:
            last = line
            break
        left += length + ROW_BYTES
    if last is None:
        return left, 0
    _, dropped = _sizes(transaction.connection, behind & (logs.c.id <= last))
    transaction.connection.execute(delete(logs).where(behind, logs.c.id <= last))
    return left, dropped


def _output(trial_id: int) -> ColumnElement[bool]:
    return (logs.c.trial_id == trial_id) & (logs.c.stream != "system")


def _sizes(connection: Connection, where: ColumnElement[bool]) -> tuple[int, int]:
    """Return what rows take in the database, and the bytes of output in them."""
    text, count = func.coalesce(func.sum(octet_length(logs.c.text)), 0), func.count()
    total, rows = connection.execute(select(text, count).where(where)).one()
    return int(total) + ROW_BYTES * rows, int(total) + rows
