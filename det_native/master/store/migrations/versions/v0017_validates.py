"""Experiments know whether anything validates: else metrics of the training stand where those of validations do."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the fact; of experiments before it is not known, and they are shown as they were."""
    op.add_column("experiments", sa.Column("validates", sa.Boolean(), nullable=False, server_default=sa.true()))
