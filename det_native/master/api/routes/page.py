"""Signing in at the master's own page: codes for links, sessions of browsers, tickets for downloads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, NoReturn

from fastapi import Depends, Request
from starlette.responses import Response

from det_native.errors import RequestError
from det_native.master.api.answers import respond
from det_native.master.api.gate import is_for_pages
from det_native.master.api.page_access import cookie_name, is_by_socket, is_encrypted
from det_native.master.api.serving import serve
from det_native.master.sessions import (
    CODE_SECONDS,
    IDLE_SECONDS,
    SESSION_SECONDS,
    BrowserSession,
    Sessions,
    Way,
    WrongCodeError,
)
from det_native.schema import page, routes

OpenPage = Callable[[], Awaitable[str]]


async def no_page() -> str:
    """Stand for what opens a port for browsers, where the server is none of ours."""
    raise RequestError(409, "This master has no port for browsers.")


async def the_sessions(request: Request) -> Sessions:
    """Return who is signed in."""
    sessions: Sessions = request.app.state.sessions
    return sessions


async def the_session(request: Request) -> BrowserSession:
    """Return the session that the request belongs to."""
    session = request.scope["state"].get("session")
    if not isinstance(session, BrowserSession):
        raise RequestError(409, "This request came with the token, and belongs to no session of a browser.")
    return session


TheSessions = Annotated[Sessions, Depends(the_sessions)]
TheSession = Annotated[BrowserSession, Depends(the_session)]


@serve(routes.OPEN_PAGE)
async def open_page(body: page.PageAsk, request: Request, sessions: TheSessions) -> page.PageCode:
    if body.forward and body.anew:
        sessions.end_forward(body.forward)
    url = "" if body.forward else await request.app.state.open_page()
    code = sessions.make_code(Way(bool(body.forward), body.forward))
    return page.PageCode(code=code, url=url, seconds=CODE_SECONDS)


@serve(routes.SIGN_IN)
async def sign_in(body: page.SignIn, request: Request, sessions: TheSessions) -> Response:
    name = cookie_name(request.scope)
    before = request.cookies.get(name, "")
    try:
        opened = sessions.sign_in(body.code, by_socket=is_by_socket(request.scope), instead_of=before)
    except WrongCodeError as error:
        _refuse(error)
    answer = respond(page.SignedIn(key=opened.key, idle_seconds=IDLE_SECONDS, seconds=SESSION_SECONDS))
    answer.set_cookie(
        name,
        opened.cookie,
        max_age=int(SESSION_SECONDS),
        path="/",
        secure=is_encrypted(request.scope),
        httponly=True,
        samesite="strict",
    )
    connection = request.scope["state"].get("connection")
    if connection is not None:
        connection.has_shown_token()
    return answer


def _refuse(error: WrongCodeError) -> NoReturn:
    if error.often:
        raise RequestError(429, "Too many wrong links were tried. For a new one, run det open --page.")
    if error.spent:
        raise RequestError(
            401,
            "This link was used already. Each signs in one browser, once: who used it first is signed out, too. For a "
            "new one, run det open --page.",
        )
    raise RequestError(
        401,
        f"This link is not valid any more: it signs in for {CODE_SECONDS / 60:.0f} minutes, until the master ends. For "
        "a new one, run det open --page.",
    )


@serve(routes.GET_SESSION)
async def get_session(session: TheSession, sessions: TheSessions) -> page.SessionInfo:
    return page.SessionInfo(seconds=sessions.seconds_left(session))


@serve(routes.SIGN_OUT)
async def sign_out(request: Request, session: TheSession, sessions: TheSessions) -> Response:
    sessions.sign_out(session)
    answer = Response(status_code=204)
    answer.delete_cookie(
        cookie_name(request.scope), path="/", secure=is_encrypted(request.scope), httponly=True, samesite="strict"
    )
    return answer


@serve(routes.MAKE_TICKET)
async def make_ticket(body: page.TicketAsk, session: TheSession, sessions: TheSessions) -> page.Ticket:
    path = body.address.partition("?")[0]
    if not is_for_pages("GET", path) or f"{page.TICKET_PARAMETER}=" in body.address:
        raise RequestError(400, f"A page may not download {path}. Use `det` or Python for it.")
    ticket = sessions.make_ticket(session, body.address)
    sign = "&" if "?" in body.address else "?"
    return page.Ticket(address=f"{body.address}{sign}{page.TICKET_PARAMETER}={ticket}")
