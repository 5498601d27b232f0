"""``det trial``: one trial, of the master or of a run of this machine's own."""

from __future__ import annotations

import click

from det_native.client.run_names import TRIAL


@click.group()
def trial() -> None:
    """Look at a trial.

    ID is the number of a trial, or local-<n>/<trial> for one of a local run.
    """


@trial.command("describe")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.pass_context
def describe(context: click.Context, trial_id: tuple[str | None, int]) -> None:
    """Show how a trial stands, and its checkpoints."""
    from det_native.client.run_commands import describe_trial

    describe_trial(trial_id, context.obj)


@trial.command("logs")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.option("-f", "--follow", is_flag=True, help="Go on as more is written.")
@click.option("-n", "--lines", type=click.IntRange(1), help="The last lines only.")
@click.pass_context
def logs(context: click.Context, trial_id: tuple[str | None, int], *, follow: bool, lines: int | None) -> None:
    """Print what a trial has written."""
    from det_native.client.run_commands import print_logs

    print_logs(None, trial_id, context.obj, lines=lines, follow=follow)
