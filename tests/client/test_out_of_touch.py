"""What one who waits is told while the master is out of reach, and how long it is waited for."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from det_native.client import events, persistence, waiting
from det_native.client.events import Connection, EventStream
from det_native.client.persistence import over_cuts
from det_native.client.source import PATIENCE, Source
from det_native.client.waiting import Touch, patiently
from det_native.errors import MasterUnreachableError, NoMasterError


class Feed:
    """A feed of which the test says whether it is in touch."""

    out_of_touch: tuple[float, MasterUnreachableError] | None = None


class View:
    """Keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, text: str) -> None:
        """Keep it."""
        self.messages.append(text)


class Away(Source):
    """A master that does not answer."""

    patience = 0.0


class Routed:
    """A session whose way is mended by itself."""

    route = object()


def fails(times: int, error: MasterUnreachableError) -> tuple[list[int], object]:
    """Return a call that fails so many times, and the list of its calls."""
    calls: list[int] = []

    def call() -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            raise error
        return "done"

    return calls, call


def test_it_is_told_once_and_the_return_too() -> None:
    feed, view = Feed(), View()
    touch = Touch(feed, view)  # type: ignore[arg-type]
    touch.look()
    feed.out_of_touch = (time.monotonic(), MasterUnreachableError("gone"))
    touch.look()
    assert view.messages == [], "a moment is nothing to be told"
    feed.out_of_touch = (time.monotonic() - waiting.TOUCH_SECONDS, MasterUnreachableError("gone since 14:03"))
    touch.look()
    touch.look()
    assert view.messages == ["gone since 14:03"]
    feed.out_of_touch = None
    touch.look()
    touch.look()
    assert view.messages == ["gone since 14:03", "In touch again."]


def test_a_question_is_asked_again_as_long_as_its_source_says() -> None:
    calls, call = fails(2, MasterUnreachableError("gone"))
    assert patiently(Source.__new__(type("Plain", (Source,), {})), call) == "done"  # type: ignore[arg-type]
    assert len(calls) == 3
    calls, call = fails(2, MasterUnreachableError("gone"))
    with pytest.raises(MasterUnreachableError):
        patiently(Away(), call)  # type: ignore[arg-type]
    assert len(calls) == 1


def test_who_asks_again_says_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "TOUCH_SECONDS", 0.0)
    source = Source.__new__(type("Plain", (Source,), {}))  # type: ignore[arg-type]
    said: list[str] = []
    _, call = fails(2, MasterUnreachableError("gone since 14:03"))
    assert patiently(source, call, said.append) == "done"
    assert said == ["gone since 14:03", "In touch again."]
    said.clear()
    _, call = fails(0, MasterUnreachableError("gone"))
    assert patiently(source, call, said.append) == "done"
    assert said == []


def test_a_machine_without_a_master_is_not_waited_for_as_long_as_one_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = iter([0.0, 0.0, PATIENCE / 2, PATIENCE + 1, PATIENCE + 2])

    def nobody(after: int) -> Connection:
        raise NoMasterError("No master runs there.")

    stream = EventStream(nobody, lambda: False, patience=86_400.0, pause=0.0)
    monkeypatch.setattr(events, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with pytest.raises(NoMasterError):
        next(stream)
    assert next(seconds, None) is not None


def test_what_may_be_repeated_is_done_again_after_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "_PAUSES", (0.0,) * 4)
    calls, call = fails(4, MasterUnreachableError("cut"))
    assert over_cuts(Routed(), call) == "done"  # type: ignore[arg-type]
    assert len(calls) == 5
    for session, error in ((Routed(), NoMasterError("none")), (object(), MasterUnreachableError("cut"))):
        calls, call = fails(1, error)
        with pytest.raises(type(error)):
            over_cuts(session, call)  # type: ignore[arg-type]
        assert len(calls) == 1
