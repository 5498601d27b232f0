"""Experiments that a query asks for, in an order, page by page."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cmp_to_key
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from det_native.errors import ArgumentError
from det_native.master.store import experiments as experiment_store
from det_native.master.store import summaries
from det_native.master.store.query_sql import Translator
from det_native.master.store.tables import experiments
from det_native.schema import rest
from det_native.schema.query.matching import Facts, matches, metric_candidates
from det_native.schema.query.ordering import NEWEST, TEXTS, VALUES, Order, key_of, sorted_by_key
from det_native.schema.query.tree import Name, Node, names_of
from det_native.schema.states import ExperimentState

# Rows that are looked at one by one are read so many at a time.
_CHUNK = 500
# What an index has: a page of these takes as long with many experiments as with few.
_QUICK = (Name("field", ("archived",)), Name("field", ("state",)))

Key = float | str | None


@dataclass(frozen=True)
class Page:
    """Some of the experiments that were asked for.

    Attributes
    ----------
    total : int
        How many there are, those of earlier and later pages included.
    next : str
        What to give as `after` for the next page; empty at the end.
    notice : str
        What is to be known of the answer; empty for nothing.
    """

    experiments: list[rest.Experiment]
    total: int
    next: str
    notice: str


def find(
    connection: Connection,
    owner: str,
    tree: Node | None,
    now: datetime,
    *,
    order: Order = NEWEST,
    limit: int,
    before: int | None = None,
    after: str | None = None,
) -> Page:
    """Return the experiments of an owner for which a query holds.

    Parameters
    ----------
    tree : Node or None
        None: all.
    now : datetime
        What ages are counted from.
    limit : int
        How many at most.
    before : int, optional
        Only those with a smaller id.
    after : str, optional
        Those behind this place, the ``next`` of the page before.

    Raises
    ------
    ArgumentError
        If `after` is of no page.
    """
    if order == NEWEST and all(name in _QUICK for name in names_of(tree)):
        place = None if after is None else _place(after)[0]
        below = min((number for number in (before, place) if number is not None), default=None)
        ids = newest(connection, owner, tree, now, limit=limit + 1, before=below)
        return Page(
            experiments=experiment_store.with_ids(connection, ids[:limit]),
            total=count(connection, owner, tree, now),
            next=_cursor(ids[limit - 1], ids[limit - 1]) if len(ids) > limit else "",
            notice="",
        )
    keys = _keys(connection, owner, tree, now, order)
    start = 0 if after is None else _place_after(keys, order, after)
    rest_of_them = [(number, key) for number, key in keys[start:] if before is None or number < before]
    page = rest_of_them[:limit]
    more = len(rest_of_them) > len(page)
    return Page(
        experiments=experiment_store.with_ids(connection, [number for number, _ in page]),
        total=len(keys),
        next=_cursor(*page[-1]) if more and page else "",
        notice=_notice(connection, tree, order, keys),
    )


@dataclass(frozen=True)
class Listed:
    """All experiments that were asked for, in order, up to a limit: their ids, and by what they are ordered.

    Attributes
    ----------
    keys : list of (int, float or str or None)
        What is None comes last.
    total : int
        How many there are, those beyond the limit included.
    notice : str
        What is to be known of the answer; empty for nothing.
    """

    keys: list[tuple[int, Key]]
    total: int
    notice: str

    @property
    def ids(self) -> list[int]:
        """Their ids."""
        return [number for number, _ in self.keys]


def in_order(
    connection: Connection, owner: str, tree: Node | None, now: datetime, *, order: Order = NEWEST, limit: int
) -> Listed:
    """Return which experiments a query holds for, without reading them."""
    if order == NEWEST and all(name in _QUICK for name in names_of(tree)):
        ids = newest(connection, owner, tree, now, limit=limit)
        total = len(ids) if len(ids) < limit else count(connection, owner, tree, now)
        return Listed([(number, number) for number in ids], total, "")
    keys = _keys(connection, owner, tree, now, order)
    return Listed(keys[:limit], len(keys), _notice(connection, tree, order, keys))


def newest(
    connection: Connection, owner: str, tree: Node | None, now: datetime, *, limit: int, before: int | None = None
) -> list[int]:
    """Return the ids of the newest experiments for which a query of archived and state holds."""
    condition = Translator(connection.dialect.name, now).condition(tree)
    query = select(experiments.c.id).where(*_of_owner(owner), condition)
    if before is not None:
        query = query.where(experiments.c.id < before)
    return list(connection.execute(query.order_by(experiments.c.id.desc()).limit(limit)).scalars())


def count(connection: Connection, owner: str, tree: Node | None, now: datetime) -> int:
    """Return for how many experiments such a query holds."""
    condition = Translator(connection.dialect.name, now).condition(tree)
    query = select(func.count()).select_from(experiments).where(*_of_owner(owner), condition)
    return int(connection.execute(query).scalar_one())


def _of_owner(owner: str) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of what an owner has; what is being deleted is not among it."""
    return experiments.c.owner == owner, experiments.c.state != ExperimentState.DELETED


