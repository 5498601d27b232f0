"""``det experiment archive``, ``delete``, ``fork``, ``continue`` and the other commands of an experiment's life."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT, TRIAL, TrialName
from det_native.errors import ArgumentError, DetError

if TYPE_CHECKING:
    from det_native.schema.rest import Experiment

_ID = click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
_SHOWN = ("id", "name", "state", "labels", "project", "archived")
_TEXTS = ("description", "notes")


def change_facts(master: str | None, experiment_id: int, output: Output, **change: Any) -> None:
    """Change what people write of an experiment, and print it."""
    from det_native.client.catalog import source_of
    from det_native.client.life import describe

    source = source_of(master)
    describe(source, experiment_id, **change)
    _print(source.experiment(experiment_id), output, changed=change)


def _print(found: Experiment, output: Output, *, changed: Mapping[str, object] | None = None) -> None:
    """Print an experiment, with those of its texts that were changed."""
    from det_native.client.describing import notes_text

    data = found.model_dump(mode="json")
    shown = {**data, "state": str(found.state), "labels": ", ".join(found.labels), "archived": _word(found.archived)}
    texts = [name for name in _TEXTS if name in (changed or {})]
    if not output.for_programs:
        for name in texts:
            text = " ".join(str(data[name]).split())
            if name == "notes" and text:
                text = f"{len(data[name]):,} characters"  # they are below the table
            shown[name] = text or "none any more"
    output.facts([(name, shown[name]) for name in (*_SHOWN, *texts)], data)
    if "notes" in texts and data["notes"] and not output.for_programs:
        click.echo(f"\n{notes_text(found)}")


def _word(true: bool) -> str:
    return "yes" if true else "no"


@click.command("archive")
@_ID
@takes_output_options
@click.pass_context
def archive(context: click.Context, experiment_id: int, *, output: Output) -> None:
    """Have an experiment that has ended not listed any more; nothing of it is lost."""
    change_facts(context.obj, experiment_id, output, archived=True)


@click.command("unarchive")
@_ID
@takes_output_options
@click.pass_context
def unarchive(context: click.Context, experiment_id: int, *, output: Output) -> None:
    """Have an archived experiment listed again."""
    change_facts(context.obj, experiment_id, output, archived=False)


@click.command("rename")
@_ID
@click.argument("name")
@takes_output_options
@click.pass_context
def rename(context: click.Context, experiment_id: int, name: str, *, output: Output) -> None:
    """Give an experiment another name."""
    change_facts(context.obj, experiment_id, output, name=name)


@click.group("label")
def label() -> None:
    """Add labels to an experiment, or remove them."""


@label.command("add")
@_ID
@click.argument("labels", metavar="LABEL...", nargs=-1, required=True)
@takes_output_options
@click.pass_context
def add_label(context: click.Context, experiment_id: int, labels: tuple[str, ...], *, output: Output) -> None:
    """Add labels; those that it has stay."""
    change_facts(context.obj, experiment_id, output, add_labels=list(labels))


@label.command("remove")
@_ID
@click.argument("labels", metavar="LABEL...", nargs=-1, required=True)
@takes_output_options
@click.pass_context
def remove_label(context: click.Context, experiment_id: int, labels: tuple[str, ...], *, output: Output) -> None:
    """Remove labels, as far as it has them."""
    change_facts(context.obj, experiment_id, output, remove_labels=list(labels))


@click.command("delete")
@click.argument("experiment_ids", metavar="ID...", type=EXPERIMENT, nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@takes_output_options
@click.pass_context
def delete(context: click.Context, experiment_ids: tuple[int, ...], *, yes: bool, output: Output) -> None:
    """Delete experiments for good, with checkpoints, metrics and output; what that frees is told first.

    The newest goes first, so that one goes before what it began with.
    """
    from det_native.client.catalog import source_of
    from det_native.client.life import deleted_text, deletion_text

    ids = sorted(set(experiment_ids), reverse=True)
    if not yes:
        for experiment_id in ids:
            click.echo(deletion_text(source_of(context.obj).deletion(experiment_id)), err=True)
        click.confirm(f"Delete {', '.join(map(str, reversed(ids)))}?", abort=True, err=True)
    done, failed = [], []
    for experiment_id in ids:
        try:
            done.append(source_of(context.obj).delete(experiment_id))
        except DetError as error:
            failed.append(error)
    if output.as_json or output.as_csv:
        rows = [(one.experiment_id, one.name, one.checkpoints, one.bytes) for one in done]
        data = [{**one.model_dump(mode="json"), "bytes": one.bytes} for one in done]
        output.table(("id", "name", "checkpoints", "bytes"), rows, data)
    else:
        for one in done:
            click.echo(deleted_text(one))
    for refused in failed[:-1]:
        click.echo(f"Error: {refused}", err=True)
    if failed:
        raise failed[-1]


@click.command("fork")
@_ID
@click.option("--hp", "hyperparameters", multiple=True, metavar="NAME=VALUE", help="Another hyperparameter: lr=0.01.")
@click.option("--config", "changes", multiple=True, metavar="FILE|PATH=VALUE", help="A file of changes, or a field.")
@click.option("--name", help="By default `Fork of ...`.")
@takes_output_options
@click.pass_context
def fork(
    context: click.Context,
    experiment_id: int,
    *,
    hyperparameters: tuple[str, ...],
    changes: tuple[str, ...],
    name: str | None,
    output: Output,
) -> None:
    """Submit the program of an experiment with another configuration."""
    from det_native.client import life
    from det_native.client.catalog import source_of

    values: dict[str, Any] = {}
    for each in hyperparameters:
        path, value = _pair(each, "--hp", "lr=0.01")
        _put(values, path, value)
    made = life.fork(source_of(context.obj), experiment_id, values, _changes(changes), name)
    _submitted(made, output)


@click.command("continue")
@_ID
@click.option("--epochs", type=click.IntRange(1), help="So many epochs more.")
@click.option("--batches", type=click.IntRange(1), help="So many batches more.")
@click.option("--records", type=click.IntRange(1), help="So many records more.")
@click.option("--checkpoint", metavar="UUID", help="Where it begins; the last checkpoint of the trial by default.")
@click.option(
    "--trial", type=TRIAL, metavar="TRIAL", help="Which trial: 7.2, or 2 for the 2 of 7.2; the best one by default."
)
@click.option("--name", help="By default `Continuation of ...`.")
@takes_output_options
@click.pass_context
def continue_(
    context: click.Context,
    experiment_id: int,
    *,
    epochs: int | None,
    batches: int | None,
    records: int | None,
    checkpoint: str | None,
    trial: TrialName | None,
    name: str | None,
    output: Output,
) -> None:
    """Submit an experiment that goes on where a training has ended, with weights and optimizers."""
    from det_native.client import life, selection
    from det_native.client.catalog import source_of

    source = source_of(context.obj)
    if checkpoint is not None:
        found = source.checkpoints(experiment_id=experiment_id)
        checkpoint = selection.checkpoint_named(checkpoint, found, owner=f"Experiment {experiment_id}").uuid
    lengths = {"epochs": epochs, "batches": batches, "records": records}
    number = None if trial is None else selection.number_inside(experiment_id, trial.experiment, trial.number)
    _submitted(life.continuation(source, experiment_id, lengths, checkpoint, number, name), output)


@click.command("move")
@_ID
@takes_output_options
@click.pass_context
def move_run(context: click.Context, experiment_id: int, *, output: Output) -> None:
    """Train the program of a kernel's run on the cluster."""
    import sys
    from contextlib import redirect_stdout

    from det_native.client.catalog import source_of
    from det_native.experimental.moving import move

    quiet = output.as_json or output.as_csv
    with redirect_stdout(sys.stderr if quiet else sys.stdout):
        moved = move(source_of(context.obj), experiment_id, "cluster", None, context.obj)
    if quiet:
        _print(moved.detail(), output)


