"""``det checkpoint``: those of an experiment, and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from det_native.client.completion import complete_checkpoint
from det_native.client.json_output import AS_JSON, print_json
from det_native.client.model_commands import KEY_VALUE
from det_native.client.output import Output, takes_output_options
from det_native.client.run_names import EXPERIMENT

if TYPE_CHECKING:
    from det_native.client.source import Source
    from det_native.schema.rest import Checkpoint


@click.group()
def checkpoint() -> None:
    """List, download, keep and delete checkpoints.

    UUID is as ``det checkpoint list`` shows it.
    """


@checkpoint.command("list")
@click.argument("experiment_id", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option("--best", type=click.IntRange(1), help="The best so many only, by the searcher's metric, best first.")
@takes_output_options
@click.pass_context
def list_checkpoints(context: click.Context, experiment_id: int, *, best: int | None, output: Output) -> None:
    """Show the checkpoints of an experiment that exist, oldest first."""
    from det_native.client.catalog import source_of
    from det_native.client.selection import best_checkpoints
    from det_native.schema.numbers import shown_number
    from det_native.schema.states import CheckpointState
    from det_native.schema.trial_names import trial_name

    source = source_of(context.obj)
    experiment = source.experiment(experiment_id)
    found = [one for one in source.checkpoints(experiment_id=experiment_id) if one.state is CheckpointState.COMPLETED]
    if best is not None:
        owner = f"Experiment {experiment_id}"
        found = best_checkpoints(
            found, experiment, owner=owner, sort_by=None, smaller_is_better=None, limit=best, per_trial=False
        )
    rows, exact = [], []
    for one in found:
        value = one.metrics.get(experiment.metric)
        shown = shown_number(value) if isinstance(value, int | float) else "" if value is None else str(value)
        name = trial_name(experiment_id, one.shown_trial)
        rows.append((one.uuid, name, one.batch, shown, one.size))
        exact.append((one.uuid, name, one.batch, value, one.size))
    head = ("checkpoint", "trial", "batch", experiment.metric, "bytes")
    output.table(head, rows, found, empty=f"Experiment {experiment_id} has no checkpoints.", exact=exact)


@checkpoint.command("describe")
@click.argument("uuid", shell_complete=complete_checkpoint)
@takes_output_options
@click.pass_context
def describe(context: click.Context, uuid: str, *, output: Output) -> None:
    """Show what a checkpoint is of, and its files."""

    from det_native.client.tables import facts, shown_table
    from det_native.schema.trial_names import trial_name

    _, found = _find(uuid, context.obj)
    if output.as_json:
        print_json(found)
        return
    manifest = found.manifest
    pairs = [
        ("checkpoint", found.uuid),
        ("state", found.state.value),
        ("trial", f"{trial_name(found.experiment_id, found.shown_trial)}, batch {found.batch}"),
        ("metrics", json.dumps(found.metrics, sort_keys=True)),
        ("hyperparameters", json.dumps(manifest.hparams, sort_keys=True)),
        ("framework", f"{manifest.framework} {manifest.framework_version}"),
        ("created", found.created),
        ("location", found.location),
        ("bytes", found.size),
        ("pinned", "yes" if found.pinned else "no"),
        ("metadata", json.dumps(found.metadata, sort_keys=True)),
    ]
    if output.as_csv:
        output.facts(pairs)
        return
    files = shown_table(("file", "bytes"), [(file.path, file.size) for file in manifest.files])
    click.echo(f"{facts(pairs)}\n\n{files}")


@checkpoint.command("download")
@click.argument("uuid", shell_complete=complete_checkpoint)
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Folder; checkpoints/UUID by default."
)
@AS_JSON
@click.pass_context
def download(context: click.Context, uuid: str, *, output: Path | None, as_json: bool) -> None:
    """Copy the files of a checkpoint into a folder of its own, verified."""
    from det_native.client.checkpoint import Checkpoint as Handle
    from det_native.client.transfer_bar import transfer_bar

    source, found = _find(uuid, context.obj)
    with transfer_bar("downloading", found.size):
        folder = Handle(source, found).download(output)
    if as_json:
        print_json({"uuid": found.uuid, "path": str(folder.absolute())})
        return
    click.echo(f"The checkpoint's {len(found.manifest.files)} files are in {folder}.")


@checkpoint.command("verify")
@click.argument("uuid")
@takes_output_options
@click.pass_context
def verify(context: click.Context, /, uuid: str, *, output: Output) -> None:
    """Read all files of a checkpoint where they are stored. The exit code is 1 if one is missing or was changed."""
    source, found = _find(uuid, context.obj)
    told = source.verify_checkpoint(found)
    output.facts(
        [("checkpoint", uuid), ("whole", "yes" if told.ok else "no"), ("files", told.files), ("bytes", told.size)]
        + ([("problem", told.problem)] if told.problem else []),
        told.model_dump(mode="json"),
    )
    context.exit(0 if told.ok else 1)


@checkpoint.command("delete")
@click.argument("uuids", metavar="UUID...", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def delete(context: click.Context, uuids: tuple[str, ...], *, yes: bool) -> None:
    """Delete the files of checkpoints for good; refused for those that something needs."""
    from det_native.schema.states import CheckpointState

    found = [_find(uuid, context.obj) for uuid in uuids]
    if not yes:
        size = sum(one.size for _, one in found if one.state is CheckpointState.COMPLETED)
        click.confirm(f"Delete {len(found)} checkpoint{'s' * (len(found) > 1)} with {size:,} bytes?", abort=True)
    for source, one in found:
        source.delete_checkpoint(one.uuid)
        click.echo(f"Checkpoint {one.uuid} is deleted.")


@checkpoint.command("pin")
@click.argument("uuids", metavar="UUID...", nargs=-1, required=True)
@click.pass_context
def pin(context: click.Context, uuids: tuple[str, ...]) -> None:
    """Have checkpoints stay, however many the configuration keeps."""
    _set_pinned(context, uuids, pinned=True)


@checkpoint.command("unpin")
@click.argument("uuids", metavar="UUID...", nargs=-1, required=True)
@click.pass_context
def unpin(context: click.Context, uuids: tuple[str, ...]) -> None:
    """Have the configuration decide again whether checkpoints stay, which may delete them."""
    _set_pinned(context, uuids, pinned=False)


@checkpoint.command("metadata")
@click.argument("uuid")
@click.option("--set", "notes", multiple=True, type=KEY_VALUE, metavar="NAME=VALUE", help="Note something by name.")
@click.option("--remove", "gone", multiple=True, metavar="NAME", help="Remove such a note.")
@takes_output_options
@click.pass_context
def metadata(
    context: click.Context,
    /,
    uuid: str,
    *,
    output: Output,
    notes: tuple[tuple[str, Any], ...],
    gone: tuple[str, ...],
) -> None:
    """Show what was noted of a checkpoint, or change it."""
    from det_native.schema.registry import CheckpointChange

    source, found = _find(uuid, context.obj)
    if notes or gone:
        change = CheckpointChange(add_metadata=dict(notes), remove_metadata=list(gone))
        found = source.change_checkpoint(found.uuid, change)
    pairs = [(name, json.dumps(value)) for name, value in sorted(found.metadata.items())]
    output.table(("name", "value"), pairs, found.metadata, empty=f"Nothing was noted of checkpoint {uuid}.")


def _set_pinned(context: click.Context, uuids: tuple[str, ...], *, pinned: bool) -> None:
    from det_native.schema.registry import CheckpointChange

    for source, one in [_find(uuid, context.obj) for uuid in uuids]:
        source.change_checkpoint(one.uuid, CheckpointChange(pinned=pinned))
        click.echo(f"Checkpoint {one.uuid} is {'pinned' if pinned else 'not pinned any more'}.")


def _find(uuid: str, master: str | None) -> tuple[Source, Checkpoint]:
    """Return a checkpoint, and where it is known."""
    from det_native.client.catalog import source_of

    source = source_of(master)
    return source, source.checkpoint(uuid)
