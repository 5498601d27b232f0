"""Sets of data come and go; what an experiment that goes on reads stays."""

from __future__ import annotations

import time

from det_native.errors import NotFoundError, RequestError
from det_native.master.store import bundles, unfinished
from det_native.master.store.database import Database
from det_native.schema.datasets import DataSetCreate, DataSetInfo
from det_native.storage.datasets import DataStore

# What no set has for so long is left from an upload that nobody has gone on with.
_LEFT_SECONDS = 7 * 86_400


def create(database: Database, data: DataStore, body: DataSetCreate) -> DataSetInfo:
    """Give files of the store a name; the files of one that had it before go, unless somebody reads them.

    Raises
    ------
    RequestError
        If some of them are not in the store.
    """
    try:
        before = {file.sha256 for file in data.files_of(body.name)}
    except NotFoundError:
        before = set()
    created = data.create(body)
    gone = before - {file.sha256 for file in body.files}
    if gone:
        data.drop(gone - {sha256 for _, read in _read_by(database) for sha256 in read})
    return created.model_copy(update={"gone": len(gone)})


def remove(database: Database, data: DataStore, name: str) -> None:
    """Remove a set of data.

    Raises
    ------
    NotFoundError
        If there is none of that name.
    RequestError
        If an experiment that goes on reads it.
    """
    doomed = {file.sha256 for file in data.files_of(name)}
    for experiment_id, read in _read_by(database):
        if read & doomed:
            raise RequestError(409, f"Experiment {experiment_id}, which goes on, reads the data {name!r}.")
    data.remove(name)


def drop_left(database: Database, data: DataStore) -> None:
    """Remove what uploads have left that were given up."""
    data.drop_left({sha256 for _, read in _read_by(database) for sha256 in read}, time.time() - _LEFT_SECONDS)


def _read_by(database: Database) -> list[tuple[int, set[str]]]:
    """Return the experiments that have not ended, each with the files of the store that it reads."""
    with database.read() as connection:
        return [
            (experiment_id, {link.sha256 for link in bundles.get(connection, bundle_id).links})
            for experiment_id, bundle_id in unfinished.bundles(connection)
        ]