def _submitted(made: Experiment, output: Output) -> None:
    if output.as_json or output.as_csv:
        _print(made, output)
    else:
        click.echo(f"Experiment {made.id}: {made.name} is submitted.")


def _changes(given: tuple[str, ...]) -> dict[str, Any]:
    """Return the changes of files and fields, later ones over earlier ones."""
    from det_native.schema.reading import read

    changes: dict[str, Any] = {}
    for each in given:
        if "=" in each and not Path(each).is_file():
            path, value = _pair(each, "--config", "max_restarts=0")
            _put(changes, path, value)
            continue
        reading = read(Path(each))
        for name, value in reading.raw.items():
            before = changes.get(name)
            both = isinstance(before, dict) and isinstance(value, dict)
            changes[name] = {**before, **value} if both and before is not None else value
    return changes


def _pair(text: str, option: str, example: str) -> tuple[list[str], Any]:
    import yaml

    path, separator, value = text.partition("=")
    if not separator or not all(path.split(".")):
        raise ArgumentError(f"{option} {text}: a name and a value are needed, such as {example}.")
    try:
        return path.split("."), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ArgumentError(f"{option} {text}: the value cannot be read: {str(error).splitlines()[0]}.") from error


def _put(values: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        inner = values.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ArgumentError(f"{'.'.join(path)}: {name} has a value already.")
        values = inner
    values[path[-1]] = value
