"""Workers that are asked to end, the time left, and checks known by what was checked.

Bundles that are here already get no key: their own pass stays theirs, and the next one like them is checked once.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("bundles", sa.Column("check_key", sa.String(length=64), nullable=True))
    op.create_index("ix_bundles_check_key", "bundles", ["check_key"], unique=False)
    op.add_column("experiments", sa.Column("seconds_left", sa.Float(53), nullable=True))
    op.add_column("runs", sa.Column("stop_asked", sa.Boolean(), nullable=False, server_default=sa.false()))
