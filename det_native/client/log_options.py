"""The options of the commands that print logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click


@dataclass(frozen=True)
class LogOptions:
    """What is printed: the last `lines` or the first `head`, of a level, with a pattern, as it grows, as JSON."""

    lines: int | None = None
    follow: bool = False
    level: str | None = None
    grep: str | None = None
    times: bool = False
    head: int | None = None
    as_json: bool = False


_OPTIONS = (
    click.option("-f", "--follow", is_flag=True, help="Go on as more is written."),
    click.option(
        "-n",
        "--lines",
        "--tail",
        "lines",
        type=click.IntRange(1),
        help="The last lines only; of the master's log 200 by default.",
    ),
    click.option("--head", type=click.IntRange(1), help="The first lines only."),
    click.option(
        "--level",
        type=click.Choice(["debug", "info", "warning", "error", "critical"], case_sensitive=False),
        help="Lines of this level and above; tracebacks are errors, what says no level is info.",
    ),
    click.option("--grep", metavar="PATTERN", help="Lines in which this regular expression is found."),
    click.option("--times", is_flag=True, help="Each line with the time at which it was written (UTC)."),
    click.option("--json", "as_json", is_flag=True, help="Each line as an object of JSON, on a line of its own."),
)


def takes_log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, as its argument `wanted`."""

    @wraps(command)
    def called(
        *arguments: Any,
        follow: bool,
        lines: int | None,
        level: str,
        grep: str,
        times: bool,
        head: int | None,
        as_json: bool,
        **more: Any,
    ) -> None:
        if head is not None and (follow or lines is not None):
            raise click.UsageError("--head goes with neither --follow nor --lines.")
        command(*arguments, wanted=LogOptions(lines, follow, level, grep, times, head, as_json), **more)

    made: Callable[..., None] = called
    for option in reversed(_OPTIONS):
        made = option(made)
    return made
