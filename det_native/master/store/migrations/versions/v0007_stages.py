"""Trials have units: how far a search that trains in stages has asked them to train, in the unit of its length."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the units of trials."""
    op.add_column("trials", sa.Column("units", sa.BigInteger(), nullable=True))
