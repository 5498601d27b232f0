"""Runs in kernels: an experiment may have no program, and says so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

_HIGHEST = "SELECT seq FROM sqlite_sequence WHERE name = 'experiments'"


def upgrade() -> None:
    """Add the columns. SQLite makes the table anew for that, which must not forget the highest number that it gave."""
    connection = op.get_bind()
    sqlite = connection.dialect.name == "sqlite"
    highest = connection.exec_driver_sql(_HIGHEST).scalar() if sqlite else None
    with op.batch_alter_table("experiments", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.alter_column("bundle_id", existing_type=sa.String(64), nullable=True)
        table.add_column(sa.Column("in_kernel", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("no_program", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("kept_at", sa.Text(), nullable=False, server_default=""))
    if highest is not None:
        connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'experiments'")
        connection.exec_driver_sql("INSERT INTO sqlite_sequence (name, seq) VALUES ('experiments', ?)", (highest,))
