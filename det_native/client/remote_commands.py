"""What ``det`` does with a master that is reached by SSH."""

from __future__ import annotations

from typing import Any

import click


def up(context: click.Context, named: str, options: dict[str, Any]) -> None:
    """Start the master there, or say that one runs."""
    from det_native.client.connect import connect

    default = click.core.ParameterSource.DEFAULT
    given = [name for name, value in options.items() if value and context.get_parameter_source(name) is not default]
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} is for a master on this machine only")
    click.echo(f"The master of {connect(named).url} runs.")


def down(named: str, *, kill: bool) -> None:
    """Stop the master there."""
    from det_native.client.remote.link import Connection
    from det_native.client.remote.target import parse_target
    from det_native.schema.home import Home

    target = parse_target(named)
    if not Connection(target, Home.default()).stop(kill=kill):
        click.echo(f"No master runs on {target.machine}.")
    elif kill:
        click.echo(f"The master on {target.machine} has stopped.")
    else:
        click.echo(f"The master on {target.machine} has stopped; running trials go on.")
