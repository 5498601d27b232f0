"""The master as seen from Jupyter: where it is, how it is, starting it, and requests that carry its token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus

import httpx
from pydantic import ValidationError

from det_jupyter import statuses
from det_jupyter.lines import Lines
from det_jupyter.reaching import Reacher
from det_jupyter.start import Starter
from det_jupyter.statuses import Status, UnavailableError
from det_native._version import PROTOCOL, __version__
from det_native.client.addresses import named_master, proves_itself
from det_native.client.connect import Address, locate
from det_native.client.remote.target import is_ssh
from det_native.client.session import PROTOCOL_HEADER
from det_native.errors import ArgumentError, AuthenticationError, ProtocolMismatchError
from det_native.schema.home import Home
from det_native.schema.rest import Health
from det_native.schema.routes import GET_HEALTH, GET_MASTER

Pairs = Sequence[tuple[str, str]]

_CONNECT_SECONDS = 5.0


class Master:
    """Finds the master anew for every request, so that one that was restarted or started meanwhile is found.

    Parameters
    ----------
    status_seconds : float
        How long to wait for the answer to a question about its state.
    answer_seconds : float
        How long any other answer may be silent.
    """

    def __init__(self, *, status_seconds: float, answer_seconds: float) -> None:
        self._status_seconds = status_seconds
        self._answer_seconds = answer_seconds
        self._starter = Starter()
        self._reacher = Reacher(status_seconds)
        self._lines = Lines()
        # Whose protocol is known to be ours.
        self._met: Address | None = None

    async def status(self) -> Status:
        """Return how the master is; never raises."""
        try:
            address = await self._locate()
            health = await self._meet(address)
            # The public route has told who it is; this one tells whether our token opens it.
            async with self._send(address, "GET", GET_MASTER.address(), seconds=self._status_seconds) as answer:
                await self._read(answer, address)
            return statuses.running(address.name, health)
        except UnavailableError as error:
            return error.status

    def start(self) -> bool:
        """Start a master, in the background; False where the environment names one by an address of its own."""
        named = named_master()
        if named is not None and is_ssh(named):
            self._reacher.start(named)
            return True
        if named is not None:
            return False
        self._starter.start(Home.default())
        return True

    @asynccontextmanager
    async def open(
        self, method: str, path: str, *, params: Pairs = (), headers: Pairs = (), content: bytes = b""
    ) -> AsyncIterator[httpx.Response]:
        """Send a request with the master's token; gives its answer, not yet read.

        Parameters
        ----------
        path : str
            Of a route of the master, percent-encoded.

        Raises
        ------
        UnavailableError
            If there is no master to answer, or it cannot be understood.
        """
        address = await self._locate()
        if address != self._met:
            await self._meet(address)
        seconds = self._answer_seconds
        async with self._send(
            address, method, path, seconds=seconds, params=params, headers=headers, content=content
        ) as answer:
            yield answer

    async def close(self) -> None:
        """Close all connections; one of SSH stays, for it is not ours alone."""
        await self._reacher.close()
        await self._lines.close()

    async def _locate(self) -> Address:
        named = named_master()
        try:
            if named is not None and is_ssh(named):
                return await self._reacher.address(named)
            address = locate()
        except AuthenticationError as error:
            raise UnavailableError(statuses.without_token(str(error), named=named_master() is not None)) from error
        except ProtocolMismatchError as error:
            raise UnavailableError(statuses.out_of_reach(str(error), "mismatch")) from error
        except ArgumentError as error:
            raise UnavailableError(statuses.misnamed(str(error))) from error
        if address is not None:
            self._starter.forget_failure()
            return address
        if self._starter.running:
            raise UnavailableError(statuses.starting())
        failure = self._starter.failure
        raise UnavailableError(
            statuses.none(str(Home.default().path)) if failure is None else statuses.start_failed(failure)
        )

    async def _meet(self, address: Address) -> Health:
        """Ask who answers at an address, and refuse whom we cannot understand."""
        # Of somebody who may be anybody: he is told nothing.
        unknown = replace(address, token="")
        async with self._send(unknown, "GET", GET_HEALTH.address(), seconds=self._status_seconds) as answer:
            body = await self._read(answer, address)
        try:
            health = Health.model_validate_json(body)
        except ValidationError as error:
            raise UnavailableError(statuses.foreign(address.name, named=named_master() is not None)) from error
        if health.protocol != PROTOCOL:
            raise UnavailableError(statuses.mismatch(address.name, health))
        self._met = address
        return health

    async def _read(self, answer: httpx.Response, address: Address) -> bytes:
        try:
            return await answer.aread()
        except httpx.TransportError as error:
            raise await self._silent(address, error) from error

    @asynccontextmanager
    async def _send(
        self,
        address: Address,
        method: str,
        path: str,
        *,
        seconds: float,
        params: Pairs = (),
        headers: Pairs = (),
        content: bytes = b"",
    ) -> AsyncIterator[httpx.Response]:
        client, base = self._lines.client(address)
        request = client.build_request(
            method,
            f"{base}{path}",
            params=list(params) or None,
            headers=[*headers, *_own_headers(address)],
            content=content or None,
            timeout=httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS)),
        )
        try:
            answer = await client.send(request, auth=_as_it_is, stream=True)
        except httpx.TransportError as error:
            self._met = None
            raise await self._silent(address, error) from error
        try:
            if answer.status_code == HTTPStatus.UNAUTHORIZED:
                raise UnavailableError(statuses.token_refused(address.name, named=named_master() is not None))
            if answer.is_redirect:
                raise UnavailableError(statuses.foreign(address.name, named=named_master() is not None))
            yield answer
        finally:
            await answer.aclose()

    async def _silent(self, address: Address, error: httpx.TransportError) -> UnavailableError:
        """Return why nothing came: a local master may just have ended."""
        if address.named and not isinstance(error, httpx.ReadTimeout):
            self._reacher.doubt()
        try:
            await self._locate()
        except UnavailableError as gone:
            return gone
        return UnavailableError(statuses.silent(address.name, _cause(error), named=named_master() is not None))


def _own_headers(address: Address) -> Pairs:
    told = () if proves_itself(address.url) or not address.token else (("Authorization", f"Bearer {address.token}"),)
    return (
        *told,
        ("Accept-Encoding", "identity"),
        ("User-Agent", f"det_jupyter/{__version__}"),
        (PROTOCOL_HEADER, str(PROTOCOL)),
    )


def _as_it_is(request: httpx.Request) -> httpx.Request:
    """Keep ``httpx`` from putting a password of a ``.netrc`` on a request."""
    return request


def _cause(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "not in time"
    innermost: BaseException = error
    while (inner := innermost.__cause__ or innermost.__context__) is not None:
        innermost = inner
    if isinstance(innermost, OSError) and innermost.strerror:
        return innermost.strerror
    return str(error) or type(error).__name__
