"""``det model``: the model registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from det_native.client.output import Output, takes_output_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from det_native.client.http_source import HttpSource
    from det_native.client.models import Model, ModelVersion

_SORTS = ("name", "description", "created", "updated")
_VERSION = click.IntRange(1)


class _KeyValue(click.ParamType[Any]):
    """``NAME=VALUE``; the value is JSON where it can be read so, else text."""

    name = "name=value"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> tuple[str, Any]:
        """Return name and value."""
        if isinstance(value, tuple):
            return value
        name, separator, text = str(value).partition("=")
        if not separator or not name:
            self.fail(f"{value!r} is no note; write NAME=VALUE, such as data=v2.")
        try:
            return name, json.loads(text)
        except ValueError:
            return name, text


KEY_VALUE = _KeyValue()


@click.group()
def model() -> None:
    """Keep trained models by name: each version is a checkpoint of an experiment, which stays."""


@model.command("list")
@click.option("--name", default="", help="Only those with this text in their name.")
@click.option("--description", default="", help="Only those with this text in their description.")
@click.option("--label", default="", help="Only those with this label.")
@click.option("--all", "everything", is_flag=True, help="Those that are archived, too.")
@click.option("--sort-by", type=click.Choice(_SORTS), default="name", show_default=True)
@click.option("--descending", is_flag=True, help="The last one first.")
@takes_output_options
@click.pass_context
def list_models(
    context: click.Context,
    /,
    *,
    output: Output,
    name: str,
    description: str,
    label: str,
    everything: bool,
    sort_by: str,
    descending: bool,
) -> None:
    """Show the models."""
    from det_native.client.models import listing

    found = listing(
        _source(context),
        name=name,
        description=description,
        label=label,
        archived=None if everything else False,
        sort_by=sort_by,
        order_by="desc" if descending else "asc",
    )
    facts = [each._known for each in found]
    rows = [
        (one.name, one.versions, one.last_version or "", ", ".join(one.labels), one.updated, one.description)
        for one in facts
    ]
    head = ("name", "versions", "newest", "labels", "updated", "description")
    output.table(head, rows, [one.model_dump(mode="json") for one in facts], empty="There are no models.")


@model.command("create")
@click.argument("name")
@click.option("--description", default="")
@click.option("--label", "labels", multiple=True, help="Can be given several times.")
@click.option("--metadata", multiple=True, type=KEY_VALUE, metavar="NAME=VALUE", help="Can be given several times.")
@takes_output_options
@click.pass_context
def create(
    context: click.Context,
    /,
    name: str,
    *,
    output: Output,
    description: str,
    labels: tuple[str, ...],
    metadata: tuple[tuple[str, Any], ...],
) -> None:
    """Add a model."""
    from det_native.client.models import create as add

    _show(add(_source(context), name, description, dict(metadata), labels), output)


@model.command("describe")
@click.argument("name")
@click.option("--version", type=_VERSION, help="One of its versions.")
@takes_output_options
@click.pass_context
def describe(context: click.Context, /, name: str, *, output: Output, version: int | None) -> None:
    """Show what is known of a model, or of a version."""
    found = _model(context, name)
    _show(found if version is None else found.version(version), output)


@model.command("list-versions")
@click.argument("name")
@takes_output_options
@click.pass_context
def list_versions(context: click.Context, /, name: str, *, output: Output) -> None:
    """Show the versions of a model, newest first."""
    facts = [version._known for version in _model(context, name).versions]
    rows = [
        (one.version, one.stage, one.checkpoint.uuid, one.checkpoint.experiment_id, one.name, one.created)
        for one in facts
    ]
    head = ("version", "stage", "checkpoint", "experiment", "name", "created")
    data = [one.model_dump(mode="json") for one in facts]
    output.table(head, rows, data, empty=f"The model {name!r} has no versions yet.")


@model.command("register-version")
@click.argument("name")
@click.argument("uuid")
@click.option("--version-name", default="", help="A name of its own.")
@click.option("--description", default="")
@click.option("--stage", default="", help="Such as staging, production, archived; any short text.")
@click.option("--label", "labels", multiple=True, help="Can be given several times.")
@click.option("--metadata", multiple=True, type=KEY_VALUE, metavar="NAME=VALUE", help="Can be given several times.")
@takes_output_options
@click.pass_context
def register_version(
    context: click.Context,
    /,
    name: str,
    uuid: str,
    *,
    output: Output,
    version_name: str,
    description: str,
    stage: str,
    labels: tuple[str, ...],
    metadata: tuple[tuple[str, Any], ...],
) -> None:
    """Make the checkpoint UUID the next version of a model."""
    made = _model(context, name).register_version(
        uuid, version_name, description, stage=stage, labels=labels, metadata=dict(metadata)
    )
    _show(made, output)


@model.command("set")
@click.argument("name")
@click.option("--version", type=_VERSION, help="Change this version, not the model.")
@click.option("--name", "new_name", help="Another name.")
@click.option("--description")
@click.option("--notes", help="Markdown.")
@click.option("--stage", help="Of a version.")
@click.option("--label", "labels", multiple=True, help="Add a label. Can be given several times.")
@click.option("--remove-label", "unlabels", multiple=True, help="Remove a label.")
@click.option("--metadata", multiple=True, type=KEY_VALUE, metavar="NAME=VALUE", help="Note something by name.")
@click.option("--remove-metadata", "forget", multiple=True, metavar="NAME", help="Remove such a note.")
@takes_output_options
@click.pass_context
def change(
    context: click.Context,
    /,
    name: str,
    *,
    output: Output,
    version: int | None,
    labels: tuple[str, ...],
    unlabels: tuple[str, ...],
    metadata: tuple[tuple[str, Any], ...],
    forget: tuple[str, ...],
    **texts: str | None,
) -> None:
    """Change a model, or one of its versions."""
    found = _model(context, name)
    texts["name"] = texts.pop("new_name")
    changed: dict[str, Any] = {key: text for key, text in texts.items() if text is not None}
    lists = {"add_labels": labels, "remove_labels": unlabels, "remove_metadata": forget}
    changed |= {key: list(values) for key, values in lists.items() if values}
    if metadata:
        changed["add_metadata"] = dict(metadata)
    if not changed:
        raise click.UsageError("say what to change: --description, --stage, --label ...")
    if version is None and "stage" in changed:
        raise click.UsageError("--stage is of a version: give --version, too.")
    target: Model | ModelVersion = found if version is None else found.version(version)
    target._change(**changed)
    _show(target, output)


@model.command("archive")
@click.argument("name")
@click.pass_context
def archive(context: click.Context, name: str) -> None:
    """Have a model take no new versions, and be listed with --all only."""
    _model(context, name).archive()
    click.echo(f"The model {name!r} is archived.")


@model.command("unarchive")
@click.argument("name")
@click.pass_context
def unarchive(context: click.Context, name: str) -> None:
    """Have a model take versions again."""
    _model(context, name).unarchive()
    click.echo(f"The model {name!r} takes versions again.")


@model.command("delete")
@click.argument("name")
@click.option("--version", type=_VERSION, help="Delete this version only.")
@click.option("--with-versions", is_flag=True, help="Its versions, too.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def delete(context: click.Context, name: str, *, version: int | None, with_versions: bool, yes: bool) -> None:
    """Delete a model that has no versions, or a version. Checkpoints are as all others then."""
    found = _model(context, name)
    target = found if version is None else found.version(version)
    what = f"model {name!r}" if version is None else f"version {version} of the model {name!r}"
    if not yes:
        click.confirm(f"Delete the {what}?", abort=True)
    if version is None:
        found.delete(versions=with_versions)
    else:
        target.delete()
    click.echo(f"The {what} is deleted.")


@model.command("download")
@click.argument("name")
@click.option("--version", type=_VERSION, help="The newest by default.")
@click.option("-o", "--output", "folder", type=click.Path(file_okay=False, path_type=Path), help="Folder to fill.")
@click.pass_context
def download(context: click.Context, name: str, *, version: int | None, folder: Path | None) -> None:
    """Copy the files of a version into a folder of its own, verified."""
    filled = _version(context, name, version).download(folder)
    click.echo(f"The files are in {filled}.")


@model.command("export")
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--format", "format_", required=True, help="savedmodel, keras, torchscript, safetensors, onnx ...")
@click.option("--version", type=_VERSION, help="The newest by default.")
@click.option(
    "--example-inputs",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="One batch for formats that need it: a file of numpy's, .npy or .npz.",
)
@click.pass_context
def export(
    context: click.Context, name: str, path: Path, *, format_: str, version: int | None, example_inputs: Path | None
) -> None:
    """Write the model of a version in a format that other programs read."""
    made = _version(context, name, version).export(path, format_, example_inputs=_arrays(example_inputs))
    click.echo(f"The model is written to {made}.")


def _arrays(path: Path | None) -> Any:
    if path is None:
        return None
    import numpy as np

    found = np.load(path, allow_pickle=False)
    return found if isinstance(found, np.ndarray) else tuple(found[name] for name in found.files)


def _model(context: click.Context, name: str) -> Model:
    from det_native.client.models import get

    return get(_source(context), name)


def _source(context: click.Context) -> HttpSource:
    from det_native.client.connect import connect
    from det_native.client.http_source import HttpSource

    return HttpSource(connect(context.obj, start=False))


def _version(context: click.Context, name: str, version: int | None) -> ModelVersion:
    from det_native.errors import NotFoundError

    found = _model(context, name).get_version(version)
    if found is None:
        raise NotFoundError(f"The model {name!r} has no versions yet.")
    return found


def _show(target: Model | ModelVersion, output: Output) -> None:
    facts = target.to_json()
    output.facts(_pairs(facts), facts)


def _pairs(facts: dict[str, Any]) -> Sequence[tuple[str, object]]:
    checkpoint = facts.get("checkpoint")
    shown = {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in facts.items()}
    if checkpoint is not None:
        shown["checkpoint"] = checkpoint["uuid"]
        shown["metrics"] = json.dumps(checkpoint["metrics"], sort_keys=True)
    return [(key.replace("_", " "), "" if value is None else value) for key, value in shown.items()]
