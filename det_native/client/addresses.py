"""Addresses of masters: what form they have, and ways to a master that has none which lasts."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from typing import Literal, Protocol
from urllib.parse import urlsplit

from det_native.errors import ArgumentError, DetError

#: What is asked of a machine behind SSH: its master, the same and started if need be, or to end it (and its workers).
#: Names the master of the home folder, whatever ``DET_MASTER`` names.
THIS_MACHINE = "unix:"
Verb = Literal["find", "start", "stop", "kill"]


class Route(Protocol):
    """How a session reaches a master whose address may change, or has to be made first."""

    #: Seconds that one who waits for an experiment goes on while the master is out of reach.
    patience: float

    @property
    def name(self) -> str:
        """What the master is called."""

    def address(self) -> tuple[str, str]:
        """Return the address to send to now, and the token; raises DetError if there is none."""

    def doubt(self) -> None:
        """Take note that no answer came from that address."""

    def cut(self, reason: str) -> DetError:
        """Take note that a connection broke while something came over it; return the error to raise."""


def named_master(master_url: str | None = None) -> str | None:
    """Return the address that a call or the environment names, None where the master of this machine is meant."""
    named = master_url or os.environ.get("DET_MASTER") or os.environ.get("DET_MASTER_ADDR") or None
    return None if named == THIS_MACHINE else named


def normal_url(url: str) -> str:
    """Return an address as ``unix:/path``, or ``scheme://host:port`` without a path's trailing slash.

    Raises
    ------
    ArgumentError
        If it is no HTTP address, or plain HTTP to another machine.
    """
    from det_native.schema.sockets import is_socket

    text = url.strip()
    if is_socket(text):
        return _socket(text)
    if text.lower().startswith("ssh:") or ("://" not in text and "@" in text and ":" not in text.partition("@")[0]):
        machine = re.sub(r"(?i)^ssh:/*", "", text)
        raise ArgumentError(f'A machine that is reached by SSH is named "ssh://{machine}".')
    if "://" not in text:
        text = f"{'http' if is_loopback(f'http://{text}') else 'https'}://{text}"
    text = text.rstrip("/")
    try:
        parts = urlsplit(text)
        complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        complete = False
    if not complete or parts.query or parts.fragment:
        given = "" if "@" in text else f' "{url}"'  # no password gets into a log
        raise ArgumentError(f'The master\'s address{given} is not of the form "https://host:port".')
    if parts.username is not None:
        raise ArgumentError("The master's address must not hold a name or password; the token goes into DET_TOKEN.")
    if parts.scheme == "http" and not is_loopback(text):
        raise ArgumentError(
            f"What is sent would travel in the clear to {parts.hostname}: use https://, or ssh://{parts.hostname}."
        )
    return text


def _socket(url: str) -> str:
    from det_native.schema.sockets import path_of

    if not path_of(url).is_absolute():
        raise ArgumentError(f'The master\'s address "{url}" is not of the form "unix:/path/of/master.sock".')
    if sys.platform == "win32":
        raise ArgumentError("A Unix socket cannot be used on Windows: name the master by https://host:port.")
    return url


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine."""
    from det_native.schema.sockets import is_socket

    if is_socket(url):
        return True
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proves_itself(url: str) -> bool:
    """Return whether what listens at an address has to prove who it is, and is not told the token: plain TCP."""
    return url.startswith("http://")
