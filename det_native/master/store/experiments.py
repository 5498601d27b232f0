"""Experiments."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    ScalarSelect,
    Select,
    Update,
    bindparam,
    func,
    insert,
    select,
    update,
)

from det_native.errors import NotFoundError, RequestError
from det_native.master.store.database import WAY_OUT, Transaction
from det_native.master.store.encoding import not_before, now
from det_native.master.store.tables import deleted_experiments, experiments, trials
from det_native.schema import rest
from det_native.schema.manifests import Framework
from det_native.schema.states import ExperimentState, TrialState
from det_native.storage.backups import DamagedDatabaseError

logger = logging.getLogger(__name__)

TERMINAL = [state for state in ExperimentState if state.terminal]
_LONG = ("report", "searcher", "notes", "notebook", "best_trial", "no_program", "kept_at")
# All but what is long and shown in few places, or in none: the snapshot of a search may have megabytes.
_SHOWN = [column for column in experiments.c if column.name not in _LONG]
_LIVE = [state for state in TrialState if not state.terminal]


@dataclass(frozen=True)
class NewExperiment:
    """What an experiment is made of; `idempotency` is the client's key and the hash of what came with it."""

    owner: str
    name: str
    config: dict[str, Any]
    bundle_id: str | None
    framework: Framework
    metric: str
    smaller_is_better: bool
    report: list[rest.CaptureRow]
    idempotency: tuple[str, str] | None = None
    test: bool = False
    description: str = ""
    labels: tuple[str, ...] = ()
    project: str = ""
    forked_from: int | None = None
    in_kernel: bool = False
    no_program: str = ""
    created: str | None = None


def create(transaction: Transaction, new: NewExperiment) -> int:
    """Store an active experiment and return its id."""
    key, digest = new.idempotency or (None, None)
    values = {name: value for name, value in vars(new).items() if name != "idempotency"} | {
        "state": ExperimentState.ACTIVE,
        "validates": True,
        "report": [row.model_dump(mode="json") for row in new.report],
        "progress": 0.0,
        "idempotency_key": key,
        "idempotency_hash": digest,
        "collected": False,
        "created": new.created or now(),
    }
    result = transaction.connection.execute(insert(experiments).values(values))
    assert result.inserted_primary_key is not None
    return int(result.inserted_primary_key[0])


def created_with(connection: Connection, owner: str, key: str, digest: str) -> int | None:
    """Return the id of the experiment that was created with an idempotency key, None if the key is new.

    Raises
    ------
    RequestError
        If the key came with another body before.
    """
    row = connection.execute(
        select(experiments.c.id, experiments.c.idempotency_hash).where(
            experiments.c.owner == owner, experiments.c.idempotency_key == key
        )
    ).first()
    if row is None:
        return None
    if row.idempotency_hash != digest:
        raise RequestError(
            409, "This Idempotency-Key came with another body before. Use a new key for a new experiment."
        )
    return int(row.id)


def get(connection: Connection, experiment_id: int, owner: str | None = None) -> rest.Experiment:
    """Return an experiment; with `owner`, only if it is theirs.

    Raises
    ------
    NotFoundError
        If there is no such experiment.
    """
    return _experiment(_one(connection, experiment_id, owner))


def get_detail(connection: Connection, experiment_id: int, owner: str) -> rest.ExperimentDetail:
    """Return an experiment with its capture report.

    Raises
    ------
    NotFoundError
        If there is no such experiment.
    """
    experiment = get(connection, experiment_id, owner)
    columns = (experiments.c.notes, experiments.c.notebook, experiments.c.no_program)
    row = connection.execute(select(*columns).where(experiments.c.id == experiment_id)).one()
    report = _report(connection, experiment_id)
    return rest.ExperimentDetail.model_validate({**dict(experiment), **row._asdict(), "report": report})


def kept_at(connection: Connection, experiment_id: int) -> str:
    """Return where the checkpoints of a run in a kernel lie; empty where they are where the configuration says."""
    return connection.execute(select(experiments.c.kept_at).where(experiments.c.id == experiment_id)).scalar() or ""


def set_kept_at(transaction: Transaction, experiment_id: int, place: str) -> None:
    """Keep where the checkpoints of a run in a kernel lie."""
    _update(transaction, experiment_id, kept_at=place)


def get_notebook(connection: Connection, experiment_id: int) -> str | None:
    """Return the hash of the executed notebook of an experiment; None where none was kept."""
    return connection.execute(select(experiments.c.notebook).where(experiments.c.id == experiment_id)).scalar()


def keep_notebook(transaction: Transaction, experiment_id: int, sha256: str) -> None:
    """Keep which blob is the executed notebook of an experiment."""
    change = update(experiments).where(experiments.c.id == experiment_id)
    transaction.connection.execute(change.values(notebook=sha256))


def get_notes(connection: Connection, experiment_id: int) -> str:
    """Return what people have written about an experiment; empty if there is none."""
    query = select(experiments.c.notes).where(experiments.c.id == experiment_id)
    return connection.execute(query).scalar() or ""


