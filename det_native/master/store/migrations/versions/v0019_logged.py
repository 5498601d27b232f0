"""Runs know how many rows of logged metrics they have, besides those of training and validations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the counts; runs before have logged nothing."""
    op.add_column("runs", sa.Column("logged_rows", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("logged_last", sa.BigInteger(), nullable=False, server_default="-1"))
