"""Whether an experiment is what a query asks for, by what is known of it. Pure.

The rules, which the SQL of ``master/store/query_sql.py`` follows too: what an experiment does not have makes a
comparison false, and ``a != b`` is ``not a = b``. Capital letters are as small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import eq, ge, gt, le, lt
from typing import Any

from det_native.schema import rest
from det_native.schema.metric_names import PREFIXES
from det_native.schema.query.fields import FIELDS
from det_native.schema.query.moments import milliseconds_between, seconds_of, span_of, stored
from det_native.schema.query.parser import is_yes, number_of
from det_native.schema.query.tree import And, Name, Node, Not, Or
from det_native.schema.states import ExperimentState, MetricKind
from det_native.schema.summaries import MetricSummary

#: Where a metric is looked for; the first kind that has it counts.
KINDS = (MetricKind.VALIDATION, MetricKind.LOGGED, MetricKind.TRAINING)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_MISSING = object()


@dataclass(frozen=True)
class Facts:
    """What is known of an experiment: of its best trial the hyperparameters, and the summaries of its metrics."""

    experiment: rest.Experiment
    owner: str = ""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    summaries: Sequence[MetricSummary] = ()

    def summary(self, kind: str, name: str) -> MetricSummary | None:
        """Return the summary of a metric, None if there is none."""
        return next((each for each in self.summaries if each.kind == kind and each.name == name), None)


def matches(node: Node | None, facts: Facts, now: datetime) -> bool:
    """Return whether an experiment is one of those that a query asks for."""
    match node:
        case None:
            return True
        case And():
            return all(matches(part, facts, now) for part in node.parts)
        case Or():
            return any(matches(part, facts, now) for part in node.parts)
        case Not():
            return not matches(node.part, facts, now)
    if node.operator == "!=":
        return not _holds(node.name, "=", node.values[0], facts, now)
    operator = "=" if node.operator == "in" else node.operator
    return any(_holds(node.name, operator, value, facts, now) for value in node.values)


def queued(experiment: rest.Experiment) -> bool:
    """Return whether an experiment is shown as queued: active, but without slots."""
    waits = not experiment.started or bool(experiment.waits_for)
    return experiment.state is ExperimentState.ACTIVE and waits


def shown_state(experiment: rest.Experiment) -> ExperimentState:
    """Return the state that an experiment is shown in."""
    return ExperimentState.QUEUED if queued(experiment) else experiment.state


def metric_candidates(name: str) -> list[tuple[MetricKind, str]]:
    """Return where the values of a metric may be, best place first: a validation may have it without ``val_``."""
    found = [(kind, name) for kind in KINDS]
    for prefix in PREFIXES:
        if name.startswith(prefix):
            found.insert(1, (MetricKind.VALIDATION, name.removeprefix(prefix)))
    return found


def hyperparameter_paths(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return where a hyperparameter may be: nested ones may be named with dots, and a name may have dots."""
    joined = ".".join(parts)
    return list(dict.fromkeys([parts, (joined,), tuple(joined.split("."))]))


def metric_value(facts: Facts, name: str, column: str) -> float | None:
    """Return the value of a metric in the best trial: of that of the search the best one, of another one `column`."""
    experiment = facts.experiment
    if experiment.metric in {candidate for _, candidate in metric_candidates(name)}:
        column = "minimum" if experiment.smaller_is_better else "maximum"
    return summary_value(facts, name, column)


def summary_value(facts: Facts, name: str, column: str) -> float | None:
    """Return a value of a metric in the best trial: ``last``, ``minimum`` or ``maximum``."""
    for kind, candidate in metric_candidates(name):
        summary = facts.summary(kind.value, candidate)
        value: float | None = None if summary is None else getattr(summary, column)
        if value is not None:
            return value
    return None


def column_for(operator: str) -> str:
    """Return which value of a metric that trials are not compared by counts for an operator."""
    return {"<": "minimum", "<=": "minimum", ">": "maximum", ">=": "maximum"}.get(operator, "last")


