"""Trials have a warning: what has happened in the training that is no failure, such as a loss that became NaN."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the warning of trials."""
    op.add_column("trials", sa.Column("warning", sa.Text(), nullable=True))
