"""HTTP to one master: the token, time limits, careful repetition, and errors that say what to do."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar, overload

import requests
from pydantic import ValidationError
from requests.auth import AuthBase

from det_native._version import PROTOCOL, __version__
from det_native.client import silence
from det_native.client.addresses import Route, is_loopback, normal_url, proves_itself
from det_native.client.causes import innermost, never_sent, refused_by_tls, root_cause
from det_native.client.lines import Lines
from det_native.client.silence import reason_of_silence, told_if_silent
from det_native.errors import (
    AuthenticationError,
    FencedError,
    MasterError,
    MasterUnreachableError,
    NotFoundError,
    ProtocolMismatchError,
    RequestError,
    UnreadableAnswerError,
)
from det_native.schema import routes
from det_native.schema.rest import ErrorBody, Health
from det_native.schema.sockets import NotOursError

PROTOCOL_HEADER = "X-Det-Protocol"
IDEMPOTENCY_HEADER = "Idempotency-Key"

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 60.0
_STREAM_SILENCE_SECONDS = 60.0
_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0

# A generator of our own: drawing from the global one would change what the user's code draws next.
_chance = random.Random()
_REPEATED_STATUSES = {429, 502, 503, 504}
_IDEMPOTENT_METHODS = {"GET", "HEAD", "PUT", "PATCH", "DELETE"}
_UPGRADE_REQUIRED = 426
_MOST_PROBLEMS = 3
# Those of requests, which it only looks at together with the proxies.
_BUNDLE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# What a master says of fields that it does not know, or misses.
_OTHER_FIELDS = ("Extra inputs are not permitted", "Field required")
# What has a number that is easily taken for one of another master.
_EASILY_MISTAKEN = ("{experiment_id}", "{trial_id}")

Body = TypeVar("Body")
Answer = TypeVar("Answer")
Find = Callable[[], tuple[str, str] | None]


class Secret(str):
    """A token that no representation shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"


