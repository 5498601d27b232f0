"""A query as a condition of SQL, for SQLite and Postgres; it holds where ``schema/query/matching.py`` says so.

What cannot be said in SQL (a name with quotes, letters beyond ASCII, whose capitals databases do not know) holds
everywhere, and the rows are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, ge, gt, le, lt
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    Integer,
    and_,
    case,
    cast,
    false,
    func,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.sql.selectable import NamedFromClause
from sqlalchemy.types import BigInteger, DateTime, Text

from det_native.master.store.tables import experiments, metric_summaries, trials
from det_native.schema.query.fields import FIELDS
from det_native.schema.query.matching import column_for, hyperparameter_paths, metric_candidates
from det_native.schema.query.moments import seconds_of, span_of, stored
from det_native.schema.query.ordering import STATE_PLACES, VALUES, Order
from det_native.schema.query.parser import is_yes, number_of
from det_native.schema.query.tree import And, Comparison, Name, Node, Not, Or
from det_native.schema.states import ExperimentState

Condition = ColumnElement[bool]
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_WAITS = experiments.c.waits_for.is_not(None) & (experiments.c.waits_for != "")
_LARGEST = 2**62

# Other facts every experiment has; without more around it, an index serves a condition.
_MAY_BE_MISSING = frozenset({"duration", "ended", "forked_from", "searcher", "slots"})

#: The best trial of an experiment, and when its first one started.
best_trials = trials.alias("best")
begun = (
    select(trials.c.experiment_id, func.min(trials.c.started).label("started"))
    .group_by(trials.c.experiment_id)
    .subquery("begun")
)


class _NotInSqlError(Exception):
    """Something cannot be said in SQL."""


@dataclass(frozen=True)
class _Json:
    """A value of a JSON column: whether it is there, as a number, and as a text."""

    there: ColumnElement[Any]
    number: ColumnElement[Any]
    text: ColumnElement[Any]


class Translator:
    """Makes conditions for one database.

    Parameters
    ----------
    dialect : str
        ``sqlite`` or ``postgresql``.
    now : datetime
        What ages are counted from.

    Attributes
    ----------
    exact : bool
        Whether all that was translated could be said.
    source : FromClause
        The experiments, with what the conditions so far ask of their trials.
    """

    def __init__(self, dialect: str, now: datetime) -> None:
        self._sqlite = dialect == "sqlite"
        self._now = now
        self.exact = True
        self.source: FromClause = experiments
        self._joined: set[str] = set()

    def condition(self, node: Node | None, *, negated: bool = False) -> Condition:
        """Return a condition; where :attr:`exact` is False after it, it holds for some rows that it should not."""
        match node:
            case None:
                return true()
            case Not():
                return self.condition(node.part, negated=not negated)
            case And() | Or():
                parts = [self.condition(part, negated=negated) for part in node.parts]
                return and_(*parts) if isinstance(node, And) is not negated else or_(*parts)
        try:
            found = self._comparison(node)
        except _NotInSqlError:
            self.exact = False
            return true()
        return not_(found) if negated else found

    def order_key(self, order: Order) -> ColumnElement[Any] | None:
        """Return by what experiments are ordered; None where that cannot be said in SQL."""
        try:
            match order.kind:
                case "id":
                    return experiments.c.id
                case "created":
                    return experiments.c.created
                case "duration":
                    return self._duration()
                case "hp":
                    return self._first(self._hyperparameter((order.name,)), "number")
                case "metric":
                    return self._metric(order.name, order.column)
                case "last" | "min" | "max":
                    return self._summary(order.name, VALUES[order.kind])
                case "best":
                    return experiments.c.best_validation
                case "progress":
                    return experiments.c.progress
                case "trials":
                    return self._trials()
                case "state":
                    return case(*((self._state(state), place) for state, place in STATE_PLACES.items()))
        except _NotInSqlError:
            pass
        return None  # collations differ: texts are ordered by Python

    def _comparison(self, node: Comparison) -> Condition:
        if node.operator == "!=":
            return not_(self._holds(node.name, "=", node.values[0]))
        operator = "=" if node.operator == "in" else node.operator
        return or_(*(self._holds(node.name, operator, value) for value in node.values))

    def _holds(self, name: Name, operator: str, value: str) -> Condition:
        match name.kind:
            case "field":
                found = self._field(name.parts[0], operator, value)
                return func.coalesce(found, false()) if name.parts[0] in _MAY_BE_MISSING else found
            case "hp":
                return self._any_of(self._hyperparameter(name.parts), operator, value)
            case "config":
                return self._any_of([self._json(experiments.c.config, name.parts)], operator, value)
            case "bare":
                places = self._hyperparameter(name.parts)
                is_one = or_(*(place.there for place in places))
                by_metric = false() if operator == "~" else self._by_metric(name.parts[0], operator, value)
                return or_(and_(is_one, self._any_of(places, operator, value)), and_(not_(is_one), by_metric))
        return self._by_metric(name.parts[0], operator, value)

    def _by_metric(self, name: str, operator: str, value: str) -> Condition:
        number = number_of(value)
        if number is None:
            return false()
        compare = _COMPARE["=" if operator == ":" else operator]
        return func.coalesce(compare(self._metric(name, column_for(operator)), number), false())

    @staticmethod
    def _summary(name: str, column: str) -> ColumnElement[Any]:
        places = [
            select(metric_summaries.c[column])
            .where(
                metric_summaries.c.trial_id == experiments.c.best_trial,
                metric_summaries.c.kind == kind.value,
                metric_summaries.c.name == candidate,
            )
            .scalar_subquery()
            for kind, candidate in metric_candidates(name)
        ]
        return func.coalesce(*places)

    @classmethod
    def _metric(cls, name: str, column: str) -> ColumnElement[Any]:
        is_metric = experiments.c.metric.in_(sorted({candidate for _, candidate in metric_candidates(name)}))
        smaller = experiments.c.smaller_is_better
        return case(
            (is_metric & smaller, cls._summary(name, "minimum")),
            (is_metric & not_(smaller), cls._summary(name, "maximum")),
            else_=cls._summary(name, column),
        )

    def _hyperparameter(self, parts: tuple[str, ...]) -> list[_Json]:
        self._join(best_trials, best_trials.c.id == experiments.c.best_trial)
        return [self._json(best_trials.c.hparams, path) for path in hyperparameter_paths(parts)]

    def _any_of(self, places: Sequence[_Json], operator: str, value: str) -> Condition:
        """Return whether the first of these that is there is such a one."""
        choices = [(place.there, self._value(place, operator, value)) for place in places]
        return func.coalesce(case(*choices, else_=false()), false())

    def _first(self, places: Sequence[_Json], what: str) -> ColumnElement[Any]:
        return case(*((place.there, getattr(place, what)) for place in places))

    def _value(self, place: _Json, operator: str, value: str) -> Condition:
        operator = "=" if operator == ":" else operator
        number = number_of(value)
        by_number = false() if number is None or operator not in _COMPARE else _COMPARE[operator](place.number, number)
        by_text = self._text(place.text, operator, value) if operator in ("=", "~") else false()
        return func.coalesce(by_number, false()) | func.coalesce(by_text, false())

    @staticmethod
    def _text(column: ColumnElement[Any], operator: str, value: str) -> Condition:
        if not value.isascii() or "\0" in value:
            raise _NotInSqlError
        lower = func.lower(column)
        return lower.contains(value.lower(), autoescape=True) if operator == "~" else lower == value.lower()

    def _field(self, name: str, operator: str, value: str) -> Condition:
        kind = FIELDS[name].type
        if name == "state":
            return self._state(ExperimentState(value))
        if kind == "yes or no":
            return experiments.c[name] == (true() if is_yes(value) else false())
        if kind == "time":
            return self._time(experiments.c.created if name == "created" else self._end()[1], operator, value)
        if kind == "duration":
            milliseconds = round((seconds_of(value) or 0) * 1000)
            longer: Condition = _COMPARE[operator](self._duration(), milliseconds)
            return longer
        if FIELDS[name].path:
            return self._value(self._json(experiments.c.config, FIELDS[name].path), operator, value)
        operator = "=" if operator == ":" and name not in ("name", "description", "project") else operator
        if name == "label":
            return self._label(operator, value)
        if name in ("id", "forked_from", "trials", "progress"):
            return self._number_field(name, operator, value)
        if name == "name" and not value.isascii():
            raise _NotInSqlError
        column = self._name() if name == "name" else experiments.c["owner" if name == "user" else name]
        if operator == ":":
            if name != "project":
                return self._text(column, "~", value)
            inside = func.lower(column).startswith(f"{value.lower()}/", autoescape=True)
            return self._text(column, "=", value) | inside
        return self._text(column, operator, value)

    @staticmethod
    def _trials() -> ColumnElement[Any]:
        return select(func.count()).where(trials.c.experiment_id == experiments.c.id).scalar_subquery()

    @staticmethod
    def _number_field(name: str, operator: str, value: str) -> Condition:
        number = number_of(value)
        if number is None or abs(number) > _LARGEST:  # beyond what the column may have
            raise _NotInSqlError
        column = Translator._trials() if name == "trials" else experiments.c[name]
        holds: Condition = _COMPARE[operator](cast(column, Double), number)
        return holds

    @staticmethod
    def _state(state: ExperimentState) -> Condition:
        started = select(func.min(trials.c.started)).where(trials.c.experiment_id == experiments.c.id).scalar_subquery()
        queued = started.is_(None) | _WAITS
        if state is ExperimentState.QUEUED:
            return (experiments.c.state == ExperimentState.ACTIVE) & queued
        found = experiments.c.state == state
        return found & not_(queued) if state is ExperimentState.ACTIVE else found

    def _time(self, column: ColumnElement[Any], operator: str, value: str) -> Condition:
        span = span_of(value, self._now)
        if span is None:
            return false()
        begin, end = stored(span[0]), stored(span[1])
        match operator:
            case "<":
                return column < begin
            case "<=":
                return (column < end) | (column == begin)
            case ">":
                return (column >= end) & (column != begin)
            case ">=":
                return column >= begin
        return ((column >= begin) & (column < end)) | (column == begin)

    def _duration(self) -> ColumnElement[Any]:
        begin, ended = self._end()
        now = stored(self._now)
        end = func.coalesce(ended, case((begin > now, begin), else_=now))
        return self._milliseconds(end) - self._milliseconds(begin)

    def _end(self) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
        """Return begin and end as they are told: a clock may have been set back."""
        self._join(begun, begun.c.experiment_id == experiments.c.id)
        created, ended, started = experiments.c.created, experiments.c.ended, begun.c.started
        begin = case((started < created, created), else_=started)
        latest = case((begin > ended, begin), (ended < created, created), else_=ended)
        return begin, case((ended.is_not(None), latest))

    def _join(self, table: NamedFromClause, condition: Condition) -> None:
        if table.name not in self._joined:
            self._joined.add(table.name)
            self.source = self.source.outerjoin(table, condition)

    def _milliseconds(self, moment: ColumnElement[Any]) -> ColumnElement[Any]:
        if self._sqlite:
            seconds = cast(func.strftime("%s", moment), Integer)
            return seconds * 1000 + cast(func.substr(moment, 21, 3), Integer)
        epoch = func.date_part("epoch", cast(moment, DateTime(timezone=True)))
        return cast(func.round(epoch * 1000), BigInteger)

    @staticmethod
    def _name() -> ColumnElement[Any]:
        """Return the name as it is shown."""
        number = cast(experiments.c.id, Text)
        return case((experiments.c.name == "", "Experiment " + number), else_=experiments.c.name)

    def _label(self, operator: str, value: str) -> Condition:
        labels = experiments.c.labels
        if self._sqlite:
            readable = case((func.json_valid(labels) == 1, cast(labels, Text)), else_="[]")
            entries = func.json_each(readable).table_valued("value", name="labels_of_it")
            column = entries.c.value
        else:
            entries = func.json_array_elements_text(labels).table_valued("value", name="labels_of_it")
            column = entries.c.value
        return select(1).select_from(entries).where(self._text(cast(column, Text), operator, value)).exists()

    def _json(self, column: ColumnElement[Any], path: tuple[str, ...]) -> _Json:
        for part in path:
            if '"' in part or "\\" in part or "\0" in part or (not self._sqlite and part.isdigit()):
                raise _NotInSqlError
        if self._sqlite:
            where = "$" + "".join(f'."{part}"' for part in path)
            valid = func.json_valid(column) == 1
            kind = case((valid, func.json_type(column, where)))
            value = func.json_extract(column, where)
            text = case((kind == "text", value), (kind == "true", "true"), (kind == "false", "false"))
            number = case((kind.in_(("integer", "real")), cast(value, Double)))
            return _Json(func.coalesce(kind.is_not(None), false()), number, text)
        found = func.json_extract_path(column, *path)
        type_of = func.json_typeof(found)
        as_text = func.json_extract_path_text(column, *path)
        text = case((type_of.in_(("string", "boolean")), as_text))
        number = case((type_of == "number", cast(as_text, Double)))
        return _Json(found.is_not(None), number, text)
