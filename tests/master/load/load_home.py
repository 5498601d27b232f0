"""A home with many ended experiments: one is made as a master makes it, and its rows are copied."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Table, text

from det_native import PROTOCOL
from det_native.master.store import bundles, events, experiments, reports, runs, trials
from det_native.master.store.database import Database, Transaction
from det_native.master.store.tables import logs, metadata
from det_native.schema import rest
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.run_ids import new_id
from det_native.schema.states import ExitReason, ExperimentState, MetricKind, TrialState

OWNER = "user"
ROWS = 50
LINES = 10
# In all tables that have the column, it is that of the copy.
SHIFTED = frozenset({"experiment_id", "trial_id", "best_trial"})


def manifest() -> BundleManifest:
    """Return a bundle without files."""
    return BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python="3.11", executable=""),
        program=Program(kind="cells", framework="torch"),
    )


def configuration(**resources: object) -> dict[str, object]:
    """Return the configuration of a trial that has very much to do."""
    return {
        "hyperparameters": {"global_batch_size": 32, "learning_rate": 0.1},
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 10**8}},
        "resources": {"slots_per_trial": 1, **resources},
    }


def fill(home: Path, count: int, database_url: str | None = None) -> None:
    """Make so many experiments that have ended: every tenth failed."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database(database_url or f"sqlite:///{home / 'det.db'}")
    try:
        with database.write() as transaction:
            _make(transaction)
        with database.write() as transaction:
            for table in metadata.sorted_tables:
                _copy(transaction.connection, table, count)
            transaction.connection.execute(text("UPDATE experiments SET state = 'ERROR' WHERE id % 10 = 0"))
    finally:
        database.close()


def _make(transaction: Transaction) -> None:
    bundles.add(transaction, manifest())
    config = configuration()
    new = experiments.NewExperiment(
        owner=OWNER,
        name="",
        config=config,
        bundle_id=manifest().id,
        framework="torch",
        metric="loss",
        smaller_is_better=True,
        report=[rest.CaptureRow(what=f"value {n}", how="pickled", size=8) for n in range(20)],
    )
    number = experiments.create(transaction, new)
    trial_id = trials.create(
        transaction, number, request=0, hparams={"learning_rate": 0.1}, seed=1, target_batches=ROWS
    )
    run_id = new_id()
    runs.create(transaction, trial_id, run_id, token_hash="", slots=["cpu:0"])
    batches = list(range(1, ROWS + 1))
    told: list[rest.Report] = [
        rest.StartedReport(seq=1, batch=0),
        rest.MetricsReport(
            seq=2, kind=MetricKind.TRAINING, batches=batches, metrics={"loss": [1 / batch for batch in batches]}
        ),
        rest.MetricsReport(seq=3, kind=MetricKind.VALIDATION, batches=[ROWS], metrics={"loss": [1 / ROWS]}),
        rest.ExitReport(seq=4, reason=ExitReason.COMPLETED, batch=ROWS),
    ]
    reports.accept(transaction, run_id, rest.ReportBatch(reports=told))
    for line in range(LINES):
        transaction.connection.execute(
            logs.insert().values(
                trial_id=trial_id, run_id=run_id, time="2026-01-01T00:00:00.000Z", stream="stdout", text=f"line {line}"
            )
        )
    runs.end(transaction, run_id)
    trials.set_state(transaction, trial_id, TrialState.COMPLETED)
    experiments.set_state(transaction, number, ExperimentState.COMPLETED)
    experiments.set_collected(transaction, number)
    events.experiment_changed(transaction, experiments.get(transaction.connection, number), OWNER)


def _copy(connection: Connection, table: Table, count: int) -> None:
    """Copy the rows of the first experiment; in a table whose rows are numbered they follow one another."""
    if table.name == "bundles":
        return
    rows = int(connection.execute(text(f"SELECT count(*) FROM {table.name}")).scalar_one())
    values = []
    for column in table.columns:
        name = f'"{column.name}"'
        if column.name == "id":
            values.append(f"{name} + copy * {rows}")
        elif column.name in SHIFTED:
            values.append(f"{name} + copy")
        elif column.name == "run_id":
            values.append(f"substr({name}, 1, 18) || substr('00000000' || copy, -8)")
        else:
            values.append(name)
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    connection.execute(
        text(
            f"WITH RECURSIVE copies(copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies WHERE copy < {count - 1}) "
            f"INSERT INTO {table.name} ({names}) SELECT {', '.join(values)} FROM {table.name}, copies"
        )
    )
