"""``det experiment list`` and ``search``: experiments found by what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from det_native.client.completion import complete_state
from det_native.client.output import Output, takes_output_options

_OPTIONS = (
    click.option("-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="So many at most."),
    click.option("--all", "everything", is_flag=True, help="All of them, however many."),
    click.option(
        "--state", metavar="STATE", shell_complete=complete_state, help="In this state, such as Running or Stopped."
    ),
    click.option("--name", metavar="TEXT", help="With this in the name."),
    click.option("--label", "labels", multiple=True, metavar="LABEL", help="With this label; several: with all."),
    click.option("--project", metavar="PATH", help="In this project, or a folder of it."),
    click.option("--metric", metavar="NAME", help="With a value of this metric."),
    click.option("--since", metavar="TIME", help="Created then or later: 2026-11-01, or an age such as 7d."),
    click.option("--archived", is_flag=True, help="Archived ones, too."),
    click.option(
        "--order-by",
        metavar="ORDER",
        help="id, name, created, duration, metric:<name> or hp:<name>; 'asc' or 'desc' after it.",
    ),
)


def _takes_filters(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("list")
@click.option("-q", "--query", metavar="QUERY", help="Such as 'val_loss < 0.3 and label:baseline' (docs/finding.md).")
@_takes_filters
@takes_output_options
@click.pass_context
def list_experiments(context: click.Context, /, **given: Any) -> None:
    """Show the experiments, newest first."""
    _list(context.obj, **given)


@click.command("search")
@click.argument("query")
@_takes_filters
@takes_output_options
@click.pass_context
def search(context: click.Context, /, **given: Any) -> None:
    """Show the experiments that QUERY asks for, such as 'val_loss < 0.3 and lr > 1e-3 and label:baseline'."""
    _list(context.obj, **given)


def _list(
    master: str | None,
    *,
    limit: int,
    everything: bool,
    labels: tuple[str, ...],
    order_by: str | None,
    output: Output,
    **filters: Any,
) -> None:
    from det_native.client.catalog import HEAD, find_experiments, list_rows
    from det_native.schema.query.filters import Filters
    from det_native.schema.query.ordering import parse_order

    asked = Filters(labels=labels, **filters)
    order = None if order_by is None else parse_order(order_by)
    found = find_experiments(master, None if everything else limit, asked, order)
    empty = "There are no experiments yet." if asked.all else "There are no such experiments."
    if found.missing is not None or found.unseen:
        empty = ""
    data = [each.model_dump(mode="json") for each in found.experiments]
    if found.experiments or empty or output.for_programs:
        output.table(
            HEAD, list_rows(found.experiments), data, empty=empty, exact=list_rows(found.experiments, exact=True)
        )
    if found.unseen:
        click.echo("No master runs here: its experiments are not shown. `det up` starts it.", err=True)
    for line in filter(None, (found.notice, found.rest_text("--all"))):
        click.echo(line, err=True)
    if found.missing is not None:
        raise found.missing
