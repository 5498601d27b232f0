"""Trials have stages: all units that a search in stages has asked them for, one after the other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the stages; those of trials before are not known, and are not told."""
    op.add_column("trials", sa.Column("stages", sa.JSON(), nullable=True))
