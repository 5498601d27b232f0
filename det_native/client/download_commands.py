"""``det experiment download`` and ``det trial download``: checkpoints into folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT, TRIAL, TrialName

if TYPE_CHECKING:
    from det_native.client.checkpoint import Checkpoint

_FOLDER = click.option(
    "-o",
    "--output-dir",
    "folder",
    default="checkpoints",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Each checkpoint gets a folder in it, by its uuid.",
)
_SORT = click.option("--sort-by", metavar="METRIC", help="By which one is best; the searcher's metric by default.")
_DIRECTION = click.option(
    "--smaller-is-better/--larger-is-better", "smaller", default=None, help="Which values of --sort-by are better."
)


@click.command("download")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option("--top-n", type=click.IntRange(1), default=1, show_default=True, help="So many, best first.")
@_SORT
@_DIRECTION
@_FOLDER
@takes_output_options
@click.pass_context
def download_experiment(
    context: click.Context,
    /,
    experiment_id: int,
    *,
    output: Output,
    top_n: int,
    sort_by: str | None,
    smaller: bool | None,
    folder: Path,
) -> None:
    """Copy the best checkpoints of an experiment, one of each trial, verified."""
    from det_native.client.catalog import source_of
    from det_native.client.handles import Experiment

    experiment = Experiment(source_of(context.obj), experiment_id)
    _together(sort_by, smaller)
    _download(experiment.top_n_checkpoints(top_n, sort_by, smaller), folder, output)


@click.command("download")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.option("--latest", is_flag=True, help="The one that was taken last.")
@click.option("--best", is_flag=True, help="The best one; so it is without any of the three.")
@click.option("--uuid", help="This one; the beginning is enough.")
@_SORT
@_DIRECTION
@_FOLDER
@takes_output_options
@click.pass_context
def download_trial(
    context: click.Context,
    /,
    trial_id: TrialName,
    *,
    output: Output,
    latest: bool,
    best: bool,
    uuid: str | None,
    sort_by: str | None,
    smaller: bool | None,
    folder: Path,
) -> None:
    """Copy a checkpoint of a trial, verified."""
    from det_native.client.trial import Trial

    trial = Trial(*trial_id.find(context.obj))
    _together(sort_by, smaller)
    chosen = trial.select_checkpoint(
        latest=latest, best=best or not (latest or uuid), uuid=uuid, sort_by=sort_by, smaller_is_better=smaller
    )
    _download([chosen], folder, output)


def _together(sort_by: str | None, smaller: bool | None) -> None:
    if (sort_by is None) != (smaller is None):
        raise click.UsageError("--sort-by goes with --smaller-is-better or --larger-is-better.")


def _download(checkpoints: Sequence[Checkpoint], folder: Path, output: Output) -> None:
    from det_native.schema.trial_names import trial_name

    rows = []
    for checkpoint in checkpoints:
        filled = checkpoint.download(folder / checkpoint.uuid)
        name = trial_name(checkpoint.experiment_id, checkpoint.facts.shown_trial)
        rows.append((checkpoint.uuid, name, checkpoint.batch, str(filled.absolute())))
    output.table(("uuid", "trial", "batch", "path"), rows)
