"""``det open``: the page of an experiment in the JupyterLab of this user that runs."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import quote, urlencode

import click

from det_native.client.run_names import EXPERIMENT

#: Where `jupyter lab` listens unless it is told otherwise.
USUAL = "http://localhost:8888/"


@click.command("open")
@click.argument("experiment_id", metavar="[ID]", type=EXPERIMENT, required=False)
@click.option("--print", "only_print", is_flag=True, help="Print the address, and open nothing.")
@click.pass_context
def open_page(context: click.Context, experiment_id: int | str | None, *, only_print: bool) -> None:
    """Open the page of an experiment, or else JupyterLab, in a browser; a JupyterLab of yours has to run."""
    if experiment_id is not None:
        from det_native.client.catalog import source_of

        # What does not exist is said here, not by a page that stays empty.
        source_of(experiment_id, context.obj).experiment(experiment_id)
    servers = running_servers()
    if not servers:
        click.echo(
            "No JupyterLab of yours runs on this machine. `jupyter lab` starts one; the page is then at "
            f"{page_address({'url': USUAL}, experiment_id)} (with the port and token that it prints).",
            err=True,
        )
        context.exit(1)
    address = page_address(servers[0], experiment_id)
    click.echo(address)
    if not only_print and click.launch(address) != 0:
        click.echo("No browser could be opened; the address is above.", err=True)


def page_address(server: dict[str, Any], experiment_id: int | str | None) -> str:
    """Return the address of an experiment's page on a server, or of its JupyterLab."""
    asked = {"det-experiment": experiment_id, "token": server.get("token")}
    query = urlencode({name: value for name, value in asked.items() if value}, quote_via=quote)
    return f"{server['url'].rstrip('/')}/lab{'?' if query else ''}{query}"


def running_servers() -> list[dict[str, Any]]:
    """Return what is known of the Jupyter servers of this user that run, the newest first."""
    try:
        from jupyter_server.serverapp import list_running_servers
    except ImportError:
        click.echo(f"JupyterLab is not installed for {sys.executable}: pip install 'det_native[lab]'.", err=True)
        return []
    return sorted(list_running_servers(), key=lambda server: int(server.get("pid", 0)), reverse=True)
