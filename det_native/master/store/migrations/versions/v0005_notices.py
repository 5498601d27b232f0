"""Trials: what they wait for at the moment, and what else is to be known of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add both columns."""
    op.add_column("trials", sa.Column("waiting", sa.Text(), nullable=True))
    op.add_column("trials", sa.Column("notice", sa.Text(), nullable=True))
