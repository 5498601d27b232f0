"""Events of searchers as JSON, so that what a searcher was told can be kept and told to it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from det_native.schema.numbers import number
from det_native.search.base import Event

_EVENTS = {kind.__name__: kind for kind in get_args(Event)}


def event_data(event: Event) -> dict[str, Any]:
    """Return an event as data for JSON, not-a-numbers and infinities among it."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    return {"event": type(event).__name__, **values}


def event_of(data: Mapping[str, Any]) -> Event:
    """Return the event of :func:`event_data`, after its way through JSON."""
    values = {name: _value(value) for name, value in data.items() if name != "event"}
    event: Event = _EVENTS[data["event"]](**values)
    return event


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_value(one) for one in value)
    # The only texts in events are those of numbers that are not finite.
    return number(value) if isinstance(value, str) else value
