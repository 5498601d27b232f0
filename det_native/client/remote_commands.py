"""What ``det`` does with a master that is reached by SSH."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from det_native.client.addresses import named_master
from det_native.client.cluster_commands import left_text
from det_native.client.connect import connect
from det_native.client.output import Output, takes_output_options
from det_native.client.remote import checking, setting_up
from det_native.client.remote.asking import ask, command_there, install_service, planned_service
from det_native.client.remote.checking import Finding
from det_native.client.remote.link import Connection
from det_native.client.remote.requirements import pinned
from det_native.client.remote.ssh import Line
from det_native.client.remote.target import is_ssh, parse_target
from det_native.errors import NoMasterError
from det_native.schema.home import Home

_FAILED = 1
#: Options of `det up` that name files of this machine.
_FILES_HERE = ("--tls-cert", "--tls-key")
_STEP_WIDTH = 70


def up(context: click.Context, named: str, options: Mapping[str, str], *, service: bool, yes: bool) -> None:
    """Start the master there, or say that one runs; with `service`, have the system there start it after a boot.

    Parameters
    ----------
    named : str
        ``ssh://user@host``.
    options : mapping of str to str
        Those that are given, ``--slots`` and the like; the value is empty where one has none.
    """
    refused = [*options] if service else [name for name in _FILES_HERE if name in options]
    if refused:
        raise click.UsageError(f"{refused[0]} is for a master on this machine only")
    if service:
        _serve(named, yes=yes)
        return
    if options:
        run_there(context, named, ["up", *(text for option in options.items() for text in option if text)])
        return
    click.echo(f"The master of {connect(named).url} runs.")


def run_there(
    context: click.Context, named: str | None, words: Sequence[str], *, folder_of: Path | None = None
) -> None:
    """Run a command of ``det`` on the machine of a master, and show what it prints there.

    Parameters
    ----------
    named : str or None
        The master, which has to be one behind SSH.
    words : sequence of str
        Of the command; ``{notebook}`` is the path of the notebook there.
    folder_of : Path, optional
        A notebook of this machine, whose folder is sent first.
    """
    from det_native.notebook_runs.sending import send_folder

    address = named_master(named)
    if address is None or not is_ssh(address):
        raise click.UsageError("--there needs a master that is named by ssh://user@host (-m, or DET_MASTER).")
    target = parse_target(address)
    with Connection(target, Home.default()).opened() as line:
        if folder_of is not None:
            sent = send_folder(line, folder_of)
            for note in sent.notes:
                click.echo(note, err=True)
            words = [sent.notebook if word == "{notebook}" else word for word in words]
        done = command_there(line, words)
    click.echo(f"On {target.machine}:")
    click.echo(done.printed, nl=False)
    click.echo(done.complained, nl=False, err=True)
    if done.code:
        context.exit(done.code)


def _serve(named: str, *, yes: bool) -> None:
    target = parse_target(named)
    with Connection(target, Home.default()).opened() as line:
        planned = planned_service(line)
        click.echo(f"On {target.machine}:")
        show_service(planned.path, planned.text, planned.commands)
        if not yes:
            click.confirm("Do it?", abort=True)
        for sentence in install_service(line):
            click.echo(sentence, err=True)
        say_service(planned.removal, running=planned.running)


def show_service(path: str, text: str, commands: Sequence[Sequence[str]]) -> None:
    """Show what is written and run."""
    click.echo(f"{path}:")
    click.echo("".join(f"    {line}\n" for line in text.splitlines()))
    click.echo("Then:")
    for command in commands:
        click.echo(f"    {shlex.join(command)}")


def say_service(removal: str, *, running: bool) -> None:
    """Say what has become of it."""
    if running:
        click.echo("The master that runs goes on; after the next boot, systemd starts it.")
    else:
        click.echo("The master runs, and systemd starts it after each boot.")
    click.echo(f"To have that no more: {removal}")


def down(named: str, *, kill: bool) -> None:
    """Stop the master there."""
    target = parse_target(named)
    left = left_text(named, kill=kill)
    if not Connection(target, Home.default()).stop(kill=kill):
        click.echo(f"No master runs on {target.machine}.")
    else:
        click.echo(f"The master on {target.machine} has stopped. {left}".strip())


@click.group()
def remote() -> None:
    """Look after a machine that is reached by SSH.

    ADDRESS is ssh://user@host:port; without it, what -m or DET_MASTER says.
    """


def _connection(context: click.Context, address: str | None) -> Connection:
    named = address or context.obj
    if not named:
        raise click.UsageError("which machine? Name it, ssh://user@host, or set DET_MASTER to it")
    if not is_ssh(named):
        raise click.UsageError(f"{named} is no address of the form ssh://user@host:port")
    return Connection(parse_target(named), Home.default())


@remote.command()
@click.argument("address", required=False)
@takes_output_options
@click.pass_context
def check(context: click.Context, address: str | None, *, output: Output) -> None:
    """Say what works there: Python, GPUs, disk, versions, speed of the line. Exit code 1 if something is missing."""
    found: list[Finding] = []
    good = checking.check(_connection(context, address), found.append if output.for_programs else _show)
    if output.for_programs:
        output.table(("name", "good", "text"), [(one.name, one.good, one.text) for one in found])
    if not good:
        context.exit(_FAILED)


def _show(finding: Finding) -> None:
    click.echo(f"{'ok ' if finding.good else 'NO '} {finding.name.ljust(11)} {finding.text}")


@remote.command()
@click.argument("address", required=False)
@click.option("-n", "--notebook", type=click.Path(path_type=Path), help="Install what its cells import, too.")
@click.option("-p", "--package", "packages", multiple=True, help="Install this one, too; may be given again.")
@click.option(
    "--offline",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Install from the wheels of this folder, which are sent: for a machine without internet.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def setup(
    context: click.Context,
    address: str | None,
    notebook: Path | None,
    packages: tuple[str, ...],
    offline: Path | None,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Make an environment there with det_native and the package versions of this one; can be run again.

    It first shows what it will do, and asks. Of an address with ?python=..., that Python gets the packages.
    """
    connection = _connection(context, address)
    requirements = pinned(notebook, packages)
    with connection.opened() as line, setting_up.wheel_folder() as folder:
        plan = setting_up.plan(line, requirements, Path(folder), offline)
        click.echo(f"On {connection.target.machine}:")
        for number, step in enumerate(plan.steps, 1):
            click.echo(f"  {number}. {step.text}")
        for note in plan.notes:
            click.echo(note)
        if dry_run:
            return
        if not yes:
            click.confirm("Do it?", abort=True)

        def tell(number: int, seconds: float) -> None:
            text = plan.steps[number - 1].text
            shown = text if len(text) <= _STEP_WIDTH else f"{text[:_STEP_WIDTH]} ..."
            click.echo(f"   {seconds:.0f} s" if seconds else f"{number}. {shown}", err=True)

        setting_up.carry_out(line, plan, tell)
        _say_what_runs(line)


def _say_what_runs(line: Line) -> None:
    name = line.target.name
    try:
        there = ask(line, "find")
    except NoMasterError:
        click.echo(f"Done. DET_MASTER={name} trains there.")
        return
    click.echo(
        f"Done. A master runs there since {there.runtime.started}, with what was installed then: `det -m {name} down` "
        "ends it, running trials go on, and the next submit starts the new one."
    )


@remote.command()
@click.argument("address", required=False)
@click.pass_context
def disconnect(context: click.Context, address: str | None) -> None:
    """Close the connection; the master there and its trials go on, and the next use connects again."""
    connection = _connection(context, address)
    stood = connection.close()
    machine = connection.target.machine
    click.echo(f"Disconnected from {machine}." if stood else f"There was no connection to {machine}.")
