"""``det space``: what takes the disk of the master, and what may be kept."""

from __future__ import annotations

import click

from det_native.client.connect import connect
from det_native.client.output import Output, takes_output_options
from det_native.client.session import Session
from det_native.errors import DetError
from det_native.schema import routes
from det_native.schema.sizes import parse_size, shown_size
from det_native.schema.space import Space, SpaceSettings

# `det status` must not wait for a look at each file of a large home.
_STATUS_AGE = 600


@click.command()
@click.option("--budget", metavar="SIZE", help='Let the home take so much, such as "50GB"; "none" for no limit.')
@click.option(
    "--keep-output",
    type=click.IntRange(-1, 32_767),
    metavar="DAYS",
    help="Keep the output of experiments so many days after their end, where they do not say; -1 for ever.",
)
@click.option(
    "--keep-caches", type=click.IntRange(-1, 32_767), metavar="DAYS", help="Keep unread caches so long; -1 for ever."
)
@takes_output_options
@click.pass_context
def space(
    context: click.Context, /, *, budget: str | None, keep_output: int | None, keep_caches: int | None, output: Output
) -> None:
    """Show what takes the disk of the master, by kind; or say what it may keep."""
    session = connect(context.obj, start=False)
    if budget is not None:
        set_budget(session, budget)
    changes = {
        name: None if days == -1 else days
        for name, days in (("log_retention_days", keep_output), ("cache_retention_days", keep_caches))
        if days is not None
    }
    if changes:
        _set(session, **changes)
    found = get_space(session)
    if output.as_json:
        output.facts([], data=found.model_dump(mode="json"))
        return
    if output.as_csv:
        output.table(
            ("kind", "bytes", "count", "part_of", "place"),
            [(use.kind, use.bytes, use.count, use.part_of or "", use.place) for use in found.uses],
        )
        return
    rows = [
        (
            f"  {use.kind}" if use.part_of else use.kind,
            shown_size(use.bytes) if use.bytes or not use.part_of else "",
            use.count or "",
            f"in the {use.part_of}" if use.part_of else use.place,
        )
        for use in found.uses
        if use.bytes or use.count
    ]
    output.table(("what", "takes", "how many", "where"), rows)
    click.echo(f"{found.home} takes {found.line}.")
    if found.waiting_line:
        click.echo(f"{found.waiting_line}.")
    if found.warning:
        click.echo(f"Warning: {found.warning}", err=True)


def get_space(session: Session, max_age: float = 0.0) -> Space:
    """Ask a master what takes its disk, as it was at most so many seconds ago."""
    return session.call(routes.GET_SPACE, max_age=max_age)


def set_budget(session: Session, text: str) -> None:
    """Have the master keep its home below a size; ``none`` for no limit."""
    size = None if text.strip().lower() == "none" else parse_size(text, "--budget")
    _set(session, budget=size)


def _set(session: Session, **changes: int | None) -> None:
    # The master says what is wrong with a value.
    session.call(routes.PUT_SPACE_SETTINGS, SpaceSettings.model_construct(None, **changes))


def space_line(session: Session) -> list[tuple[str, str]]:
    """Return the line of ``det status`` on the disk; none of a master that is older."""
    try:
        found = get_space(session, _STATUS_AGE)
    except DetError:
        return []
    more = (("deletions", found.waiting_line), ("warning", found.warning))
    return [("disk", found.line), *(line for line in more if line[1])]
