"""``det notify``: who is told of what happens to experiments."""

from __future__ import annotations

import click

from det_native.client.connect import connect
from det_native.client.notifying import entries, put, remove_entry, set_entry, try_out
from det_native.client.output import Output, takes_output_options
from det_native.schema import routes
from det_native.schema.notify import Notify
from det_native.schema.notify_rest import MessageInfo

_FAILED = 1


@click.group()
def notify() -> None:
    """Be told of the end, the failure and the progress of experiments, by webhook or e-mail."""


@notify.command("set")
@click.option(
    "--name",
    default="",
    help="What the entry is called; one of the same name is replaced. By default webhook or email, with a number.",
)
@click.option("--on", "events", multiple=True, metavar="EVENT", help="end, failure, nan, plateau or best; repeatable.")
@click.option("--webhook", metavar="URL", help="Where JSON is posted; asked for, unseen, if it is '-'.")
@click.option("--slack", is_flag=True, help="The webhook is one of Slack's.")
@click.option("--secret", metavar="TEXT", help="Signs what is posted; asked for, unseen, if it is '-'.")
@click.option("--email", metavar="ADDRESS", help="Who gets an e-mail, by the SMTP server of the master.")
@click.option(
    "--plateau", type=click.IntRange(min=1), metavar="N", help="A plateau is N validations without a better value."
)
@click.option("--min-delta", type=click.FloatRange(min=0), default=0.0, help="By so much a value has to be better.")
@click.pass_context
def set_notify(
    context: click.Context,
    /,
    *,
    name: str,
    events: tuple[str, ...],
    webhook: str | None,
    slack: bool,
    secret: str | None,
    email: str | None,
    plateau: int | None,
    min_delta: float,
) -> None:
    """Be told of all experiments from now on."""
    if webhook == "-":
        webhook = click.prompt("Webhook", hide_input=True)
    if secret == "-":
        secret = click.prompt("Secret", hide_input=True)
    fields = {
        "name": name,
        "on": list(dict.fromkeys(events)) or None,
        "webhook": webhook,
        "format": "slack" if slack else "json",
        "secret": secret,
        "email": email,
        "plateau": None if plateau is None else {"validations": plateau, "min_delta": min_delta},
    }
    done = set_entry(connect(context.obj, start=False), fields)
    entry = done.entry
    how = f"The notification {entry.name!r} is {'replaced' if done.replaced else 'added'}"
    click.echo(f"{how}: {_where(entry)} is told of {', '.join(entry.on)}. `det notify test` sends a test message.")
    for warning in done.warnings:
        click.echo(f"Warning: {warning}", err=True)


@notify.command("list")
@takes_output_options
@click.pass_context
def list_notify(context: click.Context, /, *, output: Output) -> None:
    """Show who is told of all experiments."""
    found = entries(connect(context.obj, start=False))
    rows = [(entry.name, ", ".join(entry.on), _where(entry)) for entry in found]
    data = [entry.model_dump(mode="json") for entry in found]
    output.table(("name", "on", "to"), rows, data, empty="Nobody is told. `det notify set` changes that.")


@notify.command("messages")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, help="So many, the newest.")
@takes_output_options
@click.pass_context
def list_messages(context: click.Context, /, *, limit: int, output: Output) -> None:
    """Show the messages that went out, or wait to."""
    found = connect(context.obj, start=False).call(routes.LIST_MESSAGES, limit=limit)
    rows = [_row(message) for message in found]
    output.table(("id", "created", "on", "by", "state", "text"), rows, found, empty="There are no messages.")


@notify.command("test")
@click.pass_context
def test_notify(context: click.Context, /) -> None:
    """Send a test message to everybody who is told."""
    found = try_out(connect(context.obj, start=False))
    if not found:
        click.echo("There is nobody to send to: `det notify set --webhook URL` or `--email ADDRESS`.", err=True)
    for test in found:
        name = f" {test.name!r}" if test.name else ""
        click.echo(f"{test.kind}{name}: {f'not sent: {test.error}.' if test.error else 'sent.'}", err=bool(test.error))
    if not found or any(test.error for test in found):
        context.exit(_FAILED)


@notify.command("remove")
@click.argument("name", default="")
@click.option("--all", "everything", is_flag=True, help="All entries.")
@click.pass_context
def remove_notify(context: click.Context, /, *, name: str, everything: bool) -> None:
    """Be told no more: remove the entry of this name."""
    session = connect(context.obj, start=False)
    if everything:
        put(session, [])
    else:
        remove_entry(session, name)


def _row(message: MessageInfo) -> tuple[object, ...]:
    text = message.error or message.body["text"]
    return message.id, message.created, message.event, message.target["kind"], message.state.lower(), text


def _where(entry: Notify) -> str:
    webhook = None if entry.webhook is None else f"webhook {entry.webhook.partition('@')[2] or 'as given'}"
    ways = (webhook, entry.email, "JupyterLab" if entry.desktop else None)
    return " and ".join(way for way in ways if way)
