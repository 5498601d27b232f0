"""Databases and masters for the tests of the master."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fresh_databases import put_database
from master_parts import Master, running_master
from postgres_server import PostgresServer, running_postgres

from det_native.master.store.database import Database


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Run a Postgres server."""
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database of every kind that the store works with."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'det.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture(params=["sqlite", "postgres"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a database of every kind that has had all migrations, and holds nothing."""
    if request.param == "sqlite":
        return put_database(tmp_path / "det.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database(migrated=True)


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """Give a migrated database of every kind."""
    opened = Database(migrated_url)
    yield opened
    opened.close()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    """Give a running master with two slots, around a launcher without processes."""
    with running_master(tmp_path / "home") as running:
        yield running
