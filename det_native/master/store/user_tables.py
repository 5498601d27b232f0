"""Tables of what people set up beside their experiments: models of the registry, schedules, messages, settings."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from det_native.master.store.columns import Id, metadata

# Named models. `last_version` counts on when a version is deleted: a number is never given twice.
models = Table(
    "models",
    metadata,
    Column("id", Id, primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("name", String(200), nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("notes", Text, nullable=False, server_default=""),
    Column("labels", JSON, nullable=False, server_default="[]"),
    Column("metadata", JSON, nullable=False, server_default="{}"),
    Column("archived", Boolean, nullable=False, server_default=false()),
    Column("last_version", Integer, nullable=False, server_default="0"),
    Column("created", String(32), nullable=False),
    Column("updated", String(32), nullable=False),
    UniqueConstraint("owner", "name"),
    sqlite_autoincrement=True,
)

# A checkpoint that a version names is never collected.
model_versions = Table(
    "model_versions",
    metadata,
    Column("model_id", Id, ForeignKey("models.id"), primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("uuid", String(64), ForeignKey("checkpoints.uuid"), nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("description", Text, nullable=False, server_default=""),
    Column("notes", Text, nullable=False, server_default=""),
    Column("labels", JSON, nullable=False, server_default="[]"),
    Column("metadata", JSON, nullable=False, server_default="{}"),
    Column("stage", String(32), nullable=False, server_default=""),
    Column("created", String(32), nullable=False),
    Column("updated", String(32), nullable=False),
    Index("ix_model_versions_uuid", "uuid"),
)

# Experiments that are submitted at a time, or again and again; `body` is the ExperimentCreate.
schedules = Table(
    "schedules",
    metadata,
    Column("id", Id, primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("timing", JSON, nullable=False),
    Column("body", JSON, nullable=False),
    Column("next", String(32), nullable=True),
    Column("submitted", Integer, nullable=False, server_default="0"),
    Column("last_run", Id, nullable=True),
    Column("error", Text, nullable=False, server_default=""),
    Column("created", String(32), nullable=False),
    Column("ended", String(32), nullable=True),
    Index("ix_schedules_state_next", "state", "next"),
    sqlite_autoincrement=True,
)

# Messages to people on their way out, by webhook or e-mail; they are tried again until `attempts` are used up. Where
# they go stands in the configuration or in the settings of the user, named by `target`: no secret is stored here.
messages = Table(
    "messages",
    metadata,
    Column("id", Id, primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("experiment_id", Id, nullable=True),
    Column("trial_id", Id, nullable=True),
    Column("event", String(32), nullable=False),
    Column("target", JSON, nullable=False),
    Column("body", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("next", String(32), nullable=True),
    Column("error", Text, nullable=False, server_default=""),
    Column("created", String(32), nullable=False),
    Index("ix_messages_state_next", "state", "next"),
    Index("ix_messages_experiment_id", "experiment_id"),
    sqlite_autoincrement=True,
)

# Of each user, by name: where messages go, budgets of disk space, views that were saved.
settings = Table(
    "settings",
    metadata,
    Column("owner", String(64), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("value", JSON, nullable=False),
    Column("updated", String(32), nullable=False),
)
