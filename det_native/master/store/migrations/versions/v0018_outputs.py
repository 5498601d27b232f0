"""What trainings give besides metrics and checkpoints: files that their code writes, and media that it logs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables; of trials before there is nothing."""
    op.create_table(
        "artifacts",
        sa.Column("trial_id", _ID, autoincrement=False, nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("path", sa.String(500), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id", "run"], ["runs.trial_id", "runs.number"], name=op.f("fk_artifacts_trial_id_run")
        ),
        sa.PrimaryKeyConstraint("trial_id", "run", "path", name=op.f("pk_artifacts")),
    )
    op.create_table(
        "media",
        sa.Column("id", _ID, nullable=False),
        sa.Column("trial_id", _ID, nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(500), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("format", sa.String(16), nullable=False),
        sa.Column("width", sa.Integer(), nullable=True),
        sa.Column("height", sa.Integer(), nullable=True),
        sa.Column("caption", sa.Text(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id", "run"], ["runs.trial_id", "runs.number"], name=op.f("fk_media_trial_id_run")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_media")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_media_trial_id_name", "media", ["trial_id", "name", "batch"])
