"""The capture report: what travels, how, how large, from which cell, and whether the master has it already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from det_native.client.short_forms import shortened
from det_native.display.environment import in_notebook
from det_native.display.html import table_html
from det_native.schema.reports import CaptureRow
from det_native.schema.sizes import shown_size

TITLES = ("what", "how", "size", "cell", "status", "note")
MAX_ROWS = 40
RUNS_AGAIN = "runs again"
# Of the table as text: characters of a line, and of a column where it is longer.
WIDTH = 100
MAX_TEXT = 24
MUTED = "opacity:.65"


def counted(number: int, what: str) -> str:
    """Return ``1 file`` or ``2 files``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class ReportView:
    """Shows the report in a notebook as one line that unfolds to a table, elsewhere as text.

    Parameters
    ----------
    warnings : sequence of str
        Sentences to show with it.
    sent : bool
        Whether it is known already what the master had.
    contents : str
        What belongs to it, counted; the number of rows by default.
    said : str
        What happens now, or what came of it.
    failed : bool
        Nothing came of it.
    """

    def __init__(
        self,
        rows: Sequence[CaptureRow],
        warnings: Sequence[str] = (),
        *,
        sent: bool = True,
        contents: str = "",
        said: str = "",
        failed: bool = False,
    ) -> None:
        self._rows = rows
        self._warnings = warnings
        self._sent = sent
        self._contents = contents
        self._said = said
        self._failed = failed

    @property
    def summary(self) -> str:
        """One line: how many things, and how much is new."""
        belonging = self._belonging()
        words = [counted(len(belonging), "item"), self._size()]
        if self._sent:
            words.append(f"{shown_size(sum(row.size for row in belonging if row.status == 'new'))} new")
        left_out = len(self._rows) - len(belonging)
        return ", ".join([*words, f"{left_out} left out"] if left_out else words)

    @property
    def headline(self) -> str:
        """One line: ``Sent 5 of 9 cells, 2 files, 48 kB``."""
        verb = "Not sent:" if self._failed else "Sent" if self._sent else "Sending"
        return f"{verb} {self._contents or counted(len(self._belonging()), 'item')}, {self._size()}"

    def __str__(self) -> str:
        return "\n".join([self.summary, *self._lines()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        text = "\n".join([self.headline, *filter(None, [self._said]), *self._lines()])
        return {"text/plain": text, "text/html": self._html()}

    def _belonging(self) -> list[CaptureRow]:
        return [row for row in self._rows if row.status != "not sent"]

    def _size(self) -> str:
        return shown_size(sum(row.size for row in self._belonging()))

    def _lines(self) -> list[str]:
        """The warnings, and the table as text."""
        lines = [f"Warning: {warning}" for warning in self._warnings]
        rows = [TITLES, *map(self._entries, self._rows[:MAX_ROWS])]
        entries = [[*(shortened(text, MAX_TEXT) for text in row[:-1]), row[-1]] for row in rows]
        widths = [max(len(entry[column]) for entry in entries) for column in range(len(TITLES) - 1)]
        indent = sum(widths) + 2 * len(widths)
        for *entry, note in entries:
            head = "".join(f"{text:{width}}  " for text, width in zip(entry, widths, strict=True))
            # A long note goes on below itself.
            below = wrap(note, max(WIDTH - indent, MAX_TEXT)) or [""]
            lines += [f"{head}{below[0]}".rstrip(), *(" " * indent + text for text in below[1:])]
        more = len(self._rows) - MAX_ROWS
        return [*lines, f"... and {more} more"] if more > 0 else lines

    def _html(self) -> str:
        table = table_html(TITLES, map(self._entries, self._rows[:MAX_ROWS]))
        more = len(self._rows) - MAX_ROWS
        rest = f"<div>... and {more} more</div>" if more > 0 else ""
        warnings = "".join(f"<div><b>Warning:</b> {escape(warning)}</div>" for warning in self._warnings)
        said = f' <span style="{MUTED}">{escape(self._said)}</span>' if self._said else ""
        link = f'<span style="{MUTED}">details</span>'
        summary = f'<summary style="cursor:pointer">{escape(self.headline)}: {link}{said}</summary>'
        return f'<div style="font-size:13px"><details>{summary}{table}{rest}</details>{warnings}</div>'

    def _entries(self, row: CaptureRow) -> tuple[str, ...]:
        return row.what, row.how, shown_size(row.size) if row.size else "", row.cell, self._status(row), row.note

    def _status(self, row: CaptureRow) -> str:
        if row.how == RUNS_AGAIN:
            return ""  # that a cell runs is no thing to send: its source is in a row of its own
        return row.status if self._sent or row.status == "not sent" else "to send"


class ShownReport:
    """A report that is on the screen; ``update`` says of each thing whether it was new, ``say`` what happens now."""

    def __init__(self, rows: list[CaptureRow], warnings: Sequence[str], contents: str) -> None:
        self._rows = rows  # the very list: what is added to it is stored with the experiment
        self._warnings = list(warnings)
        self._contents = contents
        self._sent = self._failed = False
        self._said = ""
        self._handle: Any = None
        if in_notebook():
            from IPython.display import display

            self._handle = display(self._view(), display_id=True)
        else:
            print(self._view())

    def add(self, rows: Iterable[CaptureRow], warnings: Sequence[str]) -> None:
        """Show what has been found out since: more rows, and warnings."""
        self._rows.extend(rows)
        self._warnings.extend(warnings)
        if self._handle is None:
            for warning in warnings:
                print(f"Warning: {warning}", flush=True)
        elif warnings:
            self._show()

    def update(self) -> None:
        """Show what the upload found: in a notebook in the same place, elsewhere in one more line."""
        self._sent = True
        if self._handle is None:
            print(f"Sent: {self._view().summary}.")
        else:
            self._show()

    def say(self, text: str) -> None:
        """Say what happens now: in a notebook behind the report, in place of what was said before."""
        self._said = text
        if self._handle is None:
            print(text, flush=True)
        else:
            self._show()

    def failed(self, text: str) -> None:
        """Say that nothing came of it."""
        self._failed = True
        self.say(text)

    def _show(self) -> None:
        view = self._view()
        self._handle.update(view)

    def _view(self) -> ReportView:
        return ReportView(
            self._rows,
            self._warnings,
            sent=self._sent,
            contents=self._contents,
            said=self._said,
            failed=self._failed,
        )


def show_report(rows: list[CaptureRow], warnings: Sequence[str] = (), *, contents: str = "") -> ShownReport:
    """Show the report where the user looks: under the cell, or in the terminal."""
    return ShownReport(rows, warnings, contents)
