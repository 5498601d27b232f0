"""Bodies of the routes about the cluster's store of data: files by content, and named sets of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from det_native.schema.bodies import Answer, Sent
from det_native.schema.manifests import FileEntry, Sha256

DATA_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}$"
MOST_FILES = 100_000

Content = Annotated[Sha256, Field(pattern="^[0-9a-f]{64}$")]
#: No file system has larger files.
Size = Annotated[int, Field(ge=0, lt=2**63)]


class WantedFile(Sent):
    """A file that the store is to have."""

    sha256: Content
    size: Size


class WantedFiles(Sent):
    """Body of POST /data/missing."""

    files: list[WantedFile] = Field(max_length=MOST_FILES)


class MissingFile(Answer):
    """A file that the store lacks, and how many bytes of it have arrived."""

    sha256: Sha256
    offset: int


class MissingFiles(Answer):
    """Answer of POST /data/missing."""

    files: list[MissingFile]


class Sizes(Sent):
    """Body of POST /data/find: sizes of files, of which the store may have one with the same content."""

    sizes: list[Size] = Field(max_length=MOST_FILES)


class FoundFile(Answer):
    """A file of the store."""

    sha256: Sha256
    size: int


class FoundFiles(Answer):
    """Answer of POST /data/find: the store's files of these sizes."""

    files: list[FoundFile]


class DataSetCreate(Sent):
    """Body of POST /data: a name for files that the store has; one of that name is replaced."""

    name: str = Field(pattern=DATA_NAME)
    files: list[FileEntry] = Field(max_length=MOST_FILES)


class DataSetInfo(Answer):
    """A named set of files; `gone` are those of the set that had its name before, and are not in it any more."""

    name: str
    files: int
    size: int
    created: str
    gone: int = 0


class Received(Answer):
    """Answer of POST /data/contents: so many bytes have arrived."""

    size: int
