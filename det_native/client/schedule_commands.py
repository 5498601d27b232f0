"""``det schedule``, ``det submit`` and ``det notebook submit``: experiments that are submitted now, later, or again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from det_native.client.output import Output, takes_output_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from det_native.schema.schedules import Schedule

_NUMBER = click.IntRange(min=1)


@click.group()
def schedule() -> None:
    """Look after experiments that are submitted at a time, or again and again."""


@schedule.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that submit nothing more.")
@takes_output_options
@click.pass_context
def list_schedules(context: click.Context, /, *, everything: bool, output: Output) -> None:
    """Show the schedules, newest first."""
    from det_native.client.connect import connect
    from det_native.schema import routes

    session = connect(context.obj, start=False)
    found = session.call(routes.LIST_SCHEDULES, all=everything)
    head = ("id", "name", "state", "when", "next", "submitted", "last")
    rows = [
        (one.id, one.name, one.state.lower(), one.timing.text, one.next or "", one.submitted, one.last_experiment or "")
        for one in found
    ]
    data = [one.model_dump(mode="json") for one in found]
    output.table(head, rows, data, empty="Nothing is scheduled. `det submit NOTEBOOK --every 1d` schedules something.")


@schedule.command("describe")
@click.argument("number", metavar="ID", type=_NUMBER)
@takes_output_options
@click.pass_context
def describe_schedule(context: click.Context, /, *, number: int, output: Output) -> None:
    """Show a schedule."""
    from det_native.client.connect import connect
    from det_native.schema import routes

    found = connect(context.obj, start=False).call(routes.GET_SCHEDULE, schedule_id=number)
    output.facts(_facts(found), found.model_dump(mode="json"))


def _facts(found: Schedule) -> list[tuple[str, object]]:
    return [
        ("schedule", f"{found.id}{f' ({found.name})' if found.name else ''}"),
        ("state", found.state.lower()),
        ("when", found.timing.text),
        ("next", found.next or "never"),
        ("submitted", found.submitted),
        ("last experiment", found.last_experiment or "none"),
        *([("note", found.error)] if found.error else []),
    ]


def _changed(context: click.Context, number: int, verb: str) -> None:
    from det_native.client.connect import connect
    from det_native.schema import routes

    verbs = {"cancel": routes.CANCEL_SCHEDULE, "pause": routes.PAUSE_SCHEDULE, "resume": routes.RESUME_SCHEDULE}
    found = connect(context.obj, start=False).call(verbs[verb], schedule_id=number)
    click.echo(f"Schedule {number} is {found.state.lower()}" + (f", next at {found.next}." if found.next else "."))


@schedule.command("cancel")
@click.argument("number", metavar="ID", type=_NUMBER)
@click.pass_context
def cancel_schedule(context: click.Context, /, *, number: int) -> None:
    """Have a schedule submit nothing more; what it has submitted goes on."""
    _changed(context, number, "cancel")


@schedule.command("pause")
@click.argument("number", metavar="ID", type=_NUMBER)
@click.pass_context
def pause_schedule(context: click.Context, /, *, number: int) -> None:
    """Have a schedule submit nothing until it is resumed."""
    _changed(context, number, "pause")


@schedule.command("resume")
@click.argument("number", metavar="ID", type=_NUMBER)
@click.pass_context
def resume_schedule(context: click.Context, /, *, number: int) -> None:
    """Have a paused schedule submit again, from its next time on."""
    _changed(context, number, "resume")


def _submit_options(command: Callable[..., None]) -> Callable[..., None]:
    options = (
        click.argument("path", metavar="NOTEBOOK", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
        click.option("--at", metavar="TIME", help='Submit it then: "22:00", "2030-01-31 03:00".'),
        click.option("--every", metavar="SPEC", help='Submit it again and again: "12h", "1d", "0 3 * * *".'),
        click.option("--timezone", metavar="ZONE", help="In which --at and --every count, such as Europe/Zurich."),
        click.option("--name", default="", help="What the schedule is called; the notebook's name by default."),
        click.option("--overlap", is_flag=True, help="Submit although the experiment before still goes on."),
        click.option("--call", type=click.IntRange(min=1), metavar="N", help="Its N-th training call; else the last."),
        click.option("--slots", type=click.IntRange(min=1), metavar="N", help="Slots of each trial."),
        click.option("--test", "is_test", is_flag=True, help="One minimal loop only."),
        click.pass_context,
    )
    for option in reversed(options):
        command = option(command)
    return command


def _submit(context: click.Context, /, *, path: Path, **options: Any) -> None:
    from det_native.client.notebook_submit import submit_notebook

    click.echo(submit_notebook(path, context.obj, **options))


@click.command("submit")
@_submit_options
def submit(context: click.Context, /, *, path: Path, **options: Any) -> None:
    """Submit the training call of a notebook as its file is, now, at a time, or again and again."""
    _submit(context, path=path, **options)


@click.group()
def notebook() -> None:
    """Submit notebooks from the command line."""


@notebook.command("submit")
@_submit_options
def submit_file(context: click.Context, /, *, path: Path, **options: Any) -> None:
    """Submit the training call of a notebook as its file is, now, at a time, or again and again."""
    _submit(context, path=path, **options)
