"""The newest experiments of an owner are found without looking at all."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Make the index."""
    op.create_index("ix_experiments_owner_id", "experiments", ["owner", "id"])
