"""Bodies of the REST interface for checkpoints that people keep, and for the model registry."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from det_native.schema.bodies import Answer, NumericAnswer, Sent
from det_native.schema.rest import Checkpoint

#: Stages that are usual; any other short text is taken, too.
STAGES = ("staging", "production", "archived")
#: Characters of JSON that metadata may have.
LONGEST_METADATA = 1_000_000
_NAME = re.compile(r"[^/\x00-\x1f\x7f]{1,200}")


def name_problem(name: object) -> str:
    """Return what is wrong with the name of a model; empty if it can be one."""
    if not isinstance(name, str) or not name:
        return f"The name of a model is a text such as 'digits', not {name!r}."
    if name != name.strip() or name in (".", "..") or not _NAME.fullmatch(name):
        return (
            f"{name!r} cannot be the name of a model: it has 1 to 200 characters, no slash or line break, and no space "
            "at either end."
        )
    return ""


def _a_name(name: str) -> str:
    if problem := name_problem(name):
        raise ValueError(problem)
    return name


def _short_enough(metadata: dict[str, Any]) -> dict[str, Any]:
    length = len(json.dumps(metadata))
    if length > LONGEST_METADATA:
        raise ValueError(f"metadata of {length:,} characters are too long; at most {LONGEST_METADATA:,} are taken")
    return metadata


ModelName = Annotated[str, AfterValidator(_a_name)]
Metadata = Annotated[dict[str, Any], AfterValidator(_short_enough)]
Key = Annotated[str, Field(max_length=1_000)]
Keys = Annotated[list[Key], Field(max_length=1_000)]
Label = Annotated[str, Field(min_length=1, max_length=200)]
Labels = Annotated[list[Label], Field(max_length=1_000)]
Stage = Annotated[str, Field(max_length=32)]
Text = Annotated[str, Field(max_length=10_000)]
Notes = Annotated[str, Field(max_length=1_000_000)]


class ModelSortBy(StrEnum):
    """What models are listed by."""

    UNSPECIFIED = ""
    NAME = "name"
    DESCRIPTION = "description"
    CREATION_TIME = "created"
    LAST_UPDATED_TIME = "updated"
    NUM_VERSIONS = "versions"
    #: There are none: in the order of their making.
    WORKSPACE = ""


class ModelOrderBy(StrEnum):
    """In which order."""

    ASCENDING = "asc"
    DESCENDING = "desc"
    #: Determined has both words.
    ASC = "asc"
    DESC = "desc"


#: Determined has one for each kind of list.
OrderBy = ModelOrderBy


class CheckpointChange(Sent):
    """Body of PATCH /checkpoints/{uuid}; what is left out stays as it is.

    `add_metadata` sets single values, `remove_metadata` removes them; a `pinned` checkpoint is never collected.
    """

    add_metadata: Metadata = Field(default_factory=dict)
    remove_metadata: Keys = Field(default_factory=list)
    pinned: bool | None = None


class CheckpointVerified(Answer):
    """Whether all files of a checkpoint lie in its storage as they were saved, and if not, what is wrong."""

    uuid: str
    ok: bool
    problem: str = ""
    files: int
    size: int


class ModelCreate(Sent):
    """Body of POST /models."""

    name: ModelName
    description: Text = ""
    notes: Notes = ""
    labels: Labels = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)


class Model(NumericAnswer):
    """A named model. `versions` counts those there are; `last_version` is the newest of them, None while none is."""

    name: str
    description: str
    notes: str
    labels: list[str]
    metadata: dict[str, Any]
    archived: bool
    versions: int
    last_version: int | None
    created: str
    updated: str


class ModelChange(Sent):
    """Body of PATCH /models/{name}; what is left out stays as it is."""

    name: ModelName | None = None
    description: Text | None = None
    notes: Notes | None = None
    labels: Labels | None = None
    add_labels: Labels = Field(default_factory=list)
    remove_labels: Labels = Field(default_factory=list)
    add_metadata: Metadata = Field(default_factory=dict)
    remove_metadata: Keys = Field(default_factory=list)
    archived: bool | None = None


class VersionCreate(Sent):
    """Body of POST /models/{name}/versions: a checkpoint becomes the next version."""

    uuid: str = Field(pattern=r"^[0-9A-Za-z-]{1,64}$")
    name: Text = ""
    description: Text = ""
    notes: Notes = ""
    labels: Labels = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)
    stage: Stage = ""


class ModelVersion(NumericAnswer):
    """A version of a model, with its checkpoint."""

    model: str
    version: int
    name: str
    description: str
    notes: str
    labels: list[str]
    metadata: dict[str, Any]
    stage: str
    checkpoint: Checkpoint
    created: str
    updated: str


class VersionChange(Sent):
    """Body of PATCH /models/{name}/versions/{version}; what is left out stays as it is."""

    name: Text | None = None
    description: Text | None = None
    notes: Notes | None = None
    labels: Labels | None = None
    add_labels: Labels = Field(default_factory=list)
    remove_labels: Labels = Field(default_factory=list)
    add_metadata: Metadata = Field(default_factory=dict)
    remove_metadata: Keys = Field(default_factory=list)
    stage: Stage | None = None
