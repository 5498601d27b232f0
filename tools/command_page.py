"""Write docs/command_line.md: the exit codes of ``det``, and a line for every command.

``.venv/bin/python tools/command_page.py`` writes it; the result is committed, and a test says when it is stale. With
``--check`` nothing is written, and the exit status is 1 if the page is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from det_native.client.command import cli

TARGET = Path(__file__).resolve().parents[1] / "docs" / "command_line.md"
TEXT = """\
# The command line

`det --help` lists the commands, `det COMMAND --help` the options of one. This page is made by `tools/command_page.py`;
[cluster.md](cluster.md) tells what the commands are used for.

## Exit codes

| code | meaning |
|---|---|
| 0 | done; of `det experiment wait`, `create -f` and `create --local`: the experiment has completed |
| 1 | an error, told in one sentence on standard error; of the three commands above: the experiment has failed |
| 2 | typed wrong: an option, a command or a name that cannot be; nothing was done |
| 3 | no master runs, and none is started for a command that only asks |
| 4 | the experiment that was waited for was stopped |
| 5 | it goes on, and `--timeout` is over |
| 130 | Ctrl-C, or a question was answered by no |

## What is printed

Tables fit the width of a terminal; into a file or a pipe each row is one line. `--json` prints the same facts for
programs, on one line; `--csv` as comma-separated values with a head, where numbers are exact and sizes are in bytes.
Where people read several facts in a row of `describe`, CSV has a row for each of them.
Errors, warnings and progress bars go to standard error, and bars are drawn in a terminal only.

`det experiment describe 7 --metrics --csv` prints all metrics of all trials: a row for each time that they were
reported, with the number of the trial, its id and the kind of metrics.

## Names

An experiment is named by its number, `7`, or `local-3` for a run of this machine's own. Trials are numbered from 1
inside their experiment: `7.2` is the second trial of experiment 7, `local-3/1` the first of that run. A plain number
names a trial by the id that the master has for it, as REST and JSON tell it; a checkpoint is named by its uuid.

## Completion

| shell | line |
|---|---|
| bash | `eval "$(det completion bash)"` in `~/.bashrc` |
| zsh | `eval "$(det completion zsh)"` in `~/.zshrc` |
| fish | `det completion fish > ~/.config/fish/completions/det.fish` |

Numbers of experiments and trials, uuids and states are completed, too, if a master runs and answers within a second.

## Commands

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
    said = " ".join((command.help or "").split("\n\n")[0].replace("\b", "").split())
    said = re.sub(r"``", "`", said)
    cells = (f"`{' '.join((typed, *pieces))}`", said, " ".join(options))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def text() -> str:
    """Return the page."""
    return TEXT + "\n".join(row(*leaf) for leaf in leaves(cli)) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check the page; return the exit status."""
    if "--check" in arguments:
        stale = not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text()
        if stale:
            print("docs/command_line.md is stale: .venv/bin/python tools/command_page.py", file=sys.stderr)
        return int(stale)
    TARGET.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
