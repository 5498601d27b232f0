"""``det data``: the cluster's store of data."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from det_native.capture.secrets import is_environment_file, is_key_file
from det_native.client.connect import connect
from det_native.client.datasets import Bar, bring, files_to_bring
from det_native.client.output import Output, takes_output_options
from det_native.errors import ArgumentError
from det_native.schema import routes
from det_native.schema.datasets import DATA_NAME

_SECRETS_SHOWN = 5


@click.group()
def data() -> None:
    """Bring data to where the workers are, once; the code reads them there by the same name as here."""


@data.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", help="What it is called in `det data list`; the name of PATH by default.")
@click.option("-y", "--yes", is_flag=True, help="Send what looks like keys and passwords, too, and do not ask.")
@click.pass_context
def put(context: click.Context, path: Path, name: str | None, *, yes: bool) -> None:
    """Bring a file or folder there. It may be interrupted and run again: what has arrived is not sent twice.

    All of a folder is sent. Where it holds what looks like keys and passwords, you are asked first; without a terminal
    it is refused unless you say --yes.
    """
    path = path.expanduser().absolute()
    chosen = name or path.name
    if not re.fullmatch(DATA_NAME, chosen):
        raise click.UsageError(f"{chosen!r} is no name: give one of letters, digits, ., - and _ by --name")
    # What is wrong with it is told before a master is started for nothing.
    _tell_secrets([file.path for file in files_to_bring(path)], chosen, path, yes=yes)
    bar = Bar()
    session = connect(context.obj)
    try:
        info = bring(session, path, chosen, bar.tell)
    finally:
        bar.close()
    click.echo(f"{info.name}: {_counted(info.files)}, {info.size / 1e6:,.1f} MB, are in the store of {session.url}.")
    if info.gone:
        click.echo(
            f"Warning: {_counted(info.gone)} that had this name before {'is' if info.gone == 1 else 'are'} not in it "
            "any more; --name keeps both.",
            err=True,
        )


@data.command("list")
@takes_output_options
@click.pass_context
def list_data(context: click.Context, *, output: Output) -> None:
    """Show what is in the store."""
    found = connect(context.obj, start=False).call(routes.LIST_DATA)
    rows = [(one.name, one.files, f"{one.size / 1e6:,.1f} MB", one.created) for one in found]
    exact = [(one.name, one.files, one.size, one.created) for one in found]
    empty = "There are no data in the store; `det data put PATH` brings some."
    output.table(("name", "files", "size", "since"), rows, found, empty=empty, exact=exact)


@data.command()
@click.argument("name")
@click.pass_context
def remove(context: click.Context, name: str) -> None:
    """Remove the data of that NAME; refused while an experiment that goes on reads them."""
    connect(context.obj, start=False).call(routes.REMOVE_DATA, name=name)
    click.echo(f"{name} is removed.")


def _tell_secrets(files: Sequence[Path], name: str, root: Path, *, yes: bool) -> None:
    """Say which files look like keys and passwords, and ask whether to send them; refuse where nobody can be asked."""
    secrets = [file for file in files if is_environment_file(file.name) or is_key_file(file.name)]
    if not secrets:
        return
    names = [str(file.relative_to(root)) if file != root else file.name for file in secrets[:_SECRETS_SHOWN]]
    more = f" and {len(secrets) - len(names)} others" if len(secrets) > len(names) else ""
    shown = ", ".join(names)
    reason = f"{shown}{more}: the name is that of a secret. Everybody who can read the cluster's store could read it"
    if not yes and not sys.stdin.isatty():
        remedy = f"move it out of {root} (.detignore leaves nothing out here), or " if root.is_dir() else ""
        raise ArgumentError(
            f"{reason}. Nothing was sent, for nobody can be asked without a terminal: {remedy}--yes sends it all the "
            "same."
        )
    click.echo(f"Warning: {reason}; `det data remove {name}` removes it.", err=True)
    if not yes:
        click.confirm("Send it all the same?", abort=True, err=True)


def _counted(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"
