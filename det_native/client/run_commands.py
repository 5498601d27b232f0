"""What the commands of ``det`` do with one experiment or trial, of the master or of this machine's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from det_native.client import following
from det_native.client.arguments import SYSTEM
from det_native.client.artifacts import Artifacts
from det_native.client.catalog import is_local, source_of
from det_native.client.describing import description, trial_description, trials_table
from det_native.client.history import rows_of
from det_native.client.json_output import print_json
from det_native.client.log_options import LogOptions
from det_native.client.media import media_of
from det_native.client.short_forms import format_value
from det_native.client.source import Source
from det_native.client.state_words import experiment_word
from det_native.client.tables import shown_table
from det_native.errors import ArgumentError
from det_native.schema.ranking import trials_best_first
from det_native.schema.states import ExperimentState


def describe_experiment(experiment_id: int | str, master: str | None, *, as_json: bool = False) -> None:
    """Print facts of an experiment and its trials."""
    source = source_of(experiment_id, master)
    if as_json:
        known = source.experiment(experiment_id)
        trials = [each.model_dump(mode="json") for each in source.trials(experiment_id)]
        print_json({**known.model_dump(mode="json"), "id": experiment_id, "trials": trials})
        return
    click.echo(description(source.experiment(experiment_id), source.trials(experiment_id), shown_id=experiment_id))


def show_tensorboard(experiment_id: int | str, master: str | None) -> None:
    """Run TensorBoard over an experiment's event files until Ctrl-C."""
    from det_native.client.tensorboard import open_tensorboard

    opened = open_tensorboard(source_of(experiment_id, master), experiment_id)
    try:
        click.echo(f"TensorBoard of experiment {experiment_id}: {opened.url}  (Ctrl-C ends it)")
        opened.wait()
    except KeyboardInterrupt:
        return
    finally:
        opened.close()


def list_trials(experiment_id: int | str, master: str | None, *, as_json: bool = False) -> None:
    """Print the trials of an experiment, best first."""
    source = source_of(experiment_id, master)
    experiment = source.experiment(experiment_id)
    found = trials_best_first(source.trials(experiment_id), smaller_is_better=experiment.smaller_is_better)
    if as_json:
        print_json(found)
    elif found:
        click.echo(trials_table(found, experiment))
    else:
        click.echo(f"Experiment {experiment_id} has no trials yet.")


def print_metrics(
    trial: tuple[str | None, int], kind: str | None, master: str | None, *, as_json: bool = False
) -> None:
    """Print the rows of metrics of a trial."""
    local, number = trial
    source = source_of(local or 0, master)
    if kind is None:
        kind = source.experiment(local or source.trial(number).experiment_id).main_kind
    rows = rows_of(source, number, kind)
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"Trial {number} has reported no {kind} metrics.")
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    shown = _system_cell if kind == SYSTEM else lambda _, value: format_value(value)
    cells = [["" if row.get(name) is None else shown(name, row[name]) for name in names] for row in rows]
    click.echo(shown_table(names, cells))


def print_media(
    trial: tuple[str | None, int], master: str | None, *, download: str | None = None, as_json: bool = False
) -> None:
    """Print what a trial has logged besides numbers, and write it to files in the folder `download`."""
    local, number = trial
    found = media_of(source_of(local or 0, master), number)
    files = [str(medium.download(Path(download) / "")) for medium in found] if download is not None else []
    if as_json:
        rows = [medium.facts.model_dump(mode="json") for medium in found]
        print_json([row | {"file": file} for row, file in zip(rows, files, strict=True)] if files else rows)
        return
    if not found:
        click.echo(f"Trial {number} has logged no pictures, tables, texts or histograms.")
        return
    cells = [
        [str(medium.batch), medium.kind, medium.name, f"{medium.facts.size / 1e3:,.1f} kB", medium.caption]
        for medium in found
    ]
    names = ["batch", "kind", "name", "size", "caption"]
    if files:
        names, cells = [*names, "file"], [[*row, file] for row, file in zip(cells, files, strict=True)]
    click.echo(shown_table(names, cells))


def _system_cell(name: str, value: Any) -> str:
    if name == "time":
        return datetime.fromtimestamp(value).astimezone().isoformat(" ", "seconds")[:19]
    return f"{value / 1e6:,.1f} MB" if "_bytes" in name else format_value(value)


def describe_trial(trial: tuple[str | None, int], master: str | None, *, as_json: bool = False) -> None:
    """Print facts of a trial and its checkpoints."""
    local, number = trial
    source = source_of(local or 0, master)
    found = source.trial(number)
    experiment = source.experiment(local or found.experiment_id)
    checkpoints = source.checkpoints(trial_id=number)
    if as_json:
        print_json({**found.model_dump(mode="json"), "checkpoints": checkpoints})
        return
    click.echo(trial_description(found, experiment, checkpoints, shown_id=local or experiment.id))


def show_files(
    trial: tuple[str | None, int],
    paths: Sequence[str],
    folder: Path | None,
    master: str | None,
    *,
    as_json: bool = False,
) -> None:
    """Print the files that a trial has written, or copy them into a folder; only those of `paths`, if there are any."""
    local, number = trial
    source = source_of(local or 0, master)
    found = Artifacts(source, f"trial {number}", source.artifacts(number))
    if paths:
        found = Artifacts(source, f"trial {number}", [found[path].facts for path in paths])
    if folder is not None:
        copies = found.download(folder)
        if as_json:
            print_json([str(copy.absolute()) for copy in copies])
        else:
            click.echo(f"{len(copies)} file{'s' * (len(copies) != 1)} in {folder}.")
    elif as_json:
        print_json([artifact.facts for artifact in found])
    elif found:
        rows = [(artifact.path, artifact.size, artifact.batch, artifact.note) for artifact in found]
        click.echo(shown_table(("file", "bytes", "batch", "note"), rows))
    else:
        click.echo(f"Trial {number} has written no files.")


def print_logs(
    experiment_id: int | str | None,
    trial: tuple[str | None, int] | None,
    master: str | None,
    wanted: LogOptions,
) -> None:
    """Print the log of an experiment, or of a trial."""
    if trial is not None:
        local, number = trial
        following.print_logs(source_of(local or 0, master), local or 0, number, wanted)
    else:
        assert experiment_id is not None
        source = source_of(experiment_id, master)
        following.print_logs(source, experiment_id, None, wanted)


def change(experiment_id: int | str, verb: str, master: str | None, *, as_json: bool = False) -> None:
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
        if as_json and (not known.state.terminal or known.state is ExperimentState.CANCELED):
            print_json({**known.model_dump(mode="json"), "id": experiment_id})
            return
        if is_local(experiment_id) and not known.state.terminal:
            click.echo(f"Experiment {experiment_id} was interrupted: it ends after this batch, with a checkpoint.")
            return
        if not known.state.terminal or known.state is ExperimentState.CANCELED:
            click.echo(f"Experiment {experiment_id} is {experiment_word(known)}.")
            return
    raise ArgumentError(f"Experiment {experiment_id} has ended: it is {known.state}. There is nothing to {verb}.")


def _ask(source: Source, experiment_id: int | str, verb: str) -> None:
    getattr(source, verb)(experiment_id)