def with_ids(connection: Connection, ids: Sequence[int]) -> list[rest.Experiment]:
    """Return experiments in the order of these ids, without those that are gone.

    One whose row cannot be read is there as failed, with the reason; it does not hide the others.
    """
    query = _query(None).where(experiments.c.id.in_(ids))
    try:
        found = {row.id: _experiment(row) for row in connection.execute(query)}
    except (ValueError, TypeError):
        there = connection.execute(select(experiments.c.id).where(experiments.c.id.in_(ids))).scalars()
        found = {experiment_id: _readable(connection, experiment_id) for experiment_id in there}
    return [found[experiment_id] for experiment_id in ids if experiment_id in found]


def uncollected(connection: Connection) -> list[int]:
    """Return the ids of the experiments that have ended but whose superfluous checkpoints may still lie about."""
    ended = [state for state in TERMINAL if state is not ExperimentState.DELETED]
    query = select(experiments.c.id).where(experiments.c.state.in_(ended), experiments.c.collected.is_(False))
    return list(connection.execute(query).scalars())


def config_of(connection: Connection, experiment_id: int) -> dict[str, Any]:
    """Return the configuration of an experiment, empty where its row cannot be read."""
    try:
        return get(connection, experiment_id).config
    except DamagedDatabaseError:
        return {}


def set_progress(
    transaction: Transaction, experiment_id: int, progress: float, seconds_left: float | None = None
) -> None:
    """Keep how far the experiment is, in [0, 1], and how long the rest will take."""
    _update(transaction, experiment_id, progress=min(max(progress, 0.0), 1.0), seconds_left=seconds_left)


def waiting(connection: Connection) -> dict[int, str]:
    """Return what experiments wait for, as it was last kept."""
    query = select(experiments.c.id, experiments.c.waits_for).where(experiments.c.waits_for.is_not(None))
    return {row.id: row.waits_for for row in connection.execute(query)}


def set_waits_for(transaction: Transaction, experiment_id: int, text: str | None) -> None:
    """Keep what an experiment waits for; None once it waits for nothing."""
    _update(transaction, experiment_id, waits_for=text)


def set_best(transaction: Transaction, experiment_id: int, value: float | None, trial_id: int | None = None) -> None:
    """Keep the best value of the searcher's metric, and which trial is the best one now, if that is another."""
    trial = {} if trial_id is None else {"best_trial": trial_id}
    _update(transaction, experiment_id, best_validation=value, **trial)


def compare_by(transaction: Transaction, experiment_id: int, metric: str, *, smaller_is_better: bool) -> None:
    """Have trials compared by a metric, as if the configuration had named it and which of its values are better."""
    config = get(transaction.connection, experiment_id).config
    said = {"metric": metric, "smaller_is_better": smaller_is_better}
    searcher = {**config.get("searcher", {}), **said}
    _update(transaction, experiment_id, **said, config={**config, "searcher": searcher})


def set_without_validation(transaction: Transaction, experiment_id: int) -> bool:
    """Keep that nothing validates; return whether that is new."""
    new = get(transaction.connection, experiment_id).validates
    if new:
        _update(transaction, experiment_id, validates=False)
    return new


def add_rows(transaction: Transaction, experiment_id: int, rows: Sequence[rest.CaptureRow]) -> bool:
    """Add rows to the experiment's report that it does not have yet; return whether there were any."""
    report = _report(transaction.connection, experiment_id)
    known = {(row["what"], row["how"]) for row in report}
    new = [row.model_dump(mode="json") for row in rows if (row.what, row.how) not in known]
    if new:
        _update(transaction, experiment_id, report=[*report, *new])
    return bool(new)


def _report(connection: Connection, experiment_id: int) -> list[dict[str, Any]]:
    query = select(experiments.c.report).where(experiments.c.id == experiment_id)
    with _readable_row(experiment_id):
        return list(connection.execute(query).scalar() or ())


def set_resources(transaction: Transaction, experiment_id: int, changes: dict[str, Any]) -> None:
    """Change fields of the resources in the configuration."""
    config = get(transaction.connection, experiment_id).config
    _update(transaction, experiment_id, config={**config, "resources": {**config.get("resources", {}), **changes}})


def set_state(
    transaction: Transaction, experiment_id: int, state: ExperimentState, error: rest.UserErrorInfo | None = None
) -> None:
    """Change the state; a terminal one stays, sets the end and never changes again."""
    values: dict[str, Any] = {"state": state}
    if state.terminal:
        values["ended"] = now()
    if state is ExperimentState.COMPLETED:
        values["progress"] = 1.0
    if error is not None:
        values["error"] = error.model_dump(mode="json")
    transaction.connection.execute(
        update(experiments)
        .where(experiments.c.id == experiment_id, experiments.c.state.not_in(TERMINAL))
        .values(**values)
    )


def set_collected(transaction: Transaction, experiment_id: int) -> None:
    """Remember that the superfluous checkpoints of an ended experiment are gone."""
    _update(transaction, experiment_id, collected=True)


