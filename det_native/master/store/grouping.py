"""Experiments in groups, by what they have in common, with statistics of a number."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Text, cast, select

from det_native.errors import ArgumentError
from det_native.master.store import finding
from det_native.master.store.experiment_rows import hyperparameters_of, labels_of
from det_native.master.store.query_sql import best_trials
from det_native.master.store.tables import experiments
from det_native.schema.experiment_table import ExperimentGroup, ExperimentGroups
from det_native.schema.query.matching import has_value, hyperparameter_in
from det_native.schema.query.ordering import NEWEST, TEXTS, Order
from det_native.schema.query.tree import Node

#: So many experiments are put into groups, and so many groups are told.
MOST_EXPERIMENTS = 20_000
MOST_GROUPS = 1_000
_CHUNK = 500
_COLUMNS = ("name", "project", "framework")


def groups(
    connection: Connection,
    owner: str,
    tree: Node | None,
    now: datetime,
    *,
    by: str,
    measure: Order | None,
    most: int = MOST_EXPERIMENTS,
) -> ExperimentGroups:
    """Return groups of the experiments that a query holds for.

    Parameters
    ----------
    by : str
        ``name``, ``project``, ``framework``, ``label`` or ``hp:<name>``; who has several labels is in several groups.
    measure : Order, optional
        What is averaged, and which values are better: those that come first.
    most : int
        How many experiments are looked at.

    Raises
    ------
    ArgumentError
        If there is no such grouping, or the measure is a text.
    """
    if measure is not None and measure.kind in {*TEXTS, "created", "state"}:
        raise ArgumentError(f"measure={measure.text!r} is not a number: write metric:<name>, hp:<name> or duration.")
    values = _values(by)
    listed = finding.in_order(connection, owner, tree, now, order=measure or NEWEST, limit=most)
    members: dict[str, tuple[Any, list[tuple[int, float | None]]]] = {}
    keys = dict(listed.keys)
    for number, value in values(connection, listed.ids):
        text = json.dumps(value, sort_keys=True)
        key = keys[number] if measure is not None else None
        members.setdefault(text, (value, []))[1].append((number, key if isinstance(key, int | float) else None))
    place = {number: at for at, number in enumerate(listed.ids)}
    found = [_group(value, sorted(of_it, key=lambda each: place[each[0]])) for value, of_it in members.values()]
    found.sort(key=lambda group: (group.best is None, place[group.ids[0]] if group.best is not None else -group.count))
    return ExperimentGroups(
        groups=found[:MOST_GROUPS],
        total=listed.total,
        grouped=len(listed.ids),
        other_groups=max(len(found) - MOST_GROUPS, 0),
        notice=listed.notice,
    )


def _group(value: Any, members: Sequence[tuple[int, float | None]]) -> ExperimentGroup:
    numbers = [number for _, number in members if number is not None]
    finite = [float(number) for number in numbers if math.isfinite(number)]
    return ExperimentGroup(
        value=value,
        count=len(members),
        measured=len(numbers),
        mean=statistics.fmean(finite) if finite else None,
        deviation=_deviation(finite),
        best=finite[0] if finite else None,
        ids=[number for number, _ in members],
    )


def _deviation(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return spread if math.isfinite(spread) else None


def _values(by: str) -> Any:
    """Return what yields ids and what they are grouped by."""
    kind, _, name = by.partition(":")
    if kind == "hp" and name:
        return lambda connection, ids: _of_hyperparameter(connection, ids, name)
    if by == "label":
        return _of_labels
    if by in _COLUMNS:
        return lambda connection, ids: _of_column(connection, ids, by)
    raise ArgumentError(f"by={by[:100]!r} is not known: there are {', '.join(_COLUMNS)}, label and hp:<name>.")


def _of_column(connection: Connection, ids: Sequence[int], name: str) -> Iterable[tuple[int, Any]]:
    query = select(experiments.c.id, experiments.c[name])
    for number, value in _rows(connection, query, ids):
        yield number, value or (f"Experiment {number}" if name == "name" else None)


def _of_labels(connection: Connection, ids: Sequence[int]) -> Iterable[tuple[int, Any]]:
    query = select(experiments.c.id, cast(experiments.c.labels, Text))
    for number, text in _rows(connection, query, ids):
        for label in dict.fromkeys(labels_of(text)) or (None,):
            yield number, label


def _of_hyperparameter(connection: Connection, ids: Sequence[int], name: str) -> Iterable[tuple[int, Any]]:
    query = select(experiments.c.id, cast(best_trials.c.hparams, Text)).select_from(
        experiments.outerjoin(best_trials, best_trials.c.id == experiments.c.best_trial)
    )
    for number, text in _rows(connection, query, ids):
        value = hyperparameter_in(hyperparameters_of(text), (name,))
        yield number, value if has_value(value) else None


def _rows(connection: Connection, query: Any, ids: Sequence[int]) -> Iterable[tuple[int, Any]]:
    for start in range(0, len(ids), _CHUNK):
        yield from connection.execute(query.where(experiments.c.id.in_(ids[start : start + _CHUNK])))
