"""What a queued experiment waits for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column."""
    op.add_column("experiments", sa.Column("waits_for", sa.Text(), nullable=True))
