"""Rows of a table of experiments, names that a query may use, and views that users have saved."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, cast, delete, func, select

from det_native.master.store import experiments as experiment_store
from det_native.master.store import settings as setting_store
from det_native.master.store import summaries
from det_native.master.store.database import Transaction
from det_native.master.store.query_sql import best_trials
from det_native.master.store.tables import checkpoints, experiments, metric_summaries
from det_native.master.store.user_tables import settings
from det_native.schema import rest
from det_native.schema.experiment_table import ExperimentNames, ExperimentRow, ExperimentView, NameCount
from det_native.schema.states import CheckpointState, ExperimentState

#: Hyperparameters are looked for in so many of the newest experiments.
MOST_LOOKED_AT = 20_000
#: Of each kind, so many names are told.
MOST_NAMES = 1_000
# Nobody chooses a longer name from a list.
_LONGEST_NAME = 500
_LONGEST_NOTE = 200
_VIEW = "experiment-view:"


def rows_of(
    connection: Connection,
    owner: str,
    ids: Sequence[int],
    *,
    hparams: bool,
    metrics: Collection[str],
    told: Callable[[rest.Experiment], rest.Experiment],
) -> list[ExperimentRow]:
    """Return rows of experiments in the order of these ids, without those that are gone or of somebody else.

    Parameters
    ----------
    hparams : bool
        With the hyperparameters of the best trial.
    metrics : collection of str
        With the summaries of these metrics.
    told : callable
        Says of an experiment what only the running master knows.
    """
    mine = experiments.c.owner == owner, experiments.c.id.in_(ids), experiments.c.state != ExperimentState.DELETED
    query = select(experiments.c.id, func.substr(experiments.c.notes, 1, 4 * _LONGEST_NOTE).label("notes")).where(*mine)
    notes = {row.id: row.notes for row in connection.execute(query)}
    there = [number for number in ids if number in notes]
    sizes = _sizes(connection, there)
    best = {}
    if hparams or metrics:
        best = {each.experiment_id: each for each in summaries.of_experiments(connection, owner, there, best=True)}
    found = []
    for experiment in experiment_store.with_ids(connection, there):
        of_best = best.get(experiment.id)
        found.append(
            ExperimentRow(
                experiment=told(experiment),
                owner=owner,
                notes=_first_line(notes[experiment.id]),
                size=sizes.get(experiment.id, 0),
                hparams=of_best.hparams if of_best is not None and hparams else {},
                metrics=[] if of_best is None else [each for each in of_best.metrics if each.name in metrics],
            )
        )
    return found


def names(connection: Connection, owner: str) -> ExperimentNames:
    """Return what a query about the experiments of a user may name."""
    mine = experiments.c.owner == owner, experiments.c.state != ExperimentState.DELETED
    hyperparameters, looked_at = _hyperparameters(connection, mine)
    return ExperimentNames(
        metrics=_metric_names(connection, mine),
        hyperparameters=hyperparameters,
        labels=_labels(connection, mine),
        projects=_counted(connection, experiments.c.project, mine),
        names=_counted(connection, experiments.c.name, mine),
        users=_counted(connection, experiments.c.owner, mine),
        frameworks=_counted(connection, experiments.c.framework, mine),
        experiments=looked_at,
    )


def hyperparameters_of(text: str | None) -> Mapping[str, Any]:
    """Return hyperparameters as they are stored; none where the row is damaged."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def views(connection: Connection, owner: str) -> list[ExperimentView]:
    """Return the views that a user has saved, by name."""
    query = (
        select(settings.c.name, settings.c.value, settings.c.updated)
        .where(settings.c.owner == owner, settings.c.name.startswith(_VIEW, autoescape=True))
        .order_by(settings.c.name)
    )
    return [
        ExperimentView(name=row.name.removeprefix(_VIEW), parameters=row.value, updated=row.updated)
        for row in connection.execute(query)
    ]


def save_view(transaction: Transaction, owner: str, name: str, parameters: Mapping[str, str]) -> None:
    """Keep a view in the place of one of the same name."""
    setting_store.put(transaction, owner, _VIEW + name, dict(parameters))


def remove_view(transaction: Transaction, owner: str, name: str) -> bool:
    """Forget a view; return whether there was one."""
    where = settings.c.owner == owner, settings.c.name == _VIEW + name
    return bool(transaction.connection.execute(delete(settings).where(*where)).rowcount)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0].strip()[:_LONGEST_NOTE] if lines else ""


def _sizes(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    query = (
        select(checkpoints.c.experiment_id, func.sum(checkpoints.c.size))
        .where(checkpoints.c.experiment_id.in_(ids), checkpoints.c.state == CheckpointState.COMPLETED)
        .group_by(checkpoints.c.experiment_id)
    )
    return {number: int(size or 0) for number, size in connection.execute(query)}


def _metric_names(connection: Connection, mine: Iterable[ColumnElement[bool]]) -> list[NameCount]:
    number = func.count(metric_summaries.c.experiment_id.distinct())
    query = (
        select(metric_summaries.c.name, number)
        .join(experiments, experiments.c.best_trial == metric_summaries.c.trial_id)
        .where(*mine)
        .group_by(metric_summaries.c.name)
    )
    return _most_frequent(Counter({row[0]: row[1] for row in connection.execute(query)}))


def _hyperparameters(connection: Connection, mine: Iterable[ColumnElement[bool]]) -> tuple[list[NameCount], int]:
    query = (
        select(cast(best_trials.c.hparams, Text))
        .join(experiments, experiments.c.best_trial == best_trials.c.id)
        .where(*mine)
        .order_by(experiments.c.id.desc())
        .limit(MOST_LOOKED_AT)
    )
    texts = Counter(connection.execute(query).scalars())
    counts: Counter[str] = Counter()
    for text, count in texts.items():
        for name in set(_leaves(hyperparameters_of(text))):
            counts[name] += count
    return _most_frequent(counts), texts.total()


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterable[str]:
    """Yield the names of hyperparameters, those of nested ones with dots."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield before + name


def _labels(connection: Connection, mine: Iterable[ColumnElement[bool]]) -> list[NameCount]:
    text = cast(experiments.c.labels, Text)
    counts: Counter[str] = Counter()
    for labels, count in connection.execute(select(text, func.count()).where(*mine).group_by(text)):
        for label in labels_of(labels):
            counts[label] += count
    return _most_frequent(counts)


def labels_of(text: str | None) -> list[str]:
    """Return labels as they are stored; none where the row is damaged."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return [label for label in found if isinstance(label, str)] if isinstance(found, list) else []


def _counted(
    connection: Connection, column: ColumnElement[str], mine: Iterable[ColumnElement[bool]]
) -> list[NameCount]:
    query = (
        select(column, func.count())
        .where(*mine, column != "")
        .group_by(column)
        .order_by(func.count().desc())
        .limit(MOST_NAMES)
    )
    return _most_frequent(Counter({row[0]: row[1] for row in connection.execute(query)}))


def _most_frequent(counts: Counter[str]) -> list[NameCount]:
    short = [(name, count) for name, count in counts.items() if len(name) <= _LONGEST_NAME]
    short.sort(key=lambda each: (-each[1], each[0]))
    return [NameCount(name=name, count=count) for name, count in short[:MOST_NAMES]]
