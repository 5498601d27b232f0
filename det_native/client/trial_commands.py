"""``det trial``: one trial, of the master or of a run of this machine's own."""

from __future__ import annotations

from pathlib import Path

import click

from det_native.client.arguments import KINDS
from det_native.client.log_options import LogOptions, takes_log_options
from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT, TRIAL, TrialName


@click.group()
def trial() -> None:
    """Look at a trial.

    ID is 7.2 for the second trial of experiment 7 or the id that the master
    has for a trial.
    """


@trial.command("describe")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@takes_output_options
@click.pass_context
def describe(context: click.Context, trial_id: TrialName, output: Output) -> None:
    """Show how a trial stands, and its checkpoints."""
    from det_native.client.run_commands import describe_trial

    describe_trial(trial_id, context.obj, output)


@trial.command("list")
@click.argument("experiment_id", metavar="EXPERIMENT", type=EXPERIMENT)
@takes_output_options
@click.pass_context
def list_trials(context: click.Context, experiment_id: int, output: Output) -> None:
    """Show the trials of an experiment, best first."""
    from det_native.client.run_commands import list_trials

    list_trials(experiment_id, context.obj, output)


@trial.command("metrics")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="Which: validation by default, training where nothing validates. logged: by det.log(). system: use of the "
    "machine.",
)
@takes_output_options
@click.pass_context
def metrics(context: click.Context, trial_id: TrialName, *, kind: str | None, output: Output) -> None:
    """Print the metrics of a trial, a row for each time that they were reported."""
    from det_native.client.run_commands import print_metrics

    print_metrics(trial_id, kind, context.obj, output)


@trial.command("media")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.option("--download", metavar="DIR", type=click.Path(file_okay=False), help="Write them to files in a folder.")
@takes_output_options
@click.pass_context
def media(context: click.Context, trial_id: TrialName, *, download: str | None, output: Output) -> None:
    """List the pictures, tables, texts and histograms that a trial has logged."""
    from det_native.client.run_commands import print_media

    print_media(trial_id, context.obj, output, download=download)


@trial.command("logs")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@takes_log_options
@click.pass_context
def logs(context: click.Context, trial_id: TrialName, *, wanted: LogOptions) -> None:
    """Print what a trial has written."""
    from det_native.client.run_commands import print_logs

    print_logs(None, trial_id, context.obj, wanted)


@trial.command("files")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--download",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Copy them into this folder, under their paths; never over a file with another content.",
)
@takes_output_options
@click.pass_context
def files(
    context: click.Context,
    trial_id: TrialName,
    paths: tuple[str, ...],
    *,
    folder: Path | None,
    output: Output,
) -> None:
    """Show the files that a trial has written, or those PATHs of them, or copy them."""
    from det_native.client.run_commands import show_files

    show_files(trial_id, paths, folder, context.obj, output)
