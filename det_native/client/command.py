"""The ``det`` command."""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from det_native._version import PROTOCOL, __version__
from det_native.client import life_commands, remote_commands
from det_native.client.checkpoint_commands import checkpoint as checkpoint_group
from det_native.client.clean_commands import clean as clean_command
from det_native.client.cluster_commands import queue as queue_group
from det_native.client.cluster_commands import slot as slot_group
from det_native.client.command_groups import ExperimentGroup, Group
from det_native.client.compare_commands import code, compare, diff
from det_native.client.completion import complete_experiment
from det_native.client.completion import completion as completion_command
from det_native.client.data_commands import data as data_group
from det_native.client.download_commands import download_experiment, download_trial
from det_native.client.examples_command import examples as examples_command
from det_native.client.experiment_commands import config as config_command
from det_native.client.experiment_commands import create as create_command
from det_native.client.experiment_commands import wait as wait_command
from det_native.client.find_commands import list_experiments, search
from det_native.client.json_output import AS_JSON
from det_native.client.log_options import LogOptions, takes_log_options
from det_native.client.master_commands import master as master_group
from det_native.client.model_commands import model as model_group
from det_native.client.node_commands import nodes as nodes_command
from det_native.client.notebook_commands import experiment_notebook
from det_native.client.notebook_commands import notebook as notebook_group
from det_native.client.notebook_commands import submit as submit_command
from det_native.client.notify_commands import notify as notify_group
from det_native.client.open_command import open_page as open_command
from det_native.client.output import Output, takes_output_options
from det_native.client.remote.target import is_ssh
from det_native.client.run_names import EXPERIMENT, TRIAL
from det_native.client.schedule_commands import schedule as schedule_group
from det_native.client.share_commands import change as set_group
from det_native.client.space_commands import space as space_command
from det_native.client.space_commands import space_line
from det_native.client.stopping import stop_master
from det_native.client.trial_commands import trial as trial_group
from det_native.client.up_command import up as up_command
from det_native.errors import DetError, MasterUnreachableError, NoMasterError
from det_native.schema.home import Home, read_runtime
from det_native.schema.launchers import LOCAL
from det_native.schema.processes import is_stopped

if TYPE_CHECKING:
    from det_native.schema.cluster import NodeInfo
    from det_native.schema.rest import SlotInfo

_FAILED = 1
_NOT_RUNNING = 3
_INTERRUPTED = 130
_EPILOG = (
    "Exit codes: 0 done, 1 an error, 2 typed wrong, 3 no master runs, 4 stopped, 5 not ended in time, 130 interrupted. "
    "docs/command_line.md tells more."
)


def main() -> None:
    """Run as ``det``: an error is one sentence on standard error, and an exit code."""
    from det_native.client import silence

    warnings.showwarning = lambda message, *_, **__: click.echo(f"Warning: {message}", err=True)
    silence.questions_are_given_up = True
    try:
        code = cli.main(standalone_mode=False, prog_name="det")
    except DetError as error:
        click.echo(f"Error: {error}", err=True)
        code = _NOT_RUNNING if isinstance(error, NoMasterError) else _FAILED
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _FAILED
    sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(__version__, message=f"det_native %(version)s (protocol {PROTOCOL})")
@click.option("-m", "--master", metavar="URL", help="The master to talk to; DET_MASTER, else the one on this machine.")
@click.pass_context
def cli(context: click.Context, master: str | None) -> None:
    """Run and look after a det_native master and its experiments."""
    context.obj = master or os.environ.get("DET_MASTER") or os.environ.get("DET_MASTER_ADDR")


@cli.command()
@click.option(
    "--kill",
    is_flag=True,
    help="Stop the workers of running trials, too; the trials go on when a master runs again.",
)
@click.pass_context
def down(context: click.Context, *, kill: bool) -> None:
    """Stop the master."""
    from det_native.client.cluster_commands import left_text
    from det_native.client.connect import connect
    from det_native.schema import routes
    from det_native.schema.processes import is_stopped

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


@cli.command()
@takes_output_options
@click.pass_context
def status(context: click.Context, *, output: Output) -> None:
    """Show the master, its slots and what it does."""
    from det_native.client.cluster_commands import slot_name
    from det_native.client.connect import connect
    from det_native.schema import routes

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


