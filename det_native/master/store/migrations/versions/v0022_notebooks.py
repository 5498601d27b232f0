"""The executed notebook of an experiment; schedules run notebooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Add the column; of experiments before none was kept. Schedules before had a program and no
    notebook: they end.
    """
    op.add_column("experiments", sa.Column("notebook", sa.String(64), nullable=True))
    op.execute("ALTER TABLE schedules RENAME COLUMN last_experiment TO last_run")
    op.execute(
        "UPDATE schedules SET next = NULL, state = 'CANCELED', error = 'It was made by an older version of "
        "det_native, which kept no notebook: make it again with `det submit NOTEBOOK --every`.' "
        "WHERE state IN ('ACTIVE', 'PAUSED')"
    )
    op.execute("UPDATE schedules SET last_run = NULL")
