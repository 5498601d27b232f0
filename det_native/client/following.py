"""Printing logs, and going on as they grow."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from det_native.client.logs import shown
from det_native.client.session import Session
from det_native.errors import MasterError
from det_native.schema.rest import ExperimentDetail, LogLine, Trial

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


def print_logs(session: Session, number: int, *, is_trial: bool, lines: int | None, follow: bool) -> None:
    """Print what the trials of an experiment, or one trial, have written; follow until they have ended."""
    after: dict[int, int] = {}
    first = True
    while True:
        # Asked before the lines, so that none is missed that came just before the end.
        ended, trials = _state(session, number, is_trial=is_trial)
        new = [line for trial in trials for line in _new_lines(session, trial, after)]
        new.sort(key=lambda line: line.id)
        for line in new[-lines:] if first and lines else new:
            click.echo(shown(line, of_several=len(trials) > 1))
        first = False
        if ended or not follow:
            return
        time.sleep(_INTERVAL_SECONDS)


def _state(session: Session, number: int, *, is_trial: bool) -> tuple[bool, list[int]]:
    if is_trial:
        return Trial.model_validate(session.get(f"/trials/{number}")).state.terminal, [number]
    detail = ExperimentDetail.model_validate(session.get(f"/experiments/{number}"))
    trials = [Trial.model_validate(item).id for item in session.get(f"/experiments/{number}/trials")]
    return detail.state.terminal, trials


def _new_lines(session: Session, trial: int, after: dict[int, int]) -> Iterator[LogLine]:
    while True:
        page = [
            LogLine.model_validate(item)
            for item in session.get(f"/trials/{trial}/logs", after=after.get(trial, 0), limit=_PAGE)
        ]
        if page:
            after[trial] = page[-1].id
        yield from page
        if len(page) < _PAGE:
            return
