"""Links that sign a browser in at the master's own page, by whatever way the master is reached."""

from __future__ import annotations

import html
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from det_native.client.remote.link import Route
from det_native.client.session import Session
from det_native.errors import MasterUnreachableError, NotFoundError, ProtocolMismatchError
from det_native.schema import routes
from det_native.schema.home import Home
from det_native.schema.page import PageAsk, PageCode
from det_native.schema.private_files import write_private

_FOLDER = "page"
_TRIES = 3
# A browser has read the file by then; what it holds is of no use any more.
_KEPT_SECONDS = 600.0
_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>det_native</title>
<p>Opening the page of det_native&hellip; <a href="{link}">Go on</a></p>
"""


def page_of(session: Session, experiment_id: int | None) -> str:
    """Return a link to the page of an experiment, or to that of all; see :func:`page_link`."""
    return page_link(session, "/experiments" if experiment_id is None else f"/experiments/{experiment_id}")


def page_link(session: Session, address: str) -> str:
    """Return a link that signs in once and leads to an address of the workspace.

    Parameters
    ----------
    address : str
        Such as ``/experiments/7``.

    Raises
    ------
    DetError
        If the master gives no code, or no port can be forwarded to it.
    """
    if isinstance(session.route, Route):
        code, port = _over_ssh(session, session.route)
        origin = f"http://127.0.0.1:{port}"
    else:
        code = _ask(session, PageAsk())
        origin = session.url if session.url.startswith(("http://", "https://")) else code.url
    return f"{origin}/#signin={quote(code.code, safe='')}&to={quote(address, safe='/')}"


def _over_ssh(session: Session, route: Route) -> tuple[PageCode, int]:
    for _ in range(_TRIES):
        way = route.page_way()
        # Whoever had the port before a new one is made may know keys of it: they are worth nothing first.
        code = _ask(session, PageAsk(forward=way.name, anew=way.port is None))
        if way.port is None:
            return code, route.forward_page()
        if route.page_way().port == way.port:
            return code, way.port
    raise MasterUnreachableError(f"The connection to {route.name} broke off several times; try again.")


def _ask(session: Session, ask: PageAsk) -> PageCode:
    try:
        return session.call(routes.OPEN_PAGE, ask)
    except NotFoundError as error:
        raise ProtocolMismatchError(
            f"The master at {session.url} is older and serves no page: `det down` and `det up` renew it (on another "
            "machine after `det remote setup`)."
        ) from error


def private_file(home: Home, link: str) -> Path:
    """Write a file that leads a browser to a link, and return it: other users see the arguments of its program."""
    folder = home.path / _FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for old in folder.glob("*.html"):
        with suppress(FileNotFoundError):
            if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
                old.unlink()
    path = folder / f"open-{time.time_ns()}.html"
    write_private(path, _REDIRECT.format(link=html.escape(link)))
    return path