def facts_of(connection: Connection, owner: str, ids: Sequence[int]) -> Iterable[Facts]:
    """Yield what is known of experiments."""
    best = {each.experiment_id: each for each in summaries.of_experiments(connection, owner, ids, best=True)}
    for experiment in experiment_store.with_ids(connection, ids):
        of_best = best.get(experiment.id)
        yield Facts(
            experiment,
            owner,
            {} if of_best is None else of_best.hparams,
            () if of_best is None else of_best.metrics,
        )


def _keys(connection: Connection, owner: str, tree: Node | None, now: datetime, order: Order) -> list[tuple[int, Key]]:
    """Return the ids of all of them and by what they are ordered, in order; of equal ones the newest first."""
    translator = Translator(connection.dialect.name, now)
    condition = translator.condition(tree)
    key = translator.order_key(order)
    columns: list[Any] = [experiments.c.id]
    if key is not None and order.kind != "id":
        columns.append(key)
    if order.kind in TEXTS:
        columns.append(experiments.c[order.kind])
    query = select(*columns).select_from(translator.source).where(*_of_owner(owner), condition)
    rows = connection.execute(query.order_by(experiments.c.id.desc())).all()
    if translator.exact and order.kind in TEXTS:
        otherwise = "Experiment {}" if order.kind == "name" else ""
        found = [(row[0], (row[1] or otherwise.format(row[0])).lower()) for row in rows]
    elif translator.exact and (key is not None):
        found = [(row[0], row[-1]) for row in rows]
    else:
        found = _looked_at(connection, owner, [row[0] for row in rows], tree, now, order)
    return found if order == NEWEST else sorted_by_key(found, order)


def _looked_at(
    connection: Connection, owner: str, ids: Sequence[int], tree: Node | None, now: datetime, order: Order
) -> list[tuple[int, Key]]:
    found: list[tuple[int, Key]] = []
    for start in range(0, len(ids), _CHUNK):
        for facts in facts_of(connection, owner, ids[start : start + _CHUNK]):
            if matches(tree, facts, now):
                found.append((facts.experiment.id, key_of(facts, order, now)))
    return found


def _cursor(number: int, key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([number, key]).encode()).decode().rstrip("=")


def _place_after(keys: Sequence[tuple[int, Key]], order: Order, after: str) -> int:
    """Return where the page behind a place begins; what is at the place may have gone since, or moved."""
    place = _place(after)
    compare = _comparing(order)
    try:
        return next((at for at, each in enumerate(keys) if compare(each) > compare(place)), len(keys))
    except TypeError:
        raise _not_a_place(after) from None


def _comparing(order: Order) -> Callable[[tuple[int, Any]], Any]:
    def compare(a: tuple[int, Any], b: tuple[int, Any]) -> int:
        return _compare(a, b, order)

    return cmp_to_key(compare)


def _place(after: str) -> tuple[int, Any]:
    try:
        number, key = json.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
        return int(number), key
    except (ValueError, TypeError):
        raise _not_a_place(after) from None


def _not_a_place(after: str) -> ArgumentError:
    return ArgumentError(f"after={after[:100]!r} is not the X-Next of an answer in this order.")


def _compare(a: tuple[int, Any], b: tuple[int, Any], order: Order) -> int:
    if (a[1] is None) is not (b[1] is None):
        return 1 if a[1] is None else -1
    if a[1] != b[1]:
        return (1 if a[1] > b[1] else -1) * (-1 if order.descending else 1)
    return b[0] - a[0]


def _notice(connection: Connection, tree: Node | None, order: Order, keys: Sequence[tuple[int, Key]]) -> str:
    """Say what else is to be known of an answer."""
    found = []
    by_metric = order.kind in ("metric", *VALUES) or any(name.kind in ("metric", "bare") for name in names_of(tree))
    if by_metric and (to_do := summaries.to_do(connection)):
        found.append(
            f"The metrics of {to_do} trials of an earlier version are still being read; until that is done, "
            "experiments may be missing here."
        )
    metrics = [name.parts[0] for name in names_of(tree) if name.kind == "metric"]
    names = {candidate for metric in metrics for _, candidate in metric_candidates(metric)}
    if not keys and names and not summaries.known_metrics(connection, names):
        found.append("No trial has a metric of this name.")
    if keys and order.name and all(key is None for _, key in keys):
        found.append(f"None of these experiments has a value for {order.text}: they are in the order of their ids.")
    return " ".join(found)
