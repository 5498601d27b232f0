"""Checkpoints: rows of complete ones. The files lie in checkpoint storage, under the uuid."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, literal, select, update

from det_native.errors import NotFoundError, RequestError
from det_native.master.store import events
from det_native.master.store import metrics as metric_store
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import check_text, now
from det_native.master.store.tables import checkpoint_uses, checkpoints, experiments, trials
from det_native.schema import rest
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.registry import CheckpointChange
from det_native.schema.states import CheckpointState

UUID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")


def add(
    transaction: Transaction, report: rest.CheckpointReport, *, trial_id: int, experiment_id: int, run_id: str
) -> rest.Checkpoint | None:
    """Store a checkpoint that a run reports; None if it is known already.

    Raises
    ------
    RequestError
        If the manifest names another trial or run than the one that reports, or its uuid is malformed or taken.
    """
    manifest = report.manifest
    if not UUID.fullmatch(manifest.uuid):
        raise RequestError(400, f"The checkpoint's uuid {manifest.uuid!r} is not made of letters, digits and dashes.")
    # A kernel that trains before its master is there has no number of its trial: it writes 0.
    if manifest.trial_id not in (trial_id, 0) or manifest.run_id != run_id:
        raise RequestError(
            400,
            f"Checkpoint {manifest.uuid} says that it is of the trial with the id {manifest.trial_id}, run "
            f"{manifest.run_id}; run {run_id} of the trial with the id {trial_id} reports it.",
        )
    described = manifest.model_dump(mode="json")
    check_text(described)
    connection = transaction.connection
    known = connection.execute(select(checkpoints.c.run_id).where(checkpoints.c.uuid == manifest.uuid)).scalar()
    if known is not None:
        if known != run_id:
            raise RequestError(409, f"Another run has reported a checkpoint {manifest.uuid} before.")
        return None
    connection.execute(
        insert(checkpoints).values(
            uuid=manifest.uuid,
            trial_id=trial_id,
            experiment_id=experiment_id,
            run_id=run_id,
            batch=manifest.batch,
            state=CheckpointState.COMPLETED,
            size=manifest.size,
            location=report.location,
            manifest=described,
            created=now(),
        )
    )
    return get(connection, manifest.uuid)


def get(connection: Connection, uuid: str, owner: str | None = None) -> rest.Checkpoint:
    """Return a checkpoint, deleted or not; with `owner`, only if it is theirs.

    Raises
    ------
    NotFoundError
        If there is no such checkpoint.
    """
    row = connection.execute(_query(owner).where(checkpoints.c.uuid == uuid)).first()
    if row is None:
        raise NotFoundError(f"There is no checkpoint {uuid}.")
    return _checkpoint(connection, row)


def of_trial(connection: Connection, trial_id: int, owner: str | None = None) -> list[rest.Checkpoint]:
    """Return the checkpoints of a trial, by batch; deleted ones included."""
    query = _query(owner).where(checkpoints.c.trial_id == trial_id)
    return [_checkpoint(connection, row) for row in connection.execute(_ordered(query)).all()]


def of_experiment(connection: Connection, experiment_id: int, owner: str | None = None) -> list[rest.Checkpoint]:
    """Return the checkpoints of an experiment, by trial and batch; deleted ones included."""
    query = _query(owner).where(checkpoints.c.experiment_id == experiment_id)
    return [_checkpoint(connection, row) for row in connection.execute(_ordered(query)).all()]


def complete(
    connection: Connection, *, trial_id: int | None = None, experiment_id: int | None = None
) -> list[rest.Checkpoint]:
    """Return the checkpoints of a trial or of an experiment that are not deleted, by trial and batch."""
    query = _query(None).where(checkpoints.c.state == CheckpointState.COMPLETED)
    if trial_id is not None:
        query = query.where(checkpoints.c.trial_id == trial_id)
    if experiment_id is not None:
        query = query.where(checkpoints.c.experiment_id == experiment_id)
    return [_checkpoint(connection, row) for row in connection.execute(_ordered(query)).all()]


def note_uses(transaction: Transaction, experiment_id: int, uuids: Iterable[str]) -> None:
    """Note the checkpoints from which earlier training calls in an experiment's program get their weights."""
    for uuid in sorted(set(uuids)):
        transaction.connection.execute(insert(checkpoint_uses).values(experiment_id=experiment_id, uuid=uuid))


def latest(connection: Connection, trial_id: int) -> rest.Checkpoint | None:
    """Return the checkpoint from which the trial would continue, None if it would start from scratch."""
    query = (
        _query(None)
        .where(checkpoints.c.trial_id == trial_id, checkpoints.c.state == CheckpointState.COMPLETED)
        .order_by(checkpoints.c.batch.desc(), checkpoints.c.created.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else _checkpoint(connection, row)


def move(transaction: Transaction, experiment_id: int, folder: str) -> None:
    """Have the checkpoints of an experiment lie in another folder."""
    place = literal(f"{folder}/") + checkpoints.c.uuid
    mine = checkpoints.c.experiment_id == experiment_id
    transaction.connection.execute(update(checkpoints).where(mine).values(location=place))


def set_deleted(transaction: Transaction, uuids: Iterable[str]) -> None:
    """Have checkpoints exist no more (their files go, or cannot be used), and tell it; the rows stay."""
    for uuid in uuids:
        transaction.connection.execute(
            update(checkpoints).where(checkpoints.c.uuid == uuid).values(state=CheckpointState.DELETED)
        )
        _tell(transaction, get(transaction.connection, uuid))


def change(transaction: Transaction, known: rest.Checkpoint, body: CheckpointChange) -> rest.Checkpoint:
    """Change what is noted of a checkpoint, and whether it is pinned; tell it."""
    check_text(body.model_dump(mode="json"))
    gone = set(body.remove_metadata)
    kept = {key: value for key, value in known.metadata.items() if key not in gone} | body.add_metadata
    pinned = known.pinned if body.pinned is None else body.pinned
    transaction.connection.execute(
        update(checkpoints).where(checkpoints.c.uuid == known.uuid).values(metadata=kept, pinned=pinned)
    )
    changed = get(transaction.connection, known.uuid)
    _tell(transaction, changed)
    return changed


def _tell(transaction: Transaction, changed: rest.Checkpoint) -> None:
    owner = transaction.connection.execute(
        select(experiments.c.owner).where(experiments.c.id == changed.experiment_id)
    ).scalar_one()
    data = changed.model_dump(mode="json")
    events.emit(transaction, owner, "checkpoint", changed.experiment_id, changed.trial_id, data)


def _query(owner: str | None) -> Select[Any]:
    query = select(checkpoints, trials.c.request).join(trials, trials.c.id == checkpoints.c.trial_id)
    if owner is None:
        return query
    return query.join(experiments, experiments.c.id == checkpoints.c.experiment_id).where(experiments.c.owner == owner)


def _ordered(query: Select[Any]) -> Select[Any]:
    return query.order_by(checkpoints.c.trial_id, checkpoints.c.batch, checkpoints.c.created, checkpoints.c.uuid)


def _checkpoint(connection: Connection, row: Row[Any]) -> rest.Checkpoint:
    manifest = CheckpointManifest.model_validate(row.manifest)
    own = manifest.own_metrics
    known = {
        "metrics": metric_store.value_at(connection, row.trial_id, row.batch) if own is None else own,
        "manifest": manifest,
        "trial_number": row.request + 1,
    }
    return rest.Checkpoint.model_validate(row._asdict() | known)
