"""Data of the store are removed, unless an experiment that goes on reads them."""

from __future__ import annotations

from det_native.errors import RequestError
from det_native.master.store import bundles, experiments
from det_native.master.store.database import Database
from det_native.storage.datasets import DataStore


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
    with database.read() as connection:
        for experiment_id, bundle_id in experiments.bundles_of_active(connection):
            if any(link.sha256 in doomed for link in bundles.get(connection, bundle_id).links):
                raise RequestError(409, f"Experiment {experiment_id}, which goes on, reads the data {name!r}.")
    data.remove(name)
