"""``det experiment compare``, ``code`` and ``diff``: experiments side by side, and their programs."""

from __future__ import annotations

import click

from det_native.client.json_output import AS_JSON, print_json
from det_native.client.run_names import EXPERIMENT


@click.command("compare")
@click.argument("ids", metavar="ID ID...", type=EXPERIMENT, nargs=-1, required=True)
@AS_JSON
@click.pass_context
def compare(context: click.Context, ids: tuple[int | str, ...], *, as_json: bool) -> None:
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
@AS_JSON
@click.pass_context
def code(context: click.Context, experiment_id: int | str, *, cell: int | None, as_json: bool) -> None:
    """Print the program of an experiment: the cells that it ran, or the files of its folder."""
    from det_native.client.catalog import source_of
    from det_native.client.differences import CELL, code_of
    from det_native.errors import NotFoundError

    source = source_of(experiment_id, context.obj)
    bundle = source.bundle(experiment_id)
    if bundle.program.kind != "cells":
        if cell is not None:
            raise NotFoundError(f"Experiment {experiment_id} has no cells: its program is a folder.")
        files = code_of(bundle, source.blob)
        if as_json:
            print_json(files)
        else:
            click.echo("\n\n".join(f"{CELL} {path}\n{text.rstrip()}" for path, text in files.items()))
        return
    cells = [(bundle.program.title(index), each) for index, each in enumerate(bundle.program.cells)]
    if cell is not None:
        numbers = [each.number for _, each in cells]
        cells = [(title, each) for title, each in cells if each.number == cell]
        if not cells:
            known = ", ".join(str(number) for number in numbers if number is not None)
            raise NotFoundError(
                f"Experiment {experiment_id} has no cell {cell}; it has: {known or 'none with a number'}."
            )
    if as_json:
        print_json([{"number": each.number, "title": title, "source": each.source} for title, each in cells])
    elif cell is not None:
        click.echo("\n\n".join(each.source.rstrip() for _, each in cells))
    else:
        click.echo("\n\n".join(f"{CELL} {title}\n{each.source.rstrip()}" for title, each in cells))


@click.command("diff")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("other_id", metavar="[ID]", type=EXPERIMENT, required=False)
@AS_JSON
@click.pass_context
def diff(context: click.Context, experiment_id: int | str, other_id: int | str | None, *, as_json: bool) -> None:
    """Show how configuration and program of the first experiment become those of the second.

    With one ID: how those of the experiment that it was forked from became its own.
    """
    from det_native.client.catalog import is_local, source_of
    from det_native.client.comparing import compare as compared
    from det_native.errors import ArgumentError

    first, second = experiment_id, other_id
    if second is None:
        origin = source_of(experiment_id, context.obj).experiment(experiment_id).forked_from
        if origin is None:
            raise ArgumentError(
                f"Experiment {experiment_id} was not forked from another; give a second ID to diff with."
            )
        first, second = f"local-{origin}" if is_local(experiment_id) else origin, experiment_id
    found = compared([first, second], context.obj)
    if as_json:
        print_json({"config": found.config_diff(), "cells": found.cells[second]})
        return
    text = "\n".join(filter(None, (found.config_diff(), found.cells[second])))
    click.echo(text or f"Experiments {first} and {second} have the same configuration and program.")
