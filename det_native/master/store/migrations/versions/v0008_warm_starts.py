"""Trials may begin with the weights of a checkpoint of another trial."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the checkpoint that a trial begins with."""
    op.add_column("trials", sa.Column("warm_start", sa.String(64), nullable=True))
