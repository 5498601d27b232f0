"""What searchers were told since their last snapshot."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0010"


def upgrade() -> None:
    """Make the table: a search that goes on has had a snapshot after its last event."""
    op.create_table(
        "search_events",
        sa.Column(
            "experiment_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("event", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name=op.f("fk_search_events_experiment_id")),
        sa.PrimaryKeyConstraint("experiment_id", "number", name=op.f("pk_search_events")),
        sqlite_with_rowid=False,
    )