def hyperparameter(facts: Facts, parts: tuple[str, ...]) -> Any:
    """Return a hyperparameter of the best trial; :data:`_MISSING` if it has none of this name."""
    return hyperparameter_in(facts.hyperparameters, parts)


def hyperparameter_in(hyperparameters: Mapping[str, Any], parts: tuple[str, ...]) -> Any:
    """Return one of these hyperparameters; :data:`_MISSING` if none has this name."""
    for path in hyperparameter_paths(parts):
        found = _at(hyperparameters, path)
        if found is not _MISSING:
            return found
    return _MISSING


def duration_milliseconds(experiment: rest.Experiment, now: datetime) -> int | None:
    """Return how long an experiment has trained, from its start to its end or until now; None before it starts."""
    if not experiment.started:
        return None
    return max(milliseconds_between(experiment.started, experiment.ended or stored(now)), 0)


def has_value(found: Any) -> bool:
    """Return whether :func:`hyperparameter` has found something."""
    return found is not _MISSING


def _holds(name: Name, operator: str, value: str, facts: Facts, now: datetime) -> bool:
    match name.kind:
        case "field":
            return _field_holds(name.parts[0], operator, value, facts, now)
        case "hp":
            return _value_holds(hyperparameter(facts, name.parts), operator, value)
        case "config":
            return _value_holds(_at(facts.experiment.config, name.parts), operator, value)
        case "bare":
            found = hyperparameter(facts, name.parts)
            if found is not _MISSING:
                return _value_holds(found, operator, value)
            if operator == "~":
                return False
    return _value_holds(metric_value(facts, name.parts[0], column_for(operator)), operator, value)


def _field_holds(name: str, operator: str, value: str, facts: Facts, now: datetime) -> bool:
    experiment, kind = facts.experiment, FIELDS[name].type
    if name == "state":
        wanted = ExperimentState(value)
        return shown_state(experiment) is wanted
    if kind == "yes or no":
        return bool(getattr(experiment, name)) is is_yes(value)
    if kind == "time":
        return _time_holds(getattr(experiment, name), operator, value, now)
    if kind == "duration":
        seconds, spent = seconds_of(value), duration_milliseconds(experiment, now)
        return seconds is not None and spent is not None and _COMPARE[operator](spent, round(seconds * 1000))
    if kind == "id":
        return _value_holds(experiment.id, operator, value)
    if FIELDS[name].path:
        return _value_holds(_at(experiment.config, FIELDS[name].path), operator, value)
    if name == "label":
        return any(_value_holds(label, operator, value) for label in experiment.labels)
    if operator == ":" and name in ("name", "description"):
        operator = "~"
    found = facts.owner if name == "user" else getattr(experiment, name)
    inside = name == "project" and operator == ":" and f"{found}/".lower().startswith(f"{value}/".lower())
    return inside or _value_holds(found, operator, value)


def _time_holds(time: str | None, operator: str, value: str, now: datetime) -> bool:
    span = span_of(value, now)
    if not time or span is None:
        return False
    moment, begin, end = stored(datetime.fromisoformat(time).astimezone(UTC)), stored(span[0]), stored(span[1])
    match operator:
        case "<":
            return moment < begin
        case "<=":
            return moment < end or moment == begin
        case ">":
            return moment >= end and moment != begin
        case ">=":
            return moment >= begin
    return begin <= moment < end or moment == begin


def _value_holds(found: Any, operator: str, value: str) -> bool:
    operator = "=" if operator == ":" else operator
    number = number_of(value)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return number is not None and operator in _COMPARE and _COMPARE[operator](found, number)
    if isinstance(found, bool):
        found = "true" if found else "false"
    if not isinstance(found, str):
        return False
    if operator == "~":
        return value.lower() in found.lower()
    return operator == "=" and found.lower() == value.lower()


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if not isinstance(values, Mapping) or part not in values:
            return _MISSING
        values = values[part]
    return values
