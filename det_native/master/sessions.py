"""Browsers that are signed in at the master's own page.

All of it is in this process's memory only: whoever gets the master's port after its end learns nothing that opens
anything. A session has two halves, a cookie that no script can read and a key that no other origin can read; either one
alone opens nothing, for a cookie of ``127.0.0.1`` goes to every port there. Of codes, cookies, keys and tickets only
hashes are kept. ``docs/decisions/0054-the-page-at-the-master.md`` has the threats.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: How long a link may be used: long enough to copy it from a terminal.
CODE_SECONDS = 120.0
MOST_CODES = 16
#: A session ends after so long without a request, and after so long in all.
IDLE_SECONDS = 7 * 86_400.0
SESSION_SECONDS = 30 * 86_400.0
MOST_SESSIONS = 32
TICKET_SECONDS = 60.0
MOST_TICKETS = 256
#: So many wrong codes a minute are looked at in their own words; a right one is always taken.
MOST_TRIES = 30
_TRY_SECONDS = 60.0
_SECRET_BYTES = 32


class WrongCodeError(Exception):
    """A code that opens nothing; `spent` says that it was used before, `often` that too many wrong ones came."""

    def __init__(self, *, spent: bool = False, often: bool = False) -> None:
        super().__init__("wrong code")
        self.spent = spent
        self.often = often


@dataclass(frozen=True)
class Way:
    """How a browser comes to the master.

    Attributes
    ----------
    by_socket : bool
        Over the master's Unix socket, which is to say through SSH; else by TCP.
    forward : str
        Name of the forwarded port.
    """

    by_socket: bool = False
    forward: str = ""


@dataclass(eq=False)
class BrowserSession:
    """One browser that is signed in."""

    way: Way
    cookie: bytes
    key: bytes
    begun: float
    used: float
    #: Whether it has ended: streams that it has opened end then, too.
    over: bool = False


@dataclass
class _Code:
    way: Way
    expires: float
    session: BrowserSession | None = None
    spent: bool = False


@dataclass
class _Ticket:
    session: BrowserSession
    address: str
    expires: float


@dataclass
class Opened:
    """The two halves of a new session."""

    session: BrowserSession
    cookie: str
    key: str = field(repr=False)


class Sessions:
    """Codes, sessions and tickets of one master; may be used from any thread.

    Parameters
    ----------
    clock : callable
        Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._codes: OrderedDict[bytes, _Code] = OrderedDict()
        self._sessions: OrderedDict[bytes, BrowserSession] = OrderedDict()
        self._tickets: OrderedDict[bytes, _Ticket] = OrderedDict()
        self._tries: list[float] = []

    def __len__(self) -> int:
        with self._lock:
            self._forget_old()
            return len(self._sessions)

    def make_code(self, way: Way) -> str:
        """Return a code that opens one session for a browser that comes this way."""
        code = _draw()
        with self._lock:
            self._forget_old()
            self._codes[_hashed(code)] = _Code(way, self._clock() + CODE_SECONDS)
            _limit(self._codes, MOST_CODES)
        return code

    def sign_in(self, code: str, *, by_socket: bool, instead_of: str = "") -> Opened:
        """Begin a session; the one that the browser had before, by its cookie, ends.

        Raises
        ------
        WrongCodeError
            If the code is none, too old, for another way, or used already; in the last case the session that it opened
            ends, too: one of the two who had it is a thief.
        """
        with self._lock:
            self._forget_old()
            known = self._codes.get(_hashed(code))
            if known is None or known.way.by_socket != by_socket:
                raise WrongCodeError(often=self._is_often())
            if known.spent:
                if known.session is not None:
                    self._end(known.session)
                raise WrongCodeError(spent=True)
            before = self._sessions.get(_hashed(instead_of)) if instead_of else None
            if before is not None:
                self._end(before)
            cookie, key, now = _draw(), _draw(), self._clock()
            session = BrowserSession(known.way, _hashed(cookie), _hashed(key), now, now)
            known.spent, known.session = True, session
            self._sessions[session.cookie] = session
            while len(self._sessions) > MOST_SESSIONS:
                self._end(next(iter(self._sessions.values())))
            return Opened(session, cookie, key)

    def find(self, cookie: str, key: str, *, by_socket: bool) -> BrowserSession | None:
        """Return the session of which both halves are given, None if there is none; it counts as used."""
        with self._lock:
            session = self._known(cookie, by_socket)
            if session is None or not hmac.compare_digest(session.key, _hashed(key)):
                return None
            return self._used(session)

    def make_ticket(self, session: BrowserSession, address: str) -> str:
        """Return what opens one address, once, together with the cookie of the session."""
        ticket = _draw()
        with self._lock:
            self._forget_old()
            self._tickets[_hashed(ticket)] = _Ticket(session, address, self._clock() + TICKET_SECONDS)
            _limit(self._tickets, MOST_TICKETS)
        return ticket

    def take_ticket(self, cookie: str, ticket: str, address: str, *, by_socket: bool) -> BrowserSession | None:
        """Return the session of a ticket for this address, which is spent by that; None if it opens nothing."""
        with self._lock:
            session = self._known(cookie, by_socket)
            known = self._tickets.get(_hashed(ticket))
            if session is None or known is None or known.session is not session or known.address != address:
                return None
            del self._tickets[_hashed(ticket)]
            return self._used(session)

    def seconds_left(self, session: BrowserSession) -> float:
        """Return how long a session goes on if nothing more is asked."""
        return max(0.0, self._end_of(session) - self._clock())

    def sign_out(self, session: BrowserSession) -> None:
        """End a session, and its tickets."""
        with self._lock:
            self._end(session)

    def end_forward(self, forward: str) -> None:
        """End all sessions and codes of a forwarded port."""
        with self._lock:
            for session in [one for one in self._sessions.values() if one.way.forward == forward]:
                self._end(session)
            for digest in [digest for digest, code in self._codes.items() if code.way.forward == forward]:
                del self._codes[digest]

    def _known(self, cookie: str, by_socket: bool) -> BrowserSession | None:
        self._forget_old()
        session = self._sessions.get(_hashed(cookie))
        return session if session is not None and session.way.by_socket == by_socket else None

    def _used(self, session: BrowserSession) -> BrowserSession:
        session.used = self._clock()
        self._sessions.move_to_end(session.cookie)
        return session

    def _end(self, session: BrowserSession) -> None:
        session.over = True
        self._sessions.pop(session.cookie, None)
        for digest in [digest for digest, ticket in self._tickets.items() if ticket.session is session]:
            del self._tickets[digest]

    def _end_of(self, session: BrowserSession) -> float:
        return min(session.used + IDLE_SECONDS, session.begun + SESSION_SECONDS)

    def _forget_old(self) -> None:
        now = self._clock()
        for digest in [digest for digest, code in self._codes.items() if code.expires <= now]:
            del self._codes[digest]
        for digest in [digest for digest, ticket in self._tickets.items() if ticket.expires <= now]:
            del self._tickets[digest]
        for session in [one for one in self._sessions.values() if self._end_of(one) <= now]:
            self._end(session)

    def _is_often(self) -> bool:
        now = self._clock()
        self._tries = [when for when in self._tries if when > now - _TRY_SECONDS][-MOST_TRIES:]
        often = len(self._tries) >= MOST_TRIES
        self._tries.append(now)
        return often


def _draw() -> str:
    return secrets.token_urlsafe(_SECRET_BYTES)


def _hashed(secret: str) -> bytes:
    """Return what a secret is looked up by: how long that takes says nothing of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _limit(kept: OrderedDict[bytes, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
