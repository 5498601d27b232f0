"""Plain tables for the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows below a head, in columns two spaces apart; numbers stand to the right."""
    texts = [[plain(str(cell)) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [list(head), *texts]) for column in range(len(head))]
    numeric = [all(isinstance(row[column], int | float) for row in rows) and rows != [] for column in range(len(head))]
    lines = []
    for row in [list(head), *texts]:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def facts(pairs: Sequence[tuple[str, object]]) -> str:
    """Return names and values, one pair a line."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name.ljust(width)}  {plain(str(value))}" for name, value in pairs)


def plain(text: str) -> str:
    """Take out what would move a terminal's cursor: names come from users."""
    return "".join(character for character in text if unicodedata.category(character)[0] != "C")
