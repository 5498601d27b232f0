"""``det experiment compare``, ``code`` and ``diff``: experiments side by side, and their programs."""

from __future__ import annotations

import click

from det_native.client.json_output import AS_JSON, print_json
from det_native.client.run_names import EXPERIMENT


@click.command("compare")
@click.argument("ids", metavar="ID ID...", type=EXPERIMENT, nargs=-1, required=True)
@AS_JSON
@click.pass_context
def compare(context: click.Context, ids: tuple[int, ...], *, as_json: bool) -> None:
    """Show experiments side by side: configuration, hyperparameters, metrics, packages and programs."""
    from det_native.client.comparing import compare as compared

    found = compared(ids, context.obj)
    if as_json:
        print_json(found.to_json())
        return
    click.echo(repr(found))


@click.command("code")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option("--cell", type=click.IntRange(0), metavar="N", help="Only this cell, by the number in its brackets.")
@click.option("--file", "path", metavar="PATH", help="Only this file, as it was sent.")
@AS_JSON
@click.pass_context
def code(context: click.Context, experiment_id: int, *, cell: int | None, path: str | None, as_json: bool) -> None:
    """Print the program of an experiment: the cells that it ran or its command, and the files that were sent along.

    Many or large files are listed with their sizes.
    """
    from det_native.client import printed_program
    from det_native.client.catalog import source_of

    if cell is not None and path is not None:
        raise click.UsageError("--cell and --file exclude each other.")
    source = source_of(context.obj)
    bundle = source.bundle(experiment_id)
    if path is not None:
        content = printed_program.file_of(bundle, source.blob, path, experiment_id)
        if as_json:
            print_json(printed_program.file_as_data(path, content))
        else:
            click.echo(content, nl=False)
    elif cell is not None:
        cells = printed_program.cells_numbered(bundle, cell, experiment_id)
        if as_json:
            print_json({"cells": cells})
        else:
            click.echo("\n\n".join(each["source"].rstrip() for each in cells))
    elif as_json:
        print_json(printed_program.as_data(bundle, source.blob))
    else:
        click.echo(printed_program.as_text(bundle, source.blob, experiment_id))


@click.command("diff")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("other_id", metavar="[ID]", type=EXPERIMENT, required=False)
@AS_JSON
@click.pass_context
def diff(context: click.Context, experiment_id: int, other_id: int | None, *, as_json: bool) -> None:
    """Show how configuration and program of the first experiment become those of the second.

    With one ID: how those of the experiment that it was forked from became its own.
    """
    from det_native.client.catalog import source_of
    from det_native.client.comparing import compare as compared
    from det_native.errors import ArgumentError

    first, second = experiment_id, other_id
    if second is None:
        origin = source_of(context.obj).experiment(experiment_id).forked_from
        if origin is None:
            raise ArgumentError(
                f"Experiment {experiment_id} was not forked from another; give a second ID to diff with."
            )
        first, second = origin, experiment_id
    found = compared([first, second], context.obj)
    if as_json:
        print_json({"config": found.config_diff(), "cells": found.cells[second]})
        return
    text = "\n".join(filter(None, (found.config_diff(), found.cells[second])))
    click.echo(text or f"Experiments {first} and {second} have the same configuration and program.")
