"""``--json`` and ``--csv`` of the commands that print tables: the same facts, for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from det_native.client.json_output import print_json


@dataclass(frozen=True)
class Output:
    """How a command prints: a table for people, JSON, or CSV."""

    as_json: bool = False
    as_csv: bool = False

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[object]], data: Any = None, *, empty: str = ""
    ) -> None:
        """Print a table.

        Parameters
        ----------
        head : sequence of str
            Names of the columns.
        rows : sequence of sequence
            Cells, as people read them.
        data : optional
            What ``--json`` prints; by default an object for each row, by the names of the columns.
        empty : str
            What is said to people where there are no rows.
        """
        if self.as_json:
            print_json([dict(zip(head, row, strict=True)) for row in rows] if data is None else data)
        elif self.as_csv:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(head)
            writer.writerows(rows)
            click.echo(text.getvalue(), nl=False)
        elif rows or not empty:
            from det_native.client.tables import shown_table

            click.echo(shown_table(head, rows))
        else:
            click.echo(empty)

    def facts(self, pairs: Sequence[tuple[str, object]], data: Any = None) -> None:
        """Print names and values, a pair on each line; ``--json`` prints `data`, by default the pairs."""
        if self.as_json:
            print_json(dict(pairs) if data is None else data)
        elif self.as_csv:
            self.table(("name", "value"), pairs)
        else:
            from det_native.client.tables import facts

            click.echo(facts(pairs))


def takes_output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--json`` and ``--csv``, as its argument `output`."""

    @wraps(command)
    def called(*arguments: Any, as_json: bool, as_csv: bool, **more: Any) -> None:
        if as_json and as_csv:
            raise click.UsageError("--json and --csv exclude each other.")
        command(*arguments, output=Output(as_json, as_csv), **more)

    made: Callable[..., None] = called
    made = click.option("--csv", "as_csv", is_flag=True, help="Print it as CSV, with a head.")(made)
    return click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")(made)
