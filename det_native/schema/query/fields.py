"""The facts of an experiment that a query may name, and what may be said of each."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

#: What stands before a name: a metric, a hyperparameter, a path of the configuration.
PREFIXES = ("metric", "hp", "config")

_EQUAL = ("=", "!=", "in", ":")
_ORDERED = ("=", "!=", "<", "<=", ">", ">=")
_TEXT = ("=", "!=", "~", "in", ":")
NUMBERS = (*_ORDERED, "in", ":")
#: What may be said of a hyperparameter, or of a value of the configuration.
ANY = (*_ORDERED, "~", "in", ":")


@dataclass(frozen=True)
class Field:
    """A fact: what its values are, which operators it takes, and where it is found if it lies in the configuration."""

    type: str
    operators: tuple[str, ...]
    path: tuple[str, ...] = ()


FIELDS: dict[str, Field] = {
    "archived": Field("yes or no", ("=", "!=", ":")),
    "created": Field("time", _ORDERED),
    "description": Field("text", _TEXT),
    "duration": Field("duration", _ORDERED),
    "ended": Field("time", _ORDERED),
    "forked_from": Field("number", NUMBERS),
    "framework": Field("text", _TEXT),
    "id": Field("id", NUMBERS),
    "label": Field("text", _TEXT),
    "name": Field("text", _TEXT),
    "progress": Field("number", NUMBERS),
    "project": Field("text", _TEXT),
    "searcher": Field("text", _TEXT, ("searcher", "name")),
    "slots": Field("number", NUMBERS, ("resources", "slots_per_trial")),
    "state": Field("state", _EQUAL),
    "test": Field("yes or no", ("=", "!=", ":")),
    "trials": Field("number", NUMBERS),
    "user": Field("text", _TEXT),
}

# Words that people write for these.
OTHER_NAMES = {"labels": "label", "tag": "label", "owner": "user", "start": "created"}


def hint(name: str) -> str:
    """Return ``Did you mean 'label'? ``, with a space after it; empty if no fact has a name close to it."""
    close = difflib.get_close_matches(name.lower(), [*FIELDS, *PREFIXES], n=1, cutoff=0.75)
    return f"Did you mean {close[0]!r}? " if close else ""
