"""Databases of every age."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from master_parts import manifest
from old_databases import make_first_tables
from sqlalchemy import create_engine, select, text
from sqlalchemy.exc import IntegrityError

from det_native.errors import MasterStartError
from det_native.master.store import bundles, experiments, logs, runs
from det_native.master.store.columns import metadata
from det_native.master.store.database import Database
from det_native.master.store.migrate import HEAD
from det_native.master.store.tables import unsummarised


def test_an_empty_database_gets_the_tables_that_the_code_knows(database: Database) -> None:
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_a_second_start_changes_nothing(database_url: str) -> None:
    for _ in range(2):
        database = Database(database_url)
        with database.read() as connection:
            heads = MigrationContext.configure(connection).get_current_heads()
        database.close()
        assert heads == (HEAD,)


def test_what_an_older_version_has_written_stays(database_url: str) -> None:
    engine = create_engine(database_url)
    with engine.begin() as connection:
        make_first_tables(connection)
        for statement in (
            "CREATE TABLE of_another_program (id INTEGER)",
            "INSERT INTO bundles VALUES ('b', '{}', true, 'then')",
            "INSERT INTO experiments (id, owner, name, state, config, bundle_id, framework, metric, smaller_is_better, "
            "test, report, progress, collected, created) VALUES (1, 'user', 'old', 'ACTIVE', "
            "'{\"labels\": [\"a\"], \"project\": \"p\"}', 'b', 'torch', 'loss', true, false, '[]', 0.5, false, 'then')",
            "INSERT INTO trials (id, experiment_id, request, state, hparams, seed, restarts, target_batches, created, "
            "started) VALUES (1, 1, 0, 'RUNNING', '{}', 7, 0, 100, 'then', 'thereafter')",
            "INSERT INTO runs (run_id, trial_id, number, state, start_batch, last_seq, batches, training_rows, "
            "training_last, validation_rows, validation_last, token_hash, slots, log_offset, created) "
            "VALUES ('r', 1, 1, 'RUNNING', 0, 0, 0, 0, -1, 0, -1, 'h', '[]', 42, 'then')",
            "INSERT INTO logs (trial_id, run_id, time, stream, text) VALUES (1, 'r', 'then', 'stdout', 'a line')",
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    database = Database(database_url)
    with database.write() as transaction:
        old = experiments.get(transaction.connection, 1)
        assert (old.name, old.started, old.seconds_left) == ("old", "thereafter", None)
        assert [(run.stop_asked, run.log_offsets) for run in runs.alive(transaction.connection)] == [(False, [42])]
        assert [(line.text, line.rank) for line in logs.after(transaction.connection, 1)] == [("a line", None)]
        assert bundles.is_checked(transaction.connection, "b")
        assert not bundles.add(transaction, manifest())
        assert (old.labels, old.project) == (["a"], "p")
        assert transaction.connection.execute(text("SELECT best_trial FROM experiments")).scalar() == 1
        assert transaction.connection.execute(select(unsummarised.c.trial_id)).scalars().all() == [1]
        assert transaction.connection.execute(text("SELECT * FROM of_another_program")).all() == []
        found = compare_metadata(MigrationContext.configure(transaction.connection), metadata)
        assert [(change[0], change[1].name) for change in found] == [("remove_table", "of_another_program")]
    database.close()


def test_schedules_of_programs_end(database_url: str) -> None:
    Database(database_url).close()
    engine = create_engine(database_url)
    with engine.begin() as connection:
        for statement in (
            "ALTER TABLE schedules RENAME COLUMN last_run TO last_experiment",
            "INSERT INTO schedules (owner, name, state, timing, body, next, last_experiment, created) "
            "VALUES ('user', 'daily', 'ACTIVE', '{}', '{}', 'soon', 7, 'then')",
            "UPDATE alembic_version SET version_num = '0021'",
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    database = Database(database_url)
    with database.read() as connection:
        state, due, last, error = connection.execute(text("SELECT state, next, last_run, error FROM schedules")).one()
    database.close()
    assert (state, due, last) == ("CANCELED", None, None)
    assert "make it again with `det submit NOTEBOOK --every`" in error


def test_an_experiment_gets_no_number_of_a_deleted_one_after_a_migration_that_makes_its_table_anew(
    database_url: str,
) -> None:
    engine = create_engine(database_url)
    with engine.begin() as connection:
        make_first_tables(connection)
        connection.exec_driver_sql(
            "INSERT INTO bundles (id, manifest, checked, created) VALUES ('b', '{}', true, 'then')"
        )
        for _ in range(3):
            connection.exec_driver_sql(
                "INSERT INTO experiments (owner, name, state, config, bundle_id, framework, metric, "
                "smaller_is_better, test, report, progress, collected, created) VALUES ('user', 'old', 'COMPLETED', "
                "'{}', 'b', 'torch', 'loss', true, false, '[]', 0.5, true, 'then')"
            )
        connection.exec_driver_sql("DELETE FROM experiments WHERE id > 1")
    engine.dispose()
    database = Database(database_url)
    with database.write() as transaction:
        new = experiments.NewExperiment("user", "new", {}, None, "torch", "loss", True, [], no_program="why not")
        assert experiments.create(transaction, new) == 4
        assert experiments.get_detail(transaction.connection, 4, "user").no_program == "why not"
    with pytest.raises(IntegrityError), database.write() as transaction:
        experiments.create(transaction, replace(new, bundle_id="no such one"))
    database.close()


def test_a_database_of_a_newer_version_is_refused(database_url: str) -> None:
    database = Database(database_url)
    with database.write() as transaction:
        transaction.connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(MasterStartError, match=r"written by a newer det_native .*'9999'"):
        Database(database_url)


def test_a_second_master_is_refused_until_the_first_is_gone(database_url: str) -> None:
    first = Database(database_url)
    with pytest.raises(MasterStartError, match="Another master already uses the database"):
        Database(database_url)
    first.close()
    Database(database_url).close()


def test_sqlite_is_set_up_to_survive_a_crash(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'det.db'}")
    with database.read() as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    database.close()
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10_000}


def test_a_start_that_changes_no_tables_does_not_load_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'det.db'}"
    code = (
        "import sys; from det_native.master.store.database import Database; "
        f"Database({url!r}).close(); Database({url!r}).close(); assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
