"""``det up``: starts the master, and has the system start it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import click
import psutil

from det_native.client import remote_commands
from det_native.client.connect import check_version, connect
from det_native.client.remote.slurm import NOTE, on_login_node
from det_native.client.remote.target import is_ssh
from det_native.client.service import install, plan_service, removal, require_systemd
from det_native.client.session import Session
from det_native.client.space_commands import set_budget
from det_native.client.starting import ensure_master
from det_native.errors import ArgumentError
from det_native.schema import routes
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.launchers import LAUNCHERS, LOCAL, check_ray_address, check_ray_options
from det_native.schema.resources import SLOTS_SETTING
from det_native.schema.rest import MasterInfo, SlotInfo
from det_native.schema.sizes import parse_size
from det_native.schema.start_settings import DATABASE, database_url, kept_setting

_FAILED = 1


def _slots(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    match = SLOTS_SETTING.fullmatch(value.strip().lower()) if value else None
    if value is not None and (match is None or int(match[2]) == 0):
        raise click.BadParameter(f'{value!r} is no number of slots; write "4", "cpu:4" or "cuda:4".')
    return value


def _budget(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and value.strip().lower() != "none":
        try:
            parse_size(value, "the disk budget")
        except ArgumentError as error:
            raise click.BadParameter(str(error)) from error
    return value


def _ray_address(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        try:
            check_ray_address(value)
        except ArgumentError as error:
            raise click.BadParameter(str(error)) from error
    return value


def _check_ray_options(options: Mapping[str, Any]) -> None:
    given = {"--ray-address": options["ray_address"] is not None, "--ray-trusted": bool(options["ray_trusted"])}
    launcher = options["launcher"] or os.environ.get("DET_LAUNCHER") or LOCAL
    try:
        check_ray_options(launcher, [name for name, is_given in given.items() if is_given])
    except ArgumentError as error:
        raise click.UsageError(str(error)) from error


@click.command()
@click.option(
    "--slots", metavar="N", callback=_slots, help='Slots: "4", "cpu:4" or "cuda:4". All GPUs, else one for each core.'
)
@click.option(
    "--launcher",
    type=click.Choice(LAUNCHERS),
    help="What runs the workers: this machine alone (local), or the machines of a Ray cluster (ray).",
)
@click.option(
    "--ray-address",
    metavar="ADDRESS",
    callback=_ray_address,
    help='With --launcher ray: "auto" for the cluster that runs here, host:port of its head, or ray://host:port.',
)
@click.option(
    "--ray-trusted",
    is_flag=True,
    help="With --launcher ray: use a cluster without RAY_AUTH_MODE=token; whoever reaches it can run code on it.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen at this port, too (TCP).")
@click.option("--host", help="Listen at this address, too; others than this machine's (127.0.0.1) need TLS.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False, resolve_path=True), help="Certificate, PEM.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False, resolve_path=True), help="Its key, PEM.")
@click.option(
    "--storage",
    metavar="URL",
    help="Where bundles, what trials write, data and checkpoints lie: s3://bucket/folder, say. It is kept.",
)
@click.option(
    "--checkpoints",
    metavar="URL",
    help="Where new experiments keep their checkpoints: s3://bucket/folder or any address of fsspec's, or a folder.",
)
@click.option(
    "--disk-budget",
    metavar="SIZE",
    callback=_budget,
    help='What the home may take on the disk, such as "50GB"; it is kept. "none" for as much as the disk has.',
)
@click.option("--service", is_flag=True, help="Have systemd start it after each boot, too; asks first.")
@click.option("-y", "--yes", is_flag=True, help="With --service: do not ask.")
@click.pass_context
def up(context: click.Context, /, *, service: bool, yes: bool, **options: Any) -> None:
    """Start a master on this machine, in the background.

    Where one runs already, the exit code is 1 if it does not have the options that are given.

    It listens at a socket in its home, which only you can open. --port or --host open a port besides. With
    --launcher ray trials run on the machines of a Ray cluster.
    """
    asked = {
        f"--{name.replace('_', '-')}": "" if value is True else str(value)
        for name, value in options.items()
        if value and context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    if context.obj and is_ssh(context.obj):
        remote_commands.up(context, context.obj, asked, service=service, yes=yes)
        return
    if context.obj:
        raise click.UsageError(f"a master is named ({context.obj}); `det up` starts one on this machine only")
    _check_ray_options(options)
    home = Home.default()
    arguments = [text for option in asked.items() for text in option if text]
    if on_login_node():
        click.echo(f"Warning: {NOTE}", err=True)
    if service:
        _serve(home, arguments, yes=yes)
        return
    started = ensure_master(home, arguments)
    runtime = started.runtime
    places = runtime.url if runtime.tcp is None else f"{runtime.url} and {runtime.tcp}"
    if started.fresh:
        click.echo(f"The master runs at {places} (home {home.path}).")
        say_cluster(connect(None, start=False).call(routes.GET_MASTER), runtime.storage)
        return
    click.echo(f"A master runs already at {places} (home {home.path}).")
    check_version(Session(runtime.url, "").health(), runtime.url)
    named = database_url(home, kept_setting(home, DATABASE, os.environ))
    kept = database_url(home, kept_setting(home, DATABASE, {}))
    if named.rpartition("@")[2] != kept.rpartition("@")[2]:  # the user may be another one
        said = (
            f"It has another database than {DATABASE} names. Unset that; or `det down`, and `det up` says what to do."
        )
        click.echo(said, err=True)
        context.exit(_FAILED)
    if not asked:
        return
    if asked.pop("--disk-budget", None) is not None:
        set_budget(connect(None, start=False), str(options["disk_budget"]))
    without = _lacking(asked, runtime, connect(None, start=False).call(routes.GET_MASTER))
    if without:
        names = " and ".join(f"{name} {asked[name]}".strip() for name in without)
        click.echo(
            f"It was started without {names}: `det down` first, "
            f"then `{shlex.join(['det', 'up', *arguments])}`; running trials go on.",
            err=True,
        )
        context.exit(_FAILED)


def say_cluster(info: MasterInfo, storage: str = "") -> None:
    """Say what a master of several machines has begun with."""
    if info.launcher == LOCAL:
        return
    if info.outage:
        click.echo(f"Warning: {info.outage}", err=True)
        return
    for remark in info.remarks:
        click.echo(f"Warning: {remark}", err=True)
    if storage and "://" not in storage and len(info.nodes) > 1:
        click.echo(
            f"Warning: The storage {storage} is a folder: every machine has to see the same files under this path, or "
            "no trial begins there; s3://bucket/folder is reached from everywhere.",
            err=True,
        )
    machines = f"{len(info.nodes)} machine{'' if len(info.nodes) == 1 else 's'}"
    slots = f"{len(info.slots)} slot{'' if len(info.slots) == 1 else 's'}"
    useless = sum(bool(node.trouble) for node in info.nodes)
    why = f"; {useless} of them cannot be used: see `det nodes`." if useless else ": `det nodes` shows them."
    click.echo(f"Its cluster has {machines} with {slots}{why}")


def _serve(home: Home, arguments: Sequence[str], *, yes: bool) -> None:
    """Show the unit, and have it installed."""
    runtime = read_runtime(home)
    planned = plan_service(home, arguments, running=runtime is not None)
    require_systemd(planned)
    remote_commands.show_service(str(planned.path), planned.text, planned.commands)
    if not yes:
        click.confirm("Do it?", abort=True)
    for sentence in install(planned, home, arguments, running=runtime is not None):
        click.echo(sentence, err=True)
    remote_commands.say_service(removal(planned), running=runtime is not None)


def _lacking(asked: Mapping[str, str], runtime: RuntimeFile, info: MasterInfo) -> list[str]:
    """Return those of the options, ``--port`` and the like with their values, that a running master does not have.

    Its slots and launcher are compared, and where it listens; what they do not show, its certificate, by its command
    line. An option without a value has an empty one.
    """
    place = urlsplit(runtime.tcp or "")
    shown = {"--port": str(place.port or ""), "--host": place.hostname or "", "--storage": runtime.storage}
    command = _command_of(runtime.pid)

    def has(name: str, value: str) -> bool:
        if name == "--slots" and info.launcher == LOCAL:
            return _are_slots(value, info.slots)
        if name == "--launcher":
            return value == info.launcher
        if not value:
            return name in command
        return value == shown.get(name) or (name, value) in pairwise(command)

    return [name for name, value in asked.items() if not has(name, value)]


def _are_slots(setting: str, slots: Sequence[SlotInfo]) -> bool:
    match = SLOTS_SETTING.fullmatch(setting.strip().lower())
    if match is None or int(match[2]) != len(slots):
        return False
    return match[1] is None or all(slot.device == match[1] for slot in slots)


def _command_of(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []
