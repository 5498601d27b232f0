"""``det clean``: the room that the master's database takes and no longer needs."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--output-older-than",
    "days",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="Delete the output, too, of experiments that ended so many days ago or more; their metrics stay.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def clean(context: click.Context, *, days: int | None, yes: bool) -> None:
    """Give the room back that the master's database takes and does not use; it may be running."""
    from det_native.client.connect import connect
    from det_native.schema.rest import Cleaned

    session = connect(context.obj, start=False)
    if days is not None and not yes:
        click.confirm(f"Delete what experiments printed that ended {days} days ago or more?", abort=True)
    path = "/master/clean" if days is None else f"/master/clean?days={days}"
    done = Cleaned.model_validate(session.post(path))
    if days is not None:
        click.echo(f"Deleted {done.lines} lines of output.")
    freed = max(done.before - done.after, 0)
    click.echo(f"The database takes {done.after / 1e6:.1f} MB, {freed / 1e6:.1f} MB less than before.")