@cli.command()
@click.argument("target", default="master", shell_complete=complete_experiment)
@click.option("--trial", "is_trial", is_flag=True, help="TARGET is a trial: 7.2, or its id.")
@takes_log_options
@click.pass_context
def logs(context: click.Context, target: str, *, is_trial: bool, wanted: LogOptions) -> None:
    """Print the log of an experiment (its number), of a trial (7.2), or of this machine's master."""
    if target == "master":
        from det_native.client import following

        if context.obj:
            raise click.UsageError("the log of a master on another machine is read there")
        if wanted.level or wanted.grep or wanted.times or wanted.head or wanted.as_json:
            raise click.UsageError(
                "--level, --grep, --times, --head and --json are for the logs of experiments and trials."
            )
        following.print_file(Home.default().log, wanted.lines or 200, follow=wanted.follow)
        return
    from det_native.client.run_commands import print_logs

    if is_trial or "." in target:
        print_logs(None, TRIAL(target), context.obj, wanted)
    else:
        print_logs(EXPERIMENT(target), None, context.obj, wanted)


cli.add_command(master_group)
cli.add_command(clean_command)
cli.add_command(space_command)
cli.add_command(examples_command)
cli.add_command(completion_command)
cli.add_command(open_command)
cli.add_command(remote_commands.remote)


@cli.command("preview-search")
@click.argument("config", type=click.Path(exists=True, dir_okay=False))
@takes_output_options
def preview_search(config: str, *, output: Output) -> None:
    """Tell what the search of the configuration file CONFIG will run, and what it costs; nothing runs."""
    from pathlib import Path

    from det_native.client.search_preview import preview_search as preview

    found = preview(Path(config))
    if output.for_programs:
        output.facts(list(found.to_json().items()), found.to_json())
    else:
        click.echo(found)


@cli.group(cls=ExperimentGroup)
def experiment() -> None:
    """List, pause, resume and end experiments; ``det e`` for short."""


@experiment.command("describe")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option("--metrics", "with_metrics", is_flag=True, help="All metrics of all trials, a row for each report.")
@takes_output_options
@click.pass_context
def describe_experiment(context: click.Context, experiment_id: int, *, with_metrics: bool, output: Output) -> None:
    """Show how an experiment stands, what it waits for, and its trials, best first."""
    from det_native.client.run_commands import describe_experiment

    describe_experiment(experiment_id, context.obj, output, with_metrics=with_metrics)


@experiment.command("logs")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@takes_log_options
@click.pass_context
def experiment_logs(context: click.Context, experiment_id: int, *, wanted: LogOptions) -> None:
    """Print what the trials of an experiment have written."""
    from det_native.client.run_commands import print_logs

    print_logs(experiment_id, None, context.obj, wanted)


@cli.command("tensorboard")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.pass_context
def tensorboard(context: click.Context, experiment_id: int) -> None:
    """Open TensorBoard over the event files of an experiment's trials, until Ctrl-C."""
    from det_native.client.run_commands import show_tensorboard

    show_tensorboard(experiment_id, context.obj)


_LIFE = {
    "pause": "Have an experiment's workers checkpoint and end, and give its slots back.",
    "resume": "Go on with a paused experiment, from the checkpoints of its trials.",
    "stop": "End an experiment for good: its workers write a checkpoint first. It becomes Stopped.",
    "kill": "End an experiment now, without a checkpoint. It becomes Stopped.",
}


def _add_life_command(verb: str, text: str) -> None:
    @experiment.command(verb, help=text)
    @click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
    @AS_JSON
    @click.pass_context
    def change_experiment(context: click.Context, experiment_id: int, *, as_json: bool) -> None:
        from det_native.client.run_commands import change

        change(experiment_id, verb, context.obj, as_json=as_json)


for _verb, _text in _LIFE.items():
    _add_life_command(_verb, _text)


for _command in (
    list_experiments,
    search,
    compare,
    code,
    diff,
    create_command,
    wait_command,
    config_command,
    set_group,
):
    experiment.add_command(_command)
for _command in (
    life_commands.archive,
    life_commands.unarchive,
    life_commands.rename,
    life_commands.label,
    life_commands.delete,
    life_commands.fork,
    life_commands.continue_,
    life_commands.move_run,
):
    experiment.add_command(_command)
cli.add_command(up_command)
cli.add_command(submit_command)
experiment.add_command(experiment_notebook)
cli.add_command(nodes_command)
experiment.add_command(download_experiment)
trial_group.add_command(download_trial)
for _group in (
    trial_group,
    checkpoint_group,
    model_group,
    slot_group,
    queue_group,
    data_group,
    notify_group,
    notebook_group,
    schedule_group,
):
    cli.add_command(_group)


@cli.command()
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
        from det_native.client.connect import address_of
        from det_native.client.session import Session

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


if __name__ == "__main__":
    main()
