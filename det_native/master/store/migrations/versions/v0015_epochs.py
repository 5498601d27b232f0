"""What the framework's own history has of each epoch."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Make the table; histories of trials before are made of their metrics."""
    op.create_table(
        "epochs",
        sa.Column(
            "trial_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("batch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("row", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id", "run"], ["runs.trial_id", "runs.number"], name=op.f("fk_epochs_trial_id_run")
        ),
        sa.PrimaryKeyConstraint("trial_id", "run", "batch", name=op.f("pk_epochs")),
        sqlite_with_rowid=False,
    )
