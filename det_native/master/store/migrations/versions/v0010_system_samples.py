"""What the processes of trials use: samples of processors, memory, GPUs, disk and network."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Make the table; of trials before there are no samples."""
    op.create_table(
        "system_samples",
        sa.Column(
            "trial_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("rank", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id", "run"], ["runs.trial_id", "runs.number"], name=op.f("fk_system_samples_trial_id_run")
        ),
        sa.PrimaryKeyConstraint("trial_id", "rank", "run", "time", name=op.f("pk_system_samples")),
        sqlite_with_rowid=False,
    )
