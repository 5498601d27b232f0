"""How experiments and trials are named on the command line: by their numbers, and ``local-3``, ``local-3/1``."""

from __future__ import annotations

import re
from typing import Any

import click

_EXPERIMENT = re.compile(r"[1-9][0-9]{0,17}|local-[1-9][0-9]{0,17}")
_TRIAL = re.compile(r"(?:(?P<local>local-[1-9][0-9]{0,17})/)?(?P<trial>[1-9][0-9]{0,17})")


class ExperimentId(click.ParamType[Any]):
    """A number on the master, or ``local-<n>``."""

    name = "experiment"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int | str:
        """Return the number or the name."""
        if not _EXPERIMENT.fullmatch(str(value)):
            self.fail(f"{value!r} is no experiment; write its number, or local-<n> for a run of this machine's own.")
        return int(value) if str(value).isdecimal() else str(value)


class TrialId(click.ParamType[Any]):
    """A number on the master, or ``local-<n>/<trial>``."""

    name = "trial"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str | None, int]:
        """Return the local run, None for the master's, and the number of the trial."""
        found = _TRIAL.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no trial; write its number, or local-<n>/<trial> for one of a local run.")
        return found["local"], int(found["trial"])


EXPERIMENT = ExperimentId()
TRIAL = TrialId()
