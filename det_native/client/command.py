"""The ``det`` command."""

from __future__ import annotations

import os
import sys
import warnings

import click

from det_native._version import PROTOCOL, __version__
from det_native.client import silence
from det_native.client.command_groups import Commands, ExperimentGroup, Group
from det_native.errors import DetError, NoMasterError

_FAILED = 1
_NOT_RUNNING = 3
_INTERRUPTED = 130
_EPILOG = (
    "Exit codes: 0 done, 1 an error, 2 typed wrong, 3 no master runs, 4 stopped, 5 not ended in time, 130 interrupted. "
    "docs/command_line.md tells more."
)
_COMMANDS = {
    "checkpoint": "checkpoint_commands:checkpoint",
    "clean": "clean_commands:clean",
    "completion": "completion:completion",
    "data": "data_commands:data",
    "down": "status_commands:down",
    "examples": "examples_command:examples",
    "logs": "run_commands:logs",
    "master": "master_commands:master",
    "model": "model_commands:model",
    "nodes": "cluster_commands:nodes",
    "notebook": "notebook_commands:notebook",
    "notify": "notify_commands:notify",
    "open": "open_command:open_page",
    "preview-search": "run_commands:preview",
    "queue": "cluster_commands:queue",
    "remote": "remote_commands:remote",
    "schedule": "schedule_commands:schedule",
    "slot": "cluster_commands:slot",
    "space": "space_commands:space",
    "status": "status_commands:status",
    "submit": "notebook_commands:submit",
    "tensorboard": "run_commands:tensorboard",
    "trial": "trial_commands:trial",
    "up": "up_command:up",
    "version": "status_commands:version",
}
_OF_EXPERIMENTS = {
    "archive": "life_commands:archive",
    "code": "compare_commands:code",
    "compare": "compare_commands:compare",
    "config": "experiment_commands:config",
    "continue": "life_commands:continue_",
    "create": "experiment_commands:create",
    "delete": "life_commands:delete",
    "describe": "run_commands:describe",
    "diff": "compare_commands:diff",
    "download": "download_commands:download_experiment",
    "fork": "life_commands:fork",
    "kill": "run_commands:kill",
    "label": "life_commands:label",
    "list": "find_commands:list_experiments",
    "logs": "run_commands:experiment_logs",
    "move": "life_commands:move_run",
    "notebook": "notebook_commands:experiment_notebook",
    "pause": "run_commands:pause",
    "rename": "life_commands:rename",
    "resume": "run_commands:resume",
    "search": "find_commands:search",
    "set": "share_commands:change",
    "stop": "run_commands:stop",
    "unarchive": "life_commands:unarchive",
    "wait": "experiment_commands:wait",
}


def main() -> None:
    """Run as ``det``: an error is one sentence on standard error, and an exit code."""
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


@click.group(
    cls=Group,
    commands=Commands(_COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)
@click.version_option(__version__, message=f"det_native %(version)s (protocol {PROTOCOL})")
@click.option("-m", "--master", metavar="URL", help="The master to talk to; DET_MASTER, else the one on this machine.")
@click.pass_context
def cli(context: click.Context, master: str | None) -> None:
    """Run and look after a det_native master and its experiments."""
    context.obj = master or os.environ.get("DET_MASTER") or os.environ.get("DET_MASTER_ADDR")


@cli.group(cls=ExperimentGroup, commands=Commands(_OF_EXPERIMENTS))
def experiment() -> None:
    """List, pause, resume and end experiments; ``det e`` for short."""


if __name__ == "__main__":
    main()
