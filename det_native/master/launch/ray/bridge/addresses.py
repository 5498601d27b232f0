"""What is at an address that is said to be Ray's: asked before Ray connects, which tries without end."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass
from pathlib import Path

import grpc

CLIENT_SCHEME = "ray://"
_CLUSTER_METHOD = "/ray.rpc.NodeInfoGcsService/GetClusterId"
_CLIENT_METHOD = "/ray.rpc.RayletDriver/ClusterInfo"
_SECONDS = 10.0
_DEFAULT_CLIENT_PORT = 10001


class RefusedError(Exception):
    """The cluster cannot be used; the message says why and what to do, and trying again changes nothing.

    Parameters
    ----------
    away : bool
        Whether nobody answers at all, which may be over soon.
    """

    def __init__(self, text: str, *, away: bool = False) -> None:
        super().__init__(text)
        self.away = away


@dataclass(frozen=True)
class Address:
    """Where a cluster is; `client` if it is reached through a Ray client server."""

    host: str
    port: int
    client: bool

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``host:port`` or ``ray://host:port``.

        Raises
        ------
        RefusedError
            If it is neither.
        """
        client = text.startswith(CLIENT_SCHEME)
        host, _, port = text.removeprefix(CLIENT_SCHEME).rstrip("/").rpartition(":")
        if client and not host:
            host, port = port, str(_DEFAULT_CLIENT_PORT)
        if not host or not port.isdecimal():
            raise RefusedError(f"{text!r} is no address of a Ray cluster: write auto, host:6379 or ray://host:10001.")
        return cls(host.strip("[]"), int(port), client)

    @property
    def target(self) -> str:
        """``host:port``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{CLIENT_SCHEME}{self.target}" if self.client else self.target


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token() -> str | None:
    """Return the token of this user for Ray clusters, None if there is none."""
    given = os.environ.get("RAY_AUTH_TOKEN")
    if given:
        return given.strip()
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def check_address(address: Address) -> bool:
    """Check that a Ray cluster is there and lets us in; return whether it lets in everybody, token or not.

    With TLS of Ray's own (``RAY_USE_TLS``) only whether somebody listens is checked; nobody gets in without a
    certificate there.

    Raises
    ------
    RefusedError
    """
    if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        _check_listens(address)
        return False
    own, other = (_CLIENT_METHOD, _CLUSTER_METHOD) if address.client else (_CLUSTER_METHOD, _CLIENT_METHOD)
    with grpc.insecure_channel(address.target) as channel:
        code = _ask(channel, own)
        if code is grpc.StatusCode.UNAUTHENTICATED:
            _check_token(channel, own, address)
            return False
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise RefusedError(
                f"No Ray cluster answers at {address}: start one there (`ray start --head`), or check the address.",
                away=True,
            )
        if code is grpc.StatusCode.UNIMPLEMENTED and _ask(channel, other) is not grpc.StatusCode.UNIMPLEMENTED:
            raise RefusedError(
                f"{address} is the port of the cluster itself: write {address.target}, or ray:// with the port of the "
                "Ray client server (10001 by default)."
                if address.client
                else f"{address} is the port of a Ray client server: write ray://{address.target}."
            )
        if code is grpc.StatusCode.UNIMPLEMENTED:
            raise RefusedError(f"What listens at {address} is no Ray cluster: check the address.")
    return True


def listens_at_loopback_only(address: Address) -> bool:
    """Return whether a cluster at loopback is not reached at this machine's own address, by which Ray replaces it."""
    if not is_loopback(address.host) or address.client:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("8.8.8.8", 53))  # sends nothing: it picks the address, as Ray does
            own = probe.getsockname()[0]
        except OSError:
            return False
    try:
        with socket.create_connection((own, address.port), timeout=1.0):
            return False
    except OSError:
        return True


def _check_listens(address: Address) -> None:
    try:
        with socket.create_connection((address.host, address.port), timeout=_SECONDS):
            pass
    except OSError as error:
        raise RefusedError(f"No Ray cluster answers at {address}: {error.strerror or error}.", away=True) from None


def _check_token(channel: grpc.Channel, method: str, address: Address) -> None:
    own = token()
    if own is None:
        raise RefusedError(
            f"The Ray cluster at {address} wants a token: set RAY_AUTH_MODE=token, and put the cluster's token into "
            "~/.ray/auth_token."
        )
    if _ask(channel, method, own) is grpc.StatusCode.UNAUTHENTICATED:
        raise RefusedError(
            f"The Ray cluster at {address} does not take this token: put the cluster's own into ~/.ray/auth_token "
            "(or RAY_AUTH_TOKEN)."
        )


def _ask(channel: grpc.Channel, method: str, bearer: str | None = None) -> grpc.StatusCode:
    call = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
    metadata = () if bearer is None else (("authorization", f"Bearer {bearer}"),)
    try:
        call(b"", timeout=_SECONDS, metadata=metadata)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK
