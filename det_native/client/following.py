"""Printing logs, and going on as they grow."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TextIO

import click

from det_native.client.json_output import print_json
from det_native.client.log_filter import LogFilter
from det_native.client.log_options import LogOptions
from det_native.client.logs import shown
from det_native.client.source import Source
from det_native.client.waiting import patiently
from det_native.errors import MasterError
from det_native.schema import rest
from det_native.schema.rest import LogLine
from det_native.schema.states import TrialState

_INTERVAL_SECONDS = 0.5
_PAGE = 1000
#: Of a trial that has ended lines may still come for so long.
_LATE_SECONDS = 15.0


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


def print_logs(source: Source, experiment_id: int, trial_id: int | None, wanted: LogOptions) -> None:
    """Print what the trials of an experiment, or one trial, have written; follow until they have ended.

    A master that goes away while it is followed is waited for, as ``det experiment wait`` does.

    Parameters
    ----------
    experiment_id : int
        Of no meaning where a trial is named whose number is known to its source.

    Raises
    ------
    ArgumentError
        If it asks for a pattern that is no regular expression.
    """
    chosen = LogFilter(wanted.level, wanted.grep)
    reader = LogReader(source, experiment_id, trial_id)
    first = True
    with nullcontext() if trial_id is not None or not wanted.follow else told_that_it_goes_on(experiment_id):
        while True:
            new = reader.read() if first else patiently(source, reader.read, partial(click.echo, err=True))
            new = chosen.wanted(new)
            if first:
                new = new[-wanted.lines :] if wanted.lines else new[: wanted.head]
            for line in new:
                print_line(line, wanted, of_several=reader.of_several, numbers=reader.numbers)
            first = False
            if reader.ended or not wanted.follow:
                return
            time.sleep(_INTERVAL_SECONDS)


def print_line(
    line: LogLine, wanted: LogOptions, *, of_several: bool, numbers: Mapping[int, int] | None = None
) -> None:
    """Print one line of a log; `numbers` has those of the trials inside their experiment, by id."""
    if wanted.as_json:
        print_json(line)
    else:
        click.echo((f"{line.time} " if wanted.times else "") + shown(line, of_several=of_several, numbers=numbers))


@contextmanager
def told_that_it_goes_on(experiment_id: int) -> Iterator[None]:
    """Say after Ctrl-C that only the waiting has ended."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(
            f"\nExperiment {experiment_id} goes on: `det logs {experiment_id} -f` follows it, `det experiment stop "
            f"{experiment_id}` ends it.",
            err=True,
        )
        raise


class LogReader:
    """Reads what is new in the logs of trials.

    Of many trials it asks for those only that may have written something: not for those that have not begun, nor for
    those that ended a while ago. At the end it asks for all.
    """

    def __init__(self, source: Source, experiment_id: int, trial_id: int | None) -> None:
        self._source, self._experiment_id, self._trial_id = source, experiment_id, trial_id
        self._after: dict[int, int] = {}
        self._quiet_from: dict[int, float] = {}
        self._first = True
        self.ended = False
        self.of_several = False
        self.numbers: dict[int, int] = {}

    def read(self) -> list[LogLine]:
        """Return the lines that have come since the last time, in their order."""
        # Asked before the lines, so that none is missed that came just before the end.
        ended, trials = self._state()
        if not (ended or self._first):
            trials = [trial for trial in trials if self._may_write(trial)]
        new = [line for trial in trials for line in self._source.logs(trial.id, self._after.get(trial.id, 0))]
        new.sort(key=lambda line: line.id)
        self._after |= {line.trial_id: line.id for line in new}
        self.ended, self._first = ended, False
        return new

    def _may_write(self, trial: rest.Trial) -> bool:
        if not trial.state.terminal:
            self._quiet_from.pop(trial.id, None)
            return trial.state is not TrialState.QUEUED or trial.run_id is not None
        return time.monotonic() < self._quiet_from.setdefault(trial.id, time.monotonic() + _LATE_SECONDS)

    def _state(self) -> tuple[bool, list[rest.Trial]]:
        if self._trial_id is not None:
            trial = self._source.trial(self._trial_id)
            return trial.state.terminal, [trial]
        detail = self._source.experiment(self._experiment_id)
        trials = self._source.trials(self._experiment_id)
        self.of_several = len(trials) > 1
        self.numbers = {trial.id: trial.shown_number for trial in trials}
        return detail.state.terminal, list(trials)
