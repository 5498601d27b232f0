"""The capture report: what travels, how, how large, from which cell, and whether the master has it already."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from det_native.display.environment import in_notebook
from det_native.display.html import table_html
from det_native.schema.rest import CaptureRow

TITLES = ("what", "how", "size", "cell", "status", "note")
MAX_ROWS = 40
RUNS_AGAIN = "runs again"


def format_size(size: int) -> str:
    """Return bytes in the largest unit that leaves at least 1 before the point (powers of 1000)."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 999.5:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} GB"


class ReportView:
    """Shows the report in a notebook as a table that folds, elsewhere as text.

    Parameters
    ----------
    rows : sequence of CaptureRow
    warnings : sequence of str
        Sentences to show with it.
    sent : bool
        Whether it is known already what the master had.
    """

    def __init__(self, rows: Sequence[CaptureRow], warnings: Sequence[str] = (), *, sent: bool = True) -> None:
        self._rows = rows
        self._warnings = warnings
        self._sent = sent

    @property
    def summary(self) -> str:
        """One line: how many things, and how much is new."""
        belonging = [row for row in self._rows if row.status != "not sent"]
        words = [f"{len(belonging)} item{'s' if len(belonging) != 1 else ''}"]
        words.append(format_size(sum(row.size for row in belonging)))
        if self._sent:
            words.append(f"{format_size(sum(row.size for row in belonging if row.status == 'new'))} new")
        left_out = len(self._rows) - len(belonging)
        return ", ".join([*words, f"{left_out} left out"] if left_out else words)

    def __str__(self) -> str:
        lines = [self.summary, *(f"Warning: {warning}" for warning in self._warnings)]
        entries = [TITLES, *map(self._entries, self._rows[:MAX_ROWS])]
        widths = [max(len(entry[column]) for entry in entries) for column in range(len(TITLES))]
        for entry in entries:
            lines.append("  ".join(text.ljust(width) for text, width in zip(entry, widths, strict=True)).rstrip())
        more = len(self._rows) - MAX_ROWS
        return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": str(self), "text/html": self._html()}

    def _html(self) -> str:
        table = table_html(TITLES, map(self._entries, self._rows[:MAX_ROWS]))
        more = len(self._rows) - MAX_ROWS
        rest = f"<div>... and {more} more</div>" if more > 0 else ""
        warnings = "".join(f"<div><b>Warning:</b> {escape(warning)}</div>" for warning in self._warnings)
        summary = f"<summary>{escape(self.summary)}</summary>"
        return f'<div style="font-size:13px"><details open>{summary}{table}{rest}</details>{warnings}</div>'

    def _entries(self, row: CaptureRow) -> tuple[str, ...]:
        return row.what, row.how, format_size(row.size) if row.size else "", row.cell, self._status(row), row.note

    def _status(self, row: CaptureRow) -> str:
        if row.how == RUNS_AGAIN:
            return ""  # that a cell runs is no thing to send: its source is in a row of its own
        return row.status if self._sent or row.status == "not sent" else "to send"


class ShownReport:
    """A report that is on the screen; ``update`` says of each thing whether it was new, ``say`` what happens now."""

    def __init__(self, rows: Sequence[CaptureRow], warnings: Sequence[str]) -> None:
        self._rows = rows
        self._warnings = warnings
        self._handle: Any = None
        self._line: Any = None
        if in_notebook():
            from IPython.display import display

            self._handle = display(ReportView(rows, warnings, sent=False), display_id=True)
        else:
            print(ReportView(rows, warnings, sent=False))

    def update(self) -> None:
        """Show what the upload found: in a notebook in the same place, elsewhere in one more line."""
        view = ReportView(self._rows, self._warnings, sent=True)
        if self._handle is not None:
            self._handle.update(view)
        else:
            print(f"Sent: {view.summary}.")

    def say(self, text: str) -> None:
        """Say below the report what happens now: in a notebook in place of what was said before."""
        if self._handle is None:
            print(text, flush=True)
            return
        data = {"text/plain": text}
        if self._line is None:
            from IPython.display import display

            self._line = display(data, raw=True, display_id=True)
        else:
            self._line.update(data, raw=True)


def show_report(rows: Sequence[CaptureRow], warnings: Sequence[str] = ()) -> ShownReport:
    """Show the report where the user looks: under the cell, or in the terminal."""
    return ShownReport(rows, warnings)
