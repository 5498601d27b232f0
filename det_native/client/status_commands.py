"""``det down``, ``status`` and ``version``: the master as a whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from det_native._version import PROTOCOL, __version__
from det_native.client import remote_commands
from det_native.client.cluster_commands import left_text, slot_name
from det_native.client.connect import address_of, connect
from det_native.client.output import Output, takes_output_options
from det_native.client.remote.target import is_ssh
from det_native.client.session import Session
from det_native.client.space_commands import space_line
from det_native.client.stopping import stop_master
from det_native.errors import MasterUnreachableError
from det_native.schema import routes
from det_native.schema.cluster import NodeInfo
from det_native.schema.home import Home, read_runtime
from det_native.schema.launchers import LOCAL
from det_native.schema.processes import is_stopped
from det_native.schema.rest import SlotInfo

_NOT_RUNNING = 3


@click.command()
@click.option(
    "--kill",
    is_flag=True,
    help="Stop the workers of running trials, too; the trials go on when a master runs again.",
)
@click.pass_context
def down(context: click.Context, *, kill: bool) -> None:
    """Stop the master."""
    if context.obj and is_ssh(context.obj):
        remote_commands.down(context.obj, kill=kill)
        return
    if context.obj:
        session = connect(context.obj, start=False)
        left = left_text(context.obj, kill=kill)
        session.call(routes.SHUT_DOWN, kill=kill)
        click.echo(f"The master at {context.obj} stops. {left}".strip())
        return
    home = Home.default()
    runtime = read_runtime(home)
    if runtime is None:
        click.echo(f"No master runs in {home.path}.")
        if kill:
            click.echo(
                "Trials that an earlier master started may still run. `det up`, then `det down --kill` stops them; the "
                "next master starts them again."
            )
        return
    left = "" if is_stopped(runtime.pid) else left_text(None, kill=kill)
    stop_master(runtime, home, kill=kill)
    click.echo(f"The master has stopped. {left}".strip())


@click.command()
@takes_output_options
@click.pass_context
def status(context: click.Context, *, output: Output) -> None:
    """Show the master, its slots and what it does."""
    home = Home.default()
    runtime = None if context.obj else read_runtime(home)
    if not context.obj and runtime is None:
        click.echo(f"No master runs in {home.path}. `det up` starts one.", err=output.for_programs)
        context.exit(_NOT_RUNNING)
    session = connect(context.obj, start=False)
    info = session.call(routes.GET_MASTER)
    devices = Counter(slot_name(slot) for slot in info.slots)
    busy = sum(slot.trial_id is not None for slot in info.slots)
    standbys = ", ".join(f"{count} {framework}" for framework, count in sorted(info.standbys.items()) if count)
    output.facts(
        [
            ("master", f"{session.url}, process {info.pid}, since {info.started}"),
            *([("by TCP", runtime.tcp)] if runtime is not None and runtime.tcp else []),
            ("version", f"{info.version} (protocol {info.protocol}), {info.python}"),
            ("home", info.home),
            ("slots", f"{busy} of {len(info.slots)} busy ({', '.join(f'{n} {d}' for d, n in devices.items())})"),
            *_held(info.slots, indented=not output.as_csv),
            *(
                [("machines", ", ".join(_machine(node) for node in info.nodes) or "none")]
                if info.launcher != LOCAL
                else []
            ),
            *[("remark", remark) for remark in info.remarks],
            *([("dashboard", info.dashboard)] if info.dashboard else []),
            ("standbys", standbys or "none"),
            ("active experiments", info.active_experiments),
            *space_line(session),
            *([("outage", info.outage)] if info.outage else []),
        ],
        {"url": session.url, **info.model_dump(mode="json")},
    )


def _machine(node: NodeInfo) -> str:
    """Return a machine with its slots, or what is wrong with it."""
    slots = f"{node.slots} slot{'' if node.slots == 1 else 's'}"
    return f"{node.name} ({node.trouble or slots})"


def _held(slots: list[SlotInfo], *, indented: bool) -> list[tuple[str, str]]:
    """Return who holds which slots, a line for each trial."""
    held: dict[tuple[int, str], list[str]] = {}
    for slot in slots:
        if slot.trial_id is not None:
            held.setdefault((slot.trial_id, slot.held_by), []).append(slot.id)
    indent = "  " if indented else ""
    return [(f"{indent}trial {name}", ", ".join(ids)) for (_, name), ids in sorted(held.items())]


@click.command()
@takes_output_options
@click.pass_context
def version(context: click.Context, *, output: Output) -> None:
    """Show the versions of this client and of the master, if one runs."""
    home = Home.default()
    runtime = None if context.obj else read_runtime(home)
    master: dict[str, Any] | None = None
    stopped = ""
    if runtime is not None:
        stopped = f", stopped by a signal (kill -CONT {runtime.pid})" if is_stopped(runtime.pid) else ""
        master = {"version": runtime.version, "protocol": runtime.protocol, "url": runtime.url, "tcp": runtime.tcp}
    elif context.obj:
        try:
            reached = address_of(context.obj, "find") if is_ssh(context.obj) else None
            health = Session(context.obj if reached is None else reached.url, "").health()
        except MasterUnreachableError as error:
            click.echo(str(error), err=True)
        else:
            master = {"version": health.version, "protocol": health.protocol, "url": context.obj}
    if output.for_programs:
        told: dict[str, Any] = {"version": __version__, "protocol": PROTOCOL}
        flat = {f"master {name}": value for name, value in (master or {}).items()}
        output.facts(list((told | flat).items()), told | {"master": master})
        return
    click.echo(f"det_native {__version__} (protocol {PROTOCOL})")
    if master is not None:
        click.echo(f"master {master['version']} (protocol {master['protocol']}) at {master['url']}{stopped}")
