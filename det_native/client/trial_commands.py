"""``det trial``: one trial, of the master or of a run of this machine's own."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from det_native.client import following
from det_native.client.arguments import KINDS, SYSTEM
from det_native.client.artifacts import Artifacts
from det_native.client.catalog import source_of
from det_native.client.describing import TRIALS_HEAD, trial_description, trials_rows
from det_native.client.download_commands import download_trial
from det_native.client.history import rows_of
from det_native.client.json_output import print_json
from det_native.client.log_options import LogOptions, takes_log_options
from det_native.client.media import media_of
from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT, TRIAL, TrialName
from det_native.client.short_forms import format_value
from det_native.client.transfer_bar import transfer_bar
from det_native.schema.ranking import trials_best_first
from det_native.schema.trial_names import trial_name


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
    source, found = trial_id.find(context.obj)
    experiment = source.experiment(found.experiment_id)
    checkpoints = source.checkpoints(trial_id=found.id)
    if output.as_json:
        print_json({**found.model_dump(mode="json"), "checkpoints": checkpoints})
    elif output.as_csv:
        output.facts([*found.model_dump(mode="json").items()])
    else:
        click.echo(trial_description(found, experiment, checkpoints))


@trial.command("list")
@click.argument("experiment_id", metavar="EXPERIMENT", type=EXPERIMENT)
@takes_output_options
@click.pass_context
def list_trials(context: click.Context, experiment_id: int, output: Output) -> None:
    """Show the trials of an experiment, best first."""
    source = source_of(context.obj)
    experiment = source.experiment(experiment_id)
    found = trials_best_first(source.trials(experiment_id), smaller_is_better=experiment.smaller_is_better)
    head = [*TRIALS_HEAD, f"best {experiment.metric}".rstrip(), "hyperparameters"]
    if output.as_csv:
        exact = [
            (trial.shown_number, trial.id, trial.state.value, trial.batches, trial.best_validation, trial.hparams)
            for trial in found
        ]
        output.table(["trial", "id", *head[1:]], exact)
        return
    output.table(
        head,
        trials_rows(found, experiment),
        found,
        empty=f"Experiment {experiment_id} has no trials yet.",
    )


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
    source, trial = trial_id.find(context.obj)
    if kind is None:
        kind = source.experiment(trial.experiment_id).main_kind
    rows = rows_of(source, trial.id, kind)
    if rows or output.for_programs:
        output.records(rows, _system_cell if kind == SYSTEM else lambda _, value: format_value(value))
    else:
        click.echo(f"Trial {trial_name(trial.experiment_id, trial.shown_number)} has reported no {kind} metrics.")


@trial.command("media")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.option("--download", metavar="DIR", type=click.Path(file_okay=False), help="Write them to files in a folder.")
@takes_output_options
@click.pass_context
def media(context: click.Context, trial_id: TrialName, *, download: str | None, output: Output) -> None:
    """List the pictures, tables, texts and histograms that a trial has logged."""
    source, trial = trial_id.find(context.obj)
    name = trial_name(trial.experiment_id, trial.shown_number)
    found = media_of(source, trial.id)
    files = [str(medium.download(Path(download) / "")) for medium in found] if download is not None else []
    data: list[dict[str, Any]] = [medium.facts.model_dump(mode="json") for medium in found]
    cells: list[list[object]] = [
        [medium.batch, medium.kind, medium.name, f"{medium.facts.size / 1e3:,.1f} kB", medium.caption]
        for medium in found
    ]
    exact = [[*row[:3], medium.facts.size, row[4]] for row, medium in zip(cells, found, strict=True)]
    names = ["batch", "kind", "name", "size", "caption"]
    if files:
        names = [*names, "file"]
        data = [row | {"file": file} for row, file in zip(data, files, strict=True)]
        cells, exact = ([[*row, file] for row, file in zip(rows, files, strict=True)] for rows in (cells, exact))
    empty = f"Trial {name} has logged no pictures, tables, texts or histograms."
    output.table(names, cells, data, empty=empty, exact=exact)


@trial.command("logs")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@takes_log_options
@click.pass_context
def logs(context: click.Context, trial_id: TrialName, *, wanted: LogOptions) -> None:
    """Print what a trial has written."""
    source, trial = trial_id.find(context.obj)
    following.print_logs(source, trial.experiment_id, trial.id, wanted)


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
    source, trial = trial_id.find(context.obj)
    name = f"trial {trial_name(trial.experiment_id, trial.shown_number)}"
    found = Artifacts(source, name, source.artifacts(trial.id))
    if paths:
        found = Artifacts(source, name, [found[path].facts for path in paths])
    if folder is not None:
        with transfer_bar("downloading", sum(artifact.size for artifact in found)):
            copies = found.download(folder)
        if output.as_json:
            print_json([str(copy.absolute()) for copy in copies])
        elif output.as_csv:
            output.table(["file"], [[copy.absolute()] for copy in copies])
        else:
            click.echo(f"{len(copies)} file{'s' * (len(copies) != 1)} in {folder}.")
        return
    rows = [(artifact.path, artifact.size, artifact.batch, artifact.note) for artifact in found]
    data = [artifact.facts for artifact in found]
    output.table(("file", "bytes", "batch", "note"), rows, data, empty=f"T{name[1:]} has written no files.")


def _system_cell(name: str, value: Any) -> str:
    if name == "time":
        return datetime.fromtimestamp(value).astimezone().isoformat(" ", "seconds")[:19]
    return f"{value / 1e6:,.1f} MB" if "_bytes" in name else format_value(value)


trial.add_command(download_trial)
