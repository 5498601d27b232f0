"""Figures that the tests of a soak have noted: into the table of ``docs/reliability.md``.

Its argument is the file that ``DET_FIGURES`` named. Rows of what was not tried this time stay as they are.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "reliability.md"
BEGIN, END = "<!-- figures of make soak -->", "<!-- end of the figures -->"
COLUMNS = ("what", "date", "tries", "survived", "lost", "seconds to recover: median", "worst", "seed", "besides")
_OF_ITS_OWN = {"name", "date", "begun", "drawn", "tries", "survived", "lost", "seconds", "seed", "end"}


def row(name: str, notes: list[dict[str, Any]]) -> list[str]:
    """Return the row of what was tried, once or several times.

    Parameters
    ----------
    name
    notes
        What the tests have noted of it: at the beginning, and at the end with the figures.
    """
    begun = [note for note in notes if note.get("begun")]
    ended = [note for note in notes if not note.get("begun")]
    date = notes[-1].get("date") or time.strftime("%Y-%m-%d")
    seconds = [value for note in ended for value in note.get("seconds") or ()]
    seeds = dict.fromkeys(str(note["seed"]) for note in notes if note.get("seed") is not None)
    drawn, tries = _sum(ended, "drawn"), _sum(ended, "tries")
    besides = [f"of {drawn} drawn"] if drawn not in ("", tries) else []
    besides += [f"{key} {value}" for note in ended for key, value in note.items() if key not in _OF_ITS_OWN]
    ends = dict.fromkeys(note["end"] for note in ended if note.get("end"))
    if len(ended) < len(begun):
        ends["did not end"] = None
    besides[:0] = [f"**{end}**" for end in ends]
    median, worst = (f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}") if seconds else ("", "")
    figures = (tries, _sum(ended, "survived"), _sum(ended, "lost"))
    return [name, date, *figures, median, worst, ", ".join(seeds), "; ".join(besides)]


def _sum(notes: Iterable[dict[str, Any]], key: str) -> str:
    values = [note[key] for note in notes if key in note]
    return f"{sum(values):,}" if values else ""


def rows(lines: Iterable[str]) -> dict[str, list[str]]:
    """Return a row for each name of the notes, which are lines of JSON."""
    notes: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        note = json.loads(line)
        notes.setdefault(note["name"], []).append(note)
    return {name: row(name, noted) for name, noted in notes.items()}


def written(document: str, new: dict[str, list[str]]) -> str:
    """Return the document with new rows, and the old ones of which there is none."""
    before, _, rest = document.partition(BEGIN)
    marked, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"the document has no part between the lines {BEGIN} and {END}")
    lines = [line for line in marked.splitlines() if line.startswith("|")][2:]
    old = {cells[0]: cells for cells in ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)}
    table = [list(COLUMNS), ["---"] * len(COLUMNS), *(old | new).values()]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in table)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main(path: Path) -> None:
    """Write the figures into the document."""
    if not path.exists():
        sys.exit(f"There are no figures in {path}: no test has noted any.")
    with path.open(encoding="utf-8") as lines:
        document = written(DOCUMENT.read_text(encoding="utf-8"), rows(lines))
    DOCUMENT.write_text(document, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
