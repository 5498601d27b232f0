"""pydantic's findings about a configuration in plain sentences: where, what is wrong, what would be right."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import ErrorDetails

from det_native.errors import Problem
from det_native.schema.config import ExperimentConfig
from det_native.schema.lengths import Length, Unit
from det_native.schema.older_names import STEPS
from det_native.schema.places import Place, bare, dotted, locate, model_of, tags_of

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "dict": "fields with values",
    "model": "fields with values",
}
_BOUNDS = {
    "greater_than": ("gt", "must be above"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be below"),
    "less_than_equal": ("le", "must be at most"),
}
_SECRET = re.compile(r"key|password|token|secret|auth|credential|connection_string|environment_variables")
_LENGTH_REMEDY = 'Write a length as {"epochs": 5}, {"batches": 1000} or {"records": 50000}.'

# A tag that stands for a missing discriminator is not something to write.
_SILENT_TAGS = {"master", "group"}
_TAG_FIELDS = {"searcher": "name"}

# Kinds that Determined has, and what is there in their place.
_NOT_TAKEN = {
    ("searcher.name", "custom"): (
        "A search of your own is a script that submits experiments (client.create_experiment(), experiment.wait()); "
        "optuna has searches that learn from earlier trials."
    ),
}

# Errors that leaving a field out can cause elsewhere.
_CONSEQUENCES = ("missing", "extra_forbidden", "union_tag_invalid")

_UNKNOWN = "is not a field of the configuration."
# Of so many unknown fields it is said what may be meant: who writes more has not mistyped them.
_MOST_GUESSES = 50

_REMEDIES = {
    "max_length": _LENGTH_REMEDY,
    "budget": _LENGTH_REMEDY,
    "length_per_round": _LENGTH_REMEDY,
    "max_trials": "Set it to the number of trials to run.",
    "minval": "Set it to the lower bound.",
    "maxval": "Set it to the upper bound.",
    "vals": "List the values to choose from.",
    "val": "Set it to the value.",
}


def field_problems(
    error: ValidationError, written_as: Mapping[str, str] | None = None, *, consequences: bool = True
) -> list[Problem]:
    """Return the problems that pydantic found in single sections; what is between sections is left out.

    Parameters
    ----------
    error : ValidationError
        From validating an ``ExperimentConfig``.
    written_as : mapping, optional
        Older names that stand in the configuration, by the present path.
    consequences : bool
        Whether to say what is missing or unknown.
    """
    problems: dict[tuple[str, bool], Problem] = {}
    guesses = 0
    for details in error.errors(include_url=False):
        if details["type"] == "consistency":
            continue
        place = locate(details["loc"])
        if not consequences and details["type"] in _CONSEQUENCES and not _is_unknown_anywhere(place, details):
            continue
        unknown = details["type"] == "extra_forbidden"
        guesses += unknown
        many = unknown and guesses > _MOST_GUESSES
        problem = Problem(place.text, _UNKNOWN) if many else _problem(place, details)
        where = (written_as or {}).get(problem.where, problem.where)
        problem = Problem(where, problem.what, problem.remedy)
        key = (where, place.member)
        if place.member and key in problems:
            problem = _either(problems[key], problem)
        elif key in problems:
            key = (f"{where} {problem.what}", False)
        problems[key] = problem
    return list(problems.values())


def _is_unknown_anywhere(place: Place, details: ErrorDetails) -> bool:
    """Whether a field is none of its section, of whatever kind that is: so it is wrong in any case."""
    name = place.path[-1] if place.path else ""
    return details["type"] == "extra_forbidden" and not any(name in model.model_fields for model in place.relatives)


def broken_fields(error: ValidationError) -> list[list[str | int]]:
    """Return the paths of the fields that are not valid by themselves; for an unknown kind, of the field naming it."""
    paths = []
    for details in error.errors(include_url=False):
        place = locate(details["loc"])
        if details["type"] == "union_tag_invalid":
            place.path.append(_TAG_FIELDS.get(place.text, "type"))
        if place.path:
            paths.append(place.path)
    return paths


def _problem(place: Place, details: ErrorDetails) -> Problem:
    kind, given = details["type"], details["input"]
    context = details.get("ctx", {})
    name = str(place.path[-1]) if place.path else ""
    if kind == "missing":
        return Problem(place.text, "is missing.", _REMEDIES.get(name) or _wanted(place.annotation))
    if kind == "extra_forbidden":
        return _unknown(place, name)
    if kind == "union_tag_invalid":
        return _unknown_kind(place, context)
    if kind == "value_error":
        return _rule(place, str(context["error"]), given)
    said = "" if _SECRET.search(place.text) else f", not {shown(given)}"
    if kind == "literal_error":
        return _choice(place, given, said)
    if kind in _BOUNDS:
        limit, words = _BOUNDS[kind]
        return Problem(place.text, f"{words} {context[limit]}{said}.")
    if kind == "string_too_short":
        return Problem(place.text, "must not be empty.")
    if kind == "finite_number":
        return Problem(place.text, f"must be a finite number{said}.")
    if kind == "int_from_float":
        return Problem(place.text, f"must be a whole number{said}.")
    expected = _KINDS.get(kind.removesuffix("_type").removesuffix("_parsing"))
    if expected is None:
        return Problem(place.text, f"is not valid: {details['msg']}.")
    return Problem(place.text, f"must be {expected}{said}.", _quoted_number(expected, given))


def _wanted(annotation: Any) -> str:
    expected = bare(annotation)
    if model_of(expected):
        return f"It must be {_KINDS['model']}."
    name = getattr(typing.get_origin(expected) or expected, "__name__", "")
    kind = "string" if name == "str" else name
    return f"It must be {_KINDS[kind]}." if kind in _KINDS else ""


def _rule(place: Place, text: str, given: Any) -> Problem:
    if bare(place.annotation) is not Length:
        return Problem(place.text, f"{text}.")
    if isinstance(given, dict) and len(given) == 1:
        unit = next(iter(given))
        where = dotted([*place.path, unit])
        if unit not in list(Unit):
            return Problem(where, f"{unit!r} is not a unit of length.", _meant(unit, list(Unit)) or _LENGTH_REMEDY)
        return Problem(where, f"{text.removeprefix(f'{unit} ')}.")
    if isinstance(given, int) and not isinstance(given, bool):
        return Problem(place.text, f"{text.removeprefix('batches ')}.")
    return Problem(place.text, f"is not a length: {shown(given)}.", _LENGTH_REMEDY)


def _choice(place: Place, given: Any, said: str) -> Problem:
    allowed = [str(value) for value in typing.get_args(bare(place.annotation))]
    guess = _meant(given, allowed) if isinstance(given, str) else ""
    return Problem(place.text, f"must be one of {', '.join(allowed)}{said}.", guess)


def _unknown_kind(place: Place, context: Mapping[str, Any]) -> Problem:
    tag = str(context.get("tag", ""))
    tags = [found for found in tags_of(bare(place.annotation)) if found not in _SILENT_TAGS]
    where = dotted([*place.path, _TAG_FIELDS.get(place.text, "type")])
    remedy = _NOT_TAKEN.get((where, tag)) or _meant(tag, tags)
    if place.path[0] == "hyperparameters":
        remedy = remedy or 'A value that itself has a field "type" is written {"type": "const", "val": {...}}.'
    return Problem(where, f"must be one of {', '.join(tags)}, not {tag!r}.", remedy)


def _unknown(place: Place, name: str) -> Problem:
    siblings = list(place.owner.model_fields) if place.owner else []
    parent = dotted(place.path[:-1])
    if parent == "environment.environment_variables":
        return Problem(place.text, "is not a kind of device.", 'Write variables as a list: ["NAME=VALUE"].')
    owners = [kind for model in place.relatives if name in model.model_fields for kind in _kinds(model)]
    if owners:
        tag = _TAG_FIELDS.get(parent, "type")
        return Problem(
            place.text,
            f"is not a field of this {parent}, but of one with {tag} {', '.join(owners)}.",
            f"Set {parent}.{tag}, or leave {name} out.",
        )
    places = _index()
    remedy = _places(places.get(name, [])) or _meant(name, siblings, parent)
    if not remedy:
        close = difflib.get_close_matches(name.lower(), list(places), n=1, cutoff=0.8)
        remedy = _places(places[close[0]]) if close else ""
    if not remedy:
        remedy = f"Known fields{f' of {parent}' if parent else ''}: {', '.join(sorted(siblings))}."
    return Problem(place.text, _UNKNOWN, remedy)


def _kinds(model: type[BaseModel]) -> list[str]:
    for name in ("name", "type"):
        if name in model.model_fields:
            return [str(value) for value in typing.get_args(model.model_fields[name].annotation)]
    return []


def _meant(word: str, known: Iterable[str], parent: str = "") -> str:
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"Did you mean {f'{parent}.' if parent else ''}{close[0]}?" if close else ""


def _places(paths: list[str]) -> str:
    return f"Did you mean {' or '.join(paths[:3])}?" if paths else ""


def _index() -> dict[str, list[str]]:
    """Return where each field name of the schema stands."""
    found: dict[str, list[str]] = {}

    def enter(prefix: str, annotation: Any) -> None:
        kind = bare(annotation)
        members = list(tags_of(kind).values()) or [kind]
        for model in filter(None, map(model_of, members)):
            if issubclass(model, RootModel | Length):
                continue
            for name, known in model.model_fields.items():
                places = found.setdefault(name, [])
                if prefix + name not in places:
                    places.append(prefix + name)
                enter(f"{prefix}{name}.", known.annotation)

    enter("", ExperimentConfig)
    for older in STEPS:
        found.setdefault(older, []).append(f"searcher.{older}")
    return found


def _either(first: Problem, second: Problem) -> Problem:
    """Join what two members of a union expected."""
    pattern = re.compile(r"must be (.+?)(, not .+)?\.$", re.DOTALL)
    one, other = pattern.match(first.what), pattern.match(second.what)
    if one is None or other is None or one[1] == other[1]:
        return first
    return Problem(first.where, f"must be {one[1]} or {other[1]}{one[2] or ''}.")


def _quoted_number(expected: str, given: Any) -> str:
    if expected in ("a whole number", "a number") and isinstance(given, str):
        try:
            float(given)
        except ValueError:
            return ""
        return f"Write {given.strip()} without quotes."
    return ""


def shown(value: Any) -> str:
    """Return a value as it may be repeated in a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return f"the text {value if len(value) <= 60 else value[:57] + '...'!r}"
    if isinstance(value, list):
        return "a list"
    return f"{{{', '.join(str(key) for key in value)}}}" if isinstance(value, dict) else type(value).__name__
