"""How client and master show each other over plain TCP that they know the token, without saying it.

Once for each connection: the client draws a number, the master answers with one of its own and a keyed hash over both
and the address at which it was called; the client checks that and answers with another hash. Whoever has only taken the
port knows no token, and can pass nothing on to the true master either: that one is called at another address.
``docs/decisions/0045-who-listens.md`` has the whole of it.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NoReturn

from det_native.schema.sockets import NotOursError

_NONCE_BYTES = 32
_MASTER = "det_native master"
_CLIENT = "det_native client"
_LONGEST_ANSWER = 16 << 10
_MOST_PIECES = 64


@dataclass(frozen=True)
class Meeting:
    """What both sides know of one introduction.

    Attributes
    ----------
    client, master : str
        The number that each has drawn.
    address : str
        See :func:`address_text`.
    """

    client: str
    master: str
    address: str

    def proof_of_master(self, token: str) -> str:
        """Return what only a master with this token can say."""
        return self._proof(_MASTER, token)

    def proof_of_client(self, token: str) -> str:
        """Return what only a client with this token can say."""
        return self._proof(_CLIENT, token)

    def _proof(self, who: str, token: str) -> str:
        text = "\n".join((who, self.client, self.master, self.address))
        return hmac.new(token.encode(), text.encode(), "sha256").hexdigest()


def draw() -> str:
    """Return a number that was never used before."""
    return secrets.token_hex(_NONCE_BYTES)


def address_text(name: Any) -> str:
    """Return the address of a socket's end as both sides write it; empty if it is none of TCP."""
    if not isinstance(name, tuple) or len(name) < 2:
        return ""
    address = ipaddress.ip_address(str(name[0]).partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return f"{mapped or address} {name[1]}"


def conversation(token: str, address: str) -> Generator[bytes, bytes, None]:
    """Lead the client's side of an introduction: yields what is to be sent, and takes what has come.

    Parameters
    ----------
    address : str
        Where the client has called, as :func:`address_text` gives it.

    Raises
    ------
    NotOursError
        If the other side does not know the token, or was called elsewhere; nothing that helps it was sent.
    """
    from det_native.schema.routes import INTRODUCE_CLIENT, INTRODUCE_MASTER  # it takes a while to load

    drawn = draw()
    status, answer = yield from _exchange(_request("GET", INTRODUCE_MASTER.address(nonce=drawn)))
    if status != 200 or not {"nonce", "address", "proof"} <= answer.keys():
        _refuse("it does not introduce itself as a master does (an older master cannot)")
    named = str(answer["address"])
    meeting = Meeting(drawn, str(answer["nonce"]), named)
    if not hmac.compare_digest(meeting.proof_of_master(token).encode(), str(answer["proof"]).encode()):
        _refuse("it does not know our token (DET_TOKEN is of another master, or a stranger listens there)")
    if named != address:
        here, there = address.replace(" ", " port "), named.replace(" ", " port ") or "no port"
        _refuse(f"it was called at {here} and listens at {there}, which must be the same, through a tunnel too")
    body = json.dumps({"proof": meeting.proof_of_client(token)}).encode()
    status, _ = yield from _exchange(_request("POST", INTRODUCE_CLIENT.address(), body))
    if status != 200:
        _refuse("it does not accept our introduction")


def _refuse(why: str) -> NoReturn:
    raise NotOursError(f"what answers there is not taken for the master: {why}")


def _request(method: str, target: str, body: bytes = b"") -> bytes:
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: application/json\r\n\r\n".encode() + body


def _exchange(request: bytes) -> Generator[bytes, bytes, tuple[int, dict[str, Any]]]:
    """Send a request and return the status and JSON object of the answer."""
    came = yield request
    for _ in range(_MOST_PIECES):
        found = _read(came)
        if found is not None:
            return found
        if len(came) > _LONGEST_ANSWER:
            break
        more = yield b""
        if not more:
            break
        came += more
    _refuse("it gives no answer that can be read")


def _read(came: bytes) -> tuple[int, dict[str, Any]] | None:
    """Return the status and content of an answer, None if more of it is to come."""
    head, blank, body = came.partition(b"\r\n\r\n")
    if not blank:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length, words = fields.get("content-length", ""), first.split()
    if not length.isdigit() or len(words) < 2 or not words[1].isdigit():
        _refuse("it gives no answer that can be read")
    if len(body) < int(length):
        return None
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    return int(words[1]), content if isinstance(content, dict) else {}
