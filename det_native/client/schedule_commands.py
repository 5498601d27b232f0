"""``det schedule``: notebooks that are run at a time, or again and again."""

from __future__ import annotations

import click

from det_native.client.connect import connect
from det_native.client.output import Output, takes_output_options
from det_native.schema import routes
from det_native.schema.schedules import Schedule

_NUMBER = click.IntRange(min=1)


@click.group()
def schedule() -> None:
    """Look after notebooks that are run at a time, or again and again."""


@schedule.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that have ended.")
@takes_output_options
@click.pass_context
def list_schedules(context: click.Context, /, *, everything: bool, output: Output) -> None:
    """Show the schedules, newest first."""
    session = connect(context.obj, start=False)
    found = session.call(routes.LIST_SCHEDULES, all=everything)
    head = ("id", "name", "state", "when", "next", "runs", "last run")
    rows = [
        (one.id, one.name, one.state.lower(), one.timing.text, one.next or "", one.submitted, _last_run(one))
        for one in found
    ]
    data = [one.model_dump(mode="json") for one in found]
    output.table(head, rows, data, empty="Nothing is scheduled. `det submit NOTEBOOK --every 1d` schedules a notebook.")


@schedule.command("describe")
@click.argument("number", metavar="ID", type=_NUMBER)
@takes_output_options
@click.pass_context
def describe_schedule(context: click.Context, /, *, number: int, output: Output) -> None:
    """Show a schedule."""
    found = connect(context.obj, start=False).call(routes.GET_SCHEDULE, schedule_id=number)
    output.facts(_facts(found), found.model_dump(mode="json"))


def _last_run(found: Schedule) -> str:
    return ": ".join(filter(None, (str(found.last_run or ""), found.last_outcome)))


def _facts(found: Schedule) -> list[tuple[str, object]]:
    return [
        ("schedule", f"{found.id}{f' ({found.name})' if found.name else ''}"),
        ("notebook", found.path),
        ("state", found.state.lower()),
        ("when", found.timing.text),
        ("next", found.next or "never"),
        ("runs begun", found.submitted),
        ("last run", _last_run(found) or "none"),
        *([("note", found.error)] if found.error else []),
    ]


def _add_change(verb: str, route: routes.Route[None, Schedule], text: str) -> None:
    @schedule.command(verb, help=text)
    @click.argument("number", metavar="ID", type=_NUMBER)
    @click.pass_context
    def change(context: click.Context, /, *, number: int) -> None:
        found = connect(context.obj, start=False).call(route, schedule_id=number)
        click.echo(f"Schedule {number} is {found.state.lower()}" + (f", next at {found.next}." if found.next else "."))


_add_change("cancel", routes.CANCEL_SCHEDULE, "Have a schedule begin no more runs; those that go on are not stopped.")
_add_change("pause", routes.PAUSE_SCHEDULE, "Have a schedule begin no runs until it is resumed.")
_add_change("resume", routes.RESUME_SCHEDULE, "Have a paused schedule begin runs again, from its next time on.")
