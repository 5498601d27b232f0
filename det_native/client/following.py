"""Printing logs, and going on as they grow."""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path
from typing import TextIO

import click

from det_native.client.log_filter import LogFilter
from det_native.client.log_options import LogOptions
from det_native.client.logs import shown
from det_native.client.source import Source
from det_native.errors import MasterError

_INTERVAL_SECONDS = 0.5
_PAGE = 1000


def print_file(path: Path, lines: int, *, follow: bool) -> None:
    """Print the end of a log file; it may be rotated while it is followed.

    Raises
    ------
    MasterError
        If there is no log.
    """
    if not path.exists():
        raise MasterError(f"There is no log {path}: no master was started there yet.")
    newest = lines
    while True:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in deque(file, maxlen=newest):
                click.echo(line, nl=False)
            while follow and _same_file(path, file):
                time.sleep(_INTERVAL_SECONDS)
                for line in file:
                    click.echo(line, nl=False)
        if not follow:
            return
        newest = _PAGE  # of the file that took its place


def _same_file(path: Path, file: TextIO) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:  # in the middle of being rotated
        return True


def print_logs(source: Source, experiment_id: int | str, trial_id: int | None, wanted: LogOptions) -> None:
    """Print what the trials of an experiment, or one trial, have written; follow until they have ended.

    Parameters
    ----------
    source : Source
    experiment_id : int or str
        Of no meaning where a trial is named whose number is known to its source.
    trial_id : int or None
    wanted : LogOptions

    Raises
    ------
    ArgumentError
        If it asks for a pattern that is no regular expression.
    """
    chosen = LogFilter(wanted.level, wanted.grep)
    after: dict[int, int] = {}
    first = True
    while True:
        # Asked before the lines, so that none is missed that came just before the end.
        ended, trials = _state(source, experiment_id, trial_id)
        new = [line for trial in trials for line in source.logs(trial, after.get(trial, 0))]
        after |= {line.trial_id: line.id for line in new}
        new.sort(key=lambda line: line.id)
        new = chosen.wanted(new)
        if first:
            new = new[-wanted.lines :] if wanted.lines else new[: wanted.head]
        for line in new:
            time_of = f"{line.time} " if wanted.times else ""
            click.echo(time_of + shown(line, of_several=len(trials) > 1))
        first = False
        if ended or not wanted.follow:
            return
        time.sleep(_INTERVAL_SECONDS)


def _state(source: Source, experiment_id: int | str, trial_id: int | None) -> tuple[bool, list[int]]:
    if trial_id is not None:
        return source.trial(trial_id).state.terminal, [trial_id]
    detail = source.experiment(experiment_id)
    return detail.state.terminal, [trial.id for trial in source.trials(experiment_id)]
