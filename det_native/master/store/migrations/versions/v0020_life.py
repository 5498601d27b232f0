"""Experiments are archived, labelled, described, forked and deleted; models, schedules, messages and settings."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_BEST_TRIALS = """
UPDATE experiments SET best_trial = CASE WHEN smaller_is_better THEN (
    SELECT trials.id FROM trials WHERE trials.experiment_id = experiments.id
    ORDER BY CASE WHEN trials.best_validation IS NULL THEN 1 ELSE 0 END, trials.best_validation, trials.id LIMIT 1)
ELSE (
    SELECT trials.id FROM trials WHERE trials.experiment_id = experiments.id
    ORDER BY CASE WHEN trials.best_validation IS NULL THEN 1 ELSE 0 END, trials.best_validation DESC, trials.id LIMIT 1)
END
"""
# A running master summarises their metrics, beginning with the newest trial: it takes a while where there are many.
_NOT_SUMMARISED = """
INSERT INTO unsummarised (trial_id) SELECT id FROM trials WHERE id IN (SELECT trial_id FROM runs)
"""


def upgrade() -> None:
    """Add the columns and tables; what a configuration says of labels and the like is taken from there."""
    op.add_column("experiments", sa.Column("archived", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("experiments", _text("description"))
    op.add_column("experiments", _json("labels", "[]"))
    op.add_column("experiments", _text("notes"))
    op.add_column("experiments", _text("project"))
    op.add_column("experiments", sa.Column("forked_from", _ID, nullable=True))
    op.add_column("experiments", sa.Column("best_trial", _ID, nullable=True))
    op.execute(_BEST_TRIALS)
    # A query reads these from the index: behind long columns of a row they are read slowly.
    index = ["owner", "archived", "id", "best_trial", "created", "ended"]
    op.create_index("ix_experiments_owner_archived", "experiments", index)
    op.create_index("ix_experiments_owner_state", "experiments", ["owner", "state", "archived", "id"])
    op.add_column("checkpoints", _json("metadata", "{}"))
    op.add_column("checkpoints", sa.Column("pinned", sa.Boolean(), nullable=False, server_default=sa.false()))
    _read_configurations()
    op.create_table(
        "deleted_experiments",
        sa.Column("id", _ID, primary_key=True, autoincrement=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("deleted", sa.String(32), nullable=False),
    )
    op.create_table(
        "metric_summaries",
        sa.Column("trial_id", _ID, sa.ForeignKey("trials.id"), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(500), primary_key=True),
        sa.Column("experiment_id", _ID, sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("last_batch", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.Float(53), nullable=True),
        sa.Column("minimum", sa.Float(53), nullable=True),
        sa.Column("maximum", sa.Float(53), nullable=True),
    )
    op.create_table(
        "unsummarised",
        sa.Column("trial_id", _ID, primary_key=True, autoincrement=False),
    )
    op.create_index("ix_metric_summaries_experiment_id", "metric_summaries", ["experiment_id"])
    op.create_index("ix_metric_summaries_name", "metric_summaries", ["name", "experiment_id"])
    _create_registry()
    _create_outgoing()
    op.execute(_NOT_SUMMARISED)


def _create_registry() -> None:
    op.create_table(
        "models",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        _text("description"),
        _text("notes"),
        _json("labels", "[]"),
        _json("metadata", "{}"),
        sa.Column("archived", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("last_version", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("updated", sa.String(32), nullable=False),
        sa.UniqueConstraint("owner", "name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "model_versions",
        sa.Column("model_id", _ID, sa.ForeignKey("models.id"), primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("uuid", sa.String(64), sa.ForeignKey("checkpoints.uuid"), nullable=False),
        _text("name"),
        _text("description"),
        _text("notes"),
        _json("labels", "[]"),
        _json("metadata", "{}"),
        sa.Column("stage", sa.String(32), nullable=False, server_default=""),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("updated", sa.String(32), nullable=False),
    )
    op.create_index("ix_model_versions_uuid", "model_versions", ["uuid"])


def _create_outgoing() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("timing", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("next", sa.String(32), nullable=True),
        sa.Column("submitted", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("last_experiment", _ID, nullable=True),
        _text("error"),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("ended", sa.String(32), nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_schedules_state_next", "schedules", ["state", "next"])
    op.create_table(
        "messages",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("experiment_id", _ID, nullable=True),
        sa.Column("trial_id", _ID, nullable=True),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("target", sa.JSON(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("next", sa.String(32), nullable=True),
        _text("error"),
        sa.Column("created", sa.String(32), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_messages_state_next", "messages", ["state", "next"])
    op.create_index("ix_messages_experiment_id", "messages", ["experiment_id"])
    op.create_table(
        "settings",
        sa.Column("owner", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column("updated", sa.String(32), nullable=False),
    )


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, server_default="")


def _json(name: str, empty: str) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON(), nullable=False, server_default=empty)


def _read_configurations() -> None:
    connection = op.get_bind()
    experiments = sa.table(
        "experiments",
        sa.column("id"),
        sa.column("config", sa.Text()),
        sa.column("labels", sa.JSON()),
        sa.column("description"),
        sa.column("project"),
    )
    for row in connection.execute(sa.select(experiments.c.id, sa.cast(experiments.c.config, sa.Text()))).all():
        try:
            config = json.loads(row[1])
        except (TypeError, ValueError):  # the row is damaged, which is told when it is read
            continue
        if not isinstance(config, dict):
            continue
        said = {name: str(config[name]) for name in ("description", "project") if config.get(name)}
        labels = [label for label in config.get("labels") or () if isinstance(label, str)]
        if said or labels:
            connection.execute(sa.update(experiments).where(experiments.c.id == row[0]).values(labels=labels, **said))
