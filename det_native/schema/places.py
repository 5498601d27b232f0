"""Where in a configuration an error of pydantic's is: its location followed through the models."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, RootModel, Tag

from det_native.schema.config import ExperimentConfig


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


def locate(location: Sequence[str | int]) -> Place:
    """Follow a location of pydantic's through the models."""
    place = Place()
    for step in location:
        _follow(place, step)
    return place


def _follow(place: Place, step: str | int) -> None:
    annotation = bare(place.annotation)
    tags = tags_of(annotation)
    if tags:
        place.annotation = tags.get(str(step))
        place.owner = model_of(place.annotation)
        place.relatives = [model for tag, member in tags.items() if (model := model_of(member)) and tag != step]
        return
    origin = typing.get_origin(annotation)
    model = model_of(annotation)
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


def bare(annotation: Any) -> Any:
    """Return a type without its annotations and without ``| None``."""
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return bare(members[0])
    return annotation


def model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a type is, None if it is none."""
    found = bare(annotation)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def tags_of(annotation: Any) -> dict[str, Any]:
    """Return the members of a tagged union by tag; nothing for another type."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return {}
    found = {}
    for member in typing.get_args(annotation):
        if typing.get_origin(member) is typing.Annotated:
            for extra in typing.get_args(member)[1:]:
                if isinstance(extra, Tag):
                    found[extra.tag] = member
    return found
