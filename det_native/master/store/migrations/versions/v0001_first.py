"""The first form of the tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables."""
    _make_bundles()
    _make_experiments()
    _make_trials()
    _make_runs()
    _make_metrics()
    _make_buckets()
    _make_checkpoints()
    _make_logs()
    _make_events()


def _make_bundles() -> None:
    op.create_table(
        "bundles",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("checked", sa.Boolean(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bundles")),
    )


def _make_experiments() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("bundle_id", sa.String(length=64), nullable=False),
        sa.Column("framework", sa.String(length=16), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("smaller_is_better", sa.Boolean(), nullable=False),
        sa.Column("test", sa.Boolean(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("searcher", sa.JSON(), nullable=True),
        sa.Column("progress", sa.Float(precision=53), nullable=False),
        sa.Column("best_validation", sa.Float(precision=53), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("idempotency_key", sa.String(length=200), nullable=True),
        sa.Column("idempotency_hash", sa.String(length=64), nullable=True),
        sa.Column("collected", sa.Boolean(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("ended", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["bundle_id"], ["bundles.id"], name=op.f("fk_experiments_bundle_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_experiments")),
        sa.UniqueConstraint("owner", "idempotency_key", name=op.f("uq_experiments_owner_idempotency_key")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_experiments_state", "experiments", ["state"], unique=False)


def _make_trials() -> None:
    op.create_table(
        "trials",
        sa.Column("id", ID, nullable=False),
        sa.Column("experiment_id", ID, nullable=False),
        sa.Column("request", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("hparams", sa.JSON(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=True),
        sa.Column("target_batches", sa.BigInteger(), nullable=False),
        sa.Column("best_validation", sa.Float(precision=53), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("started", sa.String(length=32), nullable=True),
        sa.Column("ended", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name=op.f("fk_trials_experiment_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trials")),
        sa.UniqueConstraint("experiment_id", "request", name=op.f("uq_trials_experiment_id_request")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_trials_state", "trials", ["state"], unique=False)


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("trial_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("start_batch", sa.BigInteger(), nullable=False),
        sa.Column("resume", sa.String(length=64), nullable=True),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("batches", sa.BigInteger(), nullable=False),
        sa.Column("training_rows", sa.BigInteger(), nullable=False),
        sa.Column("training_last", sa.BigInteger(), nullable=False),
        sa.Column("validation_rows", sa.BigInteger(), nullable=False),
        sa.Column("validation_last", sa.BigInteger(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("slots", sa.JSON(), nullable=False),
        sa.Column("handle", sa.JSON(), nullable=True),
        sa.Column("exit", sa.JSON(), nullable=True),
        sa.Column("log_offset", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("ended", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name=op.f("fk_runs_trial_id")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
        sa.UniqueConstraint("trial_id", "number", name=op.f("uq_runs_trial_id_number")),
    )
    op.create_index("ix_runs_state", "runs", ["state"], unique=False)


def _make_metrics() -> None:
    op.create_table(
        "metrics",
        sa.Column(
            "trial_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("batch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("values", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id", "run"], ["runs.trial_id", "runs.number"], name=op.f("fk_metrics_trial_id_run")
        ),
        sa.PrimaryKeyConstraint("trial_id", "run", "kind", "batch", name=op.f("pk_metrics")),
        sqlite_with_rowid=False,
    )


def _make_buckets() -> None:
    op.create_table(
        "buckets",
        sa.Column(
            "trial_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("first_batch", sa.BigInteger(), nullable=False),
        sa.Column("last_batch", sa.BigInteger(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("nans", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.Float(precision=53), nullable=True),
        sa.Column("minimum", sa.Float(precision=53), nullable=True),
        sa.Column("maximum", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["trial_id", "run"], ["runs.trial_id", "runs.number"], name=op.f("fk_buckets_trial_id_run")
        ),
        sa.PrimaryKeyConstraint("trial_id", "run", "kind", "name", "level", "position", name=op.f("pk_buckets")),
        sqlite_with_rowid=False,
    )


def _make_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("uuid", sa.String(length=64), nullable=False),
        sa.Column("trial_id", ID, nullable=False),
        sa.Column("experiment_id", ID, nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name=op.f("fk_checkpoints_experiment_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_checkpoints_run_id")),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name=op.f("fk_checkpoints_trial_id")),
        sa.PrimaryKeyConstraint("uuid", name=op.f("pk_checkpoints")),
    )
    op.create_index("ix_checkpoints_experiment_id", "checkpoints", ["experiment_id"], unique=False)
    op.create_index("ix_checkpoints_trial_id_batch", "checkpoints", ["trial_id", "batch"], unique=False)


def _make_logs() -> None:
    op.create_table(
        "logs",
        sa.Column("id", ID, nullable=False),
        sa.Column("trial_id", ID, nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("time", sa.String(length=32), nullable=False),
        sa.Column("stream", sa.String(length=8), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name=op.f("fk_logs_trial_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_logs")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_logs_trial_id_id", "logs", ["trial_id", "id"], unique=False)


def _make_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("experiment_id", ID, nullable=False),
        sa.Column("trial_id", ID, nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name=op.f("fk_events_experiment_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_experiment_id_id", "events", ["experiment_id", "id"], unique=False)
    op.create_index("ix_events_trial_id_type_id", "events", ["trial_id", "type", "id"], unique=False)
