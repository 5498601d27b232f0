"""``--json`` and ``--csv`` of the commands that print tables: the same facts, for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
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

    @property
    def for_programs(self) -> bool:
        """Whether something else than a table for people is wanted."""
        return self.as_json or self.as_csv

    def table(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[object]],
        data: Any = None,
        *,
        empty: str = "",
        exact: Sequence[Sequence[object]] | None = None,
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
        exact : sequence of sequence, optional
            What ``--csv`` prints in place of `rows`, where people read numbers in short.
        """
        if self.as_json:
            print_json([dict(zip(head, row, strict=True)) for row in rows] if data is None else data)
        elif self.as_csv:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(head)
            writer.writerows([_cell(value) for value in row] for row in (rows if exact is None else exact))
            click.echo(text.getvalue(), nl=False)
        elif rows or not empty:
            from det_native.client.tables import shown_table

            click.echo(shown_table(head, rows))
        else:
            click.echo(empty)

    def records(
        self, records: Sequence[Mapping[str, Any]], shown: Callable[[str, Any], str] = lambda _, value: str(value)
    ) -> None:
        """Print dictionaries, a row for each; columns are all their names, in the order in which these come first.

        Parameters
        ----------
        shown : callable
            Makes a name and its value a cell that people read.
        """
        names = list(dict.fromkeys(name for record in records for name in record))
        exact = [[record.get(name) for name in names] for record in records]
        cells = [
            ["" if value is None else shown(name, value) for name, value in zip(names, row, strict=True)]
            for row in exact
        ]
        self.table(names, cells, records, exact=exact)

    def facts(self, pairs: Sequence[tuple[str, object]], data: Any = None) -> None:
        """Print names and values, a pair on each line; ``--json`` prints `data`, by default the pairs."""
        if self.as_json:
            print_json(dict(pairs) if data is None else data)
        elif self.as_csv:
            self.table(("name", "value"), pairs)
        else:
            from det_native.client.tables import facts

            click.echo(facts(pairs))


def _cell(value: object) -> object:
    """Return a value as a cell of CSV: what has parts is JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True) if isinstance(value, Mapping | list | tuple) else value


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