class Bearer(AuthBase):
    """Puts the token on a request; not as a header of the session, which ``requests`` lets a ``.netrc`` replace."""

    def __init__(self, token: str) -> None:
        self._token = Secret(token)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Nobody(AuthBase):
    """Leaves a request as it is, where ``requests`` would look for a password in a ``.netrc``."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


class Session:
    """A connection to a master, kept alive between requests; threads may share it.

    Requests that are safe to repeat (GET, DELETE, and a POST with an ``Idempotency-Key``) are repeated with growing
    pauses when the master does not answer or is busy; others only if they certainly never reached it.

    Parameters
    ----------
    url : str
        ``unix:/path`` of a socket, ``http://127.0.0.1:8080``, or ``https://`` for a master on another machine. Without
        a scheme it is ``https``, on this machine ``http``.
    token : str
        Never shown. It is sent over a socket of this user's and over TLS; over plain TCP both sides prove that they
        know it.
    attempts : int
        How often a repeatable request is sent at most.
    tell_silence : bool
        Whether to say on standard error within 5 s that the master is silent, while a request waits for it.
    route : Route, optional
        How the master is reached, where `url` is only where it is reached now.
    find : callable, optional
        Returns where the master is now and its token, None if it does not run: asked after a failure.

    Raises
    ------
    ArgumentError
        If the token would travel to another machine without TLS.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        attempts: int = _ATTEMPTS,
        tell_silence: bool = True,
        route: Route | None = None,
        find: Find | None = None,
    ) -> None:
        self.url = normal_url(url) if route is None else route.name
        self.route = route
        self._attempts = attempts
        self._tell_silence = tell_silence
        self.find = find
        self._token = Secret(token)
        self._doubted = False
        self._http = requests.Session()
        self._lines = Lines(self._http)
        self._http.headers.update({PROTOCOL_HEADER: str(PROTOCOL), "User-Agent": f"det_native/{__version__}"})
        # A proxy cannot reach this machine's loopback for us.
        self._http.trust_env = route is None and not is_loopback(self.url)
        if not self._http.trust_env:
            self._http.verify = next(filter(None, map(os.environ.get, _BUNDLE_VARIABLES)), True)

    def __repr__(self) -> str:
        return f"Session({self.url!r})"

    @overload
    def call(self, route: routes.Route[None, Answer], /, **options: Any) -> Answer: ...

    @overload
    def call(self, route: routes.Route[Body, Answer], body: Body | bytes, /, **options: Any) -> Answer: ...

    def call(self, route: Any, body: Any = None, /, **options: Any) -> Any:
        """Send a request and return its answer.

        Parameters
        ----------
        body : model, bytes or iterable of bytes
            Bytes are sent as they are, as JSON that was written already; an iterable while it is produced.
        key : str, optional
            By which the master knows a repetition, so that the request may be repeated: its ``Idempotency-Key``.
        timeout : float
            Seconds of silence after which the master counts as unreachable.
        **parameters
            Those of the path and the query; those that are None are left out.
        """
        return self._read(route, self._request(route, body, **options))

    def call_with_headers(
        self, route: routes.Route[None, Answer], /, **parameters: Any
    ) -> tuple[Answer, Mapping[str, str]]:
        """Return what :meth:`call` returns, and the headers of the answer."""
        response = self._request(route, None, **parameters)
        return self._read(route, response), response.headers

    def _read(self, route: routes.Route[Any, Answer], response: requests.Response) -> Answer:
        try:
            return route.read(response.content)
        except ValidationError as error:
            raise UnreadableAnswerError(
                f"The master at {self.url} did what {route.method} {route.path} asks, but det_native {__version__} "
                "cannot read its answer. Use the version of the master here (`det version` shows both)."
            ) from error

    @contextmanager
    def stream(
        self,
        route: routes.Route[None, Any],
        /,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = _STREAM_SILENCE_SECONDS,
        **parameters: Any,
    ) -> Iterator[requests.Response]:
        """Open an answer of unknown length: server-sent events (``iter_lines``) or a file (``iter_content``).

        A connection that breaks while it is read raises :class:`MasterUnreachableError` too.

        Parameters
        ----------
        timeout : float
            Seconds of silence after which the connection counts as broken; the master sends a comment more often.
        """
        response = self._request(route, None, headers=headers, timeout=timeout, stream=True, **parameters)
        try:
            yield response
        except requests.RequestException as error:
            if self.route is not None:  # who reads a stream goes on by itself, once there is a way again
                raise self.route.cut(root_cause(error)) from error
            self._doubt_way(error)
            raise self._unreachable(error) from error
        finally:
            response.close()

    def health(self) -> Health:
        """Ask the master who it is; the token is not needed.

        Raises
        ------
        MasterUnreachableError
            If nothing, or something else than a master, answers.
        """
        try:
            return self.call(routes.GET_HEALTH)
        except UnreadableAnswerError as error:
            raise MasterUnreachableError(f"What answers at {self.url} is no det_native master.") from error

    def of_run(self, token: str) -> Session:
        """Return a session with the same master for the reports of a run, which come with the run's own token."""
        find = self.find

        def find_for_run() -> tuple[str, str] | None:
            place = None if find is None else find()
            return None if place is None else (place[0], token)

        route = None if self.route is None else _RouteOfRun(self.route, token)
        found = None if find is None else find_for_run
        return Session(self.url, token, attempts=1, tell_silence=False, route=route, find=found)

    def close(self) -> None:
        """Close the connections; the session can still be used and opens new ones."""
        self._http.close()

    def _request(
        self,
        route: routes.Route[Any, Any],
        body: Any,
        *,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        timeout: float = _READ_SECONDS,
        stream: bool = False,
        **parameters: Any,
    ) -> requests.Response:
        sent, data = dict(headers or {}), None if body is None else route.write(body)
        if data is not None and route.body is not bytes:
            sent["Content-Type"] = "application/json"
        if key is not None:
            sent[IDEMPOTENCY_HEADER] = key
        method, address = route.method, route.address(**parameters)
        public = route.access is routes.Access.PUBLIC
        resendable = data is None or isinstance(data, bytes)
        harmless = route.repeatable or method in _IDEMPOTENT_METHODS or key is not None
        repeatable = resendable and harmless
        question = silence.questions_are_given_up and method == "GET" and not stream
        renewed = False
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            seconds = silence.QUESTION_SECONDS if question and (attempt == 1 or renewed) else timeout
            url, token = self._way()
            try:
                with told_if_silent(url, self.url) if self._tell_silence else nullcontext():
                    response = self._http.request(
                        method,
                        f"{self._lines.base(url, '' if public else token)}{address}",
                        auth=Nobody() if public or proves_itself(url) else Bearer(token),
                        data=data,
                        headers=sent,
                        timeout=(_CONNECT_SECONDS, seconds),
                        allow_redirects=False,
                        stream=stream,
                    )
            except requests.RequestException as error:
                self._doubt_way(error)
                # One that was silent for so long is not waited for again; but the reply to a POST may have been lost.
                waited = seconds == timeout and (method != "POST" or attempt > 1)
                silent = isinstance(error, requests.exceptions.ReadTimeout) and (waited or silence.is_hung(url))
                if silent and question and self.route is not None and not renewed:
                    # After a sleep the line is dead, which `ssh` takes a while to notice: it is looked at first.
                    renewed = True
                    self.route.doubt()
                    continue
                again = (repeatable and not silent) or (resendable and never_sent(error))
                if last or not again or refused_by_tls(error):
                    raise self._unreachable(error) from error
                _pause(attempt)
                continue
            if response.ok and not response.is_redirect:
                return response
            if response.status_code == requests.codes.unauthorized and resendable and self._token_has_changed(token):
                continue
            if response.status_code not in _REPEATED_STATUSES or last or not repeatable:
                raise self._refusal(response, route)
            _pause(attempt, response.headers.get("Retry-After"))
        raise MasterUnreachableError(f"The master at {self.url} changes its token all the time.")

    def _way(self) -> tuple[str, str]:
        """Return the address to send to now, and the token."""
        if self.route is not None:
            return self.route.address()
        if self._doubted and self.find is not None:
            self._doubted = False
            place = self.find()
            if place is not None:
                self.url, self._token = place[0], Secret(place[1])
        return self.url, self._token

    def _token_has_changed(self, refused: str) -> bool:
        """Whether the master has another token now than the one that it refuses, as after its replacement."""
        place = None if self.find is None else self.find()
        if place is None or place[1] == refused:
            return False
        self.url, self._token = place[0], Secret(place[1])
        return True

    def _doubt_way(self, error: requests.RequestException) -> None:
        if isinstance(error, requests.exceptions.ReadTimeout):
            return
        self._doubted = True
        if self.route is not None:
            self.route.doubt()

    def _unreachable(self, error: requests.RequestException) -> MasterError:
        if refused_by_tls(error):
            return MasterUnreachableError(
                f"The certificate of the master at {self.url} is not accepted: {root_cause(error)}. "
                "If it is your own, set REQUESTS_CA_BUNDLE to the file of its certificate."
            )
        stranger = innermost(error)
        if isinstance(stranger, NotOursError):
            return MasterUnreachableError(
                f"The token was not told to what listens at {self.url}: {stranger}. `det status` shows whether a "
                "master runs on this machine, `det down` and `det up` renew an older one."
            )
        if isinstance(error, requests.exceptions.Timeout):
            why = reason_of_silence(self.url) or "`det status` shows whether it answers again."
            return MasterUnreachableError(f"The master at {self.url} does not answer in time. {why}")
        if self.route is not None:
            return MasterUnreachableError(
                f"The connection to the master at {self.url} broke off ({root_cause(error)}). What trains there goes "
                "on. Do it once more: the connection is made anew by itself."
            )
        if is_loopback(self.url):
            return MasterUnreachableError(
                f"No master answers at {self.url} ({root_cause(error)}). `det status` shows whether one runs on this "
                "machine, `det up` starts it."
            )
        return MasterUnreachableError(
            f"No master answers at {self.url} ({root_cause(error)}). Check the address and the network."
        )

    def _refusal(self, response: requests.Response, route: routes.Route[Any, Any]) -> MasterError:
        body = _error_body(response)
        sentence = body.error if body is not None else f"HTTP {response.status_code} {response.reason}"
        status = response.status_code
        if status == requests.codes.unauthorized and self.route is not None:
            return AuthenticationError(
                f"The master at {self.url} refuses the token in its own home there: `det -m {self.url} down` is "
                "refused, too; end its process there and submit again. Running trials go on."
            )
        if status == requests.codes.unauthorized:
            return AuthenticationError(
                f"The master at {self.url} refuses the token. Set DET_TOKEN to that master's own, the content of the "
                "file `token` in its home; if it is the one of this machine, whose file has changed since it began, "
                "`det down` and `det up` make them agree."
            )
        if status == _UPGRADE_REQUIRED:
            return ProtocolMismatchError(sentence)
        if status == requests.codes.unprocessable and body is not None and body.problems:
            untold = [f"{one.where}: {one.what}" for one in body.problems if one.what not in sentence]
            sentence = " ".join(filter(None, [sentence, "; ".join(untold[:_MOST_PROBLEMS])]))
            sentence += "" if sentence.endswith((".", "?")) else "."
            if any(words in sentence for words in _OTHER_FIELDS):
                sentence += " A master of another version may know less, or more: `det version` shows both."
        if response.is_redirect:
            sentence = f"What answers at {self.url} is no det_native master: it redirects to another address."
        if status == requests.codes.not_found and any(name in route.path for name in _EASILY_MISTAKEN):
            sentence = f"{sentence} This is the master at {self.url}; `det experiment list` shows what it has."
        error: RequestError
        if status == requests.codes.not_found:
            error = NotFoundError(sentence)
        elif status == requests.codes.conflict and route.access is routes.Access.RUN:
            error = FencedError(sentence)
        else:
            error = RequestError(status, sentence)
        error.body = body
        return error


class _RouteOfRun:
    """The way to a master, for the reports of a run."""

    def __init__(self, route: Route, token: str) -> None:
        self._route = route
        self._token = token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._route, name)

    def address(self) -> tuple[str, str]:
        """Return the address to send to now, and the run's token."""
        return self._route.address()[0], self._token


def _error_body(response: requests.Response) -> ErrorBody | None:
    try:
        return ErrorBody.model_validate_json(response.content)
    except ValidationError:
        return None


def _pause(attempt: int, retry_after: str | None = None) -> None:
    """Wait before the next attempt: longer each time, by chance not all clients at once."""
    longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
    seconds = longest * _chance.uniform(0.5, 1.0)
    if retry_after is not None and retry_after.isdigit():
        seconds = max(seconds, min(_LONGEST_PAUSE_SECONDS, float(retry_after)))
    time.sleep(seconds)