def owner_of(connection: Connection, experiment_id: int) -> str:
    """Return whose experiment it is."""
    owner = connection.execute(select(experiments.c.owner).where(experiments.c.id == experiment_id)).scalar_one()
    return str(owner)


def _update(transaction: Transaction, experiment_id: int, **values: Any) -> None:
    new = {f"new_{name}": value for name, value in values.items()}
    transaction.connection.execute(_change(tuple(values)), {"experiment": experiment_id, **new})


@lru_cache(maxsize=64)
def _change(names: tuple[str, ...]) -> Update:
    new = {name: bindparam(f"new_{name}", type_=experiments.c[name].type) for name in names}
    return update(experiments).where(experiments.c.id == bindparam("experiment")).values(new)


def _started() -> ScalarSelect[Any]:
    """Return when the first trial of an experiment started."""
    return select(func.min(trials.c.started)).where(trials.c.experiment_id == experiments.c.id).scalar_subquery()


def _query(owner: str | None) -> Select[Any]:
    count = select(func.count()).where(trials.c.experiment_id == experiments.c.id).scalar_subquery()
    failed = (
        select(func.count())
        .where(trials.c.experiment_id == experiments.c.id, trials.c.state == TrialState.ERROR)
        .scalar_subquery()
    )
    # Which of several trials' it is, does not matter: each tells its own.
    notice = (
        select(func.max(trials.c.waiting))
        .where(trials.c.experiment_id == experiments.c.id, trials.c.state.in_(_LIVE))
        .scalar_subquery()
    )
    warning = (
        select(trials.c.warning)
        .where(trials.c.experiment_id == experiments.c.id, trials.c.warning.is_not(None))
        .order_by(trials.c.id)
        .limit(1)
        .scalar_subquery()
    )
    query = select(
        *_SHOWN,
        count.label("trials"),
        failed.label("failed_trials"),
        _started().label("started"),
        notice.label("notice"),
        warning.label("warning"),
    )
    return query if owner is None else query.where(experiments.c.owner == owner)


@lru_cache(maxsize=2)
def _statement(*, owned: bool) -> Select[Any]:
    """Return the query of one experiment; made once, since making it takes longer than answering it."""
    query = _query(None).where(experiments.c.id == bindparam("experiment"))
    return query.where(experiments.c.owner == bindparam("owner_of_it")) if owned else query


@contextmanager
def _readable_row(experiment_id: int) -> Iterator[None]:
    """Say of what cannot be read where it is: JSON that is none any more, say."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise DamagedDatabaseError(
            f"The row of experiment {experiment_id} in the database of the master cannot be read ({error}). {WAY_OUT}"
        ) from error


def _one(connection: Connection, experiment_id: int, owner: str | None) -> Row[Any]:
    values = {"experiment": experiment_id, "owner_of_it": owner}
    with _readable_row(experiment_id):
        row = connection.execute(_statement(owned=owner is not None), values).first()
    if row is None or (row.state is ExperimentState.DELETED and owner is not None):
        raise NotFoundError(_why_missing(connection, experiment_id, owner))
    return row


def _why_missing(connection: Connection, experiment_id: int, owner: str | None) -> str:
    deleted = deleted_at(connection, experiment_id, owner)
    if deleted is None:
        return f"There is no experiment {experiment_id}."
    return f"Experiment {experiment_id} was deleted on {deleted[:10]} at {deleted[11:19]} UTC."


def deleted_at(connection: Connection, experiment_id: int, owner: str | None) -> str | None:
    """Return when an experiment was deleted; None if it was not, or is not this owner's."""
    query = select(deleted_experiments.c.deleted).where(deleted_experiments.c.id == experiment_id)
    if owner is not None:
        query = query.where(deleted_experiments.c.owner == owner)
    found: str | None = connection.execute(query).scalar()
    return found


def _readable(connection: Connection, experiment_id: int) -> rest.Experiment:
    """Return an experiment, or what stands for it where its row cannot be read."""
    try:
        return _experiment(_one(connection, experiment_id, None))
    except DamagedDatabaseError as error:
        logger.error("%s", error)
        what = str(error)
    return rest.Experiment(
        id=experiment_id,
        name=f"Experiment {experiment_id} (damaged)",
        state=ExperimentState.ERROR,
        config={},
        bundle_id=None,
        framework="unknown",
        metric="",
        smaller_is_better=True,
        test=False,
        progress=0.0,
        trials=0,
        best_validation=None,
        error=rest.UserErrorInfo(type="DamagedDatabaseError", message=what, traceback="", batch=0),
        created="1970-01-01T00:00:00.000Z",
        ended=None,
    )


def _experiment(row: Row[Any]) -> rest.Experiment:
    started = not_before(row.started, row.created)
    goes_on = row.state == ExperimentState.ACTIVE
    known = {
        "name": row.name or f"Experiment {row.id}",
        "notice": row.notice or "",
        "started": started,
        "ended": not_before(row.ended, started, row.created),
        "seconds_left": row.seconds_left if goes_on else None,
        "waits_for": (row.waits_for or "") if goes_on else "",
    }
    return rest.Experiment.model_validate(row._asdict() | known)
