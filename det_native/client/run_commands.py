"""What the commands of ``det`` do with one experiment or trial."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from det_native.client import following
from det_native.client.arguments import SYSTEM
from det_native.client.artifacts import Artifacts
from det_native.client.catalog import source_of
from det_native.client.describing import (
    TRIALS_HEAD,
    description,
    exact_facts,
    exact_trial_facts,
    trial_description,
    trials_rows,
)
from det_native.client.history import rows_of
from det_native.client.json_output import print_json
from det_native.client.log_options import LogOptions
from det_native.client.media import media_of
from det_native.client.output import Output
from det_native.client.run_names import TrialName
from det_native.client.short_forms import format_value
from det_native.client.source import Source
from det_native.client.state_words import experiment_word
from det_native.client.transfer_bar import transfer_bar
from det_native.errors import ArgumentError
from det_native.schema.ranking import trials_best_first
from det_native.schema.states import ExperimentState, MetricKind
from det_native.schema.trial_names import trial_name

#: What ``describe --metrics`` tells of each trial, in this order.
_ALL_KINDS = (MetricKind.TRAINING, MetricKind.VALIDATION, MetricKind.LOGGED)


def describe_experiment(experiment_id: int, master: str | None, output: Output, *, with_metrics: bool = False) -> None:
    """Print facts of an experiment and its trials; or all metrics of all trials as rows."""
    source = source_of(master)
    known, trials = source.experiment(experiment_id), source.trials(experiment_id)
    if with_metrics:
        rows = metric_records(source, experiment_id)
    if output.as_json:
        told = known.model_dump(mode="json") | {"trials": [each.model_dump(mode="json") for each in trials]}
        print_json(told | ({"metrics": rows} if with_metrics else {}))
    elif output.as_csv and not with_metrics:
        output.facts(exact_facts(known))
    elif with_metrics:
        if not output.as_csv:
            click.echo(f"{description(known, trials)}\n")
        if rows or output.as_csv:
            output.records(rows, lambda _, value: format_value(value))
        else:
            click.echo(f"Experiment {experiment_id} has reported no metrics.")
    else:
        click.echo(description(known, trials))


def metric_records(source: Source, experiment_id: int) -> list[dict[str, Any]]:
    """Return all metrics of all trials of an experiment, a dictionary for each time that they were reported.

    ``trial`` is the number of the trial inside the experiment, ``trial_id`` its id, ``kind`` that of the metrics.
    """
    return [
        {"trial": trial.shown_number, "trial_id": trial.id, "kind": kind.value} | _beside(row)
        for trial in source.trials(experiment_id)
        for kind in _ALL_KINDS
        for row in rows_of(source, trial.id, kind)
    ]


def _beside(row: dict[str, Any]) -> dict[str, Any]:
    """Keep a metric that is called as a column of the table: it gets another name."""
    return {f"{name} (metric)" if name in ("trial_id", "kind") else name: value for name, value in row.items()}


def show_tensorboard(experiment_id: int, master: str | None) -> None:
    """Run TensorBoard over an experiment's event files until Ctrl-C."""
    from det_native.client.tensorboard import open_tensorboard

    opened = open_tensorboard(source_of(master), experiment_id)
    try:
        click.echo(f"TensorBoard of experiment {experiment_id}: {opened.url}  (Ctrl-C ends it)")
        opened.wait()
    except KeyboardInterrupt:
        return
    finally:
        opened.close()


def list_trials(experiment_id: int, master: str | None, output: Output) -> None:
    """Print the trials of an experiment, best first."""
    source = source_of(master)
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


def print_metrics(named: TrialName, kind: str | None, master: str | None, output: Output) -> None:
    """Print the rows of metrics of a trial."""
    source, trial = named.find(master)
    if kind is None:
        kind = source.experiment(trial.experiment_id).main_kind
    rows = rows_of(source, trial.id, kind)
    if rows or output.for_programs:
        output.records(rows, _system_cell if kind == SYSTEM else lambda _, value: format_value(value))
    else:
        click.echo(f"Trial {trial_name(trial.experiment_id, trial.shown_number)} has reported no {kind} metrics.")


def print_media(named: TrialName, master: str | None, output: Output, *, download: str | None = None) -> None:
    """Print what a trial has logged besides numbers, and write it to files in the folder `download`."""
    source, trial = named.find(master)
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


def _system_cell(name: str, value: Any) -> str:
    if name == "time":
        return datetime.fromtimestamp(value).astimezone().isoformat(" ", "seconds")[:19]
    return f"{value / 1e6:,.1f} MB" if "_bytes" in name else format_value(value)


def describe_trial(named: TrialName, master: str | None, output: Output) -> None:
    """Print facts of a trial and its checkpoints."""
    source, found = named.find(master)
    experiment = source.experiment(found.experiment_id)
    checkpoints = source.checkpoints(trial_id=found.id)
    if output.as_json:
        print_json({**found.model_dump(mode="json"), "checkpoints": checkpoints})
    elif output.as_csv:
        output.facts(exact_trial_facts(found, experiment))
    else:
        click.echo(trial_description(found, experiment, checkpoints))


def show_files(named: TrialName, paths: Sequence[str], folder: Path | None, master: str | None, output: Output) -> None:
    """Print the files that a trial has written, or copy them into a folder; only those of `paths`, if there are any."""
    source, trial = named.find(master)
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


def print_logs(
    experiment_id: int | None,
    named: TrialName | None,
    master: str | None,
    wanted: LogOptions,
) -> None:
    """Print the log of an experiment, or of a trial."""
    if named is not None:
        source, trial = named.find(master)
        following.print_logs(source, trial.experiment_id, trial.id, wanted)
    else:
        assert experiment_id is not None
        source = source_of(master)
        following.print_logs(source, experiment_id, None, wanted)


def change(experiment_id: int, verb: str, master: str | None, *, as_json: bool = False) -> None:
    """Pause, resume, stop or kill an experiment; one that has ended cannot be changed, whatever is asked.

    Raises
    ------
    ArgumentError
        If it has ended.
    RequestError
        If that cannot be: pausing a kernel's run.
    """
    source = source_of(master)
    known = source.experiment(experiment_id)
    if not known.state.terminal:
        _ask(source, experiment_id, verb)
        known = source.experiment(experiment_id)
        if as_json and (not known.state.terminal or known.state is ExperimentState.CANCELED):
            print_json(known)
            return
        if known.in_kernel and verb in ("stop", "kill") and not known.state.terminal:
            click.echo(f"Experiment {experiment_id} trains in a kernel: it ends after the batch under way.")
            return
        if not known.state.terminal or known.state is ExperimentState.CANCELED:
            click.echo(f"Experiment {experiment_id} is {experiment_word(known)}.")
            return
    raise ArgumentError(f"Experiment {experiment_id} has ended: it is {known.state}. There is nothing to {verb}.")


def _ask(source: Source, experiment_id: int, verb: str) -> None:
    getattr(source, verb)(experiment_id)
