"""``det experiment create``, ``wait`` and ``config``."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
import yaml

from det_native.client import following
from det_native.client.catalog import source_of
from det_native.client.following import told_that_it_goes_on
from det_native.client.handles import Experiment
from det_native.client.json_output import AS_JSON, print_json
from det_native.client.log_options import LogOptions
from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT
from det_native.client.source import Source
from det_native.client.state_words import experiment_word
from det_native.errors import DetError, ExperimentFailedError, MasterUnreachableError
from det_native.schema.states import ExperimentState

#: The experiment that was waited for was stopped; or it goes on, and the time is over.
STOPPED, TIME_IS_OVER = 4, 5


@click.command("create")
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "-f", "--follow", "--follow-first-trial", "follow", is_flag=True, help="Print the logs, and wait for the end."
)
@click.option(
    "-t",
    "--test",
    "--test-mode",
    "test",
    is_flag=True,
    help="One minimal loop of training, validation and checkpointing only.",
)
@click.option("--local", is_flag=True, help="Train here, in this process, and wait for the end.")
@click.option("--config", "changes", multiple=True, metavar="PATH=VALUE", help="Set a field, such as max_restarts=0.")
@AS_JSON
@click.pass_context
def create(
    context: click.Context,
    config: Path,
    directory: Path,
    *,
    follow: bool,
    test: bool,
    local: bool,
    changes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Train what the configuration file CONFIG names as ``entrypoint`` in DIRECTORY: model_def:MyTrial, or a command.

    All of the directory is sent, but for what ``.detignore`` names. Code that imports ``determined`` runs as it is.
    """
    from det_native.experimental.directories import create_from_directory

    if as_json and (follow or local):
        raise click.UsageError("--json prints what was submitted; it does not go with --follow and --local.")
    # What is sent is told beside it: standard output is for what another program reads.
    with redirect_stdout(sys.stderr if as_json else sys.stdout):
        try:
            experiment = create_from_directory(
                config, directory, changes=changes, local=local, test=test, master_url=context.obj
            )
        except Exception as error:
            shown = None if isinstance(error, DetError) else _users_traceback(error, directory)
            if shown is None:
                raise
            click.echo(shown, err=True)
            context.exit(1)
    if as_json:
        print_json(experiment.detail())
        return
    here = local and experiment.source.trained_here
    try:
        click.echo(f"Experiment {experiment.id} {'has ended' if here else 'is submitted'}.")
    except MasterUnreachableError as error:
        if not here:
            raise
        click.echo(str(error))  # the training is over, and no master has it
        return
    if (follow or local) and not here:
        following.print_logs(experiment.source, experiment.id, None, LogOptions(follow=True))
    if follow or local:
        context.exit(_end(experiment.source, experiment.id))


@click.command("wait")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="No longer than this.")
@AS_JSON
@click.pass_context
def wait(context: click.Context, experiment_id: int, *, timeout: float | None, as_json: bool) -> None:
    """Wait for the end of an experiment.

    The exit code is 0 if it has completed, 1 if it has failed, 4 if it was stopped, 5 if it goes on after --timeout.
    """
    source = source_of(context.obj)
    try:
        with told_that_it_goes_on(experiment_id):
            Experiment(source, experiment_id).wait(timeout, show="none")
    except TimeoutError as error:
        click.echo(str(error), err=True)
        context.exit(TIME_IS_OVER)
    except ExperimentFailedError:
        if not as_json:
            raise
    if as_json:
        print_json(source.experiment(experiment_id))
    context.exit(_end(source, experiment_id, quiet=as_json))


@click.command("config")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@takes_output_options
@click.pass_context
def config(context: click.Context, experiment_id: int, *, output: Output) -> None:
    """Print the configuration of an experiment, complete, as YAML."""

    found: dict[str, Any] = source_of(context.obj).experiment(experiment_id).config
    if output.as_json:
        print_json(found)
        return
    if output.as_csv:
        output.table(("path", "value"), _leaves(found))
        return
    click.echo(yaml.safe_dump(found, sort_keys=False, allow_unicode=True), nl=False)


def _leaves(fields: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Return the fields of a configuration by their paths, ``searcher.metric``; what is empty stands for itself."""
    rows: list[tuple[str, Any]] = []
    for name, value in fields.items():
        path = f"{above}{name}"
        rows += _leaves(value, f"{path}.") if isinstance(value, Mapping) and value else [(path, value)]
    return rows


def _end(source: Source, experiment_id: int, *, quiet: bool = False) -> int:
    """Say how an experiment has ended; return the exit code."""
    found = source.experiment(experiment_id)
    if not quiet:
        click.echo(f"Experiment {experiment_id} is {experiment_word(found)}.")
    return {ExperimentState.COMPLETED: 0, ExperimentState.CANCELED: STOPPED}.get(found.state, 1)


def _users_traceback(error: BaseException, directory: Path) -> str | None:
    """Return an exception with its traceback, from the first line on that is in a directory.

    What led there, the command itself and the import system, says nothing to its reader. None if no line of the
    directory has a part in it.
    """
    inside = directory.resolve()
    frames = traceback.extract_tb(error.__traceback__)
    own = [_is_in(frame.filename, inside) for frame in frames]
    if not any(own) and not (isinstance(error, SyntaxError) and _is_in(error.filename, inside)):
        return None
    lines = traceback.format_list(frames[own.index(True) :]) if any(own) else []
    head = ["Traceback (most recent call last):\n"] if lines else []
    return "".join([*head, *lines, *traceback.format_exception_only(error)]).rstrip("\n")


def _is_in(filename: str | None, directory: Path) -> bool:
    return filename is not None and Path(filename).resolve().is_relative_to(directory)
