"""Runs of several processes: each writes its own output, and a line of the log says which one has written it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_runs = sa.table(
    "runs", sa.column("run_id", sa.String), sa.column("log_offset", sa.BigInteger), sa.column("log_offsets", sa.JSON)
)


def upgrade() -> None:
    """Make the offset of a run's output a list, one entry a rank."""
    op.add_column("logs", sa.Column("rank", sa.Integer(), nullable=True))
    op.add_column("runs", sa.Column("log_offsets", sa.JSON(), nullable=False, server_default="[0]"))
    connection = op.get_bind()
    for run_id, offset in connection.execute(sa.select(_runs.c.run_id, _runs.c.log_offset)).all():
        connection.execute(sa.update(_runs).where(_runs.c.run_id == run_id).values(log_offsets=[offset]))
    op.drop_column("runs", "log_offset")
