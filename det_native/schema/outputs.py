"""What a training gives besides metrics and checkpoints: files that its code wrote, and media that it logged.

The contents lie in the blob store, by their SHA-256; a worker puts them there before it reports them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from det_native.schema.bodies import Answer, Sent
from det_native.schema.manifests import Sha256

#: Characters of the name of a file or a medium, the most.
NAME_LENGTH = 500
#: The note of a file, or folder, that was there when training began and that the training has deleted.
DELETED = "The training has deleted it."
#: Where the files of an Estimator belong that has a folder outside of the working directory.
TEMPORARY_MODEL_DIR = "model_dir"
#: Files, or media, of one report.
MOST_OF_REPORT = 500


#: By the format of a medium: its mime type. None of them is that of a page, so that no browser runs one.
MIME_TYPES = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
}


class MediaKind(StrEnum):
    """What a medium is: it decides how it is shown."""

    IMAGE = "image"
    TABLE = "table"
    TEXT = "text"
    HISTOGRAM = "histogram"
    #: What the training has printed and shown, a part of it; listed only where it is asked for.
    OUTPUT = "output"


class WrittenFile(Sent):
    """A file that the code of a trial has written, as it was after `batch` batches.

    Attributes
    ----------
    path : str
        Relative to the working directory, with ``/``.
    sha256 : str or None
        Of its content; None where the content was not kept, for the reason in `note`.
    size : int
        Bytes.
    """

    path: str = Field(min_length=1, max_length=NAME_LENGTH)
    sha256: Sha256 | None = None
    size: int = Field(ge=0)
    batch: int = Field(ge=0)
    note: str = Field(default="", max_length=2_000)


class ArtifactsReport(Sent):
    """Files that are new or have changed since the last such report, and paths that are not there any more."""

    type: Literal["artifacts"] = "artifacts"
    seq: int = Field(ge=1)
    files: list[WrittenFile] = Field(max_length=MOST_OF_REPORT)
    removed: list[str] = Field(default_factory=list, max_length=MOST_OF_REPORT)


class LoggedMedium(Sent):
    """A picture, table, text or histogram that the code of a trial has logged after `batch` batches.

    Attributes
    ----------
    number : int
        Counts what was logged under one name after one batch, from 0.
    format : str
        How the content is to be read: ``png``, ``jpeg``, ``svg``, ``gif``, ``webp``; ``json`` (tables and histograms);
        ``txt``. A table is ``{"columns": [name, ...], "rows": [[cell, ...], ...], "total": rows that there were}``:
        cells are numbers, texts, booleans or null, and numbers that are not finite are ``"NaN"``, ``"Infinity"`` or
        ``"-Infinity"``. A histogram is ``{"counts": [n, ...], "edges": [one more], "not_finite": values left out}``.
    width, height : int or None
        Of a picture in pixels; of a table its columns and rows.
    """

    batch: int = Field(ge=0)
    kind: MediaKind
    name: str = Field(min_length=1, max_length=NAME_LENGTH)
    number: int = Field(default=0, ge=0)
    sha256: Sha256
    size: int = Field(ge=0)
    format: str = Field(max_length=16)
    width: int | None = None
    height: int | None = None
    caption: str = Field(default="", max_length=2_000)


class CellItem(Answer):
    """A line or a display of the cell that waits for a training; nothing where it is left out.

    Attributes
    ----------
    data : dict
        What is displayed, by mime type.
    picture : str
        Hash of a picture among the media, shown with `data`.
    display_id : str
        By which a later one may take its place, where it says `update`.
    clear : bool
        What was shown before is taken away.
    """

    stream: Literal["", "stdout", "stderr"] = ""
    text: str = ""
    data: dict[str, Any] = Field(default_factory=dict)
    picture: Sha256 = ""
    display_id: str = ""
    update: bool = False
    clear: bool = False


class CellPart(Answer):
    """The content of a medium of the kind OUTPUT, whose name is the number of the first item."""

    items: list[CellItem]


class MediaReport(Sent):
    """Media in the order in which they were logged."""

    type: Literal["media"] = "media"
    seq: int = Field(ge=1)
    items: list[LoggedMedium] = Field(max_length=MOST_OF_REPORT)


class Artifact(Answer):
    """A file of a trial, as its code wrote it last."""

    trial_id: int
    path: str
    sha256: Sha256 | None = None
    size: int
    batch: int
    note: str = ""
    created: str


class Medium(Answer):
    """A medium of a trial; `created` is a time in UTC."""

    id: int
    trial_id: int
    batch: int
    kind: MediaKind
    name: str
    number: int = 0
    sha256: Sha256
    size: int
    format: str
    width: int | None = None
    height: int | None = None
    caption: str = ""
    created: str

    @classmethod
    def of(cls, item: LoggedMedium, number: int, trial_id: int = 0, created: str | None = None) -> Medium:
        """Return what a trial has logged with its number in the trial, as a reader gets it without a master."""
        moment = created or datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return cls(id=number, trial_id=trial_id, created=moment, **item.model_dump())
