"""Tables of the store, for SQLite and Postgres alike.

Times are ISO 8601 text in UTC, so that they sort and read the same on both. JSON of a metrics row is plain text: it
goes from the report to the reader without being parsed on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    true,
)

import det_native.master.store.user_tables  # noqa: F401 (its tables are in the same metadata)
from det_native.master.store.columns import Double, Id, StateName, metadata
from det_native.schema.states import ExperimentState, TrialState

if TYPE_CHECKING:
    from sqlalchemy import Row

    AnyRow = Row[*tuple[Any, ...]]

bundles = Table(
    "bundles",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("manifest", JSON, nullable=False),
    Column("check_key", String(64), nullable=True),
    Column("checked", Boolean, nullable=False),
    Column("created", String(32), nullable=False),
    Index("ix_bundles_check_key", "check_key"),
)

experiments = Table(
    "experiments",
    metadata,
    Column("id", Id, primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("state", StateName(ExperimentState, 32), nullable=False),
    Column("config", JSON, nullable=False),
    Column("bundle_id", String(64), ForeignKey("bundles.id"), nullable=True),
    Column("framework", String(16), nullable=False),
    Column("metric", Text, nullable=False),
    Column("smaller_is_better", Boolean, nullable=False),
    Column("test", Boolean, nullable=False),
    Column("validates", Boolean, nullable=False, server_default=true()),
    Column("report", JSON, nullable=False),
    Column("searcher", JSON, nullable=True),
    Column("progress", Double, nullable=False),
    Column("seconds_left", Double, nullable=True),
    Column("waits_for", Text, nullable=True),
    Column("best_validation", Double, nullable=True),
    Column("error", JSON, nullable=True),
    Column("idempotency_key", String(200), nullable=True),
    Column("idempotency_hash", String(64), nullable=True),
    Column("collected", Boolean, nullable=False),
    Column("archived", Boolean, nullable=False, server_default=false()),
    Column("description", Text, nullable=False, server_default=""),
    Column("labels", JSON, nullable=False, server_default="[]"),
    Column("notes", Text, nullable=False, server_default=""),
    Column("project", Text, nullable=False, server_default=""),
    Column("forked_from", Id, nullable=True),
    Column("notebook", String(64), nullable=True),
    # Of a run in a kernel: why it has no program, and where its checkpoints lie, if not where the configuration says.
    Column("in_kernel", Boolean, nullable=False, server_default=false()),
    Column("no_program", Text, nullable=False, server_default=""),
    Column("kept_at", Text, nullable=False, server_default=""),
    Column("best_trial", Id, nullable=True),
    Column("created", String(32), nullable=False),
    Column("ended", String(32), nullable=True),
    UniqueConstraint("owner", "idempotency_key"),
    Index("ix_experiments_state", "state"),
    Index("ix_experiments_owner_id", "owner", "id"),
    # A query reads these from the index: behind long columns of a row they are read slowly.
    Index("ix_experiments_owner_archived", "owner", "archived", "id", "best_trial", "created", "ended"),
    Index("ix_experiments_owner_state", "owner", "state", "archived", "id"),
    sqlite_autoincrement=True,
)

# What has been deleted: who asks for it is told so. `forked_from` of others may name it still.
deleted_experiments = Table(
    "deleted_experiments",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("owner", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("deleted", String(32), nullable=False),
)

# Events that a searcher was told since the snapshot of it in `experiments`.
search_events = Table(
    "search_events",
    metadata,
    Column("experiment_id", Id, ForeignKey("experiments.id"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("event", JSON, nullable=False),
    sqlite_with_rowid=False,
)

# Checkpoints from which earlier training calls in the programs of experiments get their weights.
checkpoint_uses = Table(
    "checkpoint_uses",
    metadata,
    Column("experiment_id", Id, ForeignKey("experiments.id"), primary_key=True, autoincrement=False),
    Column("uuid", String(64), primary_key=True),
    sqlite_with_rowid=False,
)

# `waiting` says what the live run waits for, `notice` what else is to be known; empty or null where there is nothing.
trials = Table(
    "trials",
    metadata,
    Column("id", Id, primary_key=True),
    Column("experiment_id", Id, ForeignKey("experiments.id"), nullable=False),
    Column("request", Integer, nullable=False),
    Column("state", StateName(TrialState, 16), nullable=False),
    Column("hparams", JSON, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("restarts", Integer, nullable=False),
    Column("run_id", String(32), nullable=True),
    Column("target_batches", BigInteger, nullable=False),
    Column("units", BigInteger, nullable=True),
    Column("stages", JSON, nullable=True),
    Column("warm_start", String(64), nullable=True),
    Column("best_validation", Double, nullable=True),
    Column("best_at", String(32), nullable=True),
    Column("error", JSON, nullable=True),
    Column("fingerprint", Text, nullable=True),
    Column("waiting", Text, nullable=True),
    Column("notice", Text, nullable=True),
    Column("warning", Text, nullable=True),
    Column("created", String(32), nullable=False),
    Column("started", String(32), nullable=True),
    Column("ended", String(32), nullable=True),
    UniqueConstraint("experiment_id", "request"),
    Index("ix_trials_state", "state"),
    sqlite_autoincrement=True,
)

# `batches` are done in all, those of earlier runs included. `stop_asked` lasts: a worker that was once asked to end is
# held to it. Four columns tell of the metrics rows of each kind how many there are, and the batch of the last one (-1:
# none).
runs = Table(
    "runs",
    metadata,
    Column("run_id", String(32), primary_key=True),
    Column("trial_id", Id, ForeignKey("trials.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("start_batch", BigInteger, nullable=False),
    Column("resume", String(64), nullable=True),
    Column("last_seq", BigInteger, nullable=False),
    Column("batches", BigInteger, nullable=False),
    Column("training_rows", BigInteger, nullable=False),
    Column("training_last", BigInteger, nullable=False),
    Column("validation_rows", BigInteger, nullable=False),
    Column("validation_last", BigInteger, nullable=False),
    Column("logged_rows", BigInteger, nullable=False, server_default="0"),
    Column("logged_last", BigInteger, nullable=False, server_default="-1"),
    Column("token_hash", String(64), nullable=False),
    Column("slots", JSON, nullable=False),
    Column("handle", JSON, nullable=True),
    Column("exit", JSON, nullable=True),
    Column("stop_asked", Boolean, nullable=False, server_default=false()),
    Column("log_offsets", JSON, nullable=False, server_default="[0]"),
    Column("created", String(32), nullable=False),
    Column("ended", String(32), nullable=True),
    UniqueConstraint("trial_id", "number"),
    Index("ix_runs_state", "state"),
)

metrics = Table(
    "metrics",
    metadata,
    Column("trial_id", Id, primary_key=True, autoincrement=False),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("values", Text, nullable=False),
    ForeignKeyConstraint(["trial_id", "run"], ["runs.trial_id", "runs.number"]),
    sqlite_with_rowid=False,
)

# Of each metric of a trial the last value and the extreme ones, of numbers only: what experiments are searched by.
metric_summaries = Table(
    "metric_summaries",
    metadata,
    Column("trial_id", Id, ForeignKey("trials.id"), primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    Column("name", String(500), primary_key=True),
    Column("experiment_id", Id, ForeignKey("experiments.id"), nullable=False),
    Column("last_batch", BigInteger, nullable=False),
    Column("last", Double, nullable=True),
    Column("minimum", Double, nullable=True),
    Column("maximum", Double, nullable=True),
    Index("ix_metric_summaries_experiment_id", "experiment_id"),
    Index("ix_metric_summaries_name", "name", "experiment_id"),
)

# Trials of an earlier version, of which no metric has a summary yet.
unsummarised = Table(
    "unsummarised",
    metadata,
    Column("trial_id", Id, primary_key=True, autoincrement=False),
)

# Complete buckets of a series at several widths; see pyramid.py.
buckets = Table(
    "buckets",
    metadata,
    Column("trial_id", Id, primary_key=True, autoincrement=False),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("first_batch", BigInteger, nullable=False),
    Column("last_batch", BigInteger, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("nans", BigInteger, nullable=False),
    Column("total", Double, nullable=True),
    Column("minimum", Double, nullable=True),
    Column("maximum", Double, nullable=True),
    ForeignKeyConstraint(["trial_id", "run"], ["runs.trial_id", "runs.number"]),
    sqlite_with_rowid=False,
)

# What processes of trials use; `time` in milliseconds since 1970. A row may be merged of `count` samples: there are at
# most so many of each process of a trial, see system.py.
system_samples = Table(
    "system_samples",
    metadata,
    Column("trial_id", Id, primary_key=True, autoincrement=False),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("time", BigInteger, primary_key=True, autoincrement=False),
    Column("count", BigInteger, nullable=False),
    Column("values", Text, nullable=False),
    ForeignKeyConstraint(["trial_id", "run"], ["runs.trial_id", "runs.number"]),
    sqlite_with_rowid=False,
)

# What the framework's own history has of an epoch that ended after `batch` batches, as JSON; see epochs.py.
epochs = Table(
    "epochs",
    metadata,
    Column("trial_id", Id, primary_key=True, autoincrement=False),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("row", Text, nullable=False),
    ForeignKeyConstraint(["trial_id", "run"], ["runs.trial_id", "runs.number"]),
    sqlite_with_rowid=False,
)

# How many batches a run had done at a `time`, in milliseconds since 1970; see clocks.py.
batch_times = Table(
    "batch_times",
    metadata,
    Column("trial_id", Id, primary_key=True, autoincrement=False),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("time", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, nullable=False),
    ForeignKeyConstraint(["trial_id", "run"], ["runs.trial_id", "runs.number"]),
    sqlite_with_rowid=False,
)

# Files that the code of a run has written, as it wrote them last; `batch` are done when it was seen so. Their contents
# are blobs; see artifacts.py.
artifacts = Table(
    "artifacts",
    metadata,
    Column("trial_id", Id, primary_key=True, autoincrement=False),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("path", String(500), primary_key=True),
    Column("sha256", String(64), nullable=True),
    Column("size", BigInteger, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("note", Text, nullable=False),
    Column("created", String(32), nullable=False),
    ForeignKeyConstraint(["trial_id", "run"], ["runs.trial_id", "runs.number"]),
)

# Pictures, tables, texts and histograms that the code of a run has logged after `batch` batches; see media.py.
media = Table(
    "media",
    metadata,
    Column("id", Id, primary_key=True),
    Column("trial_id", Id, nullable=False),
    Column("run", Integer, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("name", String(500), nullable=False),
    Column("number", Integer, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("format", String(16), nullable=False),
    Column("width", Integer, nullable=True),
    Column("height", Integer, nullable=True),
    Column("caption", Text, nullable=False),
    Column("created", String(32), nullable=False),
    ForeignKeyConstraint(["trial_id", "run"], ["runs.trial_id", "runs.number"]),
    Index("ix_media_trial_id_name", "trial_id", "name", "batch"),
    sqlite_autoincrement=True,
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("uuid", String(64), primary_key=True),
    Column("trial_id", Id, ForeignKey("trials.id"), nullable=False),
    Column("experiment_id", Id, ForeignKey("experiments.id"), nullable=False),
    Column("run_id", String(32), ForeignKey("runs.run_id"), nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("location", Text, nullable=False),
    Column("manifest", JSON, nullable=False),
    Column("metadata", JSON, nullable=False, server_default="{}"),
    Column("pinned", Boolean, nullable=False, server_default=false()),
    Column("created", String(32), nullable=False),
    Index("ix_checkpoints_trial_id_batch", "trial_id", "batch"),
    Index("ix_checkpoints_experiment_id", "experiment_id"),
)

logs = Table(
    "logs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("trial_id", Id, ForeignKey("trials.id"), nullable=False),
    Column("run_id", String(32), nullable=False),
    Column("time", String(32), nullable=False),
    Column("stream", String(8), nullable=False),
    Column("text", Text, nullable=False),
    Column("rank", Integer, nullable=True),
    Index("ix_logs_trial_id_id", "trial_id", "id"),
    sqlite_autoincrement=True,
)

events = Table(
    "events",
    metadata,
    Column("id", Id, primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("type", String(16), nullable=False),
    Column("experiment_id", Id, ForeignKey("experiments.id"), nullable=False),
    Column("trial_id", Id, nullable=True),
    Column("data", JSON, nullable=False),
    Index("ix_events_experiment_id_id", "experiment_id", "id"),
    Index("ix_events_trial_id_type_id", "trial_id", "type", "id"),
    sqlite_autoincrement=True,
)
