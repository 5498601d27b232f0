"""When a run had done how many batches, for curves over time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table; of trials before nothing is known."""
    op.create_table(
        "batch_times",
        sa.Column("trial_id", _ID, autoincrement=False, nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id", "run"], ["runs.trial_id", "runs.number"], name=op.f("fk_batch_times_trial_id_run")
        ),
        sa.PrimaryKeyConstraint("trial_id", "run", "time", name=op.f("pk_batch_times")),
        sqlite_with_rowid=False,
    )
