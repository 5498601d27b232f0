"""Write docs/commands.md: a line for every command of ``det``, with its options. ``make docs`` runs it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from det_native.client.command import cli

TARGET = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
HEAD = """\
# Commands of det

Made by `make docs`. Exit codes, printing, names and completion are in [command_line.md](command_line.md).

| command | what it does | options |
|---|---|---|
"""


def leaves(group: click.Group, above: tuple[str, ...] = ("det",)) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with what is typed for it."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from leaves(command, (*above, name))
        else:
            yield " ".join((*above, name)), command


def row(typed: str, command: click.Command) -> str:
    """Return the line of a command."""
    pieces = [piece for piece in command.collect_usage_pieces(click.Context(command)) if piece != "[OPTIONS]"]
    options = [
        f"`{parameter.opts[-1]}`"
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    summary = " ".join((command.help or "").split("\n\n")[0].replace("\b", "").split())
    cells = (f"`{' '.join((typed, *pieces))}`", re.sub("``", "`", summary), " ".join(options))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main(arguments: list[str]) -> int:
    """Write the page, into the file that is named if one is; return the exit status."""
    target = Path(arguments[0]) if arguments else TARGET
    target.write_text(HEAD + "\n".join(row(*leaf) for leaf in leaves(cli)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
