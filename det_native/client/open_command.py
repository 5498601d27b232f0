"""``det open``: experiments in the JupyterLab of this user that runs, or on the master's own page."""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import quote, urlencode

import click

from det_native.client.catalog import source_of
from det_native.client.connect import connect
from det_native.client.page_link import page_of, private_file
from det_native.client.run_names import EXPERIMENT
from det_native.errors import NoMasterError
from det_native.schema.home import Home


@click.command("open")
@click.argument("experiment_id", metavar="[ID]", type=EXPERIMENT, required=False)
@click.option("--page", is_flag=True, help="Open the master's own page, though a JupyterLab runs.")
@click.option("--print", "only_print", is_flag=True, help="Print the address, and open nothing.")
@click.pass_context
def open_page(context: click.Context, experiment_id: int | None, *, page: bool, only_print: bool) -> None:
    """Open an experiment, or all of them, in a browser.

    That is the JupyterLab of yours that runs. Without one, or with --page, it is the page of the master, in which the
    printed link signs a browser in: once, within two minutes.
    """
    if experiment_id is not None:
        # What does not exist is said here, not by a page that stays empty.
        source_of(context.obj).experiment(experiment_id)
    servers = [] if page else running_servers()
    if servers:
        address = page_address(servers[0], experiment_id)
        _open(address, address, only_print=only_print)
    else:
        _open_at_master(context, experiment_id, page=page, only_print=only_print)


def _open_at_master(context: click.Context, experiment_id: int | None, *, page: bool, only_print: bool) -> None:
    try:
        session = connect(context.obj, start=False)
    except NoMasterError as error:
        if page:
            raise
        click.echo(
            "No JupyterLab of yours runs on this machine (`jupyter lab` starts one), and the master's page cannot be "
            f"opened: {error}",
            err=True,
        )
        context.exit(1)

    link = page_of(session, experiment_id)
    # Everybody on this machine can see the arguments of a browser's process, and this link signs in.
    _open(link, link if only_print else private_file(Home.default(), link).as_uri(), only_print=only_print)


def _open(shown: str, launched: str, *, only_print: bool) -> None:
    click.echo(shown)
    if not only_print and click.launch(launched) != 0:
        click.echo("No browser could be opened; the address is above.", err=True)


def page_address(server: dict[str, Any], experiment_id: int | None) -> str:
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
