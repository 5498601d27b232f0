"""What people write of experiments, and their deletion: what it frees, what stands in its way, and the rows that go."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Connection, Table, Text, cast, delete, func, insert, select, update

from det_native.master.store.columns import metadata
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import (
    artifacts,
    bundles,
    checkpoint_uses,
    checkpoints,
    deleted_experiments,
    experiments,
    logs,
    media,
    runs,
    trials,
)
from det_native.master.store.user_tables import model_versions, models, schedules
from det_native.schema.states import CheckpointState, ExperimentState

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PAGE = 200
_AT_ONCE = 500
# Rows of these stay when an experiment goes: they tell of it, or are not only its own.
_STAYING = frozenset({deleted_experiments.name, schedules.name, models.name, model_versions.name})


def describe(transaction: Transaction, experiment_id: int, values: dict[str, Any]) -> None:
    """Change what people write of an experiment: name, description, notes, project, labels, archived."""
    if values:
        transaction.connection.execute(update(experiments).where(experiments.c.id == experiment_id).values(**values))


def set_config(transaction: Transaction, experiment_id: int, config: dict[str, Any]) -> None:
    """Replace the configuration, whose checkpoints are to be looked through again."""
    values = {"config": config, "collected": False}
    transaction.connection.execute(update(experiments).where(experiments.c.id == experiment_id).values(**values))


# What a deletion frees -----------------------------------------------------------------------------------------------


def runs_of(connection: Connection, experiment_id: int) -> list[str]:
    """Return the runs of all trials of an experiment."""
    query = select(runs.c.run_id).where(runs.c.trial_id.in_(_trials_of(experiment_id)))
    return list(connection.execute(query).scalars())


def checkpoints_of(connection: Connection, experiment_id: int) -> list[tuple[str, int, bool]]:
    """Return uuid and size of an experiment's checkpoints, and whether each exists."""
    query = select(checkpoints.c.uuid, checkpoints.c.size, checkpoints.c.state)
    rows = connection.execute(query.where(checkpoints.c.experiment_id == experiment_id))
    return [(row.uuid, row.size, row.state == CheckpointState.COMPLETED) for row in rows]


def counts(connection: Connection, experiment_id: int) -> dict[str, int]:
    """Return how many trials, files, media and lines of output an experiment has."""
    mine = _trials_of(experiment_id)
    return {
        "trials": _count(connection, trials, trials.c.experiment_id == experiment_id),
        "artifacts": _count(connection, artifacts, artifacts.c.trial_id.in_(mine), artifacts.c.path != ""),
        "media": _count(connection, media, media.c.trial_id.in_(mine)),
        "log_lines": _count(connection, logs, logs.c.trial_id.in_(mine)),
    }


def only_blobs(connection: Connection, experiment_id: int) -> tuple[set[str], str | None]:
    """Return the blobs that an experiment needs and nothing else does, and its bundle if that is nobody else's.

    Bundles that no experiment has (yet) need theirs, too.
    """
    bundle_id = connection.execute(select(experiments.c.bundle_id).where(experiments.c.id == experiment_id)).scalar()
    shared = select(experiments.c.id).where(experiments.c.bundle_id == bundle_id, experiments.c.id != experiment_id)
    others = connection.execute(shared.limit(1)).first() is not None
    own_bundle = None if others else bundle_id
    mine = _trials_of(experiment_id)
    found: set[str] = set()
    for table in (artifacts, media):
        query = select(table.c.sha256).where(table.c.trial_id.in_(mine), table.c.sha256.is_not(None)).distinct()
        found.update(connection.execute(query).scalars())
    if own_bundle is not None:
        found.update(*(hashes for _, hashes in _named_in(connection, bundles.c.id == own_bundle)))
    for table in (artifacts, media):
        if found:
            found -= _needed(connection, table, found, experiment_id)
    if found:
        but_for_own = bundles.c.id != own_bundle if own_bundle is not None else None
        for _, hashes in _named_in(connection, but_for_own):
            found -= hashes
    return found, own_bundle


def _named_in(connection: Connection, condition: Any) -> Iterator[tuple[str, set[str]]]:
    """Yield the ids of bundles with all hashes that their manifests name, as text: to read each would take long."""
    last = ""
    while True:
        query = select(bundles.c.id, cast(bundles.c.manifest, Text).label("text")).where(bundles.c.id > last)
        query = query if condition is None else query.where(condition)
        rows = connection.execute(query.order_by(bundles.c.id).limit(_PAGE)).all()
        for row in rows:
            yield row.id, set(_SHA256.findall(row.text))
        if len(rows) < _PAGE:
            return
        last = rows[-1].id


def _needed(connection: Connection, table: Table, hashes: Collection[str], experiment_id: int) -> set[str]:
    """Return those of `hashes` that rows of other experiments' trials name."""
    others = select(trials.c.id).where(trials.c.experiment_id != experiment_id)
    found: set[str] = set()
    for some in _parts(sorted(hashes)):
        query = select(table.c.sha256).where(table.c.sha256.in_(some), table.c.trial_id.in_(others)).distinct()
        found.update(connection.execute(query).scalars())
    return found


