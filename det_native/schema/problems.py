"""pydantic's findings about a configuration in plain sentences: where, what is wrong, what would be right."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, RootModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from det_native.errors import Problem
from det_native.schema.config import ExperimentConfig
from det_native.schema.lengths import Length, Unit

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


@dataclass
class Place:
    """Where an error is, found by following pydantic's location through the models.

    Attributes
    ----------
    path : list
        Names and indices as a user would write them (the tags of unions, which pydantic adds, left out).
    owner : type
        The section that the last name is a field of.
    relatives : list of type
        The other members of a union that `owner` belongs to.
    annotation
        Type of the value at the place, None if it is not known.
    member : bool
        The error is about one member of a plain union.
    """

    path: list[str | int] = field(default_factory=list)
    owner: type[BaseModel] | None = ExperimentConfig
    relatives: list[type[BaseModel]] = field(default_factory=list)
    annotation: Any = ExperimentConfig
    member: bool = False

    @property
    def text(self) -> str:
        """The path as one word: ``bind_mounts[0].host_path``."""
        return dotted(self.path)


def dotted(path: Iterable[str | int]) -> str:
    """Return a path as one word."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def field_problems(error: ValidationError, written_as: Mapping[str, str] | None = None) -> list[Problem]:
    """Return the problems that pydantic found in single sections; what is between sections is left out.

    Parameters
    ----------
    error : ValidationError
        From validating an ``ExperimentConfig``.
    written_as : mapping, optional
        Older names that stand in the configuration, by the present path.
    """
    problems: dict[tuple[str, bool], Problem] = {}
    for details in error.errors(include_url=False):
        if details["type"] == "consistency":
            continue
        place = locate(details["loc"])
        problem = _problem(place, details)
        where = (written_as or {}).get(problem.where, problem.where)
        problem = Problem(where, problem.what, problem.remedy)
        key = (where, place.member)
        if place.member and key in problems:
            problem = _either(problems[key], problem)
        elif key in problems:
            key = (f"{where} {problem.what}", False)
        problems[key] = problem
    return list(problems.values())


def locate(location: Sequence[str | int]) -> Place:
    """Follow a location of pydantic's through the models."""
    place = Place()
    for step in location:
        _follow(place, step)
    return place


def _follow(place: Place, step: str | int) -> None:
    annotation = _bare(place.annotation)
    tags = _tags(annotation)
    if tags:
        place.annotation = tags.get(str(step))
        place.owner = _model(place.annotation)
        place.relatives = [model for tag, member in tags.items() if (model := _model(member)) and tag != step]
        return
    origin = typing.get_origin(annotation)
    model = _model(annotation)
    if model is not None and issubclass(model, RootModel):
        place.annotation = model.model_fields["root"].annotation
        _follow(place, step)
    elif model is not None:
        if place.owner is not model:
            place.owner, place.relatives = model, []
        place.path.append(step)
        known = model.model_fields.get(str(step))
        place.annotation = known.annotation if known else None
    elif origin is dict and step != "[key]":
        place.path.append(step)
        place.annotation = typing.get_args(annotation)[1]
    elif origin is list:
        place.path.append(step)
        place.annotation = typing.get_args(annotation)[0]
    else:
        place.member = True


def _bare(annotation: Any) -> Any:
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return _bare(members[0])
    return annotation


def _model(annotation: Any) -> type[BaseModel] | None:
    bare = _bare(annotation)
    return bare if isinstance(bare, type) and issubclass(bare, BaseModel) else None


def _tags(annotation: Any) -> dict[str, Any]:
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return {}
    found = {}
    for member in typing.get_args(annotation):
        if typing.get_origin(member) is typing.Annotated:
            for extra in typing.get_args(member)[1:]:
                if isinstance(extra, Tag):
                    found[extra.tag] = member
    return found


def _problem(place: Place, details: ErrorDetails) -> Problem:
    kind, given = details["type"], details["input"]
    context = details.get("ctx", {})
    name = str(place.path[-1]) if place.path else ""
    if kind == "missing":
        return Problem(place.text, "is missing.", _REMEDIES.get(name, ""))
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


def _rule(place: Place, text: str, given: Any) -> Problem:
    if _bare(place.annotation) is not Length:
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
    allowed = [str(value) for value in typing.get_args(_bare(place.annotation))]
    guess = _meant(given, allowed) if isinstance(given, str) else ""
    return Problem(place.text, f"must be one of {', '.join(allowed)}{said}.", guess)


def _unknown_kind(place: Place, context: Mapping[str, Any]) -> Problem:
    tag = str(context.get("tag", ""))
    tags = [found for found in _tags(_bare(place.annotation)) if found not in _SILENT_TAGS]
    where = dotted([*place.path, _TAG_FIELDS.get(place.text, "type")])
    remedy = _meant(tag, tags)
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
            f"is not a field of this {parent}, but of those with {tag} {' or '.join(owners)}.",
            f"Change {parent}.{tag} or leave {name} out.",
        )
    remedy = _meant(name, siblings, parent) or _elsewhere(name)
    if not remedy:
        remedy = f"Known fields{f' of {parent}' if parent else ''}: {', '.join(sorted(siblings))}."
    return Problem(place.text, "is not a field of the configuration.", remedy)


def _kinds(model: type[BaseModel]) -> list[str]:
    for name in ("name", "type"):
        if name in model.model_fields:
            return [str(value) for value in typing.get_args(model.model_fields[name].annotation)]
    return []


def _meant(word: str, known: Iterable[str], parent: str = "") -> str:
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"Did you mean {f'{parent}.' if parent else ''}{close[0]}?" if close else ""


def _elsewhere(name: str) -> str:
    places = _index()
    close = [name] if name in places else difflib.get_close_matches(name.lower(), list(places), n=1, cutoff=0.8)
    return f"Did you mean {' or '.join(places[close[0]][:3])}?" if close else ""


def _index() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}

    def enter(prefix: str, annotation: Any) -> None:
        bare = _bare(annotation)
        members = list(_tags(bare).values()) or [bare]
        for model in filter(None, map(_model, members)):
            if issubclass(model, RootModel | Length):
                continue
            for name, known in model.model_fields.items():
                places = found.setdefault(name, [])
                if prefix + name not in places:
                    places.append(prefix + name)
                enter(f"{prefix}{name}.", known.annotation)

    enter("", ExperimentConfig)
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
