"""How experiments and trials are named on the command line: ``7``, and ``7.2`` for its second trial."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import click

from det_native.client.arguments import renumbered_local
from det_native.client.catalog import source_of
from det_native.client.completion import complete_experiment, complete_trial
from det_native.client.selection import trial_with_number
from det_native.client.source import Source
from det_native.schema.rest import Trial

_NUMBER = "[1-9][0-9]{0,17}"
_TRIAL = re.compile(f"(?:(?P<experiment>{_NUMBER})\\.)?(?P<trial>{_NUMBER})")


@dataclass(frozen=True)
class TrialName:
    """A trial as it was named.

    Attributes
    ----------
    experiment : int or None
        Its experiment; None where the trial is named by its id.
    number : int
        Its number inside the experiment, or its id on the master.
    """

    experiment: int | None
    number: int

    def find(self, master: str | None) -> tuple[Source, Trial]:
        """Return the trial, and where it is known.

        Raises
        ------
        NotFoundError
            If there is no such trial or experiment.
        MasterUnreachableError
            If no master answers; none is started.
        """
        source = source_of(master)
        if self.experiment is None:
            return source, source.trial(self.number)
        trials = source.trials(self.experiment)
        return source, trial_with_number(self.number, trials, owner=f"Experiment {self.experiment}")


class ExperimentId(click.ParamType[Any]):
    """A number on the master."""

    name = "experiment"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        """Return the number."""
        if not re.fullmatch(_NUMBER, str(value)):
            self.fail(renumbered_local(str(value)) or f"{value!r} is not the number of an experiment.")
        return int(value)

    def shell_complete(
        self, context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Return the experiments whose names begin so."""
        return complete_experiment(context, parameter, incomplete)


class TrialId(click.ParamType[Any]):
    """``7.2`` for the second trial of experiment 7, or the id of a trial on the master."""

    name = "trial"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> TrialName:
        """Return what it names."""
        found = _TRIAL.fullmatch(str(value))
        if found is None:
            usual = f"{value!r} does not name a trial: write 7.2 for the second trial of experiment 7."
            self.fail(renumbered_local(str(value)) or usual)
        return TrialName(None if found["experiment"] is None else int(found["experiment"]), int(found["trial"]))

    def shell_complete(
        self, context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Return the trials whose names begin so."""
        return complete_trial(context, parameter, incomplete)


EXPERIMENT = ExperimentId()
TRIAL = TrialId()
