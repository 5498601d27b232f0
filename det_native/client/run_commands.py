"""What ``det`` does with one experiment: facts, logs, an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from det_native.client import following
from det_native.client.catalog import source_of
from det_native.client.completion import complete_experiment
from det_native.client.describing import description
from det_native.client.history import rows_of
from det_native.client.json_output import AS_JSON, print_json
from det_native.client.log_options import LogOptions, takes_log_options
from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT, TRIAL
from det_native.client.search_preview import preview_search
from det_native.client.short_forms import format_value
from det_native.client.source import Source
from det_native.client.state_words import experiment_word
from det_native.client.tensorboard import open_tensorboard
from det_native.errors import ArgumentError
from det_native.schema.home import Home
from det_native.schema.states import ExperimentState, MetricKind

#: What ``describe --metrics`` tells of each trial, in this order.
_ALL_KINDS = (MetricKind.TRAINING, MetricKind.VALIDATION, MetricKind.LOGGED)


@click.command()
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option("--metrics", "with_metrics", is_flag=True, help="All metrics of all trials, a row for each report.")
@takes_output_options
@click.pass_context
def describe(context: click.Context, experiment_id: int, *, with_metrics: bool, output: Output) -> None:
    """Show how an experiment stands, what it waits for, and its trials, best first."""
    source = source_of(context.obj)
    known, trials = source.experiment(experiment_id), source.trials(experiment_id)
    if with_metrics:
        rows = _metric_records(source, experiment_id)
    told = known.model_dump(mode="json")
    if output.as_json:
        told |= {"trials": [each.model_dump(mode="json") for each in trials]}
        print_json(told | ({"metrics": rows} if with_metrics else {}))
    elif output.as_csv and not with_metrics:
        output.facts([*told.items()])
    elif with_metrics:
        if not output.as_csv:
            click.echo(f"{description(known, trials)}\n")
        if rows or output.as_csv:
            output.records(rows, lambda _, value: format_value(value))
        else:
            click.echo(f"Experiment {experiment_id} has reported no metrics.")
    else:
        click.echo(description(known, trials))


def _metric_records(source: Source, experiment_id: int) -> list[dict[str, Any]]:
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


@click.command("logs")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@takes_log_options
@click.pass_context
def experiment_logs(context: click.Context, experiment_id: int, *, wanted: LogOptions) -> None:
    """Print what the trials of an experiment have written."""
    following.print_logs(source_of(context.obj), experiment_id, None, wanted)


@click.command()
@click.argument("target", default="master", shell_complete=complete_experiment)
@click.option("--trial", "is_trial", is_flag=True, help="TARGET is a trial: 7.2, or its id.")
@takes_log_options
@click.pass_context
def logs(context: click.Context, target: str, *, is_trial: bool, wanted: LogOptions) -> None:
    """Print the log of an experiment (its number), of a trial (7.2), or of this machine's master."""
    if target == "master":
        if context.obj:
            raise click.UsageError("the log of a master on another machine is read there")
        if wanted.level or wanted.grep or wanted.times or wanted.head or wanted.as_json:
            raise click.UsageError(
                "--level, --grep, --times, --head and --json are for the logs of experiments and trials."
            )
        following.print_file(Home.default().log, wanted.lines or 200, follow=wanted.follow)
    elif is_trial or "." in target:
        source, trial = TRIAL(target).find(context.obj)
        following.print_logs(source, trial.experiment_id, trial.id, wanted)
    else:
        experiment_id = EXPERIMENT(target)
        following.print_logs(source_of(context.obj), experiment_id, None, wanted)


@click.command("preview-search")
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@takes_output_options
def preview(config: Path, *, output: Output) -> None:
    """Tell what the search of the configuration file CONFIG will run, and what it costs; nothing runs."""
    found = preview_search(config)
    if output.for_programs:
        output.facts(list(found.to_json().items()), found.to_json())
    else:
        click.echo(found)


@click.command()
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.pass_context
def tensorboard(context: click.Context, experiment_id: int) -> None:
    """Open TensorBoard over the event files of an experiment's trials, until Ctrl-C."""
    opened = open_tensorboard(source_of(context.obj), experiment_id)
    try:
        click.echo(f"TensorBoard of experiment {experiment_id}: {opened.url}  (Ctrl-C ends it)")
        opened.wait()
    except KeyboardInterrupt:
        return
    finally:
        opened.close()


def _life_command(verb: str, text: str) -> click.Command:
    @click.command(verb, help=text)
    @click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
    @AS_JSON
    @click.pass_context
    def change(context: click.Context, experiment_id: int, *, as_json: bool) -> None:
        _change(source_of(context.obj), experiment_id, verb, as_json=as_json)

    return change


pause = _life_command("pause", "Have an experiment's workers checkpoint and end, and give its slots back.")
resume = _life_command("resume", "Go on with a paused experiment, from the checkpoints of its trials.")
stop = _life_command("stop", "End an experiment for good: its workers write a checkpoint first. It becomes Stopped.")
kill = _life_command("kill", "End an experiment now, without a checkpoint. It becomes Stopped.")


def _change(source: Source, experiment_id: int, verb: str, *, as_json: bool) -> None:
    """Pause, resume, stop or kill an experiment; one that has ended cannot be changed, whatever is asked."""
    known = source.experiment(experiment_id)
    if not known.state.terminal:
        getattr(source, verb)(experiment_id)
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
