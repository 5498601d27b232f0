"""Tables of names and values: plain, and drawn for the width of a terminal."""

from __future__ import annotations

import io
import shutil
import sys
import unicodedata
from collections.abc import Sequence

_SHORT = 25
_LEAST = 10


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows below a head, in columns two spaces apart; numbers stand to the right."""
    texts = [[plain(str(cell)) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [list(head), *texts]) for column in range(len(head))]
    numeric = _numeric(head, rows)
    lines = []
    for row in [list(head), *texts]:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def shown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table for standard output: drawn for the width of a terminal, else as ``table()`` has it.

    In a terminal a cell that is too wide goes on in the next line of its column, and nothing is left out. Where there
    is room for it, short columns and the first one, by which things are named, stay whole.
    """
    if not sys.stdout.isatty():
        return table(head, rows)
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    texts = [[plain(str(cell)) for cell in row] for row in (head, *rows)]
    width = shutil.get_terminal_size().columns
    whole = _whole([max(map(len, column)) for column in zip(*texts, strict=True)], width)
    for name, right, no_wrap in zip(texts[0], _numeric(head, rows), whole, strict=True):
        drawn.add_column(Text(name), justify="right" if right else "left", no_wrap=no_wrap, overflow="fold")
    for row in texts[1:]:
        drawn.add_row(*map(Text, row))
    text = io.StringIO()
    Console(file=text, width=width, force_terminal=True).print(drawn)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _whole(widths: Sequence[int], room: int) -> list[bool]:
    """Return which columns are not broken into lines: none, where that leaves too little for the others."""
    short = [number == 0 or width <= _SHORT for number, width in enumerate(widths)]
    taken = sum(2 + (width if whole else _LEAST) for width, whole in zip(widths, short, strict=True))
    return short if taken <= room else [False] * len(widths)


def _numeric(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[bool]:
    """Return which columns have numbers only."""
    return [all(isinstance(row[column], int | float) for row in rows) and rows != [] for column in range(len(head))]


def facts(pairs: Sequence[tuple[str, object]]) -> str:
    """Return names and values, one pair a line."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name.ljust(width)}  {plain(str(value))}" for name, value in pairs)


def plain(text: str) -> str:
    """Take out what would move a terminal's cursor: names come from users."""
    return "".join(character for character in text if unicodedata.category(character)[0] != "C")
