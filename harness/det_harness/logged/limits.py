"""How much a trial may log, by which names. What is more is left out, and told once: never an error of the training."""

from __future__ import annotations

import re
from typing import Any

from det_native.schema.outputs import NAME_LENGTH

#: Bytes of one medium. Larger pictures are made smaller.
MEDIUM_BYTES = 10_000_000
#: Pixels of one picture; larger ones are made smaller before they are encoded.
PICTURE_PIXELS = 16_000_000
#: Pictures of one grid.
GRID_PICTURES = 64
#: Media of a trial, and their bytes.
MEDIA = 5_000
MEDIA_BYTES = 1_000_000_000
#: Rows and columns of a table that are kept.
TABLE_ROWS = 10_000
TABLE_COLUMNS = 200
#: Characters of one cell of a table, and of a text.
CELL_CHARACTERS = 1_000
TEXT_CHARACTERS = 1_000_000
#: Bins of a histogram.
BINS = 1_000
#: Names of metrics that a trial logs.
NAMES = 1_000
#: Media that wait to be written, while the training goes on.
WAITING = 64
#: What a training prints and shows in the cell that waits: lines and displays, their bytes, characters of a line.
CELL_ITEMS = 10_000
CELL_BYTES = 20_000_000
CELL_LINE = 16_384
#: Seconds that the training waits for a disk that does not keep up, before a medium is left out.
WAITING_SECONDS = 10.0


class NotKeptError(Exception):
    """What cannot be kept of what was logged; its text says why, as the rest of a sentence without its full stop."""


def megabytes(size: float) -> str:
    """Return a number of bytes as it is said."""
    return f"{size / 1e6:,.1f} MB" if size < 1e8 else f"{size / 1e6:,.0f} MB"


# Controls, halves of surrogate pairs, and what turns the direction of text.
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def checked_name(given: Any) -> str:
    """Return the name under which something is kept: `given`, unless that has parts that no name should have.

    It is text without control characters; between slashes, which group names, nothing is empty, ``.`` or ``..``. It is
    empty where nothing is left.
    """
    try:
        text = given if type(given) is str else str(given)
    except Exception:  # noqa: BLE001 (the user's class may raise anything)
        return ""
    if text.isalnum() and len(text) <= NAME_LENGTH and text.isascii():
        return text
    text = _ODD.sub("_", text).replace("\\", "/")
    parts = (part.strip() for part in text.split("/"))
    return "/".join(part for part in parts if part not in ("", ".", ".."))[:NAME_LENGTH].strip("/ ")


def series_name(title: str) -> str:
    """Return the name of a series of pictures by the title of one: numbers differ from one to the next."""
    return re.sub(r"\d+(?:[.,]\d+)*", "#", title)
