"""How much a trial may log. What is more is left out, and told once: never an error of the training."""

from __future__ import annotations

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
