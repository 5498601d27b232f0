"""Trials know since when they have their best value, so that the best so far is drawn where it was."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the time; of trials before it is not known."""
    op.add_column("trials", sa.Column("best_at", sa.String(32), nullable=True))
