"""From which checkpoints the programs of experiments get weights: these are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Make the table; no program of before has any."""
    op.create_table(
        "checkpoint_uses",
        sa.Column(
            "experiment_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("uuid", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name=op.f("fk_checkpoint_uses_experiment_id")),
        sa.PrimaryKeyConstraint("experiment_id", "uuid", name=op.f("pk_checkpoint_uses")),
        sqlite_with_rowid=False,
    )
