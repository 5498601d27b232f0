"""Why a request has failed: what ``requests`` and ``urllib3`` have wrapped."""

from __future__ import annotations

import ssl

import requests

from det_native.schema.sockets import NotOursError

# A connection that ends during TLS; which of them it is depends on how its other side has ended it.
_TLS_ENDED = (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError)


def never_sent(error: BaseException) -> bool:
    """Return whether a request failed before any of it reached the other side."""
    refused = isinstance(innermost(error), ConnectionRefusedError | FileNotFoundError | NotOursError)
    return refused or isinstance(error, requests.exceptions.ConnectTimeout)


def innermost(error: BaseException) -> BaseException:
    """Return the reason that ``requests`` and ``urllib3`` have wrapped in several layers."""
    while True:
        inner = error.__cause__ or error.__context__
        if inner is None and error.args and isinstance(error.args[0], BaseException):
            inner = error.args[0]  # urllib3 does not always chain what it wraps
        if inner is None:
            return error
        error = inner


def refused_by_tls(error: BaseException) -> bool:
    """Return whether the two sides do not get to TLS; a connection that breaks off meanwhile says nothing of that."""
    return isinstance(error, requests.exceptions.SSLError) and not isinstance(innermost(error), _TLS_ENDED)


def root_cause(error: BaseException) -> str:
    """Return that reason in a few words."""
    reason = innermost(error)
    if isinstance(reason, _TLS_ENDED):
        return "the connection broke off"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    if isinstance(error, requests.exceptions.ChunkedEncodingError):  # the reason is how the rest could not be read
        return "the answer broke off"
    return str(reason) or type(reason).__name__


def broke_off(error: BaseException | None) -> bool:
    """Return whether the connection was lost after something had been sent: the reply may have been on its way."""
    lost = isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError)
    if error is None or not lost or refused_by_tls(error) or isinstance(error, requests.exceptions.Timeout):
        return False
    return not never_sent(error)