# What stands in its way ----------------------------------------------------------------------------------------------


def registered(connection: Connection, experiment_id: int) -> list[tuple[str, int, str]]:
    """Return the versions of models whose checkpoints are an experiment's: name, number and uuid of each."""
    query = (
        select(models.c.name, model_versions.c.version, model_versions.c.uuid)
        .join(models, models.c.id == model_versions.c.model_id)
        .join(checkpoints, checkpoints.c.uuid == model_versions.c.uuid)
        .where(checkpoints.c.experiment_id == experiment_id)
        .order_by(models.c.name, model_versions.c.version)
    )
    return [(row.name, row.version, row.uuid) for row in connection.execute(query)]


def pinned(connection: Connection, experiment_id: int) -> list[str]:
    """Return the pinned checkpoints of an experiment."""
    query = select(checkpoints.c.uuid).where(
        checkpoints.c.experiment_id == experiment_id,
        checkpoints.c.pinned,
        checkpoints.c.state == CheckpointState.COMPLETED,
    )
    return list(connection.execute(query.order_by(checkpoints.c.created)).scalars())


def users(connection: Connection, experiment_id: int) -> list[int]:
    """Return the other experiments whose trials began with a checkpoint of an experiment, or whose programs load one.

    Those that are being deleted are not among them.
    """
    uuids = select(checkpoints.c.uuid).where(checkpoints.c.experiment_id == experiment_id)
    found: set[int] = set()
    for experiment, uuid in (
        (trials.c.experiment_id, trials.c.warm_start),
        (checkpoint_uses.c.experiment_id, checkpoint_uses.c.uuid),
    ):
        query = (
            select(experiment)
            .join(experiments, experiments.c.id == experiment)
            .where(uuid.in_(uuids), experiment != experiment_id, experiments.c.state != ExperimentState.DELETED)
        )
        found.update(connection.execute(query.distinct()).scalars())
    return sorted(found)


def trial_ids(connection: Connection, experiment_id: int) -> set[int]:
    """Return the ids of an experiment's trials."""
    return set(connection.execute(_trials_of(experiment_id)).scalars())


# The deletion itself -------------------------------------------------------------------------------------------------


def set_deleted(transaction: Transaction, experiment_id: int) -> None:
    """Have an experiment that has ended exist no more; its files and rows go afterwards."""
    connection = transaction.connection
    connection.execute(
        update(experiments).where(experiments.c.id == experiment_id).values(state=ExperimentState.DELETED)
    )
    row = connection.execute(
        select(experiments.c.owner, experiments.c.name).where(experiments.c.id == experiment_id)
    ).one()
    connection.execute(
        insert(deleted_experiments).values(id=experiment_id, owner=row.owner, name=row.name, deleted=now())
    )


def half_deleted(connection: Connection) -> list[int]:
    """Return the experiments whose deletion was begun and whose rows are still there."""
    query = select(experiments.c.id).where(experiments.c.state == ExperimentState.DELETED).order_by(experiments.c.id)
    return list(connection.execute(query).scalars())


def remove_rows(transaction: Transaction, experiment_id: int, bundle_id: str | None) -> None:
    """Remove all rows of an experiment, and of its bundle if that is nobody else's.

    Rows of every table that names the experiment, one of its trials or one of its runs; those that others refer to go
    last.
    """
    connection = transaction.connection
    mine = sorted(trial_ids(connection, experiment_id))
    for table in reversed(metadata.sorted_tables):
        if table.name in _STAYING or table in (experiments, trials):
            continue
        names = [name for name in ("trial_id", "experiment_id") if name in table.c]
        if "trial_id" in names:
            for some in _parts(mine):
                connection.execute(delete(table).where(table.c.trial_id.in_(some)))
        if "experiment_id" in names:
            connection.execute(delete(table).where(table.c.experiment_id == experiment_id))
    connection.execute(delete(trials).where(trials.c.experiment_id == experiment_id))
    connection.execute(delete(experiments).where(experiments.c.id == experiment_id))
    if bundle_id is not None:
        used = select(experiments.c.id).where(experiments.c.bundle_id == bundle_id)
        connection.execute(delete(bundles).where(bundles.c.id == bundle_id, ~used.exists()))


def _trials_of(experiment_id: int) -> Any:
    return select(trials.c.id).where(trials.c.experiment_id == experiment_id)


def _count(connection: Connection, table: Table, *conditions: Any) -> int:
    return int(connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one())


def _parts(values: list[Any]) -> Iterator[list[Any]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


__all__ = [
    "checkpoints_of",
    "counts",
    "describe",
    "half_deleted",
    "only_blobs",
    "pinned",
    "registered",
    "remove_rows",
    "runs_of",
    "set_config",
    "set_deleted",
    "trial_ids",
    "users",
]
