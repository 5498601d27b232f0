"""By what found experiments are ordered: ``created``, ``metric:val_loss``, ``hp:lr desc``. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from det_native.errors import ArgumentError
from det_native.schema.metric_names import greater_is_better
from det_native.schema.query.matching import (
    Facts,
    duration_milliseconds,
    hyperparameter,
    metric_value,
    shown_state,
    summary_value,
)
from det_native.schema.states import ExperimentState

FIELDS = ("id", "name", "created", "duration", "best", "framework", "progress", "project", "state", "trials")
_GREATEST_FIRST = frozenset({"id", "created", "duration", "progress", "trials"})
#: Which value of a metric counts, whether or not trials are compared by it.
VALUES = {"last": "last", "min": "minimum", "max": "maximum"}
#: Texts: collations of databases differ, so that these are ordered by Python.
TEXTS = frozenset({"name", "framework", "project"})
#: From what waits to what has ended.
STATE_PLACES = {state: place for place, state in enumerate(ExperimentState)}


@dataclass(frozen=True)
class Order:
    """By which fact, and whether the greatest comes first. Who does not have it comes last."""

    kind: str
    name: str = ""
    descending: bool = True

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def written(self) -> str:
        """As it is asked for, the direction with it."""
        return f"{self.text} {'desc' if self.descending else 'asc'}"

    @property
    def column(self) -> str:
        """Which value of a metric counts that trials are not compared by."""
        return "maximum" if self.descending else "minimum"


NEWEST = Order("id")


def parse_order(text: str) -> Order:
    """Return an order.

    Raises
    ------
    ArgumentError
        If there is none of this name.
    """
    words, direction = text.strip(), ""
    for end in (" desc", " asc"):
        if words.lower().endswith(end):
            words, direction = words[: -len(end)].rstrip(), end.strip()
    kind, _, name = words.partition(":")
    if kind in ("metric", "hp", *VALUES) and name:
        first = kind in ("metric", *VALUES) and greater_is_better(name)
    elif words in FIELDS:
        kind, name, first = words, "", words in _GREATEST_FIRST
    else:
        hint = "" if ":" in words or not words else f" Did you mean 'metric:{words}' or 'hp:{words}'?"
        raise ArgumentError(
            f"order_by={text!r} is not known: there are {', '.join(FIELDS)}, metric:<name>, last:<name>, min:<name>, "
            f"max:<name> and hp:<name>, each also "
            f"with asc or desc after it.{hint}"
        )
    return Order(kind, name, first if not direction else direction == "desc")


def sorted_by_key(keyed: list[tuple[Any, Any]], order: Order) -> list[tuple[Any, Any]]:
    """Return pairs of anything and its key in order: equal ones stay as they are, and None comes last."""
    having = sorted((each for each in keyed if each[1] is not None), key=lambda each: each[1], reverse=order.descending)
    return [*having, *(each for each in keyed if each[1] is None)]


def key_of(facts: Facts, order: Order, now: datetime) -> float | str | None:
    """Return by what an experiment is ordered, None if it does not have it."""
    experiment = facts.experiment
    match order.kind:
        case "id":
            return experiment.id
        case "created":
            return experiment.created
        case "name":
            return experiment.name.lower()
        case "framework" | "project":
            return str(getattr(experiment, order.kind)).lower()
        case "state":
            return STATE_PLACES[shown_state(experiment)]
        case "duration":
            return duration_milliseconds(experiment, now)
        case "best":
            return experiment.best_validation
        case "progress":
            return experiment.progress
        case "trials":
            return experiment.trials
        case "hp":
            found: Any = hyperparameter(facts, (order.name,))
            return None if isinstance(found, bool) or not isinstance(found, int | float) else float(found)
    if order.kind in VALUES:
        return summary_value(facts, order.name, VALUES[order.kind])
    return metric_value(facts, order.name, order.column)
