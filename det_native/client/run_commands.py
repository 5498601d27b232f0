"""What the commands of ``det`` do with one experiment or trial, of the master or of this machine's own."""

from __future__ import annotations

import click

from det_native.client import following
from det_native.client.catalog import is_local, source_of
from det_native.client.describing import description, trial_description
from det_native.client.source import Source
from det_native.client.state_words import experiment_word
from det_native.errors import ArgumentError
from det_native.schema.states import ExperimentState


def describe_experiment(experiment_id: int | str, master: str | None) -> None:
    """Print facts of an experiment and its trials."""
    source = source_of(experiment_id, master)
    click.echo(description(source.experiment(experiment_id), source.trials(experiment_id), shown_id=experiment_id))


def describe_trial(trial: tuple[str | None, int], master: str | None) -> None:
    """Print facts of a trial and its checkpoints."""
    local, number = trial
    source = source_of(local or 0, master)
    found = source.trial(number)
    experiment = source.experiment(local or found.experiment_id)
    checkpoints = source.checkpoints(trial_id=number)
    click.echo(trial_description(found, experiment, checkpoints, shown_id=local or experiment.id))


def print_logs(
    experiment_id: int | str | None,
    trial: tuple[str | None, int] | None,
    master: str | None,
    *,
    lines: int | None,
    follow: bool,
) -> None:
    """Print the log of an experiment, or of a trial."""
    if trial is not None:
        local, number = trial
        following.print_logs(source_of(local or 0, master), local or 0, number, lines=lines, follow=follow)
    else:
        assert experiment_id is not None
        source = source_of(experiment_id, master)
        following.print_logs(source, experiment_id, None, lines=lines, follow=follow)


def change(experiment_id: int | str, verb: str, master: str | None) -> None:
    """Pause, resume, stop or kill an experiment; one that has ended cannot be changed, whatever is asked.

    Raises
    ------
    ArgumentError
        If it has ended.
    UnsupportedFeatureError
        If a local run cannot do that.
    """
    source = source_of(experiment_id, master)
    known = source.experiment(experiment_id)
    if not known.state.terminal:
        _ask(source, experiment_id, verb)
        known = source.experiment(experiment_id)
        if is_local(experiment_id) and not known.state.terminal:
            click.echo(f"Experiment {experiment_id} was interrupted: it ends after this batch, with a checkpoint.")
            return
        if not known.state.terminal or known.state is ExperimentState.CANCELED:
            click.echo(f"Experiment {experiment_id} is {experiment_word(known)}.")
            return
    raise ArgumentError(f"Experiment {experiment_id} has ended: it is {known.state}. There is nothing to {verb}.")


def _ask(source: Source, experiment_id: int | str, verb: str) -> None:
    getattr(source, verb)(experiment_id)
