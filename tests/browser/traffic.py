"""What goes between a page and its server, and what of it must never be there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from browser_parts import Screen
from playwright.sync_api import Dialog, Error, Request


def note_dialogs(screen: Screen) -> list[str]:
    """Return a list of the messages of dialogs that the page opens from now on; each is accepted."""
    dialogs: list[str] = []

    def answer(dialog: Dialog) -> None:
        if dialog.type != "beforeunload":  # which is JupyterLab's own, where something is not saved
            dialogs.append(dialog.message)
        dialog.accept()

    screen.page.on("dialog", answer)
    return dialogs


class Traffic:
    """Everything that went between a page and its server."""

    def __init__(self, screen: Screen) -> None:
        self._finished: list[Request] = []
        self._frames: list[str | bytes] = []
        screen.page.on("requestfinished", lambda request: self._finished.append(request))
        screen.page.on("websocket", self._listen)
        self._screen = screen

    def _listen(self, socket: Any) -> None:
        for event in ("framesent", "framereceived"):
            socket.on(event, lambda frame: self._frames.append(frame))

    def texts(self) -> Iterator[str]:
        """Yield addresses, headers and bodies of requests and answers, and what went over web sockets."""
        for request in self._screen.requests:
            yield request.url
            yield request.post_data or ""
            yield str(request.headers)
        for request in self._finished:
            response = request.response()
            if response is not None:
                yield str(response.headers)
                yield body_of(response)
        for frame in self._frames:
            yield frame if isinstance(frame, str) else frame.decode("latin-1")

    def headers(self, part: str) -> list[tuple[str, dict[str, str]]]:
        """Return address and headers of answers to requests whose address has `part` in it."""
        answers = [request.response() for request in self._finished if part in request.url]
        return [(answer.url, answer.headers) for answer in answers if answer is not None]


def body_of(response: Any) -> str:
    """Return the body of an answer; of a redirection there is none."""
    try:
        return str(response.body().decode("latin-1"))
    except Error:
        return ""


def the_token_is_nowhere(
    screen: Screen, traffic: Traffic, token: str, experiment: int, notebook: Path, sent: str
) -> None:
    """Check that the master's token reaches neither the browser nor a file, and no log.

    `sent` is a text that an answer's body has.
    """
    lab = screen.lab
    assert len(token) > 20
    searched = list(traffic.texts())
    assert any("/det-native/api/master/experiments" in text for text in searched)
    assert any(sent in text for text in searched), "bodies are searched"
    assert not [text[:200] for text in searched if token in text]
    stored = screen.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    for kept in (screen.page.content(), stored, str(screen.page.context.cookies()), notebook.read_text(), lab.log):
        assert token not in kept
    events = lab.request("GET", "det-native/api/master/events", params={"experiment_id": experiment}, stream=True)
    assert token not in str(events.headers) + next(events.iter_lines(decode_unicode=True))
    events.close()
