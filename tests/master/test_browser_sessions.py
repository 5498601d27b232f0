"""Codes, sessions and tickets of browsers, by themselves and with a clock of the test."""

from __future__ import annotations

import pytest

from det_native.master import sessions as parts
from det_native.master.sessions import BrowserSession, Sessions, Way, WrongCodeError


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock)


def signed_in(sessions: Sessions, way: Way | None = None) -> tuple[BrowserSession, str, str]:
    """Sign in, and return the session and its halves."""
    way = way or Way()
    opened = sessions.sign_in(sessions.make_code(way), by_socket=way.by_socket)
    return opened.session, opened.cookie, opened.key


def test_a_session_wants_both_its_halves(sessions: Sessions) -> None:
    session, cookie, key = signed_in(sessions)
    _, other_cookie, other_key = signed_in(sessions)
    assert sessions.find(cookie, key, by_socket=False) is session
    for wrong in (
        (cookie, ""),
        ("", key),
        (key, cookie),
        (cookie, other_key),
        (other_cookie, key),
        (cookie, key + "x"),
    ):
        assert sessions.find(*wrong, by_socket=False) is None


def test_a_code_used_twice_ends_what_it_has_opened(sessions: Sessions) -> None:
    code = sessions.make_code(Way())
    opened = sessions.sign_in(code, by_socket=False)
    with pytest.raises(WrongCodeError) as caught:
        sessions.sign_in(code, by_socket=False)
    assert caught.value.spent
    assert sessions.find(opened.cookie, opened.key, by_socket=False) is None


def test_a_code_ends_by_itself(sessions: Sessions, clock: Clock) -> None:
    code = sessions.make_code(Way())
    clock.now += parts.CODE_SECONDS
    with pytest.raises(WrongCodeError) as caught:
        sessions.sign_in(code, by_socket=False)
    assert not caught.value.spent
    assert len(sessions) == 0


def test_of_many_codes_the_newest_hold(sessions: Sessions) -> None:
    codes = [sessions.make_code(Way()) for _ in range(parts.MOST_CODES + 1)]
    with pytest.raises(WrongCodeError):
        sessions.sign_in(codes[0], by_socket=False)
    for code in codes[1:]:
        sessions.sign_in(code, by_socket=False)


def test_sessions_end_after_a_while_without_use_and_after_a_while_in_all(sessions: Sessions, clock: Clock) -> None:
    session, cookie, key = signed_in(sessions)
    begun = clock.now
    while clock.now - begun < parts.SESSION_SECONDS - parts.IDLE_SECONDS:
        clock.now += parts.IDLE_SECONDS - 1
        assert sessions.find(cookie, key, by_socket=False) is session
    assert sessions.seconds_left(session) == begun + parts.SESSION_SECONDS - clock.now
    clock.now = begun + parts.SESSION_SECONDS
    assert sessions.find(cookie, key, by_socket=False) is None
    _, cookie, key = signed_in(sessions)
    clock.now += parts.IDLE_SECONDS
    assert sessions.find(cookie, key, by_socket=False) is None


def test_of_many_sessions_the_least_used_ends(sessions: Sessions) -> None:
    first, second = signed_in(sessions), signed_in(sessions)
    for _ in range(parts.MOST_SESSIONS - 2):
        signed_in(sessions)
    assert sessions.find(*first[1:], by_socket=False) is first[0]
    signed_in(sessions)
    assert sessions.find(*first[1:], by_socket=False) is first[0]
    assert sessions.find(*second[1:], by_socket=False) is None
    assert len(sessions) == parts.MOST_SESSIONS


def test_wrong_codes_keep_nobody_out(sessions: Sessions, clock: Clock) -> None:
    code = sessions.make_code(Way())
    often = []
    for _ in range(parts.MOST_TRIES + 2):
        with pytest.raises(WrongCodeError) as caught:
            sessions.sign_in("wrong", by_socket=False)
        often.append(caught.value.often)
    assert often == [False] * parts.MOST_TRIES + [True] * 2
    sessions.sign_in(code, by_socket=False)
    clock.now += 61
    with pytest.raises(WrongCodeError) as caught:
        sessions.sign_in("wrong", by_socket=False)
    assert not caught.value.often


def test_what_came_over_ssh_opens_nothing_by_tcp_and_the_other_way_round(sessions: Sessions) -> None:
    for by_socket in (False, True):
        way = Way(by_socket, "forward" if by_socket else "")
        code = sessions.make_code(way)
        with pytest.raises(WrongCodeError):
            sessions.sign_in(code, by_socket=not by_socket)
        opened = sessions.sign_in(code, by_socket=by_socket)
        assert sessions.find(opened.cookie, opened.key, by_socket=by_socket) is opened.session
        assert sessions.find(opened.cookie, opened.key, by_socket=not by_socket) is None


def test_a_forwarded_port_that_is_made_anew_ends_what_came_over_the_one_before(sessions: Sessions) -> None:
    old, other = signed_in(sessions, Way(True, "laptop")), signed_in(sessions, Way(True, "desk"))
    here = signed_in(sessions)
    code = sessions.make_code(Way(True, "laptop"))
    sessions.end_forward("laptop")
    assert sessions.find(*old[1:], by_socket=True) is None
    assert sessions.find(*other[1:], by_socket=True) is other[0]
    assert sessions.find(*here[1:], by_socket=False) is here[0]
    with pytest.raises(WrongCodeError):
        sessions.sign_in(code, by_socket=True)


def test_signing_in_again_ends_the_session_that_the_browser_had(sessions: Sessions) -> None:
    _, cookie, key = signed_in(sessions)
    sessions.sign_in(sessions.make_code(Way()), by_socket=False, instead_of=cookie)
    assert sessions.find(cookie, key, by_socket=False) is None
    assert len(sessions) == 1


def test_a_ticket_opens_one_address_once_for_its_session(sessions: Sessions, clock: Clock) -> None:
    session, cookie, _ = signed_in(sessions)
    _, other_cookie, _ = signed_in(sessions)
    ticket = sessions.make_ticket(session, "/api/v1/x?a=1")
    assert sessions.take_ticket(cookie, ticket, "/api/v1/x?a=2", by_socket=False) is None
    assert sessions.take_ticket(other_cookie, ticket, "/api/v1/x?a=1", by_socket=False) is None
    assert sessions.take_ticket(cookie, ticket, "/api/v1/x?a=1", by_socket=False) is session
    assert sessions.take_ticket(cookie, ticket, "/api/v1/x?a=1", by_socket=False) is None
    late = sessions.make_ticket(session, "/api/v1/x")
    clock.now += parts.TICKET_SECONDS
    assert sessions.take_ticket(cookie, late, "/api/v1/x", by_socket=False) is None
    gone = sessions.make_ticket(session, "/api/v1/x")
    sessions.sign_out(session)
    assert sessions.take_ticket(cookie, gone, "/api/v1/x", by_socket=False) is None


def test_nothing_that_is_kept_opens_anything(sessions: Sessions) -> None:
    session, cookie, key = signed_in(sessions)
    code, ticket = sessions.make_code(Way()), sessions.make_ticket(session, "/api/v1/x")
    kept = repr([vars(sessions), vars(session)])
    assert not [secret for secret in (cookie, key, code, ticket) if secret in kept]
