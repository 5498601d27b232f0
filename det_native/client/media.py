"""What trials have logged besides numbers, as users hold it: pictures, tables, texts and histograms."""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, SupportsIndex, overload

from det_native.client.listing import Listing
from det_native.client.source import Source
from det_native.errors import ArgumentError, NotFoundError
from det_native.schema import rest
from det_native.schema.numbers import number
from det_native.schema.outputs import MIME_TYPES, MediaKind

# In the name of a file that is made of a name.
_ODD = re.compile(r"[^\w.,=#()\[\] -]+")
_LONGEST_STEM = 120


class Medium:
    """A picture, a table, a text or a histogram that a trial has logged.

    Parameters
    ----------
    source : Source
        Where it comes from.
    facts : rest.Medium
        Its facts.
    """

    #: It is what the trial has logged, whatever the notebook does: capture tells it by its identity.
    _det_known_by_identity = True

    def __init__(self, source: Source, facts: rest.Medium) -> None:
        self._source = source
        self._facts = facts
        self._content: bytes | None = None
        self._folder: Any = None

    @property
    def facts(self) -> rest.Medium:
        """Everything that is known of it."""
        return self._facts

    @property
    def name(self) -> str:
        """Name under which it was logged."""
        return self._facts.name

    @property
    def kind(self) -> str:
        """``"image"``, ``"table"``, ``"text"`` or ``"histogram"``."""
        return self._facts.kind.value

    @property
    def batch(self) -> int:
        """Batches that were done when it was logged."""
        return self._facts.batch

    @property
    def caption(self) -> str:
        """What was said of it; empty if nothing."""
        return self._facts.caption

    def content(self) -> bytes:
        """Return what is kept: a file of a picture, JSON, or text in UTF-8."""
        if self._content is None:
            self._content = self._source.medium_content(self._facts)
        return self._content

    def load(self) -> Any:
        """Return it as an object.

        Returns
        -------
        numpy.ndarray, pandas.DataFrame or dict of lists, str, or (counts, edges)
            Of a picture its pixels, of a table a DataFrame where pandas is installed, of a text the text, of a
            histogram two arrays.

        Raises
        ------
        ArgumentError
            Of a picture in SVG, which has no pixels.
        """
        if self._facts.kind is MediaKind.TEXT:
            return self.content().decode()
        if self._facts.kind is MediaKind.IMAGE:
            return self._pixels()
        found = json.loads(self.content())
        if self._facts.kind is MediaKind.TABLE:
            return _frame(found["columns"], found["rows"])
        import numpy as np

        return np.asarray(found["counts"]), np.asarray(found["edges"])

    def _pixels(self) -> Any:
        if self._facts.format == "svg":
            raise ArgumentError(f"The picture {self.name!r} is an SVG, which has no pixels; its file is medium.path.")
        import io

        import numpy as np
        from PIL import Image

        with Image.open(io.BytesIO(self.content())) as image:
            if image.mode == "P":  # numbers of a palette
                return np.asarray(image.convert("RGBA" if "transparency" in image.info else "RGB"))
            return np.asarray(image)

    @property
    def path(self) -> Path:
        """A file with it, in a temporary folder that stays as long as this object."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="det-medium-")
        path = Path(self._folder.name) / self.file_name
        if not path.exists():
            path.write_bytes(self.content())
        return path

    @property
    def file_name(self) -> str:
        """What a file with it is called: by name, batch and format."""
        stem = _ODD.sub("_", self.name).strip(" .")[:_LONGEST_STEM] or "medium"
        again = f"-{self._facts.number}" if self._facts.number else ""
        return f"{stem}-{self.batch}{again}.{self._facts.format}"

    def download(self, to: str | Path = ".") -> Path:
        """Write it to a file, never over another one.

        Parameters
        ----------
        to : str or Path
            A folder, or the path of the file.

        Returns
        -------
        Path
            The file.
        """
        target = Path(to).expanduser()
        if target.is_dir() or not target.suffix:
            target.mkdir(parents=True, exist_ok=True)
            target = target / self.file_name
        target.parent.mkdir(parents=True, exist_ok=True)
        content = self.content()
        for path in _free(target):
            try:
                with path.open("xb") as file:
                    file.write(content)
            except FileExistsError:
                if path.is_file() and path.read_bytes() == content:
                    return path
                continue
            return path
        raise NotFoundError(f"There is no free name for {target}.")

    def __repr__(self) -> str:
        facts = self._facts
        size = "" if facts.width is None or facts.height is None else f", {_size(facts)}"
        again = f" ({facts.number + 1})" if facts.number else ""
        return f"<{self.kind} {self.name!r}{again} after batch {self.batch}{size}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if self._facts.kind is MediaKind.TEXT:
            bundle["text/plain"] = f"{self!r}\n{self.content().decode()}"
        elif self._facts.kind is MediaKind.IMAGE:
            mime = MIME_TYPES[self._facts.format]
            content = self.content()
            bundle[mime] = content.decode() if self._facts.format == "svg" else base64.b64encode(content).decode()
        elif self._facts.kind is MediaKind.TABLE and hasattr(table := self.load(), "_repr_html_"):
            bundle["text/html"] = table._repr_html_()
        return bundle


class Media(Listing[Medium]):
    """What a trial has logged, in that order: a list; ``media["samples"]`` has those of one name."""

    @property
    def names(self) -> list[str]:
        """The names, in the order in which they were logged first."""
        return list(dict.fromkeys(medium.name for medium in self))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Medium: ...

    @overload
    def __getitem__(self, index: slice | str) -> Media: ...

    def __getitem__(self, index: SupportsIndex | slice | str) -> Medium | Media:
        if isinstance(index, str):
            found = Media(medium for medium in self if medium.name == index)
            if not found:
                known = ", ".join(map(repr, self.names)) or "nothing"
                raise ArgumentError(f"Nothing is logged as {index!r}; the trial has logged {known}.")
            return found
        return Media(super().__getitem__(index)) if isinstance(index, slice) else super().__getitem__(index)


def media_of(source: Source, trial_id: int) -> Media:
    """Return what a trial has logged."""
    return Media(Medium(source, facts) for facts in source.media(trial_id))


def _size(facts: rest.Medium) -> str:
    if facts.kind is MediaKind.TABLE:
        return f"{facts.height:,} rows"
    return f"{facts.width} x {facts.height} pixels"


def _free(target: Path) -> Iterable[Path]:
    yield target
    for again in range(2, 1_000):
        yield target.with_name(f"{target.stem} ({again}){target.suffix}")


def _frame(columns: list[str], rows: list[list[Any]]) -> Any:
    by_place = [_column([row[place] for row in rows]) for place in range(len(columns))]
    try:
        import pandas as pd
    except ModuleNotFoundError:
        return dict(zip(columns, by_place, strict=True))
    frame = pd.DataFrame(dict(enumerate(by_place)))
    frame.columns = pd.Index(columns)
    return frame


def _column(cells: list[Any]) -> list[Any]:
    """Return a column, with words for what is not finite as numbers where the others are numbers."""
    numbers = any(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)
    if not numbers or any(isinstance(cell, str) and number(cell) is None for cell in cells):
        return cells
    return [number(cell) if isinstance(cell, str) else cell for cell in cells]
