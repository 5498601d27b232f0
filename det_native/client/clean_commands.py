"""``det clean``: the room that a master takes and no longer needs."""

from __future__ import annotations

from typing import Any, cast

import click

from det_native.client.connect import connect
from det_native.client.session import Session
from det_native.schema import routes
from det_native.schema.sizes import shown_size
from det_native.schema.space import CleanWanted

_RUNS = "Delete the folders of runs of experiments that have ended, with the files in their working directories?"


@click.command()
@click.option(
    "--output-older-than",
    "days",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="Delete the output, too, of experiments that ended so many days ago or more; their metrics stay.",
)
@click.option("--blobs", is_flag=True, help="Delete what was sent or written and no experiment needs any more.")
@click.option("--caches", is_flag=True, help="Delete cached datasets and checkpoints that nobody reads.")
@click.option("--runs", is_flag=True, help="Delete the folders of runs of experiments that have ended.")
@click.option("--all", "everything", is_flag=True, help="All of these, and what broken-off uploads have left.")
@click.option(
    "--older-than",
    type=click.FloatRange(0, 32_767),
    metavar="DAYS",
    help="Of these, only what has not been used for so many days.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def clean(
    context: click.Context,
    /,
    *,
    days: int | None,
    blobs: bool,
    caches: bool,
    runs: bool,
    everything: bool,
    older_than: float | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Give the room back that a master takes and does not use; it may be running.

    Without options the database is written anew without the room that it does not use. Models that are registered,
    checkpoints, and all that an experiment which goes on needs, stay in any case.
    """
    chosen = {"blobs": blobs or everything, "caches": caches or everything, "runs": runs or everything}
    kinds = [kind for kind, wanted in chosen.items() if wanted] + (["uploads"] if everything else [])
    if older_than is not None and not kinds:
        raise click.UsageError(
            "--older-than goes with --blobs, --caches, --runs or --all; for output there is --output-older-than."
        )
    session = connect(context.obj, start=False)
    if dry_run:
        if days is not None:
            raise click.UsageError("--dry-run does not count lines of output; leave out --output-older-than.")
        _clean(session, kinds or ["blobs", "caches", "runs", "uploads"], older_than, dry_run=True)
        return
    if days is not None and not yes:
        click.confirm(f"Delete what experiments printed that ended {days} days ago or more?", abort=True)
    if "runs" in kinds and not yes:
        click.confirm(_RUNS, abort=True)
    if kinds:
        _clean(session, kinds, older_than, dry_run=False)
    done = session.call(routes.CLEAN_DATABASE, days=days)
    if days is not None:
        click.echo(f"Deleted {done.lines} lines of output.")
    freed = max(done.before - done.after, 0)
    click.echo(f"The database takes {done.after / 1e6:.1f} MB, {freed / 1e6:.1f} MB less than before.")


def _clean(session: Session, kinds: list[str], older_than: float | None, *, dry_run: bool) -> None:
    body = CleanWanted.model_construct(kinds=cast(Any, kinds), older_than_days=older_than or 0.0, dry_run=dry_run)
    done = session.call(routes.CLEAN_SPACE, body)
    for kind in done.kinds:
        verb = "would go" if dry_run else "deleted"
        kept = f"; more is kept: {kind.kept}" if kind.kept else ""
        click.echo(f"{kind.kind}: {kind.count} {verb}, {shown_size(kind.bytes)}{kept}.")
    click.echo(f"{'That would free' if dry_run else 'Freed'} {shown_size(done.bytes)}.")
